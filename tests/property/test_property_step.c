// SPDX-License-Identifier: Apache-2.0
//
// test_property_step.c: laws of what ends a step, and of steps back to back, over random pipelines of every schedule.
#include "pipesched/step.h"
#include "support/cmocka_all.h"
#include "support/pipelines.h"

enum { ROUNDS = 240, UNIT = 4 };

typedef struct sample {
    ps_pipeline *pipeline;
    ps_schedule schedule;
    ps_timeline timeline;
    ps_step *step;
} sample;

static ps_step *random_step(ps_arena *arena, ps_rng *rng, const ps_pipeline *pipeline)
{
    ps_step *step = ps_new(arena, ps_step, 1);
    *step = (ps_step){.stage = ps_new(arena, ps_step_stage, pipeline->num_stages),
                      .optimizer_ns = ps_new(arena, int64_t, pipeline->num_devices),
                      .barrier = ps_rng_range(rng, 0, 1) == 1,
                      .overlap = ps_rng_range(rng, 0, 3) > 0,
                      .every_microbatch = ps_rng_range(rng, 0, 3) == 0};
    int64_t tied = ps_rng_range(rng, 0, 1) * ps_rng_range(rng, 0, 9) * UNIT;
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        step->stage[s] = (ps_step_stage){.reduce_ns = ps_rng_range(rng, 0, 30) * UNIT,
                                         .gather_ns = ps_rng_range(rng, 0, 30) * UNIT,
                                         .buckets = 1 << ps_rng_range(rng, 0, 2)};
    int32_t last = pipeline->num_stages - 1;
    if (pipeline->stage[last].device != pipeline->stage[0].device)
        step->stage[0].tied_ns = step->stage[last].tied_ns = tied;
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        step->optimizer_ns[d] = ps_rng_range(rng, 0, 20) * UNIT;
    if (step->barrier)
        step->barrier_ns = ps_rng_range(rng, 0, 5) * UNIT;
    else
        step->validation_hop_ns = ps_rng_range(rng, 0, 5) * UNIT;
    return step;
}

static void scale_pipeline(ps_pipeline *pipeline, int64_t factor)
{
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        ps_hop *hops[] = {&pipeline->forward_hop[s], &pipeline->backward_hop[s]};
        for (int kind = 0; kind < PS_OP_KINDS; kind++)
            pipeline->stage[s].duration_ns[kind] *= factor;
        for (int i = 0; i < 2; i++) {
            hops[i]->latency_ns *= factor;
            hops[i]->occupy_ns *= factor;
        }
    }
}

// All times are multiples of UNIT and buckets are its divisors, so that parts are whole.
static sample random_sample(ps_arena *arena, ps_rng *rng, int32_t round)
{
    ps_schedule_kind kind = (ps_schedule_kind)(round % PS_SCHEDULE_KINDS);
    ps_schedule_shape shape = random_shape(rng, kind);
    sample s = {.pipeline = random_stages(arena, rng, shape.num_devices, shape.num_stages, shape.num_microbatches)};
    place_for(arena, s.pipeline, kind);
    scale_pipeline(s.pipeline, UNIT);
    s.schedule = schedule_for(arena, s.pipeline, kind);
    s.timeline = simulate(arena, s.pipeline, &s.schedule);
    s.step = random_step(arena, rng, s.pipeline);
    return s;
}

static ps_step_timeline place(ps_arena *arena, const sample *s)
{
    ps_step_timeline out;
    ps_status status = {0};
    assert_ok(ps_step_validate(s->pipeline, s->step, &status), &status);
    ps_step_place(arena, s->pipeline, &s->schedule, &s->timeline, s->step, &out);
    return out;
}

