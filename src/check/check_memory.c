// SPDX-License-Identifier: Apache-2.0
//
// check_memory.c: every term of a device's memory, and what its order of ops keeps alive.
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "check/check_parts.h"

// What a device needs besides activations, from its stages alone.
static ps_plan_memory sum_stages(const ps_plan *plan, int32_t device)
{
    ps_plan_memory memory = {.framework = plan->inputs.job.memory_framework_bytes,
                             .reserve = plan->inputs.job.memory_reserve_bytes};
    for (int32_t index = 0; index < plan->num_stages; index++) {
        const ps_plan_stage *stage = &plan->stage[index];
        if (stage->pp_rank != device)
            continue;
        memory.parameters += stage->parameter_bytes;
        memory.gradients += stage->gradient_bytes;
        memory.optimizer += stage->optimizer_bytes;
        if (stage->transient_bytes > memory.transient)
            memory.transient = stage->transient_bytes;
    }
    return memory;
}

static int64_t share_of(int64_t bytes, int64_t ppm)
{
    return bytes / 1000000 * ppm + bytes % 1000000 * ppm / 1000000;
}

static void check_capacity(ps_check *check, int32_t index)
{
    const ps_plan *plan = check->plan;
    const ps_plan_memory *memory = &plan->device[index].memory;
    int64_t limit = plan->inputs.job.memory_limit_bytes;
    for (int32_t gpu = 0; gpu < plan->num_gpus && limit == 0; gpu++)
        if (strcmp(plan->gpu[gpu].name, plan->device[index].gpu) == 0)
            limit = plan->gpu[gpu].memory_usable_bytes;
    ps_check_equal(check, "memory-capacity", PS_AT_1("/devices/#/memory/capacity", index), memory->capacity, limit);

    int64_t allocated = ps_add_saturating(memory->parameters, memory->gradients);
    allocated = ps_add_saturating(allocated, ps_add_saturating(memory->optimizer, memory->activations_peak));
    allocated = ps_add_saturating(allocated, ps_add_saturating(memory->transient, memory->framework));
    int64_t fragmentation = share_of(allocated, plan->inputs.job.memory_fragmentation_ppm);
    ps_check_equal(check, "memory-fragmentation", PS_AT_1("/devices/#/memory/fragmentation", index),
                   memory->fragmentation, fragmentation);
    int64_t total = ps_add_saturating(allocated, ps_add_saturating(memory->fragmentation, memory->reserve));
    ps_check_equal(check, "memory-sum", PS_AT_1("/devices/#/memory/total_peak", index), memory->total_peak, total);
    int64_t headroom;
    if (__builtin_sub_overflow(memory->capacity, memory->total_peak, &headroom))
        headroom = INT64_MIN;
    ps_check_equal(check, "memory-headroom", PS_AT_1("/devices/#/memory/headroom", index), memory->headroom, headroom);
    if (total > limit)
        ps_check_find(check, "memory", PS_AT_1("/devices/#/memory/total_peak", index),
                      "needs %" PRId64 " bytes, has %" PRId64, total, limit);
}

static bool check_signs(ps_check *check, int32_t index)
{
    const ps_plan_memory *memory = &check->plan->device[index].memory;
    if (memory->parameters >= 0 && memory->gradients >= 0 && memory->optimizer >= 0 && memory->activations_peak >= 0 &&
        memory->transient >= 0 && memory->framework >= 0 && memory->fragmentation >= 0 && memory->reserve >= 0)
        return true;
    ps_check_find(check, "out-of-range", PS_AT_1("/devices/#/memory", index), "a size is negative");
    return false;
}

