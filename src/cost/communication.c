// SPDX-License-Identifier: Apache-2.0
//
// communication.c: links and collectives by latency and bandwidth.
//
// Ranks are numbered tp fastest, then dp, then pp, so a group of collectives is `ranks` GPUs that stand `stride` apart.
// Inside a fast domain rings run at the fabric's reached bandwidth; across domains a collective is hierarchical: the
// members of a domain first reduce among themselves, then each drives its own share of the NICs (costmodel: NCCL's
// hierarchy; Thakur et al. 2005 for the ring and tree bounds).
#include "cost/communication.h"

#include "cost/constants.h"
#include "cost/curve.h"
#include "pipesched/limits.h"

int64_t ps_ns_clamped(double seconds)
{
    double nanoseconds = seconds * 1e9 + 0.5;
    return nanoseconds < (double)PS_MAX_TIME_NS ? (int64_t)nanoseconds : PS_MAX_TIME_NS;
}

static double reached_bytes_per_s(const ps_link *link)
{
    double share = link->efficiency.value > 0 ? link->efficiency.value : 1;
    return link->bytes_per_s.value > 0 ? link->bytes_per_s.value * share : PS_COST_LINK_BYTES_PER_S;
}

// Blocks of `span` consecutive ranks over groups of `size` GPUs: does any block cross a border?
static bool spans_cross(const ps_group *group, int64_t span, int64_t size)
{
    int64_t gpus = (int64_t)group->nodes * group->gpus_per_node;
    return gpus > size && (span > size || size % span != 0);
}

static double oversubscription_of_span(const ps_group *group, int64_t span)
{
    double worst = 1;
    for (int32_t i = 0; i < group->num_levels; i++) {
        const ps_level *level = &group->level[i];
        int64_t size = (int64_t)level->nodes * group->gpus_per_node;
        if (size > 0 && spans_cross(group, span, size) && level->oversubscription > worst)
            worst = level->oversubscription;
    }
    return worst;
}

ps_spread ps_spread_of(const ps_group *group, int64_t ranks, int64_t stride)
{
    int64_t domain = ps_group_domain_gpus(group);
    int64_t span = ranks * stride;
    int64_t local = ranks;

    if (span > domain)
        local = domain / stride > 1 ? domain / stride : 1;
    else if (spans_cross(group, span, domain))
        local = (ranks + 1) / 2; // a block that does not divide the domain stands astride two of them
    if (local > ranks)
        local = ranks;
    return (ps_spread){
        .local = (double)local,
        .domains = (ranks + local - 1) / local,
        .intra_bytes_per_s = reached_bytes_per_s(&group->intra),
        .inter_bytes_per_s = reached_bytes_per_s(&group->inter) / oversubscription_of_span(group, span),
    };
}

// Depth of a binary tree over n members.
static double tree_depth(int64_t n)
{
    double depth = 0;
    while (n > 1) {
        n = (n + 1) / 2;
        depth++;
    }
    return depth;
}

static double largest(double a, double b)
{
    return a > b ? a : b;
}

static double local_all_reduce(ps_spread s, double bytes)
{
    double others = s.local - 1;
    double latency = PS_COST_ALL_REDUCE_BASE_SECONDS + PS_COST_ALL_REDUCE_STEP_SECONDS * others;
    double least = PS_COST_ALL_REDUCE_FLOOR_BASE_SECONDS + PS_COST_ALL_REDUCE_FLOOR_STEP_SECONDS * others;
    return largest(least, latency + 2 * others / s.local * bytes / s.intra_bytes_per_s);
}

static double local_reduce_scatter(ps_spread s, double bytes)
{
    double others = s.local - 1;
    if (others <= 0)
        return 0;
    return PS_COST_SCATTER_BASE_SECONDS + PS_COST_SCATTER_STEP_SECONDS * others +
           others / s.local * bytes / (s.intra_bytes_per_s * PS_COST_SCATTER_SHARE);
}

