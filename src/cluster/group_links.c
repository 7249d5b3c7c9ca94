// SPDX-License-Identifier: Apache-2.0
//
// group_links.c: links inside a node and between nodes.
//
// Inside a node, the link is what a collective over all its GPUs can use: the fabric when it joins all of them, PCIe
// otherwise, however fast some pairs are. Between nodes, the NICs are shared evenly by the GPUs.
#include "cluster/group.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "pipesched/limits.h"

static ps_figure assumed(double value, const char *source)
{
    return (ps_figure){value, PS_ORIGIN_ASSUMED, source};
}

static const ps_link no_link = {.name = "none",
                                .bytes_per_s = {0, PS_ORIGIN_ASSUMED, ""},
                                .efficiency = {0, PS_ORIGIN_ASSUMED, ""},
                                .latency_seconds = {0, PS_ORIGIN_ASSUMED, ""}};

// Do the dedicated links of pairs lead from GPU 0 to every other? A graph search over at most PS_MAX_NODE_GPUS nodes.
static bool peers_reach_all(const ps_node_facts *facts)
{
    int32_t n = facts->num_gpus;
    bool reached[PS_MAX_NODE_GPUS] = {true};
    int32_t stack[PS_MAX_NODE_GPUS] = {0};
    int32_t depth = 1;
    int32_t count = 1;

    while (depth > 0) {
        int32_t a = stack[--depth];
        for (int32_t b = 0; b < n; b++) {
            int64_t cell = (int64_t)a * n + b;
            bool joined = (facts->peer_bytes_per_s && facts->peer_bytes_per_s[cell] > 0) ||
                          (facts->peer_connected && facts->peer_connected[cell]);
            if (!joined || reached[b])
                continue;
            reached[b] = true;
            stack[depth++] = b;
            count++;
        }
    }
    return count == n;
}

// Rate of a GPU's fabric, all links together: the least over the GPUs. 0: the file gives none.
static double fabric_rate(const ps_node_facts *facts)
{
    double least = 0;

    for (int32_t a = 0; a < facts->num_gpus; a++) {
        double sum = facts->gpu[a].switch_bytes_per_s;
        for (int32_t b = 0; facts->peer_bytes_per_s && b < facts->num_gpus; b++)
            sum += facts->peer_bytes_per_s[(int64_t)a * facts->num_gpus + b];
        if (a == 0 || sum < least)
            least = sum;
    }
    return least;
}

typedef enum fabric_state {
    FABRIC_UNSTATED, // the file says nothing: the catalog decides
    FABRIC_PARTIAL,  // some GPUs only
    FABRIC_WHOLE
} fabric_state;

static fabric_state fabric_of(const ps_node_facts *facts)
{
    if (facts->has_switches)
        return fabric_rate(facts) > 0 ? FABRIC_WHOLE : FABRIC_PARTIAL;
    if (!facts->peer_bytes_per_s && !facts->peer_connected)
        return FABRIC_UNSTATED;
    return peers_reach_all(facts) ? FABRIC_WHOLE : FABRIC_PARTIAL;
}

// hwloc before 2.9.3 writes each NVLink3 link at twice its rate, which the catalog's figure shows.
static ps_figure read_fabric(ps_cluster_build *build, const ps_node_facts *facts, const ps_gpu *gpu)
{
    double rate = fabric_rate(facts);
    double known = gpu->fabric_bytes_per_s.value;

    if (rate <= 0)
        return gpu->fabric_bytes_per_s;
    if (known > 0 && rate > 1.99 * known && rate < 2.01 * known) {
        ps_cluster_warn(build, "%s gives twice the NVLink rate of %s, as hwloc before 2.9.3 does: halved",
                        facts->source, gpu->name);
        rate /= 2;
    }
    return (ps_figure){rate, PS_ORIGIN_READ, facts->source};
}

static ps_code pcie_link(ps_cluster_build *build, const ps_gpu *gpu, ps_link *out, ps_status *status)
{
    double rate = gpu->pcie_bytes_per_s.value;
    const char *name = rate > 0 ? ps_catalog_pcie_of_rate(build->arena, &build->catalog, rate) : NULL;

    PS_TRY(ps_catalog_find_link(build->arena, &build->catalog, name ? name : "pcie4", out, status));
    if (!name) {
        out->name = "pcie";
        out->bytes_per_s = gpu->pcie_bytes_per_s;
    }
    return PS_OK;
}

