// SPDX-License-Identifier: Apache-2.0
#include "pipesched/schedule.h"

#include "support/cmocka_all.h"
#include "support/pipelines.h"

static ps_schedule_bound bound_of(const ps_pipeline *pipeline, bool fused)
{
    ps_schedule_bound bound;
    ps_schedule_bound_compute(pipeline, fused, &bound);
    return bound;
}

// (m + p - 1)(F + B) is the least possible, so 1F1B with equal stages and free hops is optimal.
static void one_f_one_b_reaches_the_bound_with_free_hops(void **state)
{
    for (int32_t p = 1; p <= 6; p++) {
        for (int32_t m = 1; m <= 12; m++) {
            ps_pipeline *pipeline = equal_stages(*state, p, m, (costs){.forward_ns = 10, .backward_ns = 21});
            ps_schedule_bound bound = bound_of(pipeline, true);
            assert_int_equal(bound.makespan_ns, (m + p - 1) * 31);
            assert_int_equal(bound.span_ns, (m + p - 1) * 31);
        }
    }
}

// m (F + I) + (p - 1)(F + I + 2c) + W: the chain through the last stage. With as many micro-batches as devices the
// greedy zero-bubble schedules reach it.
static void chain_through_the_last_stage_has_closed_form(void **state)
{
    costs cost = {.forward_ns = 18522, .backward_input_ns = 18086, .backward_weight_ns = 9337, .hop_latency_ns = 601};
    for (int32_t p = 2; p <= 8; p++) {
        ps_schedule_bound bound = bound_of(equal_stages(*state, p, p, cost), false);
        assert_int_equal(bound.makespan_ns, p * 36608 + (p - 1) * (36608 + 1202) + 9337);
        assert_int_equal(bound.span_ns, bound.makespan_ns);
        assert_string_equal(bound.makespan_by, "chain");
    }
}

static void work_of_the_fullest_device_bounds_when_it_dominates(void **state)
{
    ps_pipeline *pipeline =
        equal_stages(*state, 3, 50, (costs){.forward_ns = 2, .backward_input_ns = 2, .backward_weight_ns = 3});
    pipeline->stage[1].duration_ns[PS_OP_BACKWARD_WEIGHT] = 100;
    ps_schedule_bound bound = bound_of(pipeline, false);
    assert_int_equal(bound.makespan_ns, 2 + 50 * 104);
    assert_string_equal(bound.makespan_by, "load");
    assert_int_equal(bound.span_ns, 50 * 104);
    assert_string_equal(bound.span_by, "load");
}

static void one_micro_batch_bounds_what_hops_stretch(void **state)
{
    costs cost = {.forward_ns = 1, .backward_input_ns = 1, .backward_weight_ns = 1, .hop_latency_ns = 100};
    ps_schedule_bound bound = bound_of(looped_stages(*state, 2, 4, 1, cost), false);
    assert_int_equal(bound.makespan_ns, 4 + 4 + 600 + 1);
    assert_string_equal(bound.makespan_by, "single micro-batch");
}

// Ten messages of 50 through one link take 500, whatever the devices do.
static void a_full_link_bounds(void **state)
{
    costs cost = {
        .forward_ns = 3, .backward_input_ns = 4, .backward_weight_ns = 5, .hop_latency_ns = 1, .hop_occupy_ns = 50};
    ps_pipeline *pipeline = equal_stages(*state, 2, 10, cost);
    ps_schedule_bound bound = bound_of(pipeline, false);
    assert_int_equal(bound.makespan_ns, 3 + 500 + 1 + 3 + 4 + 51 + 4 + 5);
    assert_string_equal(bound.makespan_by, "link");
    assert_true(run(*state, pipeline, PS_SCHEDULE_ZB_H1).makespan_ns >= bound.makespan_ns);
}

static void hops_inside_a_device_cost_nothing(void **state)
{
    ps_pipeline *pipeline =
        looped_stages(*state, 1, 3, 4, (costs){.forward_ns = 2, .backward_ns = 3, .hop_latency_ns = 1000});
    assert_int_equal(bound_of(pipeline, true).makespan_ns, 3 * 4 * 5);
    assert_int_equal(run(*state, pipeline, PS_SCHEDULE_INTERLEAVED).makespan_ns, 3 * 4 * 5);
}

// Beyond 256 devices the sums are taken in several passes.
static void bound_does_not_depend_on_how_many_devices_fit_in_a_pass(void **state)
{
    costs cost = {.forward_ns = 10, .backward_ns = 20};
    assert_int_equal(bound_of(equal_stages(*state, 700, 3, cost), true).makespan_ns, (700 + 2) * 30);
    ps_pipeline *late = equal_stages(*state, 700, 5, cost);
    late->stage[650].duration_ns[PS_OP_FORWARD] = 1000000;
    assert_int_equal(bound_of(late, true).makespan_ns, 650 * 30 + 5 * (INT64_C(1000000) + 20));
    late->forward_hop[640].occupy_ns = 50000000;
    assert_string_equal(bound_of(late, true).makespan_by, "link");
}

// Folded, m = p, F = I = W: the device with the first and the last stage has p F's to run until the first micro-batch
// returns after 2 p - 1, so it idles for p - 1, and the zb-v schedule of m = p is optimal in its span.
static void device_idles_until_the_first_micro_batch_comes_back(void **state)
{
    costs cost = {.forward_ns = 1, .backward_input_ns = 1, .backward_weight_ns = 1, .held_after_forward = 1};
    for (int32_t p = 2; p <= 12; p++) {
        ps_pipeline *pipeline = v_stages(*state, p, p, cost);
        ps_schedule_bound bound = bound_of(pipeline, false);
        assert_int_equal(bound.span_ns, 6 * p + p - 1);
        assert_string_equal(bound.span_by, "start-up");
    }
}

// Regression: without room for anything but a transient, what holds nothing was taken to fit not even once.
static void what_holds_no_memory_fits_into_no_room(void **state)
{
    costs cost = {.forward_ns = 7, .backward_ns = 6};
    ps_pipeline *pipeline = equal_stages(*state, 1, 2, cost);
    pipeline->stage[0].transient = 8;
    pipeline->device[0] = (ps_device){.static_memory = 19, .memory_limit = 27};
    assert_int_equal(bound_of(pipeline, true).makespan_ns, 26);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(one_f_one_b_reaches_the_bound_with_free_hops),
        test_in_arena(chain_through_the_last_stage_has_closed_form),
        test_in_arena(work_of_the_fullest_device_bounds_when_it_dominates),
        test_in_arena(one_micro_batch_bounds_what_hops_stretch),
        test_in_arena(a_full_link_bounds),
        test_in_arena(hops_inside_a_device_cost_nothing),
        test_in_arena(bound_does_not_depend_on_how_many_devices_fit_in_a_pass),
        test_in_arena(device_idles_until_the_first_micro_batch_comes_back),
        test_in_arena(what_holds_no_memory_fits_into_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
