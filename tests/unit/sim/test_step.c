// SPDX-License-Identifier: Apache-2.0
//
// test_step.c: what ends a step, by hand.
#include "pipesched/step.h"

#include "pipesched/limits.h"
#include "support/cmocka_all.h"
#include "support/pipelines.h"

static ps_step *plain_step(ps_arena *arena, const ps_pipeline *pipeline, int64_t reduce_ns, int64_t optimizer_ns)
{
    ps_step *step = ps_new(arena, ps_step, 1);
    *step = (ps_step){.stage = ps_new(arena, ps_step_stage, pipeline->num_stages),
                      .optimizer_ns = ps_new(arena, int64_t, pipeline->num_devices),
                      .barrier = true,
                      .overlap = true};
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        step->stage[s] = (ps_step_stage){.reduce_ns = reduce_ns, .buckets = 1};
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        step->optimizer_ns[d] = optimizer_ns;
    return step;
}

static ps_step_timeline place(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule_kind kind, const ps_step *step)
{
    ps_schedule schedule = schedule_for(arena, pipeline, kind);
    ps_timeline timeline = simulate(arena, pipeline, &schedule);
    ps_step_timeline out;
    ps_status status = {0};
    assert_ok(ps_step_validate(pipeline, step, &status), &status);
    ps_step_place(arena, pipeline, &schedule, &timeline, step, &out);
    return out;
}

static ps_step_period repeat(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule_kind kind, const ps_step *step)
{
    ps_schedule schedule = schedule_for(arena, pipeline, kind);
    ps_step_period out;
    ps_status status = {0};
    assert_ok(ps_step_repeat(arena, pipeline, &schedule, step, &out, &status), &status);
    return out;
}

// p = 4, m = 8, F = I = W = 12: the span of ZB-H2 is 288, its makespan 324. Only without a barrier do steps follow each
// other as the span says.
static void zero_bubble_holds_its_span_when_validated_later(void **state)
{
    ps_pipeline *pipeline =
        equal_stages(*state, 4, 8, (costs){.forward_ns = 12, .backward_input_ns = 12, .backward_weight_ns = 12});
    ps_step *step = plain_step(*state, pipeline, 8, 5);
    ps_step_timeline with = place(*state, pipeline, PS_SCHEDULE_ZB_H2, step);
    assert_int_equal(with.iteration_ns, 324 + 8 + 5);
    assert_int_equal(repeat(*state, pipeline, PS_SCHEDULE_ZB_H2, step).period_ns, 324 + 8 + 5);
    step->barrier = false;
    step->validation_hop_ns = 3;
    ps_step_timeline without = place(*state, pipeline, PS_SCHEDULE_ZB_H2, step);
    assert_int_equal(without.iteration_ns, 288 + 8 + 5);
    assert_int_equal(repeat(*state, pipeline, PS_SCHEDULE_ZB_H2, step).period_ns, 288 + 8 + 5);
    // The last device has its gradients at 332, after all others, and the state goes up from there.
    for (int32_t d = 0; d < 4; d++) {
        assert_int_equal(without.device[d].validated_ns, 332 + (3 - d) * 3);
        assert_int_equal(without.device[d].optimizer_start_ns, 296 + 12 * d);
    }
}

