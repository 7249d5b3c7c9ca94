// SPDX-License-Identifier: Apache-2.0
//
// group_list.c: the GPUs, NICs and pairs of a read node, one by one, for `show`.
#include "cluster/group.h"

#include <string.h>

#include "base/text.h"

static void list_gpus(ps_cluster_build *build, const ps_node_facts *facts, ps_group *group)
{
    group->num_node_gpus = facts->num_gpus;
    group->node_gpu = ps_new(build->arena, ps_node_gpu, facts->num_gpus);
    for (int32_t i = 0; i < facts->num_gpus; i++) {
        const ps_fact_gpu *gpu = &facts->gpu[i];
        ps_figure memory = group->gpu.memory_usable_bytes;
        if (gpu->memory_bytes > 0)
            memory = (ps_figure){(double)gpu->memory_bytes, PS_ORIGIN_READ, facts->source};
        group->node_gpu[i] = (ps_node_gpu){.name = gpu->name,
                                           .model = gpu->model,
                                           .pci = gpu->pci,
                                           .numa_node = gpu->numa_node,
                                           .memory_bytes = memory};
    }
}

static ps_code list_nics(ps_cluster_build *build, const ps_node_facts *facts, ps_group *group, ps_status *status)
{
    group->num_node_nics = facts->num_nics;
    group->node_nic = ps_new(build->arena, ps_node_nic, facts->num_nics);
    for (int32_t i = 0; i < facts->num_nics; i++) {
        const ps_fact_nic *nic = &facts->nic[i];
        const char *name = ps_catalog_match_nic(&build->catalog, nic->kind, nic->vendor_id, nic->device_id);
        ps_node_nic *out = &group->node_nic[i];
        *out = (ps_node_nic){.name = nic->name, .kind = nic->kind, .pci = nic->pci, .numa_node = nic->numa_node};
        out->bytes_per_s = (ps_figure){0, PS_ORIGIN_ASSUMED, ""};
        if (!name)
            continue;
        ps_link link;
        PS_TRY(ps_catalog_find_link(build->arena, &build->catalog, name, &link, status));
        out->bytes_per_s = (ps_figure){link.bytes_per_s.value, PS_ORIGIN_LOOKED_UP,
                                       ps_text_format(build->arena, "PCI id %04x:%04x: %s", (unsigned)nic->vendor_id,
                                                      (unsigned)nic->device_id, name)};
    }
    return PS_OK;
}

// The path of one pair. A switched fabric gives each pair the whole port, though all pairs share it.
static ps_node_link pair_link(const ps_node_facts *facts, const ps_group *group, int32_t a, int32_t b)
{
    int64_t cell = (int64_t)a * facts->num_gpus + b;
    const char *fabric = strcmp(group->gpu.fabric, "xgmi") == 0 ? "xgmi" : "nvlink";
    ps_node_link link = {.gpu_a = a, .gpu_b = b, .kind = "pcie", .bytes_per_s = group->gpu.pcie_bytes_per_s};
    double dedicated = facts->peer_bytes_per_s ? facts->peer_bytes_per_s[cell] : 0;
    double port_a = facts->gpu[a].switch_bytes_per_s;
    double port_b = facts->gpu[b].switch_bytes_per_s;

    if (facts->has_switches && port_a > 0 && port_b > 0) {
        link.kind = fabric;
        link.bytes_per_s = group->intra.bytes_per_s;
    } else if (dedicated > 0) {
        link.kind = fabric;
        link.bytes_per_s = (ps_figure){dedicated, PS_ORIGIN_READ, facts->source};
    } else if (facts->peer_connected && facts->peer_connected[cell]) {
        link.kind = "xgmi"; // files state no rate for it: the GPU's links are taken as spread over its peers
        link.bytes_per_s = (ps_figure){group->gpu.fabric_bytes_per_s.value / (facts->num_gpus - 1), PS_ORIGIN_ASSUMED,
                                       "assumed: the GPU's fabric, divided by its peers"};
    } else if (!facts->peer_bytes_per_s && !facts->peer_connected &&
               strcmp(group->intra.name, group->gpu.fabric) == 0) {
        link.kind = fabric; // by the catalog alone
        link.bytes_per_s = group->intra.bytes_per_s;
    } else if (!facts->same_pcie_root[cell]) {
        link.kind = "system";
        link.bytes_per_s.origin = PS_ORIGIN_ASSUMED;
        link.bytes_per_s.source = "assumed: the PCIe rate; the path between sockets may be slower";
    }
    return link;
}

ps_code ps_group_list_node(ps_cluster_build *build, const ps_node_facts *facts, ps_group *group, ps_status *status)
{
    int32_t n = facts->num_gpus;
    int32_t count = 0;

    list_gpus(build, facts, group);
    group->num_node_links = n * (n - 1) / 2;
    group->node_link = ps_new(build->arena, ps_node_link, group->num_node_links);
    for (int32_t a = 0; a < n; a++)
        for (int32_t b = a + 1; b < n; b++)
            group->node_link[count++] = pair_link(facts, group, a, b);
    return list_nics(build, facts, group, status);
}
