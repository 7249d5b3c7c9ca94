// SPDX-License-Identifier: Apache-2.0
//
// node_json.c: the "node" object of pipesched/cluster/v1.
#include "cluster/cluster_json.h"

#include <string.h>

#include "base/text.h"
#include "cluster/cluster_formats.h"
#include "cluster/gpu_json.h"
#include "io/file.h"
#include "pipesched/limits.h"

// What an unnamed GPU type is taken to reach when its description does not say.
static void assume_constants(ps_gpu *gpu)
{
    if (!gpu->memory_usable_bytes.source)
        gpu->memory_usable_bytes =
            (ps_figure){0.97 * gpu->memory_nominal_bytes.value, PS_ORIGIN_ASSUMED, "assumed: 97 % of the nominal size"};
    if (!gpu->gemm_efficiency.source)
        gpu->gemm_efficiency = (ps_figure){0.60, PS_ORIGIN_ASSUMED, "assumed"};
    if (!gpu->attention_efficiency.source)
        gpu->attention_efficiency = (ps_figure){0.40, PS_ORIGIN_ASSUMED, "assumed"};
    if (!gpu->memory_efficiency.source)
        gpu->memory_efficiency = (ps_figure){0.75, PS_ORIGIN_ASSUMED, "assumed"};
    if (!gpu->kernel_seconds.source)
        gpu->kernel_seconds = (ps_figure){8e-6, PS_ORIGIN_ASSUMED, "assumed"};
    ps_gpu_mark_unknown(gpu);
}

static ps_code find_named(ps_cluster_build *build, ps_json at, const char *name, ps_catalog_entry *entry,
                          ps_status *status)
{
    const char *alias_of;

    if (ps_catalog_find(build->arena, &build->catalog, name, entry, &alias_of, status) != PS_OK)
        return ps_json_fail_place(at, status);
    if (alias_of)
        ps_cluster_warn(build, "%s is read as %s", name, alias_of);
    return PS_OK;
}

static ps_code check_gpu(ps_json object, const ps_gpu *gpu, ps_status *status)
{
    if (gpu->memory_usable_bytes.value > gpu->memory_nominal_bytes.value)
        return ps_json_fail(object, "usable-memory", status, "memory_usable is larger than memory_nominal");
    bool computes = false;
    for (int i = 0; i < PS_PRECISIONS; i++)
        computes = computes || gpu->peak_flops[i].value > 0;
    if (!computes)
        return ps_json_fail(object, "missing-key", status, "\"peak_tflops\" states no rate above 0");
    return PS_OK;
}

// A GPU described in full, or like one of the catalog with changes.
static ps_code read_described_gpu(ps_cluster_build *build, ps_json object, ps_catalog_entry *entry, ps_status *status)
{
    static const char *const keys[] = {"name",
                                       "like",
                                       "vendor",
                                       "memory_nominal",
                                       "memory_usable",
                                       "memory_bandwidth",
                                       "peak_tflops",
                                       "fabric",
                                       "fabric_bandwidth",
                                       "pcie_bandwidth",
                                       "multiprocessors",
                                       "power_watts",
                                       "usd_per_hour",
                                       "gemm_efficiency",
                                       "fp8_gemm_efficiency",
                                       "fp4_gemm_efficiency",
                                       "grouped_gemm_efficiency",
                                       "batched_gemm_efficiency",
                                       "attention_efficiency",
                                       "attention_backward_efficiency",
                                       "memory_efficiency",
                                       "kernel_time",
                                       NULL};
    static const char *const needed[] = {"name", "memory_nominal", "memory_bandwidth", "peak_tflops"};
    ps_figure_context context = {.arena = build->arena, .origin = PS_ORIGIN_READ, .source = build->source};
    const char *like = NULL;
    const char *name = NULL;

    PS_TRY(ps_json_check_keys(object, keys, status));
    PS_TRY(ps_json_get_string(object, "like", PS_OPTIONAL, &like, status));
    PS_TRY(ps_json_get_string(object, "name", PS_OPTIONAL, &name, status));
    *entry = (ps_catalog_entry){.gpu = {.vendor = "unknown", .fabric = "none"}};
    if (like)
        PS_TRY(find_named(build, ps_json_member(object, "like"), like, entry, status));
    for (size_t i = 0; !like && i < sizeof needed / sizeof *needed; i++) {
        if (ps_json_member(object, needed[i]).node)
            continue;
        ps_json_fail(object, "missing-key", status, "a described GPU needs \"%s\"", needed[i]);
        return ps_fail_hint(status, "or start from a known type with \"like\": \"H100-SXM5-80GB\"");
    }
    if (name)
        entry->gpu.name = ps_text_copy(build->arena, name);
    PS_TRY(ps_gpu_read(&context, object, &entry->gpu, status));
    for (int i = 0; i < PS_PRECISIONS; i++)
        if (!entry->gpu.peak_flops[i].source)
            entry->gpu.peak_flops[i] = (ps_figure){
                0, PS_ORIGIN_READ, ps_text_format(build->arena, "%s: not a format of this GPU", build->source)};
    assume_constants(&entry->gpu);
    return check_gpu(object, &entry->gpu, status);
}