// F 1, B 2, p = 2, m = 2: device 0 ends at 9, device 1 at 7.
static void a_barrier_waits_for_the_last_to_have_its_gradients(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 2, 2, (costs){.forward_ns = 1, .backward_ns = 2});
    ps_step *step = plain_step(*state, pipeline, 0, 0);
    step->stage[0].reduce_ns = 1;
    step->stage[1].reduce_ns = 7;
    step->optimizer_ns[0] = 5;
    step->optimizer_ns[1] = 2;
    step->barrier_ns = 4;
    ps_step_timeline tail = place(*state, pipeline, PS_SCHEDULE_1F1B, step);
    assert_int_equal(tail.device[0].synced_ns, 10);
    assert_int_equal(tail.device[1].synced_ns, 14);
    assert_int_equal(tail.device[0].optimizer_start_ns, 18);
    assert_int_equal(tail.device[1].ready_ns, 20);
    assert_int_equal(tail.iteration_ns, 23);
    assert_int_equal(tail.pipeline_ns, 9);
    assert_int_equal(tail.sync_exposed_ns, 5);
    assert_int_equal(tail.optimizer_ns, 9);
    assert_int_equal(tail.num_ops, 6);
    assert_int_equal(tail.op[1].kind, PS_STEP_BARRIER);
    assert_int_equal(tail.op[1].start_ns, 10);
    assert_int_equal(tail.op[1].end_ns, 18);
}

// Whatever the op, the last of the buckets goes when it has ended; and no more than all of them are left.
static void buckets_leave_beside_the_last_backward(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 1, 2, (costs){.forward_ns = 10, .backward_ns = 100});
    ps_step *step = plain_step(*state, pipeline, 40, 0);
    const struct {
        int32_t buckets;
        int64_t reduce;
        int64_t exposed;
    } want[] = {{1, 40, 40}, {4, 40, 10}, {4, 80, 20}, {4, 100, 25}, {4, 180, 105}, {3, 40, 14}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        step->stage[0].buckets = want[i].buckets;
        step->stage[0].reduce_ns = want[i].reduce;
        ps_step_timeline tail = place(*state, pipeline, PS_SCHEDULE_1F1B, step);
        assert_int_equal(tail.device[0].sync_exposed_ns, want[i].exposed);
        assert_int_equal(ps_step_exposed_ns(want[i].reduce, want[i].buckets, 100), want[i].exposed);
    }
    step->overlap = false;
    assert_int_equal(place(*state, pipeline, PS_SCHEDULE_1F1B, step).device[0].sync_exposed_ns, 40);
}

// Looped BFS ends with all backwards of the lower chunk: 4 of 2 each hide the reduction of the upper one.
static void a_chunk_that_is_done_early_reduces_beside_the_rest(void **state)
{
    ps_pipeline *pipeline = looped_stages(*state, 2, 4, 4, (costs){.forward_ns = 1, .backward_ns = 2});
    ps_step *step = plain_step(*state, pipeline, 3, 0);
    ps_step_timeline tail = place(*state, pipeline, PS_SCHEDULE_LOOPED_BFS, step);
    for (int32_t d = 0; d < 2; d++) {
        assert_int_equal(tail.device[d].sync_ns, 6);
        assert_int_equal(tail.device[d].sync_exposed_ns, 3);
    }
    step->stage[3].reduce_ns = 10; // two longer than those backwards
    tail = place(*state, pipeline, PS_SCHEDULE_LOOPED_BFS, step);
    assert_int_equal(tail.device[1].sync_exposed_ns, 5);
    assert_int_equal(tail.op[4].stage, 3);
}

// ZeRO-2, m = 3 whole backwards of 10 behind each other: reductions of 12 queue, of 6 only the last is left.
static void each_micro_batch_reduces_by_itself(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 1, 3, (costs){.forward_ns = 1, .backward_ns = 10});
    ps_step *step = plain_step(*state, pipeline, 6, 0);
    step->every_microbatch = true;
    ps_step_timeline tail = place(*state, pipeline, PS_SCHEDULE_GPIPE, step);
    assert_int_equal(tail.device[0].sync_ns, 18);
    assert_int_equal(tail.device[0].sync_exposed_ns, 6);
    step->stage[0].reduce_ns = 12;
    tail = place(*state, pipeline, PS_SCHEDULE_GPIPE, step);
    assert_int_equal(tail.device[0].sync_exposed_ns, 12 + 2 * 2);
    char text[48];
    ps_step_op_format(&tail.op[1], text);
    assert_string_equal(text, "0REDUCE_GRAD1");
}

