// SPDX-License-Identifier: Apache-2.0
//
// check_shape.c: what must hold before any other part may index or add.
//
// With counts that agree, indices in range and sums within limits.h, the rest needs no further care.
#include <inttypes.h>

#include "base/number.h"
#include "check/check_parts.h"
#include "pipesched/limits.h"

static bool check_counts(ps_check *check)
{
    const ps_plan *plan = check->plan;
    const ps_layout *layout = &plan->layout;
    const int32_t degree[] = {layout->dp,
                              layout->tp,
                              layout->pp,
                              layout->vp,
                              layout->cp,
                              layout->ep,
                              layout->etp,
                              layout->micro_batch_size,
                              layout->num_microbatches};
    bool good = true;
    for (size_t index = 0; index < sizeof degree / sizeof degree[0]; index++)
        good = good && degree[index] >= 1;
    if (!good || layout->num_microbatches > PS_MAX_MICROBATCHES) {
        ps_check_find(check, "out-of-range", PS_AT("/layout"), "every degree and count must be at least 1");
        return false;
    }
    good = ps_check_equal(check, "stage-count", PS_AT("/stages"), plan->num_stages, (int64_t)layout->pp * layout->vp);
    good = ps_check_equal(check, "device-count", PS_AT("/devices"), plan->num_devices, layout->pp) && good;
    good =
        ps_check_equal(check, "device-count", PS_AT("/schedule/cells"), plan->schedule.num_devices, layout->pp) && good;
    return good && plan->num_stages <= PS_MAX_STAGES;
}

static bool in_range(ps_check *check, ps_place place, int64_t value, int64_t below)
{
    if (value >= 0 && value < below)
        return true;
    ps_check_find(check, "out-of-range", place, "plan says %" PRId64 ", should be from 0 to %" PRId64, value,
                  below - 1);
    return false;
}

static bool check_indices(ps_check *check)
{
    const ps_plan *plan = check->plan;
    bool good = true;
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        good =
            in_range(check, PS_AT_1("/stages/#/pp_rank", stage), plan->stage[stage].pp_rank, plan->layout.pp) && good;
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        good =
            in_range(check, PS_AT_1("/stages/#/tied_to", stage), plan->stage[stage].tied_to, plan->num_stages) && good;
    for (int32_t hop = 0; hop < plan->num_hops; hop++) {
        good = in_range(check, PS_AT_1("/hops/#/from_stage", hop), plan->hop[hop].from_stage, plan->num_stages) && good;
        good = in_range(check, PS_AT_1("/hops/#/to_stage", hop), plan->hop[hop].to_stage, plan->num_stages) && good;
    }
    for (int32_t device = 0; device < plan->num_devices; device++)
        for (int32_t index = 0; index < plan->device[device].num_stages; index++)
            good = in_range(check, PS_AT_2("/devices/#/stages/#", device, index), plan->device[device].stage[index],
                            plan->num_stages) &&
                   good;
    return good;
}

// Saturating, so that one negative or huge figure is caught and none can wrap.
static bool add_times(int64_t *sum, int64_t value, int64_t times)
{
    if (value < 0)
        return false;
    *sum = ps_add_saturating(*sum, ps_multiply_saturating(value, times));
    return *sum <= PS_MAX_TIME_NS;
}

static bool check_stage_sums(ps_check *check)
{
    const ps_plan *plan = check->plan;
    int64_t microbatches = plan->layout.num_microbatches;
    int64_t time = 0;
    int64_t bytes = 0;
    for (int32_t index = 0; index < plan->num_stages; index++) {
        const ps_plan_stage *stage = &plan->stage[index];
        if (!add_times(&time, stage->forward_ns, microbatches) ||
            !add_times(&time, stage->backward_input_ns, microbatches) ||
            !add_times(&time, stage->backward_weight_ns, microbatches) ||
            !add_times(&time, stage->recompute_ns, microbatches) ||
            !add_times(&time, stage->op_overhead_ns, 4 * microbatches) ||
            !add_times(&time, stage->grad_sync_ns, microbatches) || !add_times(&time, stage->tied_sync_ns, 1) ||
            !add_times(&time, stage->param_gather_ns, 1)) {
            ps_check_find(check, "time-overflow", PS_AT_1("/stages/#", index), "times are negative or beyond any run");
            return false;
        }
        if (stage->sync_buckets < 1) {
            ps_check_find(check, "out-of-range", PS_AT_1("/stages/#/sync_buckets", index), "at least 1 is expected");
            return false;
        }
        if (!add_times(&bytes, stage->held_after_forward_bytes, microbatches) ||
            !add_times(&bytes, stage->held_after_backward_input_bytes, microbatches) ||
            !add_times(&bytes, stage->added_by_recompute_bytes, microbatches) ||
            !add_times(&bytes, stage->transient_bytes, 1) || !add_times(&bytes, stage->output_bytes, 1) ||
            !add_times(&bytes, stage->parameter_bytes, 1) || !add_times(&bytes, stage->gradient_bytes, 1) ||
            !add_times(&bytes, stage->optimizer_bytes, 1)) {
            ps_check_find(check, "memory-overflow", PS_AT_1("/stages/#", index),
                          "sizes are negative or beyond any machine");
            return false;
        }
    }
    for (int32_t index = 0; index < plan->num_hops; index++) {
        const ps_plan_hop *hop = &plan->hop[index];
        if (!add_times(&time, hop->latency_ns, microbatches) || !add_times(&time, hop->transfer_ns, microbatches)) {
            ps_check_find(check, "time-overflow", PS_AT_1("/hops/#", index), "times are negative or beyond any run");
            return false;
        }
    }
    return true;
}

static bool check_device_sums(ps_check *check)
{
    const ps_plan *plan = check->plan;
    int64_t reserve = plan->inputs.job.memory_reserve_bytes;
    int64_t time = 0; // half of what the ops may take, so that both still add up
    if (!add_times(&time, plan->prediction.barrier_ns, 2) ||
        !add_times(&time, plan->prediction.validation_hop_ns, 4 * (int64_t)plan->num_devices)) {
        ps_check_find(check, "time-overflow", PS_AT("/prediction"), "times are negative or beyond any run");
        return false;
    }
    for (int32_t index = 0; index < plan->num_devices; index++) {
        const ps_plan_device *device = &plan->device[index];
        int64_t claimed = 0;
        if (!add_times(&time, device->optimizer_ns, 2) || !add_times(&claimed, device->grad_sync_exposed_ns, 1) ||
            !add_times(&claimed, device->grad_sync_hidden_ns, 1) ||
            !add_times(&claimed, device->param_gather_exposed_ns, 1)) {
            ps_check_find(check, "time-overflow", PS_AT_1("/devices/#", index), "times are negative or beyond any run");
            return false;
        }
    }
    int64_t framework = plan->inputs.job.memory_framework_bytes;
    if (reserve < 0 || reserve > PS_MAX_BYTES) {
        ps_check_find(check, "memory-overflow", PS_AT("/inputs/job/memory_reserve_bytes"), "beyond any machine");
        return false;
    }
    if (framework < 0 || framework > PS_MAX_BYTES) {
        ps_check_find(check, "memory-overflow", PS_AT("/inputs/job/memory_framework_bytes"), "beyond any machine");
        return false;
    }
    return true;
}

bool ps_check_shape(ps_check *check)
{
    return check_counts(check) && check_indices(check) && check_stage_sums(check) && check_device_sums(check);
}
