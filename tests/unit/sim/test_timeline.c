// SPDX-License-Identifier: Apache-2.0
//
// test_timeline.c: idle classes, bubbles and the memory verdict.
#include "support/cmocka_all.h"
#include "support/pipelines.h"

// Nemotron-Nano-v2-9B of SimPipe, in units of 0.01 ms: embedding, Mamba, MLP, attention, head.
typedef struct layer_times {
    char letter;
    int64_t forward;
    int64_t backward; // input and weight gradient
} layer_times;

static const layer_times NEMOTRON[] = {
    {'E', 76, 287 + 0}, {'M', 268, 430 + 176}, {'-', 185, 191 + 169}, {'*', 193, 245 + 65}, {'L', 1422, 1571 + 6},
};

static void add_layer(ps_stage *stage, char letter)
{
    for (size_t i = 0; i < sizeof NEMOTRON / sizeof NEMOTRON[0]; i++) {
        if (NEMOTRON[i].letter == letter) {
            stage->duration_ns[PS_OP_FORWARD] += NEMOTRON[i].forward * 10000;
            stage->duration_ns[PS_OP_BACKWARD] += NEMOTRON[i].backward * 10000;
        }
    }
}

// Four devices, eight micro-batches, 14 of 56 blocks a stage: 1331.21 ms, and the idle triple of every device as
// SimPipe reports it.
static void nemotron_nano_takes_1331_ms_and_idles_as_published(void **state)
{
    static const char pattern[] = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-";
    static const struct {
        int64_t busy, warmup, steady, cooldown;
    } want[4] = {
        {85000, 811, 36036, 11274}, {76160, 4819, 36508, 15634}, {76160, 7923, 28811, 20227}, {103456, 9538, 0, 20127}};
    ps_pipeline *pipeline = equal_stages(*state, 4, 8, (costs){0});
    for (int32_t block = 0; block < 56; block++)
        add_layer(&pipeline->stage[block / 14], pattern[block]);
    add_layer(&pipeline->stage[0], 'E');
    add_layer(&pipeline->stage[3], 'L');
    assert_int_equal(pipeline->stage[0].duration_ns[PS_OP_FORWARD], 33300000);
    assert_int_equal(pipeline->stage[3].duration_ns[PS_OP_BACKWARD], 83390000);

    ps_timeline timeline = run(*state, pipeline, PS_SCHEDULE_1F1B);
    assert_int_equal(timeline.makespan_ns, 1331210000);
    for (int32_t d = 0; d < 4; d++) {
        assert_int_equal(timeline.device[d].busy_ns, want[d].busy * 10000);
        assert_int_equal(timeline.device[d].idle.warmup_ns, want[d].warmup * 10000);
        assert_int_equal(timeline.device[d].idle.steady_ns, want[d].steady * 10000);
        assert_int_equal(timeline.device[d].idle.cooldown_ns, want[d].cooldown * 10000);
    }
}

// p = 4, m = 4, F = 1, B = 2: the first backward starts at 4, the last forward ends at 13, all ends at 21.
static void idle_time_is_split_at_the_first_backward_and_the_last_forward(void **state)
{
    static const ps_idle want[4] = {{0, 7, 2}, {1, 4, 4}, {2, 2, 5}, {3, 0, 6}};
    ps_pipeline *pipeline = equal_stages(*state, 4, 4, (costs){.forward_ns = 1, .backward_ns = 2});
    ps_timeline timeline = run(*state, pipeline, PS_SCHEDULE_1F1B);
    assert_int_equal(timeline.makespan_ns, 21);
    for (int32_t d = 0; d < 4; d++) {
        assert_int_equal(timeline.device[d].idle_ns, 9);
        assert_int_equal(timeline.device[d].idle.warmup_ns, want[d].warmup_ns);
        assert_int_equal(timeline.device[d].idle.steady_ns, want[d].steady_ns);
        assert_int_equal(timeline.device[d].idle.cooldown_ns, want[d].cooldown_ns);
    }
}

// GPipe has no steady phase: its first backward starts when its last forward ends.
static void gpipe_idles_only_in_warm_up_and_cool_down(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 5, 7, (costs){.forward_ns = 10, .backward_ns = 20});
    ps_timeline timeline = run(*state, pipeline, PS_SCHEDULE_GPIPE);
    for (int32_t d = 0; d < 5; d++) {
        assert_int_equal(timeline.device[d].idle.warmup_ns, 4 * 10);
        assert_int_equal(timeline.device[d].idle.steady_ns, 0);
        assert_int_equal(timeline.device[d].idle.cooldown_ns, 4 * 20);
    }
}

static void the_first_device_over_its_limit_is_named_with_need_and_have(void **state)
{
    costs cost = {.forward_ns = 1, .backward_ns = 2, .held_after_forward = 10};
    ps_pipeline *pipeline = equal_stages(*state, 4, 8, cost);
    for (int32_t d = 0; d < 4; d++) {
        pipeline->device[d].static_memory = 100;
        pipeline->device[d].memory_limit = d == 0 ? 140 : 129;
    }
    ps_timeline timeline = run(*state, pipeline, PS_SCHEDULE_1F1B);
    ps_status status = {0};
    assert_int_equal(ps_timeline_fits(pipeline, &timeline, &status), PS_INFEASIBLE);
    assert_string_equal(status.rule, "memory");
    assert_string_equal(status.message, "device 1 needs 130 of memory at its peak, its limit is 129");
    pipeline->device[1].memory_limit = 130;
    status = (ps_status){0};
    assert_ok(ps_timeline_fits(pipeline, &timeline, &status), &status);
}

static void a_pipeline_that_takes_no_time_has_no_bubble(void **state)
{
    ps_timeline timeline = run(*state, equal_stages(*state, 3, 2, (costs){0}), PS_SCHEDULE_1F1B);
    assert_int_equal(timeline.makespan_ns, 0);
    assert_near(ps_timeline_bubble(&timeline), 0, 0);
    assert_near(ps_timeline_span_bubble(&timeline), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(nemotron_nano_takes_1331_ms_and_idles_as_published),
        test_in_arena(idle_time_is_split_at_the_first_backward_and_the_last_forward),
        test_in_arena(gpipe_idles_only_in_warm_up_and_cool_down),
        test_in_arena(the_first_device_over_its_limit_is_named_with_need_and_have),
        test_in_arena(a_pipeline_that_takes_no_time_has_no_bubble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
