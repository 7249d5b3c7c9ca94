// SPDX-License-Identifier: Apache-2.0
//
// check_hops.c: what passes between neighbouring stages, both ways, over which link and for how long.
//
// Two pipeline ranks are joined by the fast fabric only when every pair of ranks that talk (same tp, cp and dp) shares
// a domain; one pair that does not makes the hop one between nodes, since a step waits for the slowest replica.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "check/check_parts.h"

ps_hop_table ps_check_hop_table(ps_check *check)
{
    const ps_plan *plan = check->plan;
    ps_hop_table table = {.forward = ps_new(check->arena, const ps_plan_hop *, plan->num_stages),
                          .backward = ps_new(check->arena, const ps_plan_hop *, plan->num_stages)};
    for (int32_t index = 0; index < plan->num_hops; index++) {
        const ps_plan_hop *hop = &plan->hop[index];
        if (hop->to_stage == hop->from_stage + 1)
            table.forward[hop->from_stage] = hop;
        else if (hop->from_stage == hop->to_stage + 1)
            table.backward[hop->to_stage] = hop;
    }
    return table;
}

static const ps_plan_link *find_link(const ps_plan *plan, const char *name)
{
    for (int32_t link = 0; link < plan->num_links; link++)
        if (strcmp(plan->link[link].name, name) == 0)
            return &plan->link[link];
    return NULL;
}

static bool crosses_domains(const ps_plan *plan, int32_t pp_rank_a, int32_t pp_rank_b)
{
    int64_t block = plan->num_ranks / plan->layout.pp; // ranks of one pipeline rank: tp, cp and dp vary fastest
    int64_t domain = (int64_t)plan->inputs.gpus_per_node * plan->inputs.domain_nodes;
    for (int64_t within = 0; within < block && domain > 0; within++)
        if ((pp_rank_a * block + within) / domain != (pp_rank_b * block + within) / domain)
            return true;
    return false;
}

static void check_times(ps_check *check, int32_t index, int64_t latency_ns, int64_t transfer_ns)
{
    const ps_plan_hop *hop = &check->plan->hop[index];
    ps_check_equal_ns(check, "hop-latency", PS_AT_1("/hops/#/latency_ms", index), hop->latency_ns, latency_ns);
    ps_check_equal_ns(check, "hop-transfer", PS_AT_1("/hops/#/transfer_ms", index), hop->transfer_ns, transfer_ns);
}

// `kind_name[crosses]` is the link that the first hop of that kind uses; all others must use it too.
static void check_link(ps_check *check, int32_t index, const char *kind_name[2])
{
    const ps_plan *plan = check->plan;
    const ps_plan_hop *hop = &plan->hop[index];
    ps_place place = PS_AT_1("/hops/#/link", index);
    int32_t from = plan->stage[hop->from_stage].pp_rank;
    int32_t to = plan->stage[hop->to_stage].pp_rank;
    bool none = strcmp(hop->link, "none") == 0;
    if (from == to || none) {
        if (!none || from != to)
            ps_check_find(check, "hop-link", place,
                          "\"none\" stands between stages of one pipeline rank, and only there");
        check_times(check, index, 0, 0);
        return;
    }
    const ps_plan_link *link = find_link(plan, hop->link);
    if (!link) {
        ps_check_find(check, "unknown-link", place, "no entry of /links is named \"%.80s\"", hop->link);
        return;
    }
    bool crosses = crosses_domains(plan, from, to);
    if (!kind_name[crosses])
        kind_name[crosses] = hop->link;
    else if (strcmp(kind_name[crosses], hop->link) != 0)
        ps_check_find(check, "hop-link", place, "plan says \"%.80s\", other hops %s use \"%.80s\"", hop->link,
                      crosses ? "between nodes" : "within a fast domain", kind_name[crosses]);
    double transfer = link->bytes_per_s > 0 ? (double)hop->bytes / link->bytes_per_s * 1e9 : -1;
    if (transfer < 0 || transfer > 0x1p62)
        ps_check_find(check, "hop-transfer", place, "the link has no bandwidth for %" PRId64 " bytes", hop->bytes);
    else
        check_times(check, index, link->latency_ns, llround(transfer));
}

static void check_links_used(ps_check *check)
{
    const ps_plan *plan = check->plan;
    bool *used = ps_new(check->arena, bool, plan->num_links);
    for (int32_t hop = 0; hop < plan->num_hops; hop++) {
        const ps_plan_link *link = find_link(plan, plan->hop[hop].link);
        if (link)
            used[link - plan->link] = true;
    }
    for (int32_t link = 0; link < plan->num_links; link++)
        if (!used[link])
            ps_check_find(check, "link-unused", PS_AT_1("/links/#/name", link),
                          "no hop uses \"%.80s\", or it is listed twice", plan->link[link].name);
}

void ps_check_hops(ps_check *check)
{
    const ps_plan *plan = check->plan;
    const char *kind_name[2] = {NULL, NULL};
    ps_hop_table table = ps_check_hop_table(check);
    ps_check_equal(check, "hop-count", PS_AT("/hops"), plan->num_hops,
                   2 * ((int64_t)plan->num_stages - ps_check_ways(plan)));
    for (int32_t stage = 0; stage + 1 < plan->num_stages; stage++)
        if (ps_check_after(plan, stage) >= 0 && (!table.forward[stage] || !table.backward[stage]))
            ps_check_find(check, "hop-missing", PS_AT("/hops"), "no hop %s stages %" PRId32 " and %" PRId32,
                          table.forward[stage] ? "back between" : "between", stage, stage + 1);
    for (int32_t index = 0; index < plan->num_hops; index++) {
        const ps_plan_hop *hop = &plan->hop[index];
        int32_t lower = hop->from_stage < hop->to_stage ? hop->from_stage : hop->to_stage;
        int32_t upper = hop->from_stage < hop->to_stage ? hop->to_stage : hop->from_stage;
        if (upper != ps_check_after(plan, lower)) {
            ps_check_find(check, "hop-stages", PS_AT_1("/hops/#", index),
                          "stages %" PRId32 " and %" PRId32 " are no neighbours", hop->from_stage, hop->to_stage);
            continue;
        }
        ps_check_equal(check, "hop-bytes", PS_AT_1("/hops/#/bytes", index), hop->bytes,
                       plan->stage[lower].output_bytes);
        check_link(check, index, kind_name);
    }
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        if (ps_check_after(plan, stage) < 0)
            ps_check_equal(check, "last-output", PS_AT_1("/stages/#/output_bytes", stage),
                           plan->stage[stage].output_bytes, 0);
    check_links_used(check);
}