static ps_code read_gpu(ps_cluster_build *build, ps_json node, ps_node_settings *settings, ps_status *status)
{
    ps_json gpu = ps_json_member(node, "gpu");
    ps_catalog_entry *entry = ps_new(build->arena, ps_catalog_entry, 1);

    if (!gpu.node) {
        if (settings->facts)
            return PS_OK;
        ps_json_fail(node, "missing-key", status,
                     "a node needs \"gpu\", a type of the catalog, or \"from\", a node file");
        return PS_BAD_INPUT;
    }
    settings->entry = entry;
    if (ps_json_is(gpu, PS_JSON_OBJECT))
        return read_described_gpu(build, gpu, entry, status);
    PS_TRY(ps_json_expect(gpu, PS_JSON_STRING, status));
    return find_named(build, gpu, ps_json_text(gpu), entry, status);
}

// Relative to the folder of the cluster file, so that a folder of files can be moved.
static ps_code read_from(ps_cluster_build *build, ps_json node, ps_node_settings *settings, ps_status *status)
{
    const char *from = NULL;
    ps_file_bytes file;

    PS_TRY(ps_json_get_string(node, "from", PS_OPTIONAL, &from, status));
    if (!from)
        return PS_OK;
    if (!from[0])
        return ps_json_fail(ps_json_member(node, "from"), "missing-key", status, "\"from\" is empty");

    const char *slash = strrchr(build->source, '/');
    const char *path = from;
    if (slash && from[0] != '/')
        path = ps_text_format(build->arena, "%.*s/%s", (int)(slash - build->source), build->source, from);
    if (strcmp(from, "-") == 0)
        return ps_json_fail(ps_json_member(node, "from"), "node-file", status, "\"from\" must be a file");
    ps_code code = ps_file_read(build->arena, path, PS_MAX_NODE_FILE_BYTES, &file, status);
    if (code != PS_OK) {
        ps_fail_hint(status, "\"from\" is relative to the folder of %s", build->source);
        return code;
    }
    ps_node_facts *facts = ps_new(build->arena, ps_node_facts, 1);
    PS_TRY(ps_node_file_read(build, ps_text_copy(build->arena, path), file.data, file.size, facts, status));
    settings->facts = facts;
    return PS_OK;
}

static ps_code check_link(ps_cluster_build *build, ps_json node, const char *key, const char *name, bool want_nic,
                          ps_status *status)
{
    ps_json at = ps_json_member(node, key);
    ps_link link;

    if (!name)
        return PS_OK;
    if (ps_catalog_find_link(build->arena, &build->catalog, name, &link, status) != PS_OK)
        return ps_json_fail_place(at, status);
    if (ps_catalog_link_is_nic(&build->catalog, name) != want_nic)
        return ps_json_fail(at, "wrong-link", status, "\"%s\" is %s", name,
                            want_nic ? "a link inside a node, not a NIC" : "a NIC, not a link inside a node");
    return PS_OK;
}

static ps_code get_rate(ps_json node, const char *key, double *out, ps_status *status)
{
    if (!ps_json_member(node, key).node)
        return PS_OK;
    PS_TRY(ps_json_get_rate(node, key, PS_OPTIONAL, out, status));
    if (!(*out > 0) || *out > PS_MAX_RATE_BYTES_PER_S)
        return ps_json_fail(ps_json_member(node, key), "out-of-range", status,
                            "\"%s\" must be above 0 and at most 1000TB/s", key);
    return PS_OK;
}

ps_code ps_node_json_read(ps_cluster_build *build, ps_json node, ps_node_settings *settings, ps_status *status)
{
    static const char *const keys[] = {"from",          "gpu",  "gpus", "intra",         "intra_bandwidth",
                                       "intra_latency", "nics", "nic",  "nic_bandwidth", "nic_latency",
                                       "host_memory",   NULL};

    *settings = ps_node_settings_none;
    PS_TRY(ps_json_expect(node, PS_JSON_OBJECT, status));
    PS_TRY(ps_json_check_keys(node, keys, status));
    PS_TRY(read_from(build, node, settings, status));
    PS_TRY(read_gpu(build, node, settings, status));
    PS_TRY(ps_json_get_int32(node, "gpus", settings->facts ? PS_OPTIONAL : PS_REQUIRED, 1, (int32_t)PS_MAX_GPUS,
                             &settings->gpus, status));

    PS_TRY(ps_json_get_string(node, "intra", PS_OPTIONAL, &settings->intra, status));
    PS_TRY(check_link(build, node, "intra", settings->intra, false, status));
    PS_TRY(get_rate(node, "intra_bandwidth", &settings->intra_bytes_per_s, status));
    PS_TRY(ps_json_get_ms(node, "intra_latency", PS_OPTIONAL, PS_MAX_LAYER_NS, &settings->intra_latency_ns, status));

    PS_TRY(ps_json_get_int32(node, "nics", PS_OPTIONAL, 0, PS_MAX_NODE_NICS, &settings->nics, status));
    PS_TRY(ps_json_get_string(node, "nic", PS_OPTIONAL, &settings->nic, status));
    PS_TRY(check_link(build, node, "nic", settings->nic, true, status));
    PS_TRY(get_rate(node, "nic_bandwidth", &settings->nic_bytes_per_s, status));
    PS_TRY(ps_json_get_ms(node, "nic_latency", PS_OPTIONAL, PS_MAX_LAYER_NS, &settings->nic_latency_ns, status));

    PS_TRY(ps_json_get_bytes(node, "host_memory", PS_OPTIONAL, &settings->host_memory_bytes, status));
    if (ps_json_member(node, "host_memory").node && settings->host_memory_bytes == 0)
        return ps_json_fail(ps_json_member(node, "host_memory"), "out-of-range", status, "\"host_memory\" is 0");
    return PS_OK;
}