void ps_check_memory(ps_check *check)
{
    const ps_plan *plan = check->plan;
    for (int32_t index = 0; index < plan->num_devices; index++) {
        if (!check_signs(check, index))
            continue;
        const ps_plan_memory *memory = &plan->device[index].memory;
        ps_plan_memory should = sum_stages(plan, index);
        ps_check_equal(check, "memory-parameters", PS_AT_1("/devices/#/memory/parameters", index), memory->parameters,
                       should.parameters);
        ps_check_equal(check, "memory-gradients", PS_AT_1("/devices/#/memory/gradients", index), memory->gradients,
                       should.gradients);
        ps_check_equal(check, "memory-optimizer", PS_AT_1("/devices/#/memory/optimizer", index), memory->optimizer,
                       should.optimizer);
        ps_check_equal(check, "memory-transient", PS_AT_1("/devices/#/memory/transient", index), memory->transient,
                       should.transient);
        ps_check_equal(check, "memory-framework", PS_AT_1("/devices/#/memory/framework", index), memory->framework,
                       should.framework);
        ps_check_equal(check, "memory-reserve", PS_AT_1("/devices/#/memory/reserve", index), memory->reserve,
                       should.reserve);
        check_capacity(check, index);
    }
    for (int32_t index = 0; index < plan->num_stages; index++) {
        const ps_plan_stage *stage = &plan->stage[index];
        int64_t alone = stage->parameter_bytes + stage->gradient_bytes + stage->optimizer_bytes +
                        stage->held_after_forward_bytes + stage->added_by_recompute_bytes +
                        stage->held_after_backward_input_bytes + stage->transient_bytes;
        ps_check_equal(check, "memory-single", PS_AT_1("/stages/#/single_microbatch_bytes", index),
                       stage->single_microbatch_bytes, alone);
    }
}

// held_after_forward from the start of F to the end of B or I, with added_by_recompute from the start of R, then
// held_after_backward_input to the end of W. Only a schedule with R lets anything be added.
static int64_t held_change(const ps_plan_stage *stage, ps_op_kind kind)
{
    switch (kind) {
    case PS_OP_FORWARD: return stage->held_after_forward_bytes;
    case PS_OP_BACKWARD: return -stage->held_after_forward_bytes - stage->added_by_recompute_bytes;
    case PS_OP_RECOMPUTE: return stage->added_by_recompute_bytes;
    case PS_OP_BACKWARD_INPUT: return stage->held_after_backward_input_bytes - stage->held_after_forward_bytes;
    case PS_OP_BACKWARD_WEIGHT: return -stage->held_after_backward_input_bytes;
    case PS_OP_KINDS: break;
    }
    return 0;
}

void ps_check_activations(ps_check *check)
{
    const ps_plan *plan = check->plan;
    int32_t *in_flight = ps_new(check->arena, int32_t, plan->num_stages);
    int32_t *most = ps_new(check->arena, int32_t, plan->num_stages);
    for (int32_t device = 0; device < plan->num_devices; device++) {
        int64_t held = 0;
        int64_t peak = 0;
        int32_t pairs = 0;
        int32_t most_pairs = 0;
        for (int32_t at = plan->schedule.first[device]; at < plan->schedule.first[device + 1]; at++) {
            ps_op op = plan->schedule.op[at];
            int32_t change = op.kind == PS_OP_FORWARD ? 1 : op.kind >= PS_OP_BACKWARD_WEIGHT ? 0 : -1;
            held += held_change(&plan->stage[op.stage], (ps_op_kind)op.kind);
            pairs += change;
            in_flight[op.stage] += change;
            peak = held > peak ? held : peak;
            most_pairs = pairs > most_pairs ? pairs : most_pairs;
            if (in_flight[op.stage] > most[op.stage])
                most[op.stage] = in_flight[op.stage];
        }
        ps_check_equal(check, "memory-activations", PS_AT_1("/devices/#/memory/activations_peak", device),
                       plan->device[device].memory.activations_peak, peak);
        ps_check_equal(check, "in-flight", PS_AT_1("/devices/#/in_flight_peak", device),
                       plan->device[device].in_flight_peak, most_pairs);
    }
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        ps_check_equal(check, "in-flight", PS_AT_1("/stages/#/launch_count", stage), plan->stage[stage].launch_count,
                       most[stage]);
}