// F 1, B 2, p = 2, m = 2: device 0 ends at 9, device 1 at 7 and is reduced at 12.
static void shared_weights_wait_for_both_holders(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 2, 2, (costs){.forward_ns = 1, .backward_ns = 2});
    ps_step *step = plain_step(*state, pipeline, 0, 0);
    step->stage[1].reduce_ns = 5;
    step->stage[0].tied_ns = step->stage[1].tied_ns = 4;
    step->barrier = false;
    ps_step_timeline tail = place(*state, pipeline, PS_SCHEDULE_1F1B, step);
    assert_int_equal(tail.device[0].synced_ns, 16);
    assert_int_equal(tail.device[0].sync_exposed_ns, 4); // it works no longer, though it waits
    assert_int_equal(tail.device[1].synced_ns, 16);
    assert_int_equal(tail.device[1].sync_exposed_ns, 9);
}

// p = 4, one backward each: the outer two and the inner two hold the same, as when micro-batches enter at both ends.
static void different_weights_are_shared_by_different_devices(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 4, 1, (costs){.forward_ns = 1, .backward_ns = 1});
    ps_step *step = plain_step(*state, pipeline, 0, 0);
    for (int32_t s = 0; s < 4; s++) {
        step->stage[s].tied_ns = s == 0 || s == 3 ? 10 : 20;
        step->stage[s].tied_to = s < 3 - s ? s : 3 - s;
    }
    step->barrier = false;
    ps_step_timeline tail = place(*state, pipeline, PS_SCHEDULE_1F1B, step);
    const int64_t synced[] = {8 + 10, 7 + 20, 7 + 20, 8 + 10};
    for (int32_t d = 0; d < 4; d++)
        assert_int_equal(tail.device[d].synced_ns, synced[d]);
    assert_int_equal(tail.op[0].kind, PS_STEP_REDUCE_TIED);
    assert_int_equal(tail.op[3].stage, 1);
    assert_int_equal(tail.op[3].start_ns, 7);
}

// The first forward takes 6: of a gather of 8 in 2 buckets the first has to be there, and 5 of it can come beside it.
static void gathers_hide_beside_first_forwards(void **state)
{
    ps_pipeline *pipeline = looped_stages(*state, 1, 2, 1, (costs){.forward_ns = 6, .backward_ns = 2});
    ps_step *step = plain_step(*state, pipeline, 0, 0);
    step->stage[0].gather_ns = 8;
    step->stage[0].buckets = 2;
    ps_step_timeline tail = place(*state, pipeline, PS_SCHEDULE_LOOPED_BFS, step);
    assert_int_equal(tail.device[0].gather_exposed_ns, 5);
    step->stage[1].gather_ns = 1; // wanted 6 later, and after the other
    assert_int_equal(place(*state, pipeline, PS_SCHEDULE_LOOPED_BFS, step).device[0].gather_exposed_ns, 5);
    step->stage[1].gather_ns = 4;
    assert_int_equal(place(*state, pipeline, PS_SCHEDULE_LOOPED_BFS, step).device[0].gather_exposed_ns, 6);
    step->overlap = false;
    tail = place(*state, pipeline, PS_SCHEDULE_LOOPED_BFS, step);
    assert_int_equal(tail.device[0].gather_exposed_ns, 12);
    assert_int_equal(tail.op[tail.num_ops - 1].kind, PS_STEP_GATHER);
    assert_int_equal(tail.op[tail.num_ops - 1].end_ns - tail.op[tail.num_ops - 2].end_ns, 4);
}

// A device with a long optimizer holds up only itself: the first one's next step begins meanwhile.
static void a_period_is_shorter_than_a_step_by_itself_when_the_last_device_steps_longest(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 2, 1, (costs){.forward_ns = 4, .backward_ns = 6});
    ps_step *step = plain_step(*state, pipeline, 0, 1);
    step->optimizer_ns[1] = 5; // the first forward arrives after 1 + 4
    assert_int_equal(place(*state, pipeline, PS_SCHEDULE_1F1B, step).iteration_ns, 20 + 5);
    ps_step_period period = repeat(*state, pipeline, PS_SCHEDULE_1F1B, step);
    assert_int_equal(period.period_ns, 20 + 1);
    assert_true(period.steps <= 3);
}

