// SPDX-License-Identifier: Apache-2.0
#include "unit/check/checked.h"

#include "base/rng.h"

static void vary(ps_plan *plan, ps_rng *rng)
{
    for (int32_t index = 0; index < plan->num_stages; index++) {
        ps_plan_stage *stage = &plan->stage[index];
        stage->forward_ns = ps_rng_range(rng, 0, 9000);
        stage->backward_input_ns = ps_rng_range(rng, 0, 9000);
        stage->backward_weight_ns = ps_rng_range(rng, 0, 9000);
        stage->held_after_forward_bytes = ps_rng_range(rng, 0, 900);
        stage->held_after_backward_input_bytes = ps_rng_range(rng, 0, 1200); // may be more than after the forward
    }
    int64_t tied = ps_rng_range(rng, 0, 9000);
    plan->inputs.job.overlap_grad_sync = ps_rng_range(rng, 0, 3) > 0;
    for (int32_t index = 0; index < plan->num_stages; index++) {
        ps_plan_stage *stage = &plan->stage[index];
        stage->grad_sync_ns = ps_rng_range(rng, 0, 20000);
        stage->param_gather_ns = ps_rng_range(rng, 0, 20000);
        stage->tied_sync_ns = stage->tied_sync_ns > 0 ? tied : 0;
        stage->sync_buckets = 1;
        stage->parameter_bytes = 2000;
        if (plan->inputs.job.overlap_grad_sync) {
            stage->sync_buckets = (int32_t)ps_rng_range(rng, 1, 4);
            stage->parameter_bytes = 80000000 * (int64_t)stage->sync_buckets + 5;
        }
    }
    for (int32_t index = 0; index < plan->num_devices; index++)
        plan->device[index].optimizer_ns = ps_rng_range(rng, 0, 9000);
    plan->bounds.iteration_ns = 1;
}

// Times by Kahn's order here, by relaxation in the fixture: uneven stages, busy lanes, both kinds of makespan.
static void uneven_stages_are_timed_as_a_plain_relaxation_does(void **state)
{
    static const plan_spec specs[] = {
        {.pp = 4, .vp = 1, .schedule = PS_SCHEDULE_1F1B},
        {.pp = 3, .vp = 2, .schedule = PS_SCHEDULE_INTERLEAVED},
        {.pp = 2, .vp = 3, .schedule = PS_SCHEDULE_INTERLEAVED, .recompute = PS_RECOMPUTE_FULL},
        {.pp = 4, .vp = 1, .schedule = PS_SCHEDULE_ZB_H1, .no_barrier = true},
        {.pp = 3, .vp = 1, .schedule = PS_SCHEDULE_ZB_H2, .no_barrier = true},
        {.pp = 1, .vp = 1, .schedule = PS_SCHEDULE_GPIPE},
        {.pp = 1, .vp = 4, .schedule = PS_SCHEDULE_INTERLEAVED},
    };
    ps_rng rng = {42};
    for (size_t index = 0; index < sizeof specs / sizeof specs[0]; index++) {
        for (int trial = 0; trial < 30; trial++) {
            plan_spec spec = specs[index];
            spec.dp = 1 + trial % 2;
            spec.tp = 1;
            spec.gpus_per_node = 1 + trial % 3;
            spec.num_microbatches = 6;
            ps_plan *plan = consistent_plan(*state, spec);
            vary(plan, &rng);
            settle_plan(*state, plan);
            assert_holds(*state, plan);
        }
    }
}

// A message occupies the slow lane for 6,554 ns, longer than the forward that makes it.
static void transfers_of_one_lane_queue(void **state)
{
    ps_plan *plan = small_plan(*state);
    for (int32_t stage = 0; stage < 2; stage++) {
        plan->stage[stage].forward_ns = 1000;
        plan->stage[stage].op_overhead_ns = 0;
    }
    plan->layout.schedule = PS_SCHEDULE_GPIPE;
    plan->inputs.job.schedule.count = 0;
    plan->inputs.job.op_overhead_ns = 0;
    for (int32_t device = 0; device < 2; device++)
        for (int32_t at = 0; at < 8; at++)
            plan->schedule.op[device * 8 + at] = (ps_op){
                .stage = (uint16_t)device, .kind = at < 4 ? PS_OP_FORWARD : PS_OP_BACKWARD, .microbatch = at % 4};
    plan->bounds.iteration_ns = 1;
    settle_plan(*state, plan);
    assert_holds(*state, plan);
    // Forwards end at 1,000 to 4,000; the fourth message waits for three others: 1,000 + 4 * 6,554 + 5,003.
    int64_t backward = 1200011 + 800013 + 500 - 200; // of stage 1
    int64_t first_backward = 1000 + 4 * 6554 + 5003 + 1000;
    assert_int_equal(plan->device[1].done_ns - plan->device[1].grad_sync_exposed_ns - plan->device[1].optimizer_ns -
                         plan->device[1].param_gather_exposed_ns,
                     first_backward + 4 * backward);
}

static void the_span_counts_without_an_optimizer_barrier(void **state)
{
    ps_plan *plan = consistent_plan(*state, (plan_spec){.pp = 3,
                                                        .vp = 1,
                                                        .dp = 1,
                                                        .tp = 1,
                                                        .num_microbatches = 6,
                                                        .schedule = PS_SCHEDULE_ZB_H2,
                                                        .gpus_per_node = 3});
    assert_true(plan->prediction.span_ns < plan->prediction.makespan_ns);
    plan->inputs.job.optimizer_barrier = false;
    assert_found(*state, plan, "pipeline-time", "/prediction/pipeline_ms");
    settle_plan(*state, plan);
    assert_int_equal(plan->prediction.pipeline_ns, plan->prediction.span_ns);
    assert_holds(*state, plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(uneven_stages_are_timed_as_a_plain_relaxation_does),
        test_in_arena(transfers_of_one_lane_queue),
        test_in_arena(the_span_counts_without_an_optimizer_barrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
