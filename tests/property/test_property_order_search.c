// SPDX-License-Identifier: Apache-2.0
//
// test_property_order_search.c: the order search against every order of tiny pipelines, and against the named families
// on random ones, within memory limits.
#include "pipesched/order_search.h"

#include "support/cmocka_all.h"
#include "support/pipelines.h"

// Walks all orders in which each stage runs each kind of op in the order of micro-batches. Micro-batches are alike, so
// one of these is among the best.
typedef struct walk {
    ps_arena *scratch;
    const ps_pipeline *pipeline;
    bool fused;
    bool span;
    ps_schedule schedule;
    int32_t done[4][3]; // by stage: F, gradient op, W
    int64_t least_ns;
} walk;

static void time_order(walk *w)
{
    ps_timeline timeline;
    ps_status status = {0};
    ps_arena_reset(w->scratch);
    if (ps_simulate(w->scratch, w->pipeline, &w->schedule, &timeline, &status) != PS_OK ||
        ps_timeline_fits(w->pipeline, &timeline, &status) != PS_OK)
        return;
    int64_t value = w->span ? timeline.span_ns : timeline.makespan_ns;
    w->least_ns = value < w->least_ns ? value : w->least_ns;
}

static void place_next(walk *w, int32_t device, int32_t at)
{
    static const ps_op_kind kinds[2][3] = {{PS_OP_FORWARD, PS_OP_BACKWARD_INPUT, PS_OP_BACKWARD_WEIGHT},
                                           {PS_OP_FORWARD, PS_OP_BACKWARD, PS_OP_KINDS}};
    if (device == w->pipeline->num_devices) {
        time_order(w);
        return;
    }
    if (at == w->schedule.first[device + 1]) {
        place_next(w, device + 1, at);
        return;
    }
    for (int32_t s = 0; s < w->pipeline->num_stages; s++) {
        for (int32_t step = 0; step < (w->fused ? 2 : 3); step++) {
            int32_t before = step > 0 ? w->done[s][step - 1] : w->pipeline->num_microbatches;
            if (w->pipeline->stage[s].device != device || w->done[s][step] == before)
                continue;
            w->schedule.op[at] =
                (ps_op){.microbatch = w->done[s][step]++, .stage = (uint16_t)s, .kind = (uint8_t)kinds[w->fused][step]};
            place_next(w, device, at + 1);
            w->done[s][step]--;
        }
    }
}

static int64_t best_of_all(ps_arena *arena, ps_arena *scratch, const ps_pipeline *pipeline, bool fused, bool span)
{
    walk w = {.scratch = scratch, .pipeline = pipeline, .fused = fused, .span = span, .least_ns = INT64_MAX};
    int32_t devices = pipeline->num_devices;
    w.schedule.num_devices = devices;
    w.schedule.first = ps_new(arena, int32_t, devices + 1);
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        w.schedule.first[pipeline->stage[s].device + 1] += (fused ? 2 : 3) * pipeline->num_microbatches;
    for (int32_t d = 0; d < devices; d++)
        w.schedule.first[d + 1] += w.schedule.first[d];
    w.schedule.op = ps_new(arena, ps_op, w.schedule.first[devices]);
    place_next(&w, 0, 0);
    return w.least_ns;
}

// Room for one micro-batch and some more.
static void limit_memory(ps_rng *rng, ps_pipeline *pipeline)
{
    for (int32_t d = 0; d < pipeline->num_devices; d++) {
        int64_t limit = pipeline->device[d].static_memory + ps_rng_range(rng, 0, 20);
        for (int32_t s = 0; s < pipeline->num_stages; s++) {
            const ps_stage *stage = &pipeline->stage[s];
            if (stage->device == d)
                limit += stage->held_after_forward + stage->held_after_backward_input + stage->transient;
        }
        pipeline->device[d].memory_limit = limit;
    }
}

typedef struct tiny {
    int32_t devices;
    int32_t stages;
    int32_t microbatches;
    bool fused;
    int32_t device_of[4];
} tiny;

