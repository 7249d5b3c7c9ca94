// SPDX-License-Identifier: Apache-2.0
//
// test_property_bound.c: the lower bounds against every possible order of tiny pipelines, in any placement.
#include "support/cmocka_all.h"
#include "support/pipelines.h"

// Enumerates the orders of each device's ops that respect F before R before B or I before W of each pair, and simulates
// every combination of them; those that deadlock across devices or exceed a memory limit are skipped.
typedef struct search {
    ps_arena *scratch;
    const ps_pipeline *pipeline;
    bool fused;
    bool recompute; // every stage has R
    ps_schedule schedule;
    uint8_t *stage_of_done; // per stage and micro-batch: ops done in the order so far
    int64_t least_makespan;
    int64_t least_span;
    int64_t orders;
} search;

static void simulate_order(search *s)
{
    ps_timeline timeline;
    ps_status status = {0};
    ps_arena_reset(s->scratch);
    if (ps_simulate(s->scratch, s->pipeline, &s->schedule, &timeline, &status) != PS_OK) {
        assert_string_equal(status.rule, "deadlock");
        return;
    }
    ps_status misfit = {0};
    if (ps_timeline_fits(s->pipeline, &timeline, &misfit) != PS_OK)
        return;
    s->orders++;
    s->least_makespan = timeline.makespan_ns < s->least_makespan ? timeline.makespan_ns : s->least_makespan;
    s->least_span = timeline.span_ns < s->least_span ? timeline.span_ns : s->least_span;
}

static void place_ops(search *s, int32_t device, int32_t at)
{
    static const ps_op_kind whole[] = {PS_OP_FORWARD, PS_OP_RECOMPUTE, PS_OP_BACKWARD};
    static const ps_op_kind split[] = {PS_OP_FORWARD, PS_OP_RECOMPUTE, PS_OP_BACKWARD_INPUT, PS_OP_BACKWARD_WEIGHT};
    int32_t kinds = (s->fused ? 2 : 3) + s->recompute;
    int32_t m = s->pipeline->num_microbatches;
    if (device == s->pipeline->num_devices) {
        simulate_order(s);
        return;
    }
    if (at == s->schedule.first[device + 1]) {
        place_ops(s, device + 1, at);
        return;
    }
    for (int32_t pair = 0; pair < s->pipeline->num_stages * m; pair++) {
        int32_t stage = pair / m;
        if (s->pipeline->stage[stage].device != device || s->stage_of_done[pair] == kinds)
            continue;
        int32_t next = s->stage_of_done[pair];
        next += next > 0 && !s->recompute;
        ps_op_kind kind = s->fused ? whole[next] : split[next];
        s->schedule.op[at] = (ps_op){.microbatch = pair % m, .stage = (uint16_t)stage, .kind = (uint8_t)kind};
        s->stage_of_done[pair]++;
        place_ops(s, device, at + 1);
        s->stage_of_done[pair]--;
    }
}

static void search_all(ps_arena *arena, ps_arena *scratch, const ps_pipeline *pipeline, bool fused, search *out)
{
    bool recompute = pipeline->stage[0].duration_ns[PS_OP_RECOMPUTE] > 0;
    int32_t pair_ops = (fused ? 2 : 3) + recompute;
    *out = (search){.scratch = scratch,
                    .pipeline = pipeline,
                    .fused = fused,
                    .recompute = recompute,
                    .least_makespan = INT64_MAX,
                    .least_span = INT64_MAX,
                    .stage_of_done = ps_new(arena, uint8_t, pipeline->num_stages * pipeline->num_microbatches)};
    out->schedule.num_devices = pipeline->num_devices;
    out->schedule.first = ps_new(arena, int32_t, pipeline->num_devices + 1);
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        out->schedule.first[pipeline->stage[s].device + 1] += pair_ops * pipeline->num_microbatches;
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        out->schedule.first[d + 1] += out->schedule.first[d];
    out->schedule.op = ps_new(arena, ps_op, out->schedule.first[pipeline->num_devices]);
    place_ops(out, 0, 0);
}