static ps_code named_link(ps_cluster_build *build, const char *name, const ps_gpu *gpu, ps_link *out, ps_status *status)
{
    PS_TRY(ps_catalog_find_link(build->arena, &build->catalog, name, out, status));
    // A type of GPU may have fewer links of its fabric than the fabric allows.
    if (strcasecmp(name, gpu->fabric) == 0 && gpu->fabric_bytes_per_s.value > 0)
        out->bytes_per_s = gpu->fabric_bytes_per_s;
    return PS_OK;
}

static ps_code intra_from_facts(ps_cluster_build *build, const ps_node_facts *facts, const ps_catalog_entry *entry,
                                ps_group *group, ps_status *status)
{
    const ps_gpu *gpu = &entry->gpu;
    fabric_state state = facts->num_gpus > 1 ? fabric_of(facts) : FABRIC_UNSTATED;

    if (state == FABRIC_WHOLE) {
        if (strcmp(gpu->fabric, "none") != 0) {
            PS_TRY(named_link(build, gpu->fabric, gpu, &group->intra, status));
        } else {
            PS_TRY(named_link(build, "nvlink3", gpu, &group->intra, status));
            group->intra.name = "nvlink";
        }
        group->intra.bytes_per_s = read_fabric(build, facts, gpu);
        return PS_OK;
    }
    if (state == FABRIC_PARTIAL)
        ps_cluster_warn(build, "%s: fast links join some GPUs only; between the others PCIe is counted", facts->source);
    if (state == FABRIC_UNSTATED && entry->intra)
        return named_link(build, entry->intra, gpu, &group->intra, status);
    return pcie_link(build, gpu, &group->intra, status);
}

ps_code ps_group_set_intra(ps_cluster_build *build, const ps_node_settings *settings, const ps_catalog_entry *entry,
                           ps_group *group, ps_status *status)
{
    ps_link *intra = &group->intra;

    if (settings->intra) {
        PS_TRY(named_link(build, settings->intra, &entry->gpu, intra, status));
        bool fabric = strncmp(intra->name, "nvlink", 6) == 0 || strcmp(intra->name, "xgmi") == 0;
        if (fabric && strcmp(intra->name, entry->gpu.fabric) != 0)
            ps_cluster_warn(build, "\"intra\" is %s, but the fabric of %s is %s", intra->name, entry->gpu.name,
                            entry->gpu.fabric);
    } else if (settings->facts) {
        PS_TRY(intra_from_facts(build, settings->facts, entry, group, status));
    } else if (entry->intra) {
        PS_TRY(named_link(build, entry->intra, &entry->gpu, intra, status));
    } else {
        PS_TRY(pcie_link(build, &entry->gpu, intra, status));
    }
    if (settings->intra_bytes_per_s > 0)
        intra->bytes_per_s = (ps_figure){settings->intra_bytes_per_s, PS_ORIGIN_READ, build->source};
    if (settings->intra_latency_ns >= 0)
        intra->latency_seconds = (ps_figure){(double)settings->intra_latency_ns * 1e-9, PS_ORIGIN_READ, build->source};
    return PS_OK;
}

// The NICs that collectives of a read node use: the active verbs devices of the fastest type. 0: none is known.
static int32_t read_nics(ps_cluster_build *build, const ps_node_facts *facts, ps_link *best, ps_status *status)
{
    int32_t count = 0;

    for (int32_t i = 0; i < facts->num_nics; i++) {
        const ps_fact_nic *nic = &facts->nic[i];
        const char *name = ps_catalog_match_nic(&build->catalog, nic->kind, nic->vendor_id, nic->device_id);
        ps_link link;
        if (!nic->is_rdma || !nic->is_active || !name ||
            ps_catalog_find_link(build->arena, &build->catalog, name, &link, status) != PS_OK)
            continue;
        if (count == 0 || link.bytes_per_s.value > best->bytes_per_s.value) {
            *best = link;
            count = 0;
        }
        if (link.bytes_per_s.value >= best->bytes_per_s.value)
            count++;
    }
    return count;
}

