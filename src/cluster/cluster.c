// SPDX-License-Identifier: Apache-2.0
//
// cluster.c: recognises what a cluster argument is and loads it.
#include "pipesched/cluster.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "cluster/cluster_formats.h"
#include "cluster/gpu_json.h"
#include "io/builtin.h"
#include "io/file.h"
#include "pipesched/limits.h"

const char *ps_origin_name(ps_origin origin)
{
    static const char *const names[] = {"assumed", "looked up", "read", "given"};
    return names[origin];
}

int64_t ps_cluster_gpus(const ps_cluster *cluster)
{
    int64_t sum = 0;

    for (int32_t i = 0; i < cluster->num_groups; i++)
        sum += (int64_t)cluster->group[i].nodes * cluster->group[i].gpus_per_node;
    return sum;
}

int64_t ps_group_domain_gpus(const ps_group *group)
{
    return (int64_t)group->gpus_per_node * group->nvlink_domain_nodes;
}

static bool is_json(const char *text, int64_t size)
{
    const char *end = text + size;

    while (text < end && isspace((unsigned char)*text))
        text++;
    return text < end && (*text == '{' || *text == '[');
}

// A new format is one line here and one file.
typedef struct cluster_format {
    const char *name;
    bool (*recognises)(const char *text, int64_t size);
    ps_code (*read)(ps_cluster_build *build, const char *text, int64_t size, ps_cluster *out, ps_status *status);
    bool is_node; // --nodes and --gpu apply
} cluster_format;

static const cluster_format formats[] = {
    {"pipesched/cluster/v1", is_json, ps_cluster_read_json, false},
    {"hwloc XML", ps_is_node_file, ps_cluster_read_node, true},
};

static ps_code check_options(const ps_cluster_options *options, ps_status *status)
{
    double rate = options ? options->nic_bytes_per_s : 0;

    if (!options)
        return PS_OK;
    if (!(rate >= 0) || rate > PS_MAX_RATE_BYTES_PER_S) {
        ps_fail(status, PS_USAGE, "out-of-range", "a NIC's rate must be above 0 and at most 1000TB/s");
        return ps_fail_at(status, "--nic", 0, 0, NULL);
    }
    if (options->nodes < 0 || options->nodes > PS_MAX_GPUS) {
        ps_fail(status, PS_USAGE, "out-of-range", "the number of nodes must be from 1 to %lld", (long long)PS_MAX_GPUS);
        return ps_fail_at(status, "--nodes", 0, 0, NULL);
    }
    return PS_OK;
}

static ps_code refuse_node_options(const ps_cluster_options *options, const char *format, ps_status *status)
{
    const char *option = options && options->nodes ? "--nodes" : options && options->gpu ? "--gpu" : NULL;

    if (!option)
        return PS_OK;
    ps_fail(status, PS_USAGE, "option-unused", "%s is for files about one node; this cluster states its own (%s)",
            option, format);
    return ps_fail_hint(status, "leave %s out", option);
}

static ps_code begin(ps_arena *arena, const char *source, const ps_cluster_options *options, ps_cluster_build *build,
                     ps_cluster *out, ps_status *status)
{
    *build = (ps_cluster_build){.arena = arena, .options = options};
    build->source = ps_text_copy(arena, source);
    *out = (ps_cluster){.source = build->source};
    PS_TRY(check_options(options, status));
    return ps_catalog_open(arena, &build->catalog, status);
}

static ps_code finish(const ps_cluster_build *build, ps_cluster *out, ps_status *status)
{
    int64_t gpus = ps_cluster_gpus(out);

    if (gpus > PS_MAX_GPUS) {
        ps_fail(status, PS_BAD_INPUT, "too-many-gpus", "%lld GPUs are above the limit of %lld", (long long)gpus,
                (long long)PS_MAX_GPUS);
        return ps_fail_at(status, build->source, 0, 0, NULL);
    }
    out->num_warnings = (int32_t)build->warnings.count;
    out->warning = build->warnings.data;
    return PS_OK;
}