typedef struct tiny {
    int32_t devices;
    int32_t stages;
    int32_t microbatches;
    bool fused;
    int32_t device_of[4];
    int32_t rounds;
} tiny;

static const tiny CASES[] = {
    {1, 1, 3, false, {0}, 3},           {2, 2, 2, true, {0, 1}, 20},       {2, 2, 2, false, {0, 1}, 20},
    {2, 2, 3, true, {0, 1}, 8},         {3, 3, 2, true, {0, 1, 2}, 20},    {3, 3, 2, false, {2, 0, 1}, 6},
    {2, 3, 2, true, {0, 1, 0}, 4},      {2, 4, 1, true, {0, 1, 1, 0}, 20}, {2, 4, 1, false, {0, 1, 1, 0}, 20},
    {2, 4, 1, false, {0, 1, 0, 1}, 20}, {2, 3, 1, false, {1, 1, 0}, 20},
};

static void no_order_at_all_beats_the_bound(void **state)
{
    ps_rng rng = {7};
    ps_arena *scratch = ps_arena_new(0);
    int64_t tight = 0;
    int64_t pipelines = 0;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const tiny *c = &CASES[i];
        for (int32_t round = 0; round < c->rounds; round++) {
            ps_pipeline *pipeline = random_stages(*state, &rng, c->devices, c->stages, c->microbatches);
            for (int32_t s = 0; s < c->stages; s++)
                pipeline->stage[s].device = c->device_of[s];
            ps_pipeline_assign_lanes(*state, pipeline);
            search found;
            ps_schedule_bound bound;
            search_all(*state, scratch, pipeline, c->fused, &found);
            ps_schedule_bound_compute(pipeline, c->fused, &bound);
            assert_true(found.orders > 0);
            assert_true(bound.makespan_ns <= found.least_makespan);
            assert_true(bound.span_ns <= found.least_span);
            tight += bound.makespan_ns == found.least_makespan;
            pipelines++;
        }
    }
    ps_arena_free(scratch);
    // A bound that is rarely reached would prove little.
    assert_true(3 * tight > pipelines);
}

static void limit_memory(ps_rng *rng, ps_pipeline *pipeline)
{
    for (int32_t d = 0; d < pipeline->num_devices; d++) {
        int64_t limit = pipeline->device[d].static_memory + ps_rng_range(rng, 0, 4);
        for (int32_t s = 0; s < pipeline->num_stages; s++) {
            const ps_stage *stage = &pipeline->stage[s];
            if (stage->device == d)
                limit +=
                    stage->held_after_forward + stage->added_by_recompute + stage->transient + ps_rng_range(rng, 0, 9);
        }
        pipeline->device[d].memory_limit = limit;
    }
}

// The bound of the same pipeline without limits is never above; a good part of the pipelines must need the limits.
static void no_order_within_the_memory_limits_beats_the_bound(void **state)
{
    ps_rng rng = {11};
    ps_arena *scratch = ps_arena_new(0);
    int64_t tight = 0;
    int64_t raised = 0;
    int64_t pipelines = 0;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const tiny *c = &CASES[i];
        for (int32_t round = 0; round < 2 * c->rounds; round++) {
            ps_pipeline *pipeline = random_stages(*state, &rng, c->devices, c->stages, c->microbatches);
            for (int32_t s = 0; s < c->stages; s++)
                pipeline->stage[s].device = c->device_of[s];
            for (int32_t s = 0; round % 2 == 0 && s < c->stages; s++)
                pipeline->stage[s].held_after_forward += 4;
            ps_pipeline_assign_lanes(*state, pipeline);
            ps_schedule_bound free_bound;
            ps_schedule_bound_compute(pipeline, c->fused, &free_bound);
            limit_memory(&rng, pipeline);
            search found;
            ps_schedule_bound bound;
            search_all(*state, scratch, pipeline, c->fused, &found);
            if (found.orders == 0)
                continue;
            ps_schedule_bound_compute(pipeline, c->fused, &bound);
            assert_true(bound.makespan_ns <= found.least_makespan);
            assert_true(bound.span_ns <= found.least_span);
            assert_true(bound.makespan_ns >= free_bound.makespan_ns);
            tight += bound.makespan_ns == found.least_makespan;
            raised += bound.makespan_ns > free_bound.makespan_ns;
            pipelines++;
        }
    }
    ps_arena_free(scratch);
    assert_true(pipelines > 200);
    assert_true(3 * tight > pipelines);
    assert_true(8 * raised > pipelines);
    print_message("%d pipelines: bound reached on %d, raised by memory on %d\n", (int)pipelines, (int)tight,
                  (int)raised);
}