static void cells_read_back_as_they_are_written(void **state)
{
    (void)state;
    const char *const cells[] = {"0REDUCE_GRAD", "12REDUCE_GRAD7", "3REDUCE_TIED", "BARRIER",
                                 "VALIDATE",     "OPTIMIZER",      "65535GATHER"};
    const char *const others[] = {"REDUCE_GRAD", "0BARRIER", "0F1", "1GATHER2",      "OPTIMIZER1",  "",
                                  "01GATHER",    "0gather",  "7",   "0REDUCE_GRADx", "65536GATHER", "0REDUCE_GRAD01"};
    ps_step_op op;
    char text[48];
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        assert_true(ps_step_op_parse(cells[i], &op));
        assert_int_equal(ps_step_op_format(&op, text), strlen(cells[i]));
        assert_string_equal(text, cells[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(ps_step_op_parse(others[i], &op));
}

static void what_is_no_step_is_refused(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 3, 2, (costs){.forward_ns = 1, .backward_ns = 2});
    for (int32_t fault = 0; fault < 10; fault++) {
        static const char *const rule[] = {"step-shape",    "negative-time", "negative-time", "negative-time",
                                           "negative-time", "step-shape",    "step-shape",    "step-shape",
                                           "time-overflow", "step-shape"};
        ps_step *step = plain_step(*state, pipeline, 1, 1);
        ps_status status = {0};
        switch (fault) {
        case 0: step->stage[1].buckets = 0; break;
        case 1: step->stage[1].reduce_ns = -1; break;
        case 2: step->stage[1].gather_ns = -1; break;
        case 3: step->optimizer_ns[2] = -1; break;
        case 4: step->barrier_ns = -1; break;
        case 5: step->validation_hop_ns = 1; break;
        case 6:
            step->stage[1].tied_ns = 5;
            step->stage[1].tied_to = 2;
            break;
        case 7:
            step->stage[0].tied_ns = 5;
            step->stage[1].tied_ns = 6;
            break;
        case 8: step->stage[1].gather_ns = PS_MAX_TIME_NS; break;
        default: step->barrier = false; step->barrier_ns = 1;
        }
        assert_int_equal(ps_step_validate(pipeline, step, &status), PS_BAD_INPUT);
        assert_string_equal(status.rule, rule[fault]);
    }
}

static void a_step_of_years_is_not_repeated(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 2, 1, (costs){.forward_ns = 1, .backward_ns = PS_MAX_TIME_NS / 8});
    ps_schedule schedule = schedule_for(*state, pipeline, PS_SCHEDULE_1F1B);
    ps_step_period period;
    ps_status status = {0};
    assert_int_equal(ps_step_repeat(*state, pipeline, &schedule, plain_step(*state, pipeline, 0, 0), &period, &status),
                     PS_BAD_INPUT);
    assert_string_equal(status.rule, "time-overflow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(zero_bubble_holds_its_span_when_validated_later),
        test_in_arena(a_barrier_waits_for_the_last_to_have_its_gradients),
        test_in_arena(buckets_leave_beside_the_last_backward),
        test_in_arena(a_chunk_that_is_done_early_reduces_beside_the_rest),
        test_in_arena(each_micro_batch_reduces_by_itself),
        test_in_arena(shared_weights_wait_for_both_holders),
        test_in_arena(different_weights_are_shared_by_different_devices),
        test_in_arena(gathers_hide_beside_first_forwards),
        test_in_arena(a_period_is_shorter_than_a_step_by_itself_when_the_last_device_steps_longest),
        test_in_arena(cells_read_back_as_they_are_written),
        test_in_arena(what_is_no_step_is_refused),
        test_in_arena(a_step_of_years_is_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
