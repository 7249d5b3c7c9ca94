// SPDX-License-Identifier: Apache-2.0
//
// test_schedule_looped.c: the families that put chunks on devices in a loop, and 1F1B with launch counts.
#include "support/cmocka_all.h"
#include "support/pipelines.h"

static const costs PLAIN = {.forward_ns = 10, .backward_ns = 20, .held_after_forward = 1};

static ps_timeline run_shaped(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule_kind kind,
                              ps_schedule_shape choices)
{
    ps_schedule schedule;
    ps_status status = {0};
    choices.num_devices = pipeline->num_devices;
    choices.num_stages = pipeline->num_stages;
    choices.num_microbatches = pipeline->num_microbatches;
    assert_ok(ps_schedule_generate_shaped(arena, kind, pipeline, choices, &schedule, &status), &status);
    return simulate(arena, pipeline, &schedule);
}

static void assert_illegal(ps_schedule_kind kind, ps_schedule_shape shape, const char *rule, const char *hint)
{
    ps_status status = {0};
    assert_int_equal(ps_schedule_family_at(kind)->legal(shape, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, rule);
    assert_string_equal(status.hint, hint);
}

// Idle (p - 1)(F + B) / v a device, F and B of all its chunks: as interleaved, but every micro-batch is held.
static void looped_bfs_has_the_bubble_of_interleaved_and_the_memory_of_gpipe(void **state)
{
    for (int32_t p = 1; p <= 8; p++) {
        for (int32_t v = 1; v <= 4; v++) {
            for (int32_t m = p; m <= 2 * p + 1; m++) {
                ps_timeline t = run(*state, looped_stages(*state, p, p * v, m, PLAIN), PS_SCHEDULE_LOOPED_BFS);
                assert_int_equal(t.makespan_ns, m * v * 30 + (p - 1) * 30);
                for (int32_t device = 0; device < p; device++)
                    assert_int_equal(t.device[device].peak_activation, m * v);
            }
        }
    }
}

static void looped_bfs_runs_fewer_micro_batches_than_devices(void **state)
{
    for (int32_t p = 2; p <= 8; p++)
        for (int32_t m = 1; m < p; m++)
            assert_true(run(*state, looped_stages(*state, p, 3 * p, m, PLAIN), PS_SCHEDULE_LOOPED_BFS).makespan_ns >
                        m * 90);
}

// A larger group leaves the bubble as it is and holds ((v - 1) G + 2 (p - 1) + 1) chunks on rank 0.
static void group_size_of_interleaved_changes_memory_only(void **state)
{
    for (int32_t p = 1; p <= 6; p++) {
        for (int32_t v = 2; v <= 3; v++) {
            for (int32_t m = p; m <= 4 * p; m++) {
                for (int32_t group = p; group <= m; group++) {
                    if (m % group > 0 && m % group < p)
                        continue;
                    ps_timeline t = run_shaped(*state, looped_stages(*state, p, p * v, m, PLAIN),
                                               PS_SCHEDULE_INTERLEAVED, (ps_schedule_shape){.group_size = group});
                    int32_t fill = (v - 1) * group + 2 * (p - 1) + 1;
                    assert_int_equal(t.makespan_ns, m * v * 30 + (p - 1) * 30);
                    assert_int_equal(t.device[0].peak_activation, fill < m * v ? fill : m * v);
                }
            }
        }
    }
}

// Hops that a group of p exposes are hidden when there is time between a chunk's output and its next use.
static void a_larger_group_hides_the_time_of_hops(void **state)
{
    costs cost = {.forward_ns = 10, .backward_ns = 20, .hop_latency_ns = 4};
    ps_pipeline *pipeline = looped_stages(*state, 4, 8, 24, cost);
    ps_timeline tight = run(*state, pipeline, PS_SCHEDULE_INTERLEAVED);
    ps_timeline loose = run_shaped(*state, pipeline, PS_SCHEDULE_INTERLEAVED, (ps_schedule_shape){.group_size = 6});
    assert_true(loose.makespan_ns < tight.makespan_ns);
}

static void groups_that_leave_a_device_waiting_are_refused_with_the_nearest(void **state)
{
    (void)state;
    ps_schedule_shape shape = {.num_devices = 4, .num_stages = 8, .num_microbatches = 10, .group_size = 3};
    assert_illegal(PS_SCHEDULE_INTERLEAVED, shape, "interleaved-group-size", "use a group of 4");
    shape.group_size = 11;
    assert_illegal(PS_SCHEDULE_INTERLEAVED, shape, "interleaved-group-size", "use a group of 10");
    shape.group_size = 8;
    assert_illegal(PS_SCHEDULE_INTERLEAVED, shape, "interleaved-group-size", "use a group of 10, or 16 micro-batches");
    shape.group_size = 5;
    ps_status status = {0};
    assert_ok(ps_schedule_family_at(PS_SCHEDULE_INTERLEAVED)->legal(shape, &status), &status);
}

// Idle (p - 1)(F + I - W) / v, and p micro-batches at most, at F = I = W and m a multiple of p.
static void interleaved_zb_divides_the_bubble_of_zb_h1_by_the_chunks(void **state)
{
    costs cost = {.forward_ns = 6,
                  .backward_input_ns = 6,
                  .backward_weight_ns = 6,
                  .held_after_forward = 2,
                  .held_after_backward_input = 1};
    for (int32_t p = 1; p <= 8; p++) {
        for (int32_t v = 2; v <= 4; v++) {
            for (int32_t m = p; m <= 3 * p; m += p) {
                ps_timeline t = run(*state, looped_stages(*state, p, p * v, m, cost), PS_SCHEDULE_INTERLEAVED_ZB);
                assert_int_equal(t.makespan_ns, m * v * 18 + (p - 1) * 6);
                assert_int_equal(t.device[0].in_flight_peak, p * v);
                for (int32_t device = 0; device < p; device++)
                    assert_true(t.device[device].peak_activation <= 2 * p * v);
            }
        }
    }
}

static void interleaved_zb_takes_any_count_that_makes_even_groups(void **state)
{
    costs cost = {.forward_ns = 3, .backward_input_ns = 2, .backward_weight_ns = 2, .hop_latency_ns = 1};
    for (int32_t p = 1; p <= 8; p++) {
        for (int32_t m = 1; m <= 3 * p; m++) {
            bool even = m < 2 * p || m % (m / p) == 0;
            ps_schedule_shape shape = {.num_devices = p, .num_stages = 2 * p, .num_microbatches = m};
            ps_status status = {0};
            assert_int_equal(ps_schedule_family_at(PS_SCHEDULE_INTERLEAVED_ZB)->legal(shape, &status) == PS_OK, even);
            if (even)
                run(*state, looped_stages(*state, p, 2 * p, m, cost), PS_SCHEDULE_INTERLEAVED_ZB);
        }
    }
    assert_illegal(PS_SCHEDULE_INTERLEAVED_ZB,
                   (ps_schedule_shape){.num_devices = 4, .num_stages = 8, .num_microbatches = 13},
                   "interleaved-zb-microbatches", "use 12 or 15 micro-batches");
}

static void launch_counts_of_1f1b_give_1f1b(void **state)
{
    for (int32_t p = 1; p <= 6; p++) {
        for (int32_t m = 1; m <= 2 * p; m++) {
            int32_t *count = ps_new(*state, int32_t, p);
            for (int32_t rank = 0; rank < p; rank++)
                count[rank] = p - rank < m ? p - rank : m;
            ps_pipeline *pipeline = equal_stages(*state, p, m, PLAIN);
            ps_schedule own = schedule_for(*state, pipeline, PS_SCHEDULE_1F1B);
            ps_schedule unset = schedule_for(*state, pipeline, PS_SCHEDULE_H_1F1B);
            ps_schedule set;
            ps_status status = {0};
            ps_schedule_shape shape = {.num_devices = p, .num_stages = p, .num_microbatches = m, .launch_count = count};
            assert_ok(ps_schedule_generate_shaped(*state, PS_SCHEDULE_H_1F1B, pipeline, shape, &set, &status), &status);
            for (int32_t op = 0; op < own.first[p]; op++) {
                assert_int_equal(set.op[op].kind, own.op[op].kind);
                assert_int_equal(set.op[op].microbatch, own.op[op].microbatch);
                assert_int_equal(unset.op[op].kind, own.op[op].kind);
                assert_int_equal(unset.op[op].microbatch, own.op[op].microbatch);
            }
        }
    }
}

// Every rank holds what it launches, and one more in flight a hop hides what 1F1B exposes of it.
static void launch_counts_decide_memory_and_hide_hops(void **state)
{
    static const int32_t count[4] = {7, 5, 3, 1};
    costs cost = {.forward_ns = 10, .backward_ns = 20, .hop_latency_ns = 5};
    ps_pipeline *pipeline = equal_stages(*state, 4, 24, cost);
    ps_timeline t = run_shaped(*state, pipeline, PS_SCHEDULE_H_1F1B, (ps_schedule_shape){.launch_count = count});
    for (int32_t device = 0; device < 4; device++)
        assert_int_equal(t.device[device].in_flight_peak, count[device]);
    assert_int_equal(t.makespan_ns, (24 + 3) * 30 + 2 * 3 * 5);
    assert_true(run(*state, pipeline, PS_SCHEDULE_1F1B).makespan_ns > t.makespan_ns);
}

// The rule is exact: whatever it lets through runs, and what it refuses as a deadlock would wait for ever.
static void launch_counts_that_rise_along_the_pipeline_are_refused(void **state)
{
    for (int32_t code = 0; code < 64; code++) {
        int32_t count[3] = {1 + code % 4, 1 + code / 4 % 4, 1 + code / 16};
        ps_schedule_shape shape = {.num_devices = 3, .num_stages = 3, .num_microbatches = 4, .launch_count = count};
        ps_status status = {0};
        bool legal = ps_schedule_family_at(PS_SCHEDULE_H_1F1B)->legal(shape, &status) == PS_OK;
        assert_int_equal(legal, count[0] >= count[1] && count[1] >= count[2]);
        if (legal)
            run_shaped(*state, equal_stages(*state, 3, 4, PLAIN), PS_SCHEDULE_H_1F1B,
                       (ps_schedule_shape){.launch_count = count});
        else
            assert_string_equal(status.rule, "h-1f1b-deadlock");
    }
    static const int32_t rising[] = {2, 3};
    static const int32_t many[] = {9, 1};
    ps_schedule_shape shape = {.num_devices = 2, .num_stages = 2, .num_microbatches = 8, .launch_count = rising};
    assert_illegal(PS_SCHEDULE_H_1F1B, shape, "h-1f1b-deadlock", "launch at most 2 on rank 1");
    shape.launch_count = many;
    assert_illegal(PS_SCHEDULE_H_1F1B, shape, "h-1f1b-launch-count", "use 8");
}

// What the rule above calls a deadlock: rank 1 wants two forwards, rank 0 waits for its backward after one.
static void rising_launch_counts_do_deadlock(void **state)
{
    static const char *const cells[] = {"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"};
    ps_schedule schedule = schedule_from_cells(*state, cells, 2);
    ps_timeline timeline;
    ps_status status = {0};
    assert_int_equal(ps_simulate(*state, equal_stages(*state, 2, 2, PLAIN), &schedule, &timeline, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "deadlock");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(looped_bfs_has_the_bubble_of_interleaved_and_the_memory_of_gpipe),
        test_in_arena(looped_bfs_runs_fewer_micro_batches_than_devices),
        test_in_arena(group_size_of_interleaved_changes_memory_only),
        test_in_arena(a_larger_group_hides_the_time_of_hops),
        test_in_arena(groups_that_leave_a_device_waiting_are_refused_with_the_nearest),
        test_in_arena(interleaved_zb_divides_the_bubble_of_zb_h1_by_the_chunks),
        test_in_arena(interleaved_zb_takes_any_count_that_makes_even_groups),
        test_in_arena(launch_counts_of_1f1b_give_1f1b),
        test_in_arena(launch_counts_decide_memory_and_hide_hops),
        test_in_arena(launch_counts_that_rise_along_the_pipeline_are_refused),
        test_in_arena(rising_launch_counts_do_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