// On two equal stages the families are compared with the best of all orders: 1F1B is one of the best fused orders.
static void one_f_one_b_is_among_the_best_of_all_orders_of_equal_stages(void **state)
{
    ps_arena *scratch = ps_arena_new(0);
    for (int32_t m = 1; m <= 3; m++) {
        ps_pipeline *pipeline = equal_stages(*state, 2, m, (costs){.forward_ns = 4, .backward_ns = 7});
        search found;
        search_all(*state, scratch, pipeline, true, &found);
        assert_int_equal(run(*state, pipeline, PS_SCHEDULE_1F1B).makespan_ns, found.least_makespan);
    }
    ps_arena_free(scratch);
}

// R may fill any gap between a stage's F and its backward, with the memory that it adds or with less.
static void no_order_with_recomputes_beats_the_bound(void **state)
{
    static const tiny cases[] = {{1, 1, 3, true, {0}, 6},           {2, 2, 2, true, {0, 1}, 60},
                                 {2, 2, 2, false, {0, 1}, 4},       {3, 3, 2, true, {0, 1, 2}, 8},
                                 {2, 4, 1, true, {0, 1, 1, 0}, 60}, {2, 3, 1, false, {1, 1, 0}, 40}};
    ps_rng rng = {13};
    ps_arena *scratch = ps_arena_new(0);
    int64_t tight = 0;
    int64_t pipelines = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tiny *c = &cases[i];
        for (int32_t round = 0; round < c->rounds; round++) {
            ps_pipeline *pipeline = random_stages(*state, &rng, c->devices, c->stages, c->microbatches);
            for (int32_t s = 0; s < c->stages; s++) {
                pipeline->stage[s].device = c->device_of[s];
                pipeline->stage[s].duration_ns[PS_OP_RECOMPUTE] = ps_rng_range(&rng, 1, 9);
                pipeline->stage[s].added_by_recompute = ps_rng_range(&rng, 0, 9);
            }
            ps_pipeline_assign_lanes(*state, pipeline);
            if (round % 2 == 1)
                limit_memory(&rng, pipeline);
            search found;
            ps_schedule_bound bound;
            search_all(*state, scratch, pipeline, c->fused, &found);
            if (found.orders == 0)
                continue;
            ps_schedule_bound_compute(pipeline, c->fused, &bound);
            assert_true(bound.makespan_ns <= found.least_makespan);
            assert_true(bound.span_ns <= found.least_span);
            tight += bound.makespan_ns == found.least_makespan;
            pipelines++;
        }
    }
    ps_arena_free(scratch);
    assert_true(pipelines > 100);
    assert_true(3 * tight > pipelines);
    print_message("%d pipelines with R: bound reached on %d\n", (int)pipelines, (int)tight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(no_order_at_all_beats_the_bound),
        test_in_arena(no_order_within_the_memory_limits_beats_the_bound),
        test_in_arena(no_order_with_recomputes_beats_the_bound),
        test_in_arena(one_f_one_b_is_among_the_best_of_all_orders_of_equal_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
