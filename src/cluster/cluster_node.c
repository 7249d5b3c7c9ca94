// SPDX-License-Identifier: Apache-2.0
//
// cluster_node.c: files about one node, and this machine.
#include "cluster/cluster_formats.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "cluster/cluster_hwloc.h"
#include "cluster/hwloc_xml.h"
#include "pipesched/limits.h"

static const char *skip_blanks(const char *text, int64_t size)
{
    const char *end = text + size;

    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    while (text < end && isspace((unsigned char)*text))
        text++;
    return text;
}

static bool is_topology_matrix(const char *text)
{
    return strstr(text, "GPU0") && strstr(text, "CPU Affinity");
}

bool ps_is_node_file(const char *text, int64_t size)
{
    return *skip_blanks(text, size) == '<' || is_topology_matrix(text);
}

ps_code ps_node_file_read(ps_cluster_build *build, const char *source, const char *text, int64_t size,
                          ps_node_facts *facts, ps_status *status)
{
    char root[64] = "";

    if (is_topology_matrix(text)) {
        ps_fail(status, PS_BAD_INPUT, "unsupported-format", "nvidia-smi topology matrices cannot be read");
        ps_fail_at(status, source, 0, 0, NULL);
        return ps_fail_hint(status, "write hwloc XML on that machine with: lstopo --of xml node.xml");
    }
    if (*skip_blanks(text, size) != '<') {
        ps_fail(status, PS_BAD_INPUT, "cluster-format", "not a node file: hwloc XML is expected");
        return ps_fail_at(status, source, 0, 0, NULL);
    }
    if (ps_xml_root_name(text, size, root) && (strcmp(root, "system") == 0 || strcmp(root, "graphs") == 0)) {
        ps_fail(status, PS_BAD_INPUT, "unsupported-format", "NCCL %s files cannot be read",
                strcmp(root, "system") == 0 ? "topology" : "graph");
        ps_fail_at(status, source, 0, 0, NULL);
        return ps_fail_hint(status, "write hwloc XML on that machine with: lstopo --of xml node.xml");
    }
    return ps_hwloc_read_xml(build->arena, source, text, size, facts, status);
}

static ps_code group_of_facts(ps_cluster_build *build, const ps_node_facts *facts, ps_cluster *out, ps_status *status)
{
    const ps_cluster_options *options = build->options;
    ps_node_settings settings = ps_node_settings_none;
    ps_catalog_entry entry;
    const char *alias_of;

    settings.facts = facts;
    if (options && options->gpu) {
        if (ps_catalog_find(build->arena, &build->catalog, options->gpu, &entry, &alias_of, status) != PS_OK)
            return ps_fail_at(status, "--gpu", 0, 0, NULL);
        if (alias_of)
            ps_cluster_warn(build, "%s is read as %s", options->gpu, alias_of);
        settings.entry = &entry;
        settings.gpu_source = "--gpu";
    }
    out->num_groups = 1;
    out->group = ps_new(build->arena, ps_group, 1);
    PS_TRY(ps_group_build(build, &settings, options && options->nodes > 0 ? options->nodes : 1, out->group, status));
    out->group->name = out->name;
    return PS_OK;
}

ps_code ps_cluster_read_node(ps_cluster_build *build, const char *text, int64_t size, ps_cluster *out,
                             ps_status *status)
{
    ps_node_facts facts;

    PS_TRY(ps_node_file_read(build, build->source, text, size, &facts, status));
    return group_of_facts(build, &facts, out, status);
}

ps_code ps_cluster_read_machine(ps_cluster_build *build, ps_cluster *out, ps_status *status)
{
    ps_node_facts facts;

    PS_TRY(ps_hwloc_read_machine(build->arena, &facts, out->sha256, status));
    return group_of_facts(build, &facts, out, status);
}