// Between domains: `rounds` 1 for a reduce-scatter, 2 for an all-reduce, of each member's share of the tensor.
static double across(const ps_group *group, ps_spread s, double rounds, double bytes)
{
    double domains = (double)s.domains;
    double wire = rounds * (domains - 1) / domains * bytes / s.local;
    return rounds * tree_depth(s.domains) * group->inter.latency_seconds.value + wire / s.inter_bytes_per_s;
}

double ps_all_reduce_seconds(const ps_group *group, int64_t ranks, int64_t stride, double bytes)
{
    if (ranks <= 1 || bytes <= 0)
        return 0;
    ps_spread s = ps_spread_of(group, ranks, stride);
    const ps_collective_curve *measured = ps_curve_find(group, PS_COLLECTIVE_ALL_REDUCE, ranks, s);
    if (measured)
        return ps_curve_seconds(measured, bytes);
    if (s.domains == 1)
        return local_all_reduce(s, bytes);
    return 2 * local_reduce_scatter(s, bytes) + across(group, s, 2, bytes);
}

double ps_reduce_scatter_seconds(const ps_group *group, int64_t ranks, int64_t stride, double bytes)
{
    if (ranks <= 1 || bytes <= 0)
        return 0;
    ps_spread s = ps_spread_of(group, ranks, stride);
    const ps_collective_curve *measured = ps_curve_find(group, PS_COLLECTIVE_REDUCE_SCATTER, ranks, s);
    if (!measured)
        measured = ps_curve_find(group, PS_COLLECTIVE_ALL_GATHER, ranks, s);
    if (measured)
        return ps_curve_seconds(measured, bytes);
    double local = local_reduce_scatter(s, bytes);
    return s.domains == 1 ? local : local + across(group, s, 1, bytes);
}

double ps_two_level_exchange_seconds(const ps_group *group, ps_spread s, double local_bytes, double remote_bytes)
{
    double local = local_bytes > 0 ? PS_COST_SCATTER_BASE_SECONDS + PS_COST_SCATTER_STEP_SECONDS * (s.local - 1) +
                                         local_bytes / (s.intra_bytes_per_s * PS_COST_ALL_TO_ALL_SHARE)
                                   : 0;
    double remote = remote_bytes > 0 ? PS_COST_SCATTER_BASE_SECONDS + group->inter.latency_seconds.value +
                                           remote_bytes / (s.inter_bytes_per_s * PS_COST_ALL_TO_ALL_SHARE)
                                     : 0;
    return largest(local, remote);
}

double ps_all_to_all_seconds(const ps_group *group, int64_t ranks, int64_t stride, double bytes)
{
    if (ranks <= 1 || bytes <= 0)
        return 0;
    ps_spread s = ps_spread_of(group, ranks, stride);
    const ps_collective_curve *measured = ps_curve_find(group, PS_COLLECTIVE_ALL_TO_ALL, ranks, s);
    if (measured)
        return ps_curve_seconds(measured, bytes);
    double away = ((double)ranks - s.local) / (double)ranks;
    double beside = ((double)ranks - 1) / (double)ranks - away;
    return ps_two_level_exchange_seconds(group, s, beside * bytes, away * bytes);
}

int64_t ps_cost_all_reduce_ns(const ps_group *group, int64_t ranks, int64_t stride, int64_t bytes)
{
    return ps_ns_clamped(ps_all_reduce_seconds(group, ranks, stride, (double)bytes));
}

int64_t ps_cost_reduce_scatter_ns(const ps_group *group, int64_t ranks, int64_t stride, int64_t bytes)
{
    return ps_ns_clamped(ps_reduce_scatter_seconds(group, ranks, stride, (double)bytes));
}

static ps_cost_link link_of(const ps_link *link, double oversubscription)
{
    return (ps_cost_link){.name = link->name,
                          .latency_ns = ps_ns_clamped(link->latency_seconds.value),
                          .bytes_per_s = reached_bytes_per_s(link) / oversubscription};
}

// As hops between stages see it, by a calibration.
static ps_cost_link hop_link(const ps_group *group, const ps_link *link, double oversubscription)
{
    ps_cost_link hop = link_of(link, oversubscription);

    if (group->hop_factor > 0) {
        hop.latency_ns = ps_ns_clamped(link->latency_seconds.value * group->hop_factor);
        hop.bytes_per_s /= group->hop_factor;
    }
    return hop;
}

