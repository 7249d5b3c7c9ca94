// SPDX-License-Identifier: Apache-2.0
//
// test_refusal.c: a schedule that cannot run is refused with the fault named.
#include <stdio.h>

#include "support/cmocka_all.h"
#include "support/pipelines.h"

// Two devices, two micro-batches, one stage each unless `stages` says otherwise.
static ps_status refuse(ps_arena *arena, const char *const *cells, int32_t devices, int32_t stages)
{
    costs cost = {.forward_ns = 1, .backward_input_ns = 1, .backward_weight_ns = 1};
    ps_pipeline *pipeline = looped_stages(arena, devices, stages, 2, cost);
    ps_schedule schedule = schedule_from_cells(arena, cells, devices);
    ps_timeline timeline;
    ps_status status = {0};
    assert_int_equal(ps_simulate(arena, pipeline, &schedule, &timeline, &status), PS_ILLEGAL);
    return status;
}

static void assert_refused(ps_arena *arena, const char *zero, const char *one, const char *rule, const char *message)
{
    const char *const cells[] = {zero, one};
    ps_status status = refuse(arena, cells, 2, 2);
    assert_string_equal(status.rule, rule);
    assert_string_equal(status.message, message);
}

static void a_deadlock_names_the_cycle(void **state)
{
    assert_refused(*state, "0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1", "deadlock",
                   "0B0 (device 0) waits for 1B0 (device 1), which waits behind 1F1, which waits for 0F1 (device 0), "
                   "which waits behind 0B0");
}

static void an_op_before_what_it_needs_on_its_own_device_is_a_deadlock(void **state)
{
    assert_refused(*state, "0B0 0F0 0F1 0B1", "1F0 1F1 1B0 1B1", "deadlock",
                   "0B0 (device 0) waits for 0F0 (device 0), which waits behind 0B0");
    assert_refused(*state, "0F0 0F1 0B0 0B1", "1F0 1F1 1W0 1I0 1B1", "deadlock",
                   "1W0 (device 1) waits for 1I0 (device 1), which waits behind 1W0");
}

