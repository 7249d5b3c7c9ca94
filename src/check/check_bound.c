// SPDX-License-Identifier: Apache-2.0
//
// check_bound.c: what no order of these ops can beat, and the plan's own bound and gap.
//
// Load: a device cannot start before the first micro-batch has reached it, and then has all its ops to run. Chain: a
// micro-batch goes through all stages and back. Without an optimizer barrier only a device's own first start to own
// last end counts, so the way to a device is left out.
#include <inttypes.h>

#include "base/text.h"
#include "check/check_parts.h"

// Work of one micro-batch on a stage.
static int64_t stage_load(const ps_plan *plan, const ps_plan_stage *stage, bool split)
{
    int64_t backward = split ? ps_check_duration(plan, stage, PS_OP_BACKWARD_INPUT) +
                                   ps_check_duration(plan, stage, PS_OP_BACKWARD_WEIGHT)
                             : ps_check_duration(plan, stage, PS_OP_BACKWARD);
    int64_t again = ps_check_recomputes(plan->layout.schedule) ? ps_check_duration(plan, stage, PS_OP_RECOMPUTE) : 0;
    return ps_check_duration(plan, stage, PS_OP_FORWARD) + again + backward;
}

// Beyond the op that sends.
static int64_t hop_time(const ps_plan *plan, const ps_plan_hop *hop)
{
    if (!hop)
        return 0;
    return hop->latency_ns + (plan->inputs.job.overlap_p2p ? hop->transfer_ns : 0);
}

static int64_t load_bound(ps_check *check, const ps_hop_table *hops, bool split)
{
    const ps_plan *plan = check->plan;
    int64_t *load = ps_new(check->arena, int64_t, plan->num_devices);
    int64_t *reached = ps_new_raw(check->arena, int64_t, plan->num_devices);
    int64_t way = 0;
    int64_t microbatches = plan->layout.num_microbatches / ps_check_ways(plan); // of each stage
    for (int32_t device = 0; device < plan->num_devices; device++)
        reached[device] = -1;
    for (int32_t index = 0; index < plan->num_stages; index++) {
        const ps_plan_stage *stage = &plan->stage[index];
        load[stage->pp_rank] += stage_load(plan, stage, split) * microbatches;
        if (ps_check_before(plan, index) < 0)
            way = 0;
        if (reached[stage->pp_rank] < 0 || way < reached[stage->pp_rank])
            reached[stage->pp_rank] = way;
        way += ps_check_duration(plan, stage, PS_OP_FORWARD) + hop_time(plan, hops->forward[index]);
    }
    int64_t bound = 0;
    for (int32_t device = 0; device < plan->num_devices; device++) {
        int64_t head = plan->inputs.job.optimizer_barrier && reached[device] > 0 ? reached[device] : 0;
        if (head + load[device] > bound)
            bound = head + load[device];
    }
    return bound;
}

static int64_t chain_bound(const ps_plan *plan, const ps_hop_table *hops, bool split)
{
    int64_t chain = 0;
    for (int32_t index = 0; index < ps_check_way_stages(plan); index++) { // the other way is as long
        const ps_plan_stage *stage = &plan->stage[index];
        chain += ps_check_duration(plan, stage, PS_OP_FORWARD);
        chain += ps_check_duration(plan, stage, split ? PS_OP_BACKWARD_INPUT : PS_OP_BACKWARD);
        chain += hop_time(plan, hops->forward[index]) + hop_time(plan, hops->backward[index]);
    }
    return chain + (split ? ps_check_duration(plan, &plan->stage[0], PS_OP_BACKWARD_WEIGHT) : 0);
}

void ps_check_below_bound(ps_check *check)
{
    const ps_plan *plan = check->plan;
    bool split = ps_check_is_split(plan->layout.schedule);
    ps_hop_table hops = ps_check_hop_table(check);
    int64_t load = load_bound(check, &hops, split);
    int64_t chain = chain_bound(plan, &hops, split);
    int64_t bound = load > chain ? load : chain;
    char says[32];
    char least[32];
    if (plan->prediction.pipeline_ns < bound)
        ps_check_find(check, "below-bound", PS_AT("/prediction/pipeline_ms"),
                      "plan says %s ms, %s takes at least %s ms in any order",
                      ps_format_ms(plan->prediction.pipeline_ns, says),
                      load > chain ? "the busiest device" : "one micro-batch alone", ps_format_ms(bound, least));
}

void ps_check_bounds(ps_check *check)
{
    const ps_plan_bounds *bounds = &check->plan->bounds;
    int64_t value = check->plan->prediction.iteration_ns;
    if (bounds->iteration_ns > value)
        ps_check_find(check, "bound-above", PS_AT("/bounds/iteration_ms"),
                      "the bound lies above the plan's own iteration");
    double gap = bounds->iteration_ns > 0 ? (double)(value - bounds->iteration_ns) / (double)bounds->iteration_ns : 0;
    ps_check_equal_rate(check, "gap", PS_AT("/bounds/gap"), bounds->gap, gap);
    if (bounds->proved != (value == bounds->iteration_ns))
        ps_check_find(check, "proved", PS_AT("/bounds/proved"),
                      "a plan is proved when value and bound are equal, and only then");
}
