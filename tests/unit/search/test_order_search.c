// SPDX-License-Identifier: Apache-2.0
#include "pipesched/order_search.h"

#include "support/cmocka_all.h"
#include "support/pipelines.h"

static ps_order_result search(ps_arena *arena, const ps_pipeline *pipeline, ps_order_options options)
{
    ps_order_result result;
    ps_status status = {0};
    options.effort = options.effort ? options.effort : 1;
    assert_ok(ps_pipeline_validate(pipeline, &status), &status);
    assert_ok(ps_order_search(arena, pipeline, &options, &result, &status), &status);
    assert_ok(ps_timeline_fits(pipeline, &result.timeline, &status), &status);
    assert_true(result.value_ns >= result.bound_ns);
    return result;
}

static void limit_all(ps_pipeline *pipeline, int64_t limit)
{
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        pipeline->device[d].memory_limit = limit;
}

static const costs PAPER = {.forward_ns = 18522000,
                            .backward_input_ns = 18086000,
                            .backward_weight_ns = 9337000,
                            .hop_latency_ns = 601000,
                            .held_after_forward = 201216,
                            .held_after_backward_input = 73728};

// The figures of the Zero Bubble paper's first row: m (F + I + W) + (p - 1)(F + I - W + 4 c).
static void published_zero_bubble_schedule_is_proved_optimal_at_its_memory(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 8, 24, PAPER);
    limit_all(pipeline, INT64_C(8) * 201216);
    ps_order_result result = search(*state, pipeline, (ps_order_options){.objective = PS_ORDER_SPAN});
    assert_int_equal(result.value_ns, 1310405000);
    assert_true(result.proved);
    assert_string_equal(result.bound_by, "memory");
}

static void more_memory_buys_time_down_to_the_load(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 8, 24, PAPER);
    limit_all(pipeline, INT64_C(16) * 201216);
    ps_order_result result = search(*state, pipeline, (ps_order_options){.objective = PS_ORDER_SPAN});
    assert_int_equal(result.value_ns, 1152599000); // ZB-2p of the paper
    assert_true(result.proved);
    assert_false(result.fused);
}

static void impossible_limit_is_refused_with_the_least_that_works(void **state)
{
    costs cost = {.forward_ns = 1,
                  .backward_input_ns = 1,
                  .backward_weight_ns = 1,
                  .held_after_forward = 5,
                  .held_after_backward_input = 7};
    ps_pipeline *pipeline = looped_stages(*state, 2, 4, 3, cost);
    pipeline->device[1].static_memory = 100;
    limit_all(pipeline, 1000);
    pipeline->device[1].memory_limit = 111;
    ps_order_result result;
    ps_status status = {0};
    ps_order_options options = {.effort = 1};
    assert_int_equal(ps_order_search(*state, pipeline, &options, &result, &status), PS_INFEASIBLE);
    assert_string_equal(status.rule, "memory");
    assert_non_null(strstr(status.hint, "112"));
    pipeline->device[1].memory_limit = 112;
    result = search(*state, pipeline, options);
    assert_int_equal(result.timeline.device[1].peak_memory, 112);
}

// What is left after I may hold more than the activation did; a whole backward then fits where a split one does not.
static void whole_backward_is_taken_where_only_it_fits(void **state)
{
    costs cost = {.forward_ns = 2,
                  .backward_input_ns = 2,
                  .backward_weight_ns = 2,
                  .held_after_forward = 4,
                  .held_after_backward_input = 6};
    ps_pipeline *pipeline = equal_stages(*state, 3, 4, cost);
    limit_all(pipeline, 5);
    ps_order_result result = search(*state, pipeline, (ps_order_options){.backward = PS_ORDER_EITHER});
    assert_true(result.fused);
    limit_all(pipeline, 24);
    assert_false(search(*state, pipeline, (ps_order_options){.backward = PS_ORDER_EITHER}).fused);
}

static void same_input_gives_the_same_schedule(void **state)
{
    ps_rng rng = {5};
    for (int i = 0; i < 3; i++) {
        ps_pipeline *pipeline = random_stages(*state, &rng, 4, 4 + 4 * (i % 2), 9);
        ps_order_result one = search(*state, pipeline, (ps_order_options){.backward = PS_ORDER_EITHER});
        ps_order_result two = search(*state, pipeline, (ps_order_options){.backward = PS_ORDER_EITHER});
        int32_t ops = one.schedule.first[4];
        assert_int_equal(two.schedule.first[4], ops);
        for (int32_t op = 0; op < ops; op++) {
            assert_int_equal(one.schedule.op[op].stage, two.schedule.op[op].stage);
            assert_int_equal(one.schedule.op[op].kind, two.schedule.op[op].kind);
            assert_int_equal(one.schedule.op[op].microbatch, two.schedule.op[op].microbatch);
        }
    }
}

