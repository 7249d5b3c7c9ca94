// SPDX-License-Identifier: Apache-2.0
//
// cluster_summary_json.c: a cluster for machines. A node's GPUs, NICs and links are listed one by one even when the
// input gave only their number, so that readers need one shape; every figure carries its origin.
#include <stdio.h>

#include "io/json_write.h"
#include "report/cluster_summary.h"

static void put_figure(ps_json_writer *json, const char *key, ps_figure figure)
{
    ps_json_object_inline(json, key);
    if (figure.value > 0)
        ps_json_put_double(json, "value", figure.value);
    else
        ps_json_put_null(json, "value"); // not known
    ps_json_put_string(json, "origin", ps_origin_name(figure.origin));
    ps_json_put_string(json, "source", figure.source);
    ps_json_close(json);
}

static const char *numbered(const char *what, int32_t number, char text[32])
{
    snprintf(text, 32, "%s%d", what, (int)number);
    return text;
}

static void put_gpu(ps_json_writer *json, const ps_group *group, int32_t index)
{
    const ps_node_gpu *read = index < group->num_node_gpus ? &group->node_gpu[index] : NULL;
    char text[32];
    ps_json_object_inline(json, NULL);
    ps_json_put_string(json, "name", read ? read->name : numbered("gpu", index, text));
    ps_json_put_string(json, "group", group->name);
    ps_json_put_string(json, "type", group->gpu.name);
    if (read) {
        ps_json_put_string(json, "model", read->model);
        ps_json_put_string(json, "pci", read->pci);
        if (read->numa_node >= 0)
            ps_json_put_int(json, "numa_node", read->numa_node);
    }
    put_figure(json, "memory_bytes",
               read && read->memory_bytes.value > 0 ? read->memory_bytes : group->gpu.memory_nominal_bytes);
    put_figure(json, "memory_usable_bytes", group->gpu.memory_usable_bytes);
    ps_json_close(json);
}

static void put_links(ps_json_writer *json, const ps_group *group)
{
    for (int32_t index = 0; index < group->num_node_links; index++) {
        const ps_node_link *link = &group->node_link[index];
        ps_json_object_inline(json, NULL);
        ps_json_put_string(json, "group", group->name);
        ps_json_array_inline(json, "between");
        ps_json_put_int(json, NULL, link->gpu_a);
        ps_json_put_int(json, NULL, link->gpu_b);
        ps_json_close(json);
        ps_json_put_string(json, "kind", link->kind);
        put_figure(json, "bytes_per_s", link->bytes_per_s);
        ps_json_close(json);
    }
    const ps_link *both[] = {&group->intra, &group->inter};
    static const char *const between[] = {"GPUs of a node", "nodes, per GPU"};
    for (int32_t index = 0; index < 2; index++) {
        ps_json_object_inline(json, NULL);
        ps_json_put_string(json, "group", group->name);
        ps_json_put_string(json, "between", between[index]);
        ps_json_put_string(json, "kind", both[index]->name);
        put_figure(json, "bytes_per_s", both[index]->bytes_per_s);
        put_figure(json, "efficiency", both[index]->efficiency);
        put_figure(json, "latency_seconds", both[index]->latency_seconds);
        ps_json_close(json);
    }
}

static void put_nic(ps_json_writer *json, const ps_group *group, int32_t index)
{
    const ps_node_nic *read = index < group->num_node_nics ? &group->node_nic[index] : NULL;
    ps_figure rate = group->inter.bytes_per_s; // of a GPU's share
    char text[32];
    if (group->nics > 0)
        rate.value = rate.value * group->gpus_per_node / group->nics;
    ps_json_object_inline(json, NULL);
    ps_json_put_string(json, "name", read ? read->name : numbered("nic", index, text));
    ps_json_put_string(json, "group", group->name);
    ps_json_put_string(json, "kind", read ? read->kind : group->inter.name);
    if (read)
        ps_json_put_string(json, "pci", read->pci);
    if (read && read->numa_node >= 0)
        ps_json_put_int(json, "numa_node", read->numa_node);
    put_figure(json, "bytes_per_s", read ? read->bytes_per_s : rate);
    ps_json_close(json);
}