// Messages of one pair do not use all links of a fabric.
ps_cost_link ps_cost_intra_link(const ps_group *group)
{
    ps_cost_link link = hop_link(group, &group->intra, 1);

    if (group->intra.peer_share.value > 0)
        link.bytes_per_s *= group->intra.peer_share.value;
    return link;
}

ps_cost_link ps_cost_inter_link(const ps_group *group)
{
    return hop_link(group, &group->inter, 1);
}

// Ranks first + r and first + distance + r, r below count: is any pair in different groups of `size` GPUs?
static bool pairs_cross(int64_t first, int64_t distance, int64_t count, int64_t size)
{
    return distance >= size || first % size + count > size - distance;
}

static double pair_all_reduce_seconds(const ps_group *group, const ps_layout *layout, int64_t low, int64_t high,
                                      double bytes)
{
    int64_t block = (int64_t)layout->tp * layout->cp * layout->dp; // consecutive ranks of one pipeline rank
    int64_t distance = (high - low) * block;
    if (distance == 0 || bytes <= 0)
        return 0;
    bool cross = pairs_cross(low * block, distance, block, ps_group_domain_gpus(group));
    ps_spread s = {
        .local = cross ? 1 : 2,
        .domains = cross ? 2 : 1,
        .intra_bytes_per_s = reached_bytes_per_s(&group->intra),
        .inter_bytes_per_s = reached_bytes_per_s(&group->inter) / oversubscription_of_span(group, distance + block),
    };
    return cross ? across(group, s, 2, bytes) : local_all_reduce(s, bytes);
}

double ps_tied_all_reduce_seconds(const ps_group *group, const ps_layout *layout, double bytes)
{
    return pair_all_reduce_seconds(group, layout, 0, layout->pp - 1, bytes);
}

int64_t ps_cost_pair_sync_ns(const ps_group *group, const ps_job *job, const ps_layout *layout, int32_t pp_rank,
                             int64_t parameters)
{
    int32_t opposite = layout->pp - 1 - pp_rank;
    double shards = layout->zero >= 1 ? (double)layout->dp * (double)layout->cp : 1;
    double bytes = (double)parameters * (double)job->gradient_bytes / shards;
    double seconds = pair_all_reduce_seconds(group, layout, pp_rank < opposite ? pp_rank : opposite,
                                             pp_rank < opposite ? opposite : pp_rank, bytes);
    return ps_ns_clamped(ps_calibration_factor(job, PS_FACTOR_DP) * seconds);
}

ps_cost_link ps_cost_pipeline_link(const ps_group *group, const ps_layout *layout, int32_t pp_rank_a, int32_t pp_rank_b)
{
    int64_t block = (int64_t)layout->tp * layout->cp * layout->dp; // consecutive ranks of one pipeline rank
    int64_t low = pp_rank_a < pp_rank_b ? pp_rank_a : pp_rank_b;
    int64_t high = pp_rank_a < pp_rank_b ? pp_rank_b : pp_rank_a;
    int64_t distance = (high - low) * block;
    double worst = 1;

    if (!pairs_cross(low * block, distance, block, ps_group_domain_gpus(group)))
        return ps_cost_intra_link(group);
    for (int32_t i = 0; i < group->num_levels; i++) {
        const ps_level *level = &group->level[i];
        int64_t size = (int64_t)level->nodes * group->gpus_per_node;
        if (size > 0 && pairs_cross(low * block, distance, block, size) && level->oversubscription > worst)
            worst = level->oversubscription;
    }
    return hop_link(group, &group->inter, worst);
}

ps_cost_link ps_cost_spread_link(const ps_group *group, int64_t ranks, int64_t stride)
{
    ps_spread s = ps_spread_of(group, ranks, stride);
    return s.domains == 1 ? link_of(&group->intra, 1)
                          : link_of(&group->inter, oversubscription_of_span(group, ranks * stride));
}

int64_t ps_cost_transfer_ns(ps_cost_link link, int64_t bytes)
{
    return bytes > 0 ? ps_ns_clamped((double)bytes / link.bytes_per_s) : 0;
}