static int64_t period(ps_arena *arena, const sample *s)
{
    ps_step_period out;
    ps_status status = {0};
    assert_ok(ps_step_repeat(arena, s->pipeline, &s->schedule, s->step, &out, &status), &status);
    assert_true(out.steps < 64); // it repeats
    return out.period_ns;
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void hidden_and_exposed_are_all_there_is(void **state)
{
    ps_rng rng = {31};
    for (int32_t round = 0; round < ROUNDS; round++) {
        sample s = random_sample(*state, &rng, round);
        ps_step_timeline tail = place(*state, &s);
        int64_t syncs = 0;
        int64_t listed = 0;
        for (int32_t d = 0; d < s.pipeline->num_devices; d++) {
            const ps_step_device *device = &tail.device[d];
            assert_in_range(device->sync_exposed_ns, 0, device->sync_ns);
            assert_in_range(device->gather_exposed_ns, 0, device->gather_ns);
            assert_true(device->synced_ns >= s.timeline.device[d].last_end_ns + device->sync_exposed_ns);
            assert_true(device->optimizer_start_ns >= device->synced_ns);
            assert_true(device->validated_ns >= device->synced_ns);
            assert_int_equal(device->ready_ns,
                             device->optimizer_start_ns + s.step->optimizer_ns[d] + device->gather_exposed_ns);
            syncs += device->sync_ns;
        }
        int64_t passing = ps_pipeline_num_cells(s.pipeline) / s.pipeline->num_stages; // as many on either way
        for (int32_t stage = 0; stage < s.pipeline->num_stages; stage++)
            listed += s.step->stage[stage].tied_ns +
                      s.step->stage[stage].reduce_ns * (s.step->every_microbatch ? passing : 1);
        assert_int_equal(syncs, listed);
        assert_int_equal(tail.iteration_ns,
                         tail.pipeline_ns + tail.sync_exposed_ns + tail.optimizer_ns + tail.gather_exposed_ns);
        assert_int_equal(tail.pipeline_ns, s.step->barrier ? s.timeline.makespan_ns : s.timeline.span_ns);
    }
}

// No reduction before its gradients, one at a time on a link; no optimizer before its device has its gradients.
static void ends_wait_for_what_they_need(void **state)
{
    ps_rng rng = {32};
    for (int32_t round = 0; round < ROUNDS; round++) {
        sample s = random_sample(*state, &rng, round);
        ps_step_timeline tail = place(*state, &s);
        int32_t device = 0;
        int64_t link = 0;
        for (int32_t i = 0; i < tail.num_ops; i++) {
            ps_step_op op = tail.op[i];
            assert_true(op.device >= device && op.end_ns >= op.start_ns);
            if (op.device > device)
                link = 0;
            device = op.device;
            if (op.kind == PS_STEP_OPTIMIZER)
                assert_true(op.start_ns >= tail.device[device].synced_ns);
            if (op.kind != PS_STEP_REDUCE_GRAD && op.kind != PS_STEP_REDUCE_TIED)
                continue;
            assert_true(op.start_ns >= link);
            link = op.end_ns;
            assert_true(link <= tail.device[device].synced_ns);
            if (s.step->overlap || op.kind == PS_STEP_REDUCE_TIED)
                continue;
            assert_true(op.start_ns >= s.timeline.device[device].last_end_ns);
        }
    }
}

static int64_t *random_transfer(ps_rng *rng, const sample *s)
{
    ps_step_stage *stage = &s->step->stage[ps_rng_range(rng, 0, s->pipeline->num_stages - 1)];
    switch (ps_rng_range(rng, 0, 2)) {
    case 0: return s->step->barrier ? &s->step->barrier_ns : &s->step->validation_hop_ns;
    case 1: return &stage->gather_ns;
    default: return &stage->reduce_ns;
    }
}

static void a_faster_link_never_hurts(void **state)
{
    ps_rng rng = {33};
    for (int32_t round = 0; round < ROUNDS; round++) {
        sample s = random_sample(*state, &rng, round);
        ps_step_timeline before = place(*state, &s);
        int64_t repeated = period(*state, &s);
        int64_t *time = random_transfer(&rng, &s);
        *time = ps_rng_range(&rng, 0, *time / UNIT) * UNIT;
        ps_step_timeline after = place(*state, &s);
        assert_true(after.iteration_ns <= before.iteration_ns);
        for (int32_t d = 0; d < s.pipeline->num_devices; d++)
            assert_true(after.device[d].ready_ns <= before.device[d].ready_ns);
        assert_true(period(*state, &s) <= repeated);
    }
}

static void times_scaled_by_k_scale_the_step_by_k(void **state)
{
    ps_rng rng = {34};
    for (int32_t round = 0; round < ROUNDS; round++) {
        sample s = random_sample(*state, &rng, round);
        ps_step_timeline before = place(*state, &s);
        int64_t repeated = period(*state, &s);
        int64_t factor = ps_rng_range(&rng, 2, 100000);
        scale_pipeline(s.pipeline, factor);
        s.timeline = simulate(*state, s.pipeline, &s.schedule);
        for (int32_t stage = 0; stage < s.pipeline->num_stages; stage++) {
            s.step->stage[stage].reduce_ns *= factor;
            s.step->stage[stage].gather_ns *= factor;
            s.step->stage[stage].tied_ns *= factor;
        }
        for (int32_t d = 0; d < s.pipeline->num_devices; d++)
            s.step->optimizer_ns[d] *= factor;
        s.step->barrier_ns *= factor;
        s.step->validation_hop_ns *= factor;
        ps_step_timeline after = place(*state, &s);
        assert_int_equal(after.iteration_ns, factor * before.iteration_ns);
        assert_int_equal(after.sync_exposed_ns, factor * before.sync_exposed_ns);
        assert_int_equal(after.gather_exposed_ns, factor * before.gather_exposed_ns);
        assert_in_range(period(*state, &s), factor * largest(repeated - 1, 0), factor * repeated); // rounded up
    }
}

static void a_barrier_is_never_faster(void **state)
{
    ps_rng rng = {35};
    int32_t slower = 0;
    for (int32_t round = 0; round < ROUNDS; round++) {
        sample s = random_sample(*state, &rng, round);
        s.step->barrier = false;
        s.step->barrier_ns = 0;
        int64_t alone = place(*state, &s).iteration_ns;
        int64_t alone_repeated = period(*state, &s);
        s.step->barrier = true;
        s.step->validation_hop_ns = 0;
        assert_true(place(*state, &s).iteration_ns >= alone);
        assert_true(period(*state, &s) >= alone_repeated);
        slower += period(*state, &s) > alone_repeated;
    }
    assert_true(slower > ROUNDS / 4);
}

// From below by the work of any device, by the first device's own step and by the bound on the span of any order; from
// above by the iteration: all devices could do each step exactly as the first, that much later.
static void the_period_lies_between_its_bounds(void **state)
{
    ps_rng rng = {36};
    for (int32_t round = 0; round < ROUNDS; round++) {
        sample s = random_sample(*state, &rng, round);
        ps_step_timeline tail = place(*state, &s);
        int64_t repeated = period(*state, &s);
        bool split = false;
        for (int32_t i = 0; i < s.schedule.first[s.schedule.num_devices]; i++)
            split |= s.schedule.op[i].kind == PS_OP_BACKWARD_INPUT;
        ps_schedule_bound bound = bound_with_routes(*state, s.pipeline, !split);
        assert_true(repeated >= bound.span_ns);
        for (int32_t d = 0; d < s.pipeline->num_devices; d++)
            assert_true(repeated >=
                        s.timeline.device[d].busy_ns + s.step->optimizer_ns[d] + tail.device[d].gather_exposed_ns);
        assert_true(repeated <= tail.iteration_ns);
        // With routes from both ends the last device may be ahead of the first, whose step is shorter then.
        if (s.pipeline->num_routes == 0 && !s.step->barrier)
            assert_true(repeated >= tail.device[0].ready_ns - s.timeline.device[0].first_start_ns);
    }
}

// With a barrier the devices begin anew from it, each after its own optimizer and gather.
static void with_a_barrier_the_period_goes_from_one_to_the_next(void **state)
{
    ps_rng rng = {37};
    for (int32_t round = 0; round < ROUNDS; round++) {
        sample s = random_sample(*state, &rng, round);
        s.step->barrier = true;
        s.step->validation_hop_ns = 0;
        ps_step_timeline tail = place(*state, &s);
        int64_t *released = ps_new(*state, int64_t, s.pipeline->num_devices);
        ps_status status = {0};
        for (int32_t d = 0; d < s.pipeline->num_devices; d++)
            released[d] = s.step->optimizer_ns[d] + tail.device[d].gather_exposed_ns;
        assert_ok(ps_simulate_from(*state, s.pipeline, &s.schedule, released, &s.timeline, &status), &status);
        assert_int_equal(period(*state, &s), place(*state, &s).device[0].optimizer_start_ns);
    }
}

static void repeat_routes(ps_arena *arena, ps_pipeline *pipeline, int32_t times)
{
    if (pipeline->num_routes == 0)
        return;
    int32_t *route_of = ps_new(arena, int32_t, (int64_t)pipeline->num_microbatches * times);
    for (int32_t i = 0; i < pipeline->num_microbatches * times; i++)
        route_of[i] = pipeline->route_of[i % pipeline->num_microbatches];
    pipeline->route_of = route_of;
}

// The same order over and over as one schedule of as many micro-batches more. Lanes too go on there.
static void without_an_end_steps_repeat_as_one_long_schedule(void **state)
{
    enum { STEPS = 90, APART = 60 };
    ps_rng rng = {38};
    for (int32_t round = 0; round < ROUNDS; round++) {
        sample s = random_sample(*state, &rng, round);
        int32_t devices = s.pipeline->num_devices;
        int32_t m = s.pipeline->num_microbatches;
        int32_t ops = s.schedule.first[devices];
        ps_schedule all = {.num_devices = devices,
                           .first = ps_new(*state, int32_t, devices + 1),
                           .op = ps_new(*state, ps_op, (int64_t)ops * STEPS)};
        *s.step = (ps_step){.stage = ps_new(*state, ps_step_stage, s.pipeline->num_stages),
                            .optimizer_ns = ps_new(*state, int64_t, devices),
                            .overlap = true};
        for (int32_t stage = 0; stage < s.pipeline->num_stages; stage++)
            s.step->stage[stage].buckets = 1;
        int64_t repeated = period(*state, &s);
        int32_t at = 0;
        for (int32_t d = 0; d < devices; d++) {
            for (int32_t step = 0; step < STEPS; step++)
                for (int32_t i = s.schedule.first[d]; i < s.schedule.first[d + 1]; i++) {
                    all.op[at] = s.schedule.op[i];
                    all.op[at++].microbatch += step * m;
                }
            all.first[d + 1] = at;
        }
        repeat_routes(*state, s.pipeline, STEPS);
        s.pipeline->num_microbatches = m * STEPS;
        ps_timeline timeline = simulate(*state, s.pipeline, &all);
        for (int32_t d = 0; d < devices; d++) {
            int32_t step_ops = s.schedule.first[d + 1] - s.schedule.first[d];
            int64_t last = timeline.end_ns[all.first[d + 1] - 1];
            int64_t before = timeline.end_ns[all.first[d + 1] - 1 - APART * step_ops];
            assert_in_range(last - before, APART * largest(repeated - 1, 0), APART * repeated);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(hidden_and_exposed_are_all_there_is),
        test_in_arena(ends_wait_for_what_they_need),
        test_in_arena(a_faster_link_never_hurts),
        test_in_arena(times_scaled_by_k_scale_the_step_by_k),
        test_in_arena(a_barrier_is_never_faster),
        test_in_arena(the_period_lies_between_its_bounds),
        test_in_arena(with_a_barrier_the_period_goes_from_one_to_the_next),
        test_in_arena(without_an_end_steps_repeat_as_one_long_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