static ps_code stop_at_once(void *context)
{
    ++*(int *)context;
    return PS_STOPPED;
}

static void interrupted_search_gives_what_it_has(void **state)
{
    int polls = 0;
    ps_rng rng = {6};
    ps_control control = {.should_stop = stop_at_once, .context = &polls};
    ps_pipeline *pipeline = random_stages(*state, &rng, 4, 4, 9);
    ps_order_result result = search(*state, pipeline, (ps_order_options){.control = &control});
    assert_true(polls > 0);
    assert_true(result.limit_hit || result.proved);
    assert_true(result.value_ns <= result.named_ns);
}

// In steps of an eighth of an activation, from what nothing fits to what memory no longer helps.
static void more_memory_never_costs_time(void **state)
{
    enum { RUNGS = 40 };
    ps_rng rng = {5};
    ps_pipeline *pipeline = random_stages(*state, &rng, 4, 8, 9);
    for (int32_t s = 0; s < 8; s++) {
        pipeline->stage[s].held_after_forward = 8;
        pipeline->stage[s].held_after_backward_input = 3;
        pipeline->stage[s].transient = 0;
    }
    for (int32_t d = 0; d < 4; d++)
        pipeline->device[d].static_memory = 0;
    int64_t limit[RUNGS];
    for (int32_t i = 0; i < RUNGS; i++)
        limit[i] = 8 + 2 * i;
    ps_order_rung rung[RUNGS];
    int32_t done;
    ps_status status = {0};
    ps_order_options options = {.objective = PS_ORDER_SPAN, .effort = 1};
    assert_ok(ps_order_curve(*state, pipeline, &options, RUNGS, limit, rung, &done, &status), &status);
    assert_int_equal(done, RUNGS);
    assert_false(rung[0].fits);
    assert_true(rung[RUNGS - 1].fits);
    for (int32_t i = 1; i < RUNGS; i++) {
        assert_true(rung[i].fits || !rung[i - 1].fits);
        if (!rung[i].fits)
            continue;
        assert_true(rung[i].span_ns >= rung[i].bound_ns);
        assert_int_equal(rung[i].proved, rung[i].span_ns == rung[i].bound_ns);
        if (rung[i - 1].fits) {
            assert_true(rung[i].span_ns <= rung[i - 1].span_ns);
            assert_true(rung[i].carried == (rung[i].span_ns == rung[i - 1].span_ns));
        }
    }
}

// Regression: moves that made devices wait for each other went round in circles of nanoseconds towards a limit of
// minutes, and heard neither the budget nor the control.
static void circles_of_short_ops_beside_long_ones_end(void **state)
{
    static const int64_t weight_ms[] = {1099511, 7, 2, 1, 1099511, 2, 1099511, 0, 2, 7};
    costs cost = {.forward_ns = 1, .backward_input_ns = 1, .held_after_forward = 1};
    ps_pipeline *pipeline = looped_stages(*state, 5, 10, 1, cost);
    for (int32_t s = 0; s < 10; s++) {
        int64_t weight = weight_ms[s] * 1000000;
        pipeline->stage[s].duration_ns[PS_OP_BACKWARD_WEIGHT] = weight;
        pipeline->stage[s].duration_ns[PS_OP_BACKWARD] = weight + 1;
    }
    ps_order_result result = search(*state, pipeline, (ps_order_options){.backward = PS_ORDER_EITHER});
    assert_true(result.visits < 20000000);
}

static void routes_are_not_searched(void **state)
{
    ps_order_options options = {.backward = PS_ORDER_EITHER, .effort = 1};
    ps_order_result result;
    ps_status status = {0};
    ps_pipeline *pipeline = dual_stages(*state, 4, 8, (costs){.forward_ns = 1, .backward_input_ns = 1});
    assert_int_equal(ps_order_search(*state, pipeline, &options, &result, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "routes-not-searched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(published_zero_bubble_schedule_is_proved_optimal_at_its_memory),
        test_in_arena(more_memory_buys_time_down_to_the_load),
        test_in_arena(impossible_limit_is_refused_with_the_least_that_works),
        test_in_arena(whole_backward_is_taken_where_only_it_fits),
        test_in_arena(same_input_gives_the_same_schedule),
        test_in_arena(interrupted_search_gives_what_it_has),
        test_in_arena(more_memory_never_costs_time),
        test_in_arena(circles_of_short_ops_beside_long_ones_end),
        test_in_arena(routes_are_not_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