static void tiny_pipelines_come_out_as_fast_as_the_best_of_all_orders(void **state)
{
    static const tiny cases[] = {
        {2, 2, 3, false, {0, 1}},      {2, 2, 4, true, {0, 1}},        {3, 3, 2, false, {0, 1, 2}},
        {3, 3, 3, true, {2, 0, 1}},    {2, 4, 1, false, {0, 1, 1, 0}}, {2, 4, 2, true, {0, 1, 1, 0}},
        {2, 4, 2, true, {0, 1, 0, 1}}, {2, 3, 2, true, {0, 1, 0}},
    };
    enum { ROUNDS = 4 };
    ps_rng rng = {21};
    ps_arena *scratch = ps_arena_new(0);
    int pipelines = 0;
    int proved = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int32_t round = 0; round < ROUNDS; round++) {
            const tiny *c = &cases[i];
            ps_pipeline *pipeline = random_stages(*state, &rng, c->devices, c->stages, c->microbatches);
            for (int32_t s = 0; s < c->stages; s++)
                pipeline->stage[s].device = c->device_of[s];
            ps_pipeline_assign_lanes(*state, pipeline);
            limit_memory(&rng, pipeline);
            bool span = round % 2 == 1;
            ps_order_options options = {.objective = span ? PS_ORDER_SPAN : PS_ORDER_MAKESPAN,
                                        .backward = c->fused ? PS_ORDER_FUSED : PS_ORDER_SPLIT,
                                        .effort = 1};
            ps_order_result result;
            ps_status status = {0};
            assert_ok(ps_order_search(*state, pipeline, &options, &result, &status), &status);
            int64_t best = best_of_all(*state, scratch, pipeline, c->fused, span);
            assert_true(result.bound_ns <= best);
            assert_int_equal(result.value_ns, best);
            proved += result.proved;
            pipelines++;
        }
    }
    ps_arena_free(scratch);
    print_message("%d tiny pipelines, all optimal, %d of them by the bound\n", pipelines, proved);
    assert_true(2 * proved > pipelines);
}

static void no_named_schedule_that_fits_is_faster_and_memory_stays_within_its_limits(void **state)
{
    ps_rng rng = {22};
    for (int32_t round = 0; round < 15; round++) {
        int32_t devices = (int32_t)ps_rng_range(&rng, 1, 4);
        int32_t chunks = (int32_t)ps_rng_range(&rng, 1, 2);
        int32_t microbatches = devices * (int32_t)ps_rng_range(&rng, 1, 3);
        ps_pipeline *pipeline = random_stages(*state, &rng, devices, devices * chunks, microbatches);
        if (round % 3)
            limit_memory(&rng, pipeline);
        ps_order_options options = {
            .objective = round % 2 ? PS_ORDER_SPAN : PS_ORDER_MAKESPAN, .backward = PS_ORDER_EITHER, .effort = 1};
        ps_order_result result;
        ps_status status = {0};
        assert_ok(ps_order_search(*state, pipeline, &options, &result, &status), &status);
        assert_ok(ps_timeline_fits(pipeline, &result.timeline, &status), &status);
        assert_int_equal(result.value_ns, round % 2 ? result.timeline.span_ns : result.timeline.makespan_ns);
        for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
            ps_schedule schedule;
            ps_timeline timeline;
            ps_status refusal = {0};
            if (ps_schedule_generate(*state, (ps_schedule_kind)kind, pipeline, &schedule, &refusal) != PS_OK)
                continue;
            assert_ok(ps_simulate(*state, pipeline, &schedule, &timeline, &status), &status);
            if (ps_timeline_fits(pipeline, &timeline, &refusal) == PS_OK)
                assert_true(result.value_ns <= (round % 2 ? timeline.span_ns : timeline.makespan_ns));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(tiny_pipelines_come_out_as_fast_as_the_best_of_all_orders),
        test_in_arena(no_named_schedule_that_fits_is_faster_and_memory_stays_within_its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