// Device 0 waits for the cycle without being part of it.
static void devices_that_only_wait_for_the_cycle_are_left_out(void **state)
{
    const char *const cells[] = {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1", "2F0 2F1 2B0 2B1"};
    ps_status status = refuse(*state, cells, 3, 3);
    assert_string_equal(status.rule, "deadlock");
    assert_string_equal(status.message,
                        "1B0 (device 1) waits for 2B0 (device 2), which waits behind 2F1, which waits for 1F1 "
                        "(device 1), which waits behind 1B0");
}

// Twelve devices in a ring of 24 stages: device 0 wants the second chunk of micro-batch 0 first, all others want
// micro-batch 1 before micro-batch 0.
static void a_long_cycle_is_cut_and_says_how_much_is_left_out(void **state)
{
    enum { P = 12 };
    char text[P][96];
    const char *cells[P] = {"0F0 12F0 0F1 12F1 12B0 12B1 0B0 0B1"};
    for (int d = 1; d < P; d++) {
        snprintf(text[d], sizeof text[d], "%dF1 %dF0 %dF0 %dF1 %dB0 %dB1 %dB0 %dB1", d, d, P + d, P + d, P + d, P + d,
                 d, d);
        cells[d] = text[d];
    }
    ps_status status = refuse(*state, cells, P, 2 * P);
    assert_string_equal(status.rule, "deadlock");
    assert_string_equal(status.message,
                        "12F0 (device 0) waits for 11F0 (device 11), which waits behind 11F1, which waits for 10F1 "
                        "(device 10), which waits for 9F1 (device 9), which waits for 8F1 (device 8), which waits for "
                        "7F1 (device 7), which waits for 6F1 (device 6), which waits for 5F1 (device 5), which waits "
                        "for 4F1 (device 4), and so on over 4 more ops back to 12F0");
}

static void a_missing_op_is_named(void **state)
{
    assert_refused(*state, "0F0 0F1 0B0 0B1", "1F0 1B0 1B1", "incomplete-schedule", "1F1 is missing on device 1");
    assert_refused(*state, "0F0 0F1 0B0 0B1", "1F0 1F1 1I0 1I1 1W0", "incomplete-schedule",
                   "1W1 is missing on device 1");
    assert_refused(*state, "0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1W1", "incomplete-schedule", "1I1 is missing on device 1");
    assert_refused(*state, "0F0 0F1 0B0", "1F0 1F1 1B0 1B1", "incomplete-schedule",
                   "0B1 (or I and W) is missing on device 0");
    assert_refused(*state, "0F0 0B0", "1F0 1B0", "incomplete-schedule", "0F1 is missing on device 0");
    assert_refused(*state, "", "", "incomplete-schedule", "0F0 is missing on device 0");
}

static void an_op_that_comes_twice_is_named(void **state)
{
    assert_refused(*state, "0F0 0F1 0B0 0B1 0F1", "1F0 1F1 1B0 1B1", "duplicate-op",
                   "device 0 has 0F1 twice, the second time as op 4");
    assert_refused(*state, "0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1 1B0", "duplicate-op",
                   "device 1 has 1B0 twice, the second time as op 4");
    assert_refused(*state, "0F0 0F1 0I0 0W0 0W0 0B1", "1F0 1F1 1B0 1B1", "duplicate-op",
                   "device 0 has 0W0 twice, the second time as op 4");
    assert_refused(*state, "0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1 1I1 1W1", "duplicate-op",
                   "stage 1 has the backward of micro-batch 1 both whole (B) and in parts (I, W)");
}

static void an_op_that_the_pipeline_does_not_have_is_refused(void **state)
{
    assert_refused(*state, "0F0 0F1 0B0 0B1 2F0", "1F0 1F1 1B0 1B1", "unknown-op",
                   "op 4 of device 0 is 2F0, which the pipeline does not have");
    assert_refused(*state, "0F0 0F1 0B0 0B1", "1F2 1F0 1F1 1B0 1B1", "unknown-op",
                   "op 0 of device 1 is 1F2, which the pipeline does not have");
    const char *const cells[] = {"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"};
    ps_pipeline *pipeline = equal_stages(*state, 2, 2, (costs){.forward_ns = 1});
    ps_schedule schedule = schedule_from_cells(*state, cells, 2);
    ps_timeline timeline;
    ps_status status = {0};
    schedule.op[1].kind = 77;
    assert_int_equal(ps_simulate(*state, pipeline, &schedule, &timeline, &status), PS_ILLEGAL);
    assert_string_equal(status.message, "op 1 of device 0 has the unknown kind 77");
    status = (ps_status){0};
    schedule.op[1] = (ps_op){.microbatch = -1, .kind = PS_OP_FORWARD};
    assert_int_equal(ps_simulate(*state, pipeline, &schedule, &timeline, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "unknown-op");
}

static void an_op_on_the_wrong_device_is_refused(void **state)
{
    assert_refused(*state, "0F0 0F1 0B0 1B1 0B1", "1F0 1F1 1B0", "wrong-device",
                   "1B1 is op 3 of device 0, but stage 1 is on device 1");
    ps_pipeline *pipeline = equal_stages(*state, 3, 2, (costs){.forward_ns = 1});
    const char *const cells[] = {"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"};
    ps_schedule schedule = schedule_from_cells(*state, cells, 2);
    ps_timeline timeline;
    ps_status status = {0};
    assert_int_equal(ps_simulate(*state, pipeline, &schedule, &timeline, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "wrong-device");
    assert_string_equal(status.message, "the schedule is for 2 devices, the pipeline has 3");
}

// Dualpipe's two ways on two ranks: micro-batches 0 and 1 pass stages 0 and 1, the others 2 and 3 (on ranks 1 and 0).
static ps_status refuse_dual(ps_arena *arena, const char *zero, const char *one)
{
    costs cost = {.forward_ns = 1, .backward_input_ns = 1, .backward_weight_ns = 1};
    const char *const cells[] = {zero, one};
    ps_pipeline *pipeline = dual_stages(arena, 2, 2, cost);
    ps_schedule schedule = schedule_from_cells(arena, cells, 2);
    ps_timeline timeline;
    ps_status status = {0};
    assert_int_equal(ps_simulate(arena, pipeline, &schedule, &timeline, &status), PS_ILLEGAL);
    return status;
}

static void faults_on_routes_are_named(void **state)
{
    ps_status status = refuse_dual(*state, "0F0 0B0 3F1 3B1 3F0", "1F0 1B0 2F1 2B1");
    assert_string_equal(status.rule, "off-route");
    assert_string_equal(status.message,
                        "op 4 of device 0 is 3F0, but micro-batch 0 takes route 0, which leaves stage 3 out");
    status = refuse_dual(*state, "0F0 0B0 3F1 3B1", "1F0 1B0 2F1");
    assert_string_equal(status.rule, "incomplete-schedule");
    assert_string_equal(status.message, "2B1 (or I and W) is missing on device 1");
    status = refuse_dual(*state, "3F1 3B1 0F0 0B0", "1F0 1B0 2F1 2B1");
    assert_string_equal(status.rule, "deadlock");
    assert_string_equal(status.message, "3F1 (device 0) waits for 2F1 (device 1), which waits behind 1F0, which waits "
                                        "for 0F0 (device 0), which waits behind 3F1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(faults_on_routes_are_named),
        test_in_arena(a_deadlock_names_the_cycle),
        test_in_arena(an_op_before_what_it_needs_on_its_own_device_is_a_deadlock),
        test_in_arena(devices_that_only_wait_for_the_cycle_are_left_out),
        test_in_arena(a_long_cycle_is_cut_and_says_how_much_is_left_out),
        test_in_arena(a_missing_op_is_named),
        test_in_arena(an_op_that_comes_twice_is_named),
        test_in_arena(an_op_that_the_pipeline_does_not_have_is_refused),
        test_in_arena(an_op_on_the_wrong_device_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