// "runs/node7.xml" -> "node7"
static const char *base_name(ps_arena *arena, const char *source)
{
    const char *slash = strrchr(source, '/');
    const char *name = slash ? slash + 1 : source;
    const char *dot = strrchr(name, '.');

    if (strcmp(name, "-") == 0)
        return "cluster";
    return dot && dot != name ? ps_text_copy_n(arena, name, dot - name) : name;
}

ps_code ps_cluster_parse(ps_arena *arena, const char *source, const char *text, int64_t size,
                         const ps_cluster_options *options, ps_cluster *out, ps_status *status)
{
    ps_cluster_build build;

    PS_TRY(begin(arena, source, options, &build, out, status));
    out->name = base_name(arena, build.source);
    ps_sha256(text, size, out->sha256);
    // The recognisers and hwloc read terminated text.
    const char *copy = ps_text_copy_n(arena, text, size);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (!formats[i].recognises(copy, size))
            continue;
        out->format = formats[i].name;
        if (!formats[i].is_node)
            PS_TRY(refuse_node_options(options, out->format, status));
        PS_TRY(formats[i].read(&build, copy, size, out, status));
        return finish(&build, out, status);
    }
    ps_fail(status, PS_BAD_INPUT, "cluster-format", size == 0 ? "the file is empty" : "not a cluster");
    ps_fail_at(status, build.source, 0, 0, NULL);
    return ps_fail_hint(status, "a cluster is JSON of \"pipesched/cluster/v1\" or hwloc XML of one node");
}

static ps_code load_shorthand(ps_arena *arena, const char *name, const ps_cluster_options *options, ps_cluster *out,
                              ps_status *status)
{
    ps_cluster_build build;

    PS_TRY(begin(arena, name, options, &build, out, status));
    out->name = build.source;
    out->format = "shorthand";
    PS_TRY(refuse_node_options(options, out->format, status));
    ps_sha256(name, (int64_t)strlen(name), out->sha256);
    PS_TRY(ps_cluster_read_shorthand(&build, build.source, out, status));
    return finish(&build, out, status);
}

static ps_code load_machine(ps_arena *arena, const ps_cluster_options *options, ps_cluster *out, ps_status *status)
{
    ps_cluster_build build;

    PS_TRY(begin(arena, "this machine", options, &build, out, status));
    out->name = "this-machine";
    out->format = "this machine";
    PS_TRY(ps_cluster_read_machine(&build, out, status));
    return finish(&build, out, status);
}

static ps_code fail_unknown(ps_arena *arena, const char *name, ps_status *status)
{
    int32_t count = 0;
    const char *const *names = ps_builtin_names(arena, PS_BUILTIN_CLUSTER, &count);
    const char *near = ps_text_nearest(name, names, count);

    ps_fail(status, PS_BAD_INPUT, "unknown-cluster", "\"%s\" is no file, built-in cluster or NODESxGPUSxTYPE", name);
    if (near)
        return ps_fail_hint(status, "did you mean \"%s\"?", near);
    return ps_fail_hint(status, "write for example 8x8xH100-SXM5-80GB; built-in clusters: pipesched show --list");
}

ps_code ps_cluster_load(ps_arena *arena, const char *name, const ps_cluster_options *options, ps_cluster *out,
                        ps_status *status)
{
    const ps_builtin *builtin;
    ps_file_bytes file;

    if (strcmp(name, "this-machine") == 0)
        return load_machine(arena, options, out, status);
    bool is_path = strcmp(name, "-") == 0 || strchr(name, '/') || ps_file_exists(name);
    if (!is_path && ps_cluster_is_shorthand(name))
        return load_shorthand(arena, name, options, out, status);
    if (!is_path && (builtin = ps_builtin_find(PS_BUILTIN_CLUSTER, name)))
        return ps_cluster_parse(arena, builtin->path, builtin->data, builtin->size, options, out, status);
    // A name with an ending is meant as a file: the system's words say best what is wrong with it.
    if (!is_path && !strchr(name, '.'))
        return fail_unknown(arena, name, status);
    PS_TRY(ps_file_read(arena, name, PS_MAX_NODE_FILE_BYTES, &file, status));
    return ps_cluster_parse(arena, name, file.data, file.size, options, out, status);
}