// A NIC known by its rate alone behaves as the catalog's NIC of that rate, else as the usual one.
static ps_code nic_of_rate(ps_cluster_build *build, const char *usual, ps_figure rate, ps_link *out, ps_status *status)
{
    const char *name = ps_catalog_nic_of_rate(build->arena, &build->catalog, usual, rate.value);
    const char *like = name ? name : usual ? usual : "IB-HDR";

    PS_TRY(ps_catalog_find_link(build->arena, &build->catalog, like, out, status));
    const char *as = ps_text_format(build->arena, "assumed: as %s", like);
    if (!name)
        out->name = "NIC";
    out->bytes_per_s = rate;
    out->efficiency = assumed(out->efficiency.value, as);
    out->latency_seconds = assumed(out->latency_seconds.value, as);
    return PS_OK;
}

static ps_code assume_nic(ps_cluster_build *build, const ps_catalog_entry *entry, ps_link *out, ps_status *status)
{
    const char *usual = entry->nic ? entry->nic : "IB-HDR";

    PS_TRY(ps_catalog_find_link(build->arena, &build->catalog, usual, out, status));
    out->bytes_per_s =
        assumed(out->bytes_per_s.value, ps_text_format(build->arena, "assumed: usual with %s", entry->gpu.name));
    ps_cluster_warn(build, "no NIC is stated: %s per GPU (%.0f Gb/s) is assumed; state it with --nic", out->name,
                    out->bytes_per_s.value * 8e-9);
    return PS_OK;
}

// One NIC of the node into group->inter, and their number into group->nics.
static ps_code choose_nic(ps_cluster_build *build, const ps_node_settings *settings, const ps_catalog_entry *entry,
                          ps_group *group, ps_status *status)
{
    ps_link *nic = &group->inter;
    ps_figure rate = {settings->nic_bytes_per_s, PS_ORIGIN_READ, build->source};
    int32_t count = settings->nics;
    int32_t read = 0;

    if (settings->nic) {
        PS_TRY(ps_catalog_find_link(build->arena, &build->catalog, settings->nic, nic, status));
        if (rate.value > 0)
            nic->bytes_per_s = rate;
    } else if (rate.value > 0) {
        PS_TRY(nic_of_rate(build, entry->nic, rate, nic, status));
    } else if (settings->facts && (read = read_nics(build, settings->facts, nic, status)) > 0) {
        count = count < 0 ? read : count;
    } else if (group->nodes > 1 || count > 0) {
        PS_TRY(assume_nic(build, entry, nic, status));
    } else {
        *nic = no_link;
        group->nics = 0;
        return PS_OK;
    }

    if (count < 0) {
        count = group->gpus_per_node;
        if (settings->nic || rate.value > 0)
            ps_cluster_warn(build, "the number of NICs is not stated: one per GPU is assumed");
    }
    group->nics = count;
    return PS_OK;
}

ps_code ps_group_set_inter(ps_cluster_build *build, const ps_node_settings *settings, const ps_catalog_entry *entry,
                           ps_group *group, ps_status *status)
{
    const ps_cluster_options *options = build->options;

    if (options && options->nic_bytes_per_s > 0) {
        ps_figure rate = {options->nic_bytes_per_s, PS_ORIGIN_GIVEN, "--nic"};
        group->nics = settings->nics > 0 ? settings->nics : group->gpus_per_node;
        return nic_of_rate(build, entry->nic, rate, &group->inter, status);
    }
    if (settings->nics == 0) {
        group->inter = no_link;
        if (group->nodes == 1)
            return PS_OK;
        ps_fail(status, PS_BAD_INPUT, "no-nic", "%d nodes without NICs cannot be joined", (int)group->nodes);
        return ps_fail_hint(status, "state \"nics\" and \"nic\", or give the rate of a GPU's share with --nic");
    }
    PS_TRY(choose_nic(build, settings, entry, group, status));
    group->inter.bytes_per_s.value *= (double)group->nics / group->gpus_per_node;
    if (settings->nic_latency_ns >= 0)
        group->inter.latency_seconds =
            (ps_figure){(double)settings->nic_latency_ns * 1e-9, PS_ORIGIN_READ, build->source};
    return PS_OK;
}