static void put_group(ps_json_writer *json, const ps_group *group)
{
    const ps_gpu *gpu = &group->gpu;
    ps_json_object(json, NULL);
    ps_json_put_string(json, "name", group->name);
    ps_json_put_int(json, "nodes", group->nodes);
    ps_json_put_int(json, "gpus_per_node", group->gpus_per_node);
    ps_json_put_int(json, "nvlink_domain_nodes", group->nvlink_domain_nodes);
    ps_json_put_string(json, "gpu", gpu->name);
    put_figure(json, "memory_nominal_bytes", gpu->memory_nominal_bytes);
    put_figure(json, "memory_usable_bytes", gpu->memory_usable_bytes);
    put_figure(json, "memory_bytes_per_s", gpu->memory_bytes_per_s);
    ps_json_object(json, "peak_flops");
    for (int32_t precision = 0; precision < PS_PRECISIONS; precision++)
        if (gpu->peak_flops[precision].value > 0)
            put_figure(json, ps_precision_name((ps_precision)precision), gpu->peak_flops[precision]);
    ps_json_close(json);
    put_figure(json, "fabric_bytes_per_s", gpu->fabric_bytes_per_s);
    put_figure(json, "pcie_bytes_per_s", gpu->pcie_bytes_per_s);
    put_figure(json, "power_watts", gpu->power_watts);
    put_figure(json, "host_memory_bytes", group->host_memory_bytes);
    put_figure(json, "usd_per_gpu_hour", group->usd_per_gpu_hour);
    put_figure(json, "usd_per_kwh", group->usd_per_kwh);
    ps_json_close(json);
}

static int64_t count_nodes(const ps_cluster *cluster)
{
    int64_t nodes = 0;
    for (int32_t group = 0; group < cluster->num_groups; group++)
        nodes += cluster->group[group].nodes;
    return nodes;
}

ps_code ps_cluster_json(FILE *file, const ps_cluster *cluster, ps_status *status)
{
    ps_json_writer json;
    ps_json_begin(&json, file);
    ps_json_object(&json, NULL);
    ps_json_put_string(&json, "format", "pipesched/show/v1");
    ps_json_put_string(&json, "shows", "cluster");
    ps_json_put_string(&json, "name", cluster->name);
    ps_json_put_string(&json, "source_format", cluster->format);
    ps_json_put_int(&json, "nodes", count_nodes(cluster));
    ps_json_put_int(&json, "num_gpus", ps_cluster_gpus(cluster));
    ps_json_array(&json, "gpus");
    for (int32_t group = 0; group < cluster->num_groups; group++)
        for (int32_t gpu = 0; gpu < cluster->group[group].gpus_per_node; gpu++)
            put_gpu(&json, &cluster->group[group], gpu);
    ps_json_close(&json);
    ps_json_array(&json, "links");
    for (int32_t group = 0; group < cluster->num_groups; group++)
        put_links(&json, &cluster->group[group]);
    ps_json_close(&json);
    ps_json_array(&json, "nics");
    for (int32_t group = 0; group < cluster->num_groups; group++) {
        const ps_group *of = &cluster->group[group];
        int32_t count = of->num_node_nics > 0 ? of->num_node_nics : of->nics;
        for (int32_t nic = 0; nic < count; nic++)
            put_nic(&json, of, nic);
    }
    ps_json_close(&json);
    ps_json_array(&json, "groups");
    for (int32_t group = 0; group < cluster->num_groups; group++)
        put_group(&json, &cluster->group[group]);
    ps_json_close(&json);
    ps_json_array(&json, "warnings");
    for (int32_t index = 0; index < cluster->num_warnings; index++)
        ps_json_put_string(&json, NULL, cluster->warning[index]);
    ps_json_close(&json);
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}
