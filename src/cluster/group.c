// SPDX-License-Identifier: Apache-2.0
//
// group.c: the GPUs of a group; see group.h.
#include "cluster/group.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cluster/gpu_json.h"
#include "pipesched/limits.h"

const ps_node_settings ps_node_settings_none = {.intra_latency_ns = -1, .nics = -1, .nic_latency_ns = -1};

void ps_cluster_warn(ps_cluster_build *build, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *ps_vec_push(build->arena, &build->warnings) = ps_text_copy(build->arena, text);
}

static int64_t least_memory(const ps_node_facts *facts)
{
    int64_t least = 0;

    for (int32_t i = 0; i < facts->num_gpus; i++) {
        int64_t bytes = facts->gpu[i].memory_bytes;
        if (bytes > 0 && (least == 0 || bytes < least))
            least = bytes;
    }
    return least;
}

static const char *catalog_name(ps_cluster_build *build, const ps_fact_gpu *gpu)
{
    const char *name = NULL;

    if (gpu->model)
        name = ps_catalog_match_text(build->arena, &build->catalog, gpu->model, gpu->memory_bytes);
    if (!name && gpu->vendor_id)
        name = ps_catalog_match_pci(build->arena, &build->catalog, gpu->vendor_id, gpu->device_id, gpu->memory_bytes);
    return name;
}

static const char *fact_label(ps_cluster_build *build, const ps_fact_gpu *gpu)
{
    const char *name = catalog_name(build, gpu);

    if (name)
        return name;
    if (gpu->model)
        return gpu->model;
    return ps_text_format(build->arena, "PCI %04x:%04x", (unsigned)gpu->vendor_id, (unsigned)gpu->device_id);
}

static ps_code check_equal(ps_cluster_build *build, const ps_node_facts *facts, ps_status *status)
{
    const char *first = fact_label(build, &facts->gpu[0]);

    for (int32_t i = 1; i < facts->num_gpus; i++) {
        const char *other = fact_label(build, &facts->gpu[i]);
        if (strcmp(first, other) == 0)
            continue;
        ps_fail(status, PS_BAD_INPUT, "mixed-gpus", "%s is %s, but %s is %s; GPUs of one node must be of one type",
                facts->gpu[0].name, first, facts->gpu[i].name, other);
        ps_fail_at(status, facts->source, 0, 0, NULL);
        return ps_fail_hint(status, "name the type that all are to count as with --gpu");
    }
    return PS_OK;
}

static const char *vendor_of(uint32_t id)
{
    switch (id) {
    case 0x10de: return "NVIDIA";
    case 0x1002: return "AMD";
    case 0x8086: return "Intel";
    default: return "unknown";
    }
}

// A GPU that the catalog lacks is shown as far as the file goes. Its peaks stay unknown: value 0 and an empty source.
static void describe_unknown(ps_cluster_build *build, const ps_node_facts *facts, ps_catalog_entry *entry)
{
    const ps_fact_gpu *gpu = &facts->gpu[0];
    ps_gpu *out = &entry->gpu;

    *entry = (ps_catalog_entry){0};
    out->name = fact_label(build, gpu);
    out->vendor = vendor_of(gpu->vendor_id);
    out->fabric = "none";
    ps_gpu_mark_unknown(out);
    if (gpu->pcie_bytes_per_s > 0)
        out->pcie_bytes_per_s = (ps_figure){gpu->pcie_bytes_per_s, PS_ORIGIN_READ, facts->source};
    ps_cluster_warn(build, "%s is not in the catalog: its peak rates are unknown; name a type with --gpu", out->name);
}

static ps_code find_gpu(ps_cluster_build *build, const ps_node_settings *settings, ps_catalog_entry *entry,
                        ps_status *status)
{
    const ps_node_facts *facts = settings->facts;
    const char *alias_of;

    if (settings->entry) {
        *entry = *settings->entry;
        const char *read = facts ? catalog_name(build, &facts->gpu[0]) : NULL;
        if (read && strcmp(read, entry->gpu.name) != 0)
            ps_cluster_warn(build, "%s says %s, %s says %s: the latter counts", facts->source, read,
                            settings->gpu_source ? settings->gpu_source : build->source, entry->gpu.name);
        return PS_OK;
    }
    PS_TRY(check_equal(build, facts, status));
    const char *name = catalog_name(build, &facts->gpu[0]);
    if (name)
        return ps_catalog_find(build->arena, &build->catalog, name, entry, &alias_of, status);
    describe_unknown(build, facts, entry);
    return PS_OK;
}

// Memory that the file states is what a process sees; it replaces the catalog's usable figure unless the user named
// another type, whose memory then counts.
static void take_read_memory(ps_cluster_build *build, const ps_node_settings *settings, ps_gpu *gpu)
{
    int64_t bytes = least_memory(settings->facts);

    if (bytes <= 0)
        return;
    double nominal = gpu->memory_nominal_bytes.value;
    if (nominal > 0 && ((double)bytes > nominal || (double)bytes < 0.5 * nominal)) {
        ps_cluster_warn(build, "%s reads %.1f GiB of memory, which no %s has: the catalog's figure counts",
                        settings->facts->source, (double)bytes / 1073741824.0, gpu->name);
        return;
    }
    gpu->memory_usable_bytes = (ps_figure){(double)bytes, PS_ORIGIN_READ, settings->facts->source};
}

ps_code ps_group_build(ps_cluster_build *build, const ps_node_settings *settings, int32_t nodes, ps_group *group,
                       ps_status *status)
{
    const ps_node_facts *facts = settings->facts;
    ps_catalog_entry entry;

    *group = (ps_group){.name = "node", .nodes = nodes, .nvlink_domain_nodes = 1};
    group->gpus_per_node = settings->gpus ? settings->gpus : facts->num_gpus;
    int64_t gpus = (int64_t)nodes * group->gpus_per_node;
    if (gpus > PS_MAX_GPUS) {
        ps_fail(status, PS_BAD_INPUT, "too-many-gpus", "%d nodes of %d GPUs are %lld, above the limit of %lld",
                (int)nodes, (int)group->gpus_per_node, (long long)gpus, (long long)PS_MAX_GPUS);
        return ps_fail_hint(status, "nodes of this size: at most %lld",
                            (long long)(PS_MAX_GPUS / group->gpus_per_node));
    }

    PS_TRY(find_gpu(build, settings, &entry, status));
    if (facts)
        take_read_memory(build, settings, &entry.gpu);
    group->gpu = entry.gpu;
    group->usd_per_gpu_hour = entry.gpu.usd_per_hour;
    group->usd_per_kwh = (ps_figure){0.12, PS_ORIGIN_ASSUMED, "assumed"};

    group->host_memory_bytes = (ps_figure){0, PS_ORIGIN_ASSUMED, ""};
    if (facts && facts->host_memory_bytes > 0)
        group->host_memory_bytes = (ps_figure){(double)facts->host_memory_bytes, PS_ORIGIN_READ, facts->source};
    if (settings->host_memory_bytes > 0)
        group->host_memory_bytes = (ps_figure){(double)settings->host_memory_bytes, PS_ORIGIN_READ, build->source};

    PS_TRY(ps_group_set_intra(build, settings, &entry, group, status));
    PS_TRY(ps_group_set_inter(build, settings, &entry, group, status));
    if (facts && group->gpus_per_node == facts->num_gpus)
        return ps_group_list_node(build, facts, group, status);
    if (facts)
        ps_cluster_warn(build, "%s has %d GPUs, %s says %d: they are not listed one by one", facts->source,
                        (int)facts->num_gpus, build->source, (int)group->gpus_per_node);
    return PS_OK;
}
