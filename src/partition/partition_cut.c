// SPDX-License-Identifier: Apache-2.0
//
// partition_cut.c: costs a finished cut from the problem alone, layer by layer, and checks every rule.
//
// It shares nothing with the tables that engines search in: a solver's rounded answer and a wrong table are both caught
// here.
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "partition/partition_problem.h"

ps_partition *ps_cut_new(ps_arena *arena, int32_t num_stages, const int32_t *first_layer, const int32_t *type)
{
    ps_partition *cut = ps_new(arena, ps_partition, 1);
    cut->num_stages = num_stages;
    cut->first_layer = ps_new_raw(arena, int32_t, num_stages + 1);
    cut->type = ps_new_raw(arena, int32_t, num_stages);
    cut->stage_ns = ps_new(arena, int64_t, num_stages);
    memcpy(cut->first_layer, first_layer, (size_t)(num_stages + 1) * sizeof *first_layer);
    memcpy(cut->type, type, (size_t)num_stages * sizeof *type);
    return cut;
}

static ps_code broken(const char *what, int32_t stage, ps_status *status)
{
    return ps_fail(status, PS_INTERNAL, "partition-rule", "the cut breaks a rule at stage %d: %s", (int)stage, what);
}

static ps_code check_stage(const ps_partition_problem *problem, const ps_partition *cut, int32_t stage,
                           ps_status *status)
{
    int32_t first = cut->first_layer[stage];
    int32_t end = cut->first_layer[stage + 1];
    if (end - first < (problem->min_layers > 1 ? problem->min_layers : 1))
        return broken("too few layers", stage, status);
    if (problem->max_layers > 0 && end - first > problem->max_layers)
        return broken("too many layers", stage, status);
    if (problem->keep_with_next && end < problem->num_layers && problem->keep_with_next[end - 1])
        return broken("cut between layers that stay together", stage, status);
    for (int32_t layer = first; problem->pinned_stage && layer < end; layer++) {
        if (problem->pinned_stage[layer] >= 0 && problem->pinned_stage[layer] != stage)
            return broken("a layer is pinned elsewhere", stage, status);
    }
    if (ps_cut_memory(problem, stage, first, end) > problem->type[cut->type[stage]].memory_limit)
        return broken("memory", stage, status);
    return PS_OK;
}

static ps_code check_devices(const ps_partition_problem *problem, const ps_partition *cut, ps_status *status)
{
    for (int32_t type = 0; type < problem->num_types; type++) {
        int32_t used = 0;
        for (int32_t stage = 0; stage < cut->num_stages; stage++)
            used += cut->type[stage] == type;
        if (used > problem->type[type].count)
            return broken("more devices of a type than there are", 0, status);
    }
    if (problem->num_stages > 0 && cut->num_stages != problem->num_stages)
        return broken("wrong number of stages", 0, status);
    return PS_OK;
}

ps_code ps_cut_evaluate(const ps_partition_problem *problem, ps_partition *cut, ps_status *status)
{
    if (cut->first_layer[0] != 0 || cut->first_layer[cut->num_stages] != problem->num_layers)
        return broken("layers are left out", 0, status);
    PS_TRY(check_devices(problem, cut, status));
    cut->sum_ns = 0;
    cut->bottleneck_ns = 0;
    for (int32_t stage = 0; stage < cut->num_stages; stage++) {
        PS_TRY(check_stage(problem, cut, stage, status));
        int32_t first = cut->first_layer[stage];
        int32_t end = cut->first_layer[stage + 1];
        int64_t cost = 0;
        for (int32_t layer = first; layer < end; layer++)
            cost += problem->cost_ns[cut->type[stage]][layer];
        if (problem->cut_ns && first > 0)
            cost += problem->cut_ns[first - 1];
        if (problem->cut_ns && end < problem->num_layers)
            cost += problem->cut_ns[end - 1];
        cut->stage_ns[stage] = cost;
        cut->sum_ns += cost;
        cut->bottleneck_ns = cost > cut->bottleneck_ns ? cost : cut->bottleneck_ns;
    }
    cut->objective_ns = cut->bottleneck_ns;
    if (problem->objective == PS_OBJECTIVE_ITERATION)
        cut->objective_ns = cut->sum_ns + (int64_t)(problem->num_microbatches - 1) * cut->bottleneck_ns;
    return PS_OK;
}

int ps_cut_compare(const ps_partition *a, const ps_partition *b)
{
    if (a->objective_ns != b->objective_ns)
        return a->objective_ns < b->objective_ns ? -1 : 1;
    int32_t stages = a->num_stages < b->num_stages ? a->num_stages : b->num_stages;
    for (int32_t stage = 0; stage < stages; stage++) {
        if (a->first_layer[stage + 1] != b->first_layer[stage + 1])
            return a->first_layer[stage + 1] < b->first_layer[stage + 1] ? -1 : 1;
        if (a->type[stage] != b->type[stage])
            return a->type[stage] < b->type[stage] ? -1 : 1;
    }
    return 0;
}
