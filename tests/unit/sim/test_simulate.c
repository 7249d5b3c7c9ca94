// SPDX-License-Identifier: Apache-2.0
//
// test_simulate.c: when ops start and what a device holds, on pipelines small enough to follow by hand.
#include "support/cmocka_all.h"
#include "support/pipelines.h"

static int64_t start_of(const ps_schedule *schedule, const ps_timeline *timeline, const char *cell)
{
    ps_op want;
    assert_true(ps_op_parse(cell, &want));
    for (int32_t i = 0; i < schedule->first[schedule->num_devices]; i++) {
        ps_op op = schedule->op[i];
        if (op.stage == want.stage && op.kind == want.kind && op.microbatch == want.microbatch)
            return timeline->start_ns[i];
    }
    fail_msg("no %s", cell);
    return -1;
}

static void an_op_waits_for_its_device_and_for_its_input(void **state)
{
    static const char *const cells[] = {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"};
    ps_pipeline *pipeline =
        equal_stages(*state, 2, 2, (costs){.forward_ns = 10, .backward_ns = 20, .hop_latency_ns = 3});
    ps_schedule schedule = schedule_from_cells(*state, cells, 2);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    assert_int_equal(start_of(&schedule, &t, "0F1"), 10);
    assert_int_equal(start_of(&schedule, &t, "1F0"), 13);
    assert_int_equal(start_of(&schedule, &t, "1B0"), 23);
    assert_int_equal(start_of(&schedule, &t, "1F1"), 43);
    assert_int_equal(start_of(&schedule, &t, "0B0"), 46);
    assert_int_equal(start_of(&schedule, &t, "1B1"), 53);
    assert_int_equal(start_of(&schedule, &t, "0B1"), 76);
    assert_int_equal(t.makespan_ns, 96);
    assert_int_equal(t.device[1].first_start_ns, 13);
    assert_int_equal(t.device[1].last_end_ns, 73);
    assert_int_equal(t.span_ns, 96);
    assert_int_equal(t.busy_ns, 120);
    assert_int_equal(t.device[1].idle_ns, 36);
}

// The stage before waits for I, not for W; nothing waits for W.
static void a_gradient_leaves_before_the_weights_are_done(void **state)
{
    static const char *const split[] = {"0F0 0I0 0W0", "1F0 1I0 1W0"};
    static const char *const whole[] = {"0F0 0B0", "1F0 1B0"};
    ps_pipeline *pipeline =
        equal_stages(*state, 2, 1, (costs){.forward_ns = 1, .backward_input_ns = 2, .backward_weight_ns = 5});
    ps_schedule schedule = schedule_from_cells(*state, split, 2);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    assert_int_equal(start_of(&schedule, &t, "0I0"), 4);
    assert_int_equal(t.makespan_ns, 11);
    schedule = schedule_from_cells(*state, whole, 2);
    t = simulate(*state, pipeline, &schedule);
    assert_int_equal(start_of(&schedule, &t, "0B0"), 9);
    assert_int_equal(t.makespan_ns, 16);
}

// Transfers queue on their lane for the occupancy, and latency comes on top; the sender computes on meanwhile.
static void transfers_of_a_lane_queue_behind_each_other(void **state)
{
    static const char *const cells[] = {"0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"};
    costs cost = {.forward_ns = 1, .backward_ns = 1, .hop_occupy_ns = 10, .hop_latency_ns = 100};
    ps_pipeline *pipeline = equal_stages(*state, 2, 3, cost);
    ps_schedule schedule = schedule_from_cells(*state, cells, 2);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    assert_int_equal(start_of(&schedule, &t, "0F2"), 2);
    assert_int_equal(start_of(&schedule, &t, "1F0"), 1 + 10 + 100);
    assert_int_equal(start_of(&schedule, &t, "1F1"), 1 + 20 + 100);
    assert_int_equal(start_of(&schedule, &t, "1F2"), 1 + 30 + 100);
}

// Both hops from device 0 to device 1 share a lane: the order of the sender's ops is the order on the lane.
static void hops_of_a_pair_share_their_lane(void **state)
{
    static const char *const cells[] = {"0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1", "1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1"};
    costs cost = {.forward_ns = 1, .backward_ns = 1, .hop_occupy_ns = 10};
    ps_pipeline *pipeline = looped_stages(*state, 2, 4, 2, cost);
    pipeline->forward_hop[1].occupy_ns = 0;
    ps_schedule schedule = schedule_from_cells(*state, cells, 2);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    // 0F0 sent at 1 until 11, 0F1 until 21; 2F0 starts at 12 and is sent at 21, behind 0F1, not at 13.
    assert_int_equal(start_of(&schedule, &t, "2F0"), 12);
    assert_int_equal(start_of(&schedule, &t, "3F0"), 31);
}

static void stages_of_one_device_pass_data_at_no_cost(void **state)
{
    static const char *const cells[] = {"0F0 1F0 1I0 0I0 1W0 0W0"};
    costs cost = {.forward_ns = 1, .backward_input_ns = 2, .backward_weight_ns = 4, .hop_latency_ns = 1000};
    ps_pipeline *pipeline = looped_stages(*state, 1, 2, 1, cost);
    ps_schedule schedule = schedule_from_cells(*state, cells, 1);
    assert_int_equal(simulate(*state, pipeline, &schedule).makespan_ns, 14);
}

static void a_device_without_stages_is_idle_throughout(void **state)
{
    static const char *const cells[] = {"0F0 0B0", ""};
    ps_pipeline *pipeline = looped_stages(*state, 2, 1, 1, (costs){.forward_ns = 4, .backward_ns = 6});
    ps_schedule schedule = schedule_from_cells(*state, cells, 2);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    assert_int_equal(t.makespan_ns, 10);
    assert_int_equal(t.device[1].idle_ns, 10);
    assert_int_equal(t.device[1].idle.warmup_ns, 4);
    assert_int_equal(t.device[1].idle.cooldown_ns, 6);
    assert_near(ps_timeline_bubble(&t), 0.5, 1e-12);
}

static void whole_backward_and_split_backward_may_be_mixed(void **state)
{
    static const char *const cells[] = {"0F0 0F1 0B0 0I1 0W1", "1F0 1F1 1I0 1B1 1W0"};
    costs cost = {.forward_ns = 1, .backward_input_ns = 2, .backward_weight_ns = 3};
    ps_pipeline *pipeline = equal_stages(*state, 2, 2, cost);
    ps_schedule schedule = schedule_from_cells(*state, cells, 2);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    assert_int_equal(start_of(&schedule, &t, "0B0"), 5);
    assert_int_equal(start_of(&schedule, &t, "0I1"), 10);
}

static void memory_is_held_from_forward_to_backward_and_on_to_w(void **state)
{
    static const char *const cells[] = {"0F0 0F1 0I0 0I1 0W0 0W1"};
    costs cost = {.forward_ns = 1,
                  .backward_input_ns = 1,
                  .backward_weight_ns = 1,
                  .held_after_forward = 100,
                  .held_after_backward_input = 30};
    ps_pipeline *pipeline = equal_stages(*state, 1, 2, cost);
    pipeline->stage[0].transient = 7;
    pipeline->device[0].static_memory = 1000;
    ps_schedule schedule = schedule_from_cells(*state, cells, 1);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    assert_int_equal(t.device[0].peak_activation, 200);
    assert_int_equal(t.device[0].peak_transient, 7);
    assert_int_equal(t.device[0].peak_memory, 1207);
    assert_int_equal(t.device[0].in_flight_peak, 2);
}

// Stage 0 recomputes while the gradient is on its way, stage 1 has to do so first; one stage may and another not.
static void a_recompute_fills_the_wait_for_the_gradient(void **state)
{
    static const char *const both[] = {"0F0 0R0 0B0", "1F0 1R0 1B0"};
    static const char *const first[] = {"0F0 0R0 0B0", "1F0 1B0"};
    ps_pipeline *pipeline =
        equal_stages(*state, 2, 1, (costs){.forward_ns = 4, .backward_ns = 8, .recompute_ns = 3, .hop_latency_ns = 1});
    ps_schedule schedule = schedule_from_cells(*state, both, 2);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    assert_int_equal(start_of(&schedule, &t, "0R0"), 4);
    assert_int_equal(start_of(&schedule, &t, "1R0"), 9);
    assert_int_equal(start_of(&schedule, &t, "1B0"), 12);
    assert_int_equal(start_of(&schedule, &t, "0B0"), 21);
    assert_int_equal(t.makespan_ns, 29);
    assert_int_equal(t.busy_ns, 30);
    schedule = schedule_from_cells(*state, first, 2);
    t = simulate(*state, pipeline, &schedule);
    assert_int_equal(start_of(&schedule, &t, "1B0"), 9);
    assert_int_equal(t.makespan_ns, 26);
}

// The input from F on, the rest from R to the end of I; what W needs after that.
static void a_recompute_holds_the_activations_until_the_gradient_of_the_input(void **state)
{
    static const char *const apart[] = {"0F0 0F1 0R0 0I0 0W0 0R1 0I1 0W1"};
    static const char *const together[] = {"0F0 0F1 0R0 0R1 0I0 0I1 0W0 0W1"};
    costs cost = {.forward_ns = 1,
                  .backward_input_ns = 1,
                  .backward_weight_ns = 1,
                  .held_after_forward = 10,
                  .held_after_backward_input = 30,
                  .recompute_ns = 1,
                  .added_by_recompute = 90};
    ps_pipeline *pipeline = equal_stages(*state, 1, 2, cost);
    pipeline->stage[0].transient = 7;
    ps_schedule schedule = schedule_from_cells(*state, apart, 1);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    assert_int_equal(t.device[0].peak_activation, 110);
    assert_int_equal(t.device[0].peak_memory, 117);
    assert_int_equal(t.device[0].in_flight_peak, 2);
    schedule = schedule_from_cells(*state, together, 1);
    t = simulate(*state, pipeline, &schedule);
    assert_int_equal(t.device[0].peak_activation, 200);
    // Without R nothing is added, whatever the stage says of it.
    static const char *const without[] = {"0F0 0F1 0I0 0W0 0I1 0W1"};
    schedule = schedule_from_cells(*state, without, 1);
    t = simulate(*state, pipeline, &schedule);
    assert_int_equal(t.device[0].peak_activation, 40);
}

// Where the last stage recomputes, the first backward comes after the last forward: no time is between them.
static void idle_time_has_no_steady_part_between_a_late_backward_and_the_forwards(void **state)
{
    ps_pipeline *pipeline =
        equal_stages(*state, 3, 4, (costs){.forward_ns = 2, .backward_ns = 4, .recompute_ns = 2, .hop_latency_ns = 5});
    ps_timeline t = run(*state, pipeline, PS_SCHEDULE_GPIPE_RECOMPUTE);
    for (int32_t device = 0; device < 3; device++) {
        const ps_device_timeline *d = &t.device[device];
        assert_int_equal(d->idle.steady_ns, 0);
        assert_true(d->idle.warmup_ns >= 0 && d->idle.cooldown_ns >= 0);
        assert_int_equal(d->idle.warmup_ns + d->idle.cooldown_ns, d->idle_ns);
    }
    assert_int_equal(t.device[2].idle.warmup_ns, 14); // until its first input
}

// What is kept for W may be more than the activations were; the peak is then between I and W.
static void what_w_needs_may_be_the_larger_part(void **state)
{
    static const char *const cells[] = {"0F0 0I0 0F1 0I1 0W0 0W1"};
    costs cost = {.forward_ns = 1,
                  .backward_input_ns = 1,
                  .backward_weight_ns = 1,
                  .held_after_forward = 10,
                  .held_after_backward_input = 25};
    ps_pipeline *pipeline = equal_stages(*state, 1, 2, cost);
    pipeline->stage[0].transient = 4;
    ps_schedule schedule = schedule_from_cells(*state, cells, 1);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    assert_int_equal(t.device[0].peak_activation, 50);
    assert_int_equal(t.device[0].peak_memory, 54); // W0 runs with 50 held
    assert_int_equal(t.device[0].in_flight_peak, 1);
}

// With two stages on a device and no transients, the peak is what both I's leave.
static void memory_after_an_op_counts(void **state)
{
    static const char *const cells[] = {"0F0 1F0 1I0 0I0 1W0 0W0"};
    costs cost = {.forward_ns = 1, .held_after_forward = 1, .held_after_backward_input = 50};
    ps_pipeline *pipeline = looped_stages(*state, 1, 2, 1, cost);
    ps_schedule schedule = schedule_from_cells(*state, cells, 1);
    ps_timeline t = simulate(*state, pipeline, &schedule);
    assert_int_equal(t.device[0].peak_memory, 100);
    assert_int_equal(t.device[0].peak_activation, 100);
    assert_int_equal(t.device[0].in_flight_peak, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(an_op_waits_for_its_device_and_for_its_input),
        test_in_arena(a_gradient_leaves_before_the_weights_are_done),
        test_in_arena(transfers_of_a_lane_queue_behind_each_other),
        test_in_arena(hops_of_a_pair_share_their_lane),
        test_in_arena(stages_of_one_device_pass_data_at_no_cost),
        test_in_arena(a_device_without_stages_is_idle_throughout),
        test_in_arena(whole_backward_and_split_backward_may_be_mixed),
        test_in_arena(a_recompute_fills_the_wait_for_the_gradient),
        test_in_arena(a_recompute_holds_the_activations_until_the_gradient_of_the_input),
        test_in_arena(idle_time_has_no_steady_part_between_a_late_backward_and_the_forwards),
        test_in_arena(memory_is_held_from_forward_to_backward_and_on_to_w),
        test_in_arena(what_w_needs_may_be_the_larger_part),
        test_in_arena(memory_after_an_op_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
