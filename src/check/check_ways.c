// SPDX-License-Identifier: Apache-2.0
//
// check_ways.c: which stages a micro-batch passes, and in dualpipe that both ways pass the same layers.
//
// With dualpipe stages 0 to pp - 1 are one way and the others are the second; whoever is on the k-th stage of one way
// has the k-th of the other too, at the other end of the pipeline. So the two must agree in all that a stage is.
#include <inttypes.h>
#include <string.h>

#include "check/check_parts.h"

int32_t ps_check_ways(const ps_plan *plan)
{
    return plan->layout.schedule == PS_SCHEDULE_DUALPIPE ? 2 : 1;
}

int32_t ps_check_way_stages(const ps_plan *plan)
{
    int32_t stages = plan->num_stages / ps_check_ways(plan);
    return stages > 0 ? stages : 1;
}

bool ps_check_passes(const ps_plan *plan, int64_t stage, int64_t microbatch)
{
    if (ps_check_ways(plan) == 1)
        return true;
    return (stage >= ps_check_way_stages(plan)) == (microbatch >= plan->layout.num_microbatches / 2);
}

int32_t ps_check_after(const ps_plan *plan, int32_t stage)
{
    int32_t next = stage + 1;
    return next % ps_check_way_stages(plan) == 0 ? -1 : next;
}

int32_t ps_check_before(const ps_plan *plan, int32_t stage)
{
    return stage % ps_check_way_stages(plan) == 0 ? -1 : stage - 1;
}

static void check_ranges(ps_check *check, int32_t index, const ps_plan_stage *one, const ps_plan_stage *other)
{
    bool same = one->num_ranges == other->num_ranges && one->num_layers == other->num_layers;
    for (int32_t range = 0; same && range < one->num_ranges; range++)
        same =
            one->first_layer[range] == other->first_layer[range] && one->last_layer[range] == other->last_layer[range];
    for (int32_t layer = 0; same && layer < one->num_layers; layer++)
        same = strcmp(one->layer_name[layer], other->layer_name[layer]) == 0;
    if (!same)
        ps_check_find(check, "way-layers", PS_AT_1("/stages/#/layer_ids", index),
                      "other layers than stage %" PRId32 ", which is the same place on the first way", one->stage);
}

#define SAME(key, field) ps_check_equal(check, "way-stage", PS_AT_1("/stages/#/" key, index), other->field, one->field)
#define SAME_NS(key, field)                                                                                            \
    ps_check_equal_ns(check, "way-stage", PS_AT_1("/stages/#/" key, index), other->field, one->field)

static void check_pair(ps_check *check, int32_t index, const ps_plan_stage *one, const ps_plan_stage *other)
{
    check_ranges(check, index, one, other);
    SAME("parameters", parameters);
    SAME_NS("forward_ms", forward_ns);
    SAME_NS("backward_input_ms", backward_input_ns);
    SAME_NS("backward_weight_ms", backward_weight_ns);
    SAME_NS("recompute_ms", recompute_ns);
    SAME("held_after_forward_bytes", held_after_forward_bytes);
    SAME("held_after_backward_input_bytes", held_after_backward_input_bytes);
    SAME("transient_bytes", transient_bytes);
    SAME("output_bytes", output_bytes);
    SAME("parameter_bytes", parameter_bytes);
    SAME("gradient_bytes", gradient_bytes);
    SAME("optimizer_bytes", optimizer_bytes);
}

void ps_check_ways_agree(ps_check *check)
{
    const ps_plan *plan = check->plan;
    int32_t stages = ps_check_way_stages(plan);
    for (int32_t stage = stages; stage < plan->num_stages; stage++)
        check_pair(check, stage, &plan->stage[stage - stages], &plan->stage[stage]);
}
