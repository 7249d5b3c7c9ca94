// SPDX-License-Identifier: Apache-2.0
//
// test_property_simulate.c: the simulator against a slow one written another way, and laws that any timeline obeys.
#include "pipesched/jitter.h"
#include "support/cmocka_all.h"
#include "support/pipelines.h"

enum { ROUNDS = 60 };

static bool runs(ps_arena *scratch, const ps_pipeline *pipeline, const ps_schedule *schedule)
{
    ps_timeline timeline;
    ps_status status = {0};
    ps_arena_reset(scratch);
    return ps_simulate(scratch, pipeline, schedule, &timeline, &status) == PS_OK;
}

static ps_schedule family_schedule(ps_arena *arena, ps_rng *rng, ps_schedule_kind kind, ps_pipeline **pipeline)
{
    ps_schedule_shape shape = random_shape(rng, kind);
    *pipeline = random_stages(arena, rng, shape.num_devices, shape.num_stages, shape.num_microbatches);
    place_for(arena, *pipeline, kind);
    return schedule_for(arena, *pipeline, kind);
}

// A family's schedule, or one over random routes, shuffled: random neighbours of a device change places unless that
// makes a deadlock.
static ps_schedule random_schedule(ps_arena *arena, ps_rng *rng, int32_t round, ps_pipeline **pipeline)
{
    int32_t kind = round % (PS_SCHEDULE_KINDS + 3);
    ps_schedule schedule;
    if (kind < PS_SCHEDULE_KINDS)
        schedule = family_schedule(arena, rng, (ps_schedule_kind)kind, pipeline);
    else
        *pipeline = random_routes(arena, rng, &schedule);
    int32_t ops = schedule.first[schedule.num_devices];
    ps_arena *scratch = ps_arena_new(0);
    for (int32_t attempt = 0; attempt < 2 * ops; attempt++) {
        ps_op *op = &schedule.op[ps_rng_range(rng, 0, ops - 2)];
        ps_op first = op[0];
        if ((*pipeline)->stage[op[0].stage].device != (*pipeline)->stage[op[1].stage].device)
            continue;
        op[0] = op[1];
        op[1] = first;
        if (runs(scratch, *pipeline, &schedule))
            continue;
        op[1] = op[0];
        op[0] = first;
    }
    ps_arena_free(scratch);
    return schedule;
}

// The slow simulator: every op starts at 0, and rules are applied to all until nothing changes. As each rule only
// delays, the least times that satisfy all of them are what is left.
typedef struct slow {
    const ps_pipeline *pipeline;
    const ps_schedule *schedule;
    int64_t *start;
    int64_t *passed; // when an op's result has left its lane
} slow;

static int64_t end_of(const slow *w, int32_t i)
{
    ps_op op = w->schedule->op[i];
    return w->start[i] + w->pipeline->stage[op.stage].duration_ns[op.kind];
}

static int32_t device_of(const slow *w, int32_t i)
{
    return w->pipeline->stage[w->schedule->op[i].stage].device;
}

static ps_route route_of(const slow *w, ps_op op)
{
    const ps_pipeline *pipeline = w->pipeline;
    return ps_pipeline_route(pipeline, pipeline->num_routes > 0 ? pipeline->route_of[op.microbatch] : 0);
}

static int32_t stop_of(const ps_route *route, ps_op op)
{
    int32_t stop = 0;
    while (ps_route_stage(route, stop) != op.stage)
        stop++;
    return stop;
}

// The stage so many stops further on the op's route; -1: none.
static int32_t stage_at(const slow *w, ps_op op, int32_t away)
{
    ps_route route = route_of(w, op);
    int32_t stop = stop_of(&route, op) + away;
    return stop >= 0 && stop < route.num_stops ? ps_route_stage(&route, stop) : -1;
}

static const ps_hop *hop_from(const slow *w, int32_t i)
{
    ps_op op = w->schedule->op[i];
    bool up = op.kind == PS_OP_FORWARD;
    ps_route route = route_of(w, op);
    int32_t stop = stop_of(&route, op);
    if (op.kind == PS_OP_BACKWARD_WEIGHT || stage_at(w, op, up ? 1 : -1) < 0)
        return NULL;
    return up ? &route.forward_hop[stop] : &route.backward_hop[stop - 1];
}

static int32_t find(const slow *w, int32_t stage, int32_t microbatch, ps_op_kind kind, ps_op_kind other)
{
    for (int32_t i = 0; i < w->schedule->first[w->schedule->num_devices]; i++) {
        ps_op op = w->schedule->op[i];
        if (op.stage == stage && op.microbatch == microbatch && (op.kind == kind || op.kind == other))
            return i;
    }
    return -1;
}

static int64_t arrival_of(const slow *w, int32_t i)
{
    const ps_hop *hop = hop_from(w, i);
    return hop->lane == PS_NO_LANE ? end_of(w, i) : w->passed[i] + hop->latency_ns;
}

static int64_t least_start(const slow *w, int32_t i)
{
    ps_op op = w->schedule->op[i];
    int64_t least = 0;
    int32_t needs[3] = {-1, -1, -1};
    bool gradient = op.kind == PS_OP_BACKWARD || op.kind == PS_OP_BACKWARD_INPUT;
    if (i > w->schedule->first[device_of(w, i)])
        needs[0] = i - 1;
    if (op.kind == PS_OP_BACKWARD_WEIGHT)
        needs[1] = find(w, op.stage, op.microbatch, PS_OP_BACKWARD_INPUT, PS_OP_BACKWARD_INPUT);
    if (gradient)
        needs[1] = find(w, op.stage, op.microbatch, PS_OP_FORWARD, PS_OP_FORWARD);
    for (int n = 0; n < 2; n++)
        if (needs[n] >= 0 && end_of(w, needs[n]) > least)
            least = end_of(w, needs[n]);
    if (op.kind == PS_OP_FORWARD)
        needs[2] = find(w, stage_at(w, op, -1), op.microbatch, PS_OP_FORWARD, PS_OP_FORWARD);
    if (gradient)
        needs[2] = find(w, stage_at(w, op, 1), op.microbatch, PS_OP_BACKWARD, PS_OP_BACKWARD_INPUT);
    if (needs[2] >= 0 && arrival_of(w, needs[2]) > least)
        least = arrival_of(w, needs[2]);
    return least;
}

// Behind the last earlier op of the same device that sent on the same lane.
static int64_t least_passed(const slow *w, int32_t i)
{
    const ps_hop *hop = hop_from(w, i);
    if (!hop || hop->lane == PS_NO_LANE)
        return 0;
    int64_t sent = end_of(w, i);
    for (int32_t j = w->schedule->first[device_of(w, i)]; j < i; j++) {
        const ps_hop *earlier = hop_from(w, j);
        if (earlier && earlier->lane == hop->lane && w->passed[j] > sent)
            sent = w->passed[j];
    }
    return sent + hop->occupy_ns;
}

static slow simulate_slowly(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule)
{
    int32_t ops = schedule->first[schedule->num_devices];
    slow w = {.pipeline = pipeline,
              .schedule = schedule,
              .start = ps_new(arena, int64_t, ops),
              .passed = ps_new(arena, int64_t, ops)};
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t i = 0; i < ops; i++) {
            int64_t start = least_start(&w, i);
            int64_t passed = least_passed(&w, i);
            changed = changed || start != w.start[i] || passed != w.passed[i];
            w.start[i] = start;
            w.passed[i] = passed;
        }
    }
    return w;
}

// What one pair holds while op `now` of its device runs, or right after it; found by looking for its ops.
static int64_t held_by(const slow *w, int32_t stage, int32_t microbatch, int32_t now, bool after)
{
    const ps_stage *s = &w->pipeline->stage[stage];
    int32_t forward = find(w, stage, microbatch, PS_OP_FORWARD, PS_OP_FORWARD);
    int32_t gradient = find(w, stage, microbatch, PS_OP_BACKWARD, PS_OP_BACKWARD_INPUT);
    int32_t weight = find(w, stage, microbatch, PS_OP_BACKWARD_WEIGHT, PS_OP_BACKWARD);
    int32_t limit = after ? now + 1 : now; // ops below it have ended
    if (forward < 0 || forward > now || weight < limit)
        return 0;
    return gradient < limit ? s->held_after_backward_input : s->held_after_forward;
}

static void check_memory(const slow *w, const ps_timeline *timeline)
{
    const ps_pipeline *pipeline = w->pipeline;
    for (int32_t device = 0; device < pipeline->num_devices; device++) {
        int64_t most_held = 0;
        int64_t most = 0;
        for (int32_t i = w->schedule->first[device]; i < w->schedule->first[device + 1]; i++) {
            int64_t during = 0;
            int64_t after = 0;
            for (int32_t stage = 0; stage < pipeline->num_stages; stage++) {
                for (int32_t m = 0; m < pipeline->num_microbatches && pipeline->stage[stage].device == device; m++) {
                    during += held_by(w, stage, m, i, false);
                    after += held_by(w, stage, m, i, true);
                }
            }
            int64_t running = during + pipeline->stage[w->schedule->op[i].stage].transient;
            most_held = during > most_held ? during : most_held;
            most_held = after > most_held ? after : most_held;
            most = running > most ? running : most;
            most = after > most ? after : most;
        }
        assert_int_equal(timeline->device[device].peak_activation, most_held);
        assert_int_equal(timeline->device[device].peak_memory, pipeline->device[device].static_memory + most);
    }
}

static void timeline_and_peak_memory_equal_a_slow_simulators(void **state)
{
    ps_rng rng = {11};
    for (int32_t round = 0; round < ROUNDS; round++) {
        ps_pipeline *pipeline;
        ps_schedule schedule = random_schedule(*state, &rng, round, &pipeline);
        ps_timeline timeline = simulate(*state, pipeline, &schedule);
        slow w = simulate_slowly(*state, pipeline, &schedule);
        int64_t makespan = 0;
        for (int32_t i = 0; i < schedule.first[schedule.num_devices]; i++) {
            assert_int_equal(timeline.start_ns[i], w.start[i]);
            assert_int_equal(timeline.end_ns[i], end_of(&w, i));
            makespan = end_of(&w, i) > makespan ? end_of(&w, i) : makespan;
        }
        assert_int_equal(timeline.makespan_ns, makespan);
        check_memory(&w, &timeline);
    }
}

// Time of each class, counted tick by tick on the finished timeline.
static void idle_classes_equal_a_count_of_ticks(void **state)
{
    ps_rng rng = {12};
    for (int32_t round = 0; round < ROUNDS; round++) {
        ps_pipeline *pipeline;
        ps_schedule schedule = random_schedule(*state, &rng, round, &pipeline);
        ps_timeline t = simulate(*state, pipeline, &schedule);
        int64_t first_gradient = t.makespan_ns;
        int64_t last_forward = 0;
        for (int32_t i = 0; i < schedule.first[schedule.num_devices]; i++) {
            int kind = schedule.op[i].kind;
            if ((kind == PS_OP_BACKWARD || kind == PS_OP_BACKWARD_INPUT) && t.start_ns[i] < first_gradient)
                first_gradient = t.start_ns[i];
            if (kind == PS_OP_FORWARD && t.end_ns[i] > last_forward)
                last_forward = t.end_ns[i];
        }
        for (int32_t d = 0; d < schedule.num_devices; d++) {
            ps_idle want = {0};
            int64_t busy = 0;
            int32_t i = schedule.first[d];
            for (int64_t tick = 0; tick < t.makespan_ns; tick++) {
                while (i < schedule.first[d + 1] && t.end_ns[i] <= tick)
                    i++;
                bool runs = i < schedule.first[d + 1] && t.start_ns[i] <= tick;
                busy += runs;
                want.warmup_ns += !runs && tick < first_gradient;
                want.cooldown_ns += !runs && tick >= first_gradient && tick >= last_forward;
                want.steady_ns += !runs && tick >= first_gradient && tick < last_forward;
            }
            assert_int_equal(t.device[d].busy_ns, busy);
            assert_int_equal(t.device[d].idle_ns, t.makespan_ns - busy);
            assert_int_equal(t.device[d].idle.warmup_ns, want.warmup_ns);
            assert_int_equal(t.device[d].idle.steady_ns, want.steady_ns);
            assert_int_equal(t.device[d].idle.cooldown_ns, want.cooldown_ns);
        }
    }
}

static void scale_times(ps_pipeline *pipeline, int64_t factor)
{
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        for (int kind = 0; kind < PS_OP_KINDS; kind++)
            pipeline->stage[s].duration_ns[kind] *= factor;
    for (int32_t r = 0; r < ps_pipeline_num_routes(pipeline); r++) {
        ps_route route = ps_pipeline_route(pipeline, r);
        for (int32_t stop = 0; stop + 1 < route.num_stops; stop++) {
            route.forward_hop[stop].occupy_ns *= factor;
            route.forward_hop[stop].latency_ns *= factor;
            route.backward_hop[stop].occupy_ns *= factor;
            route.backward_hop[stop].latency_ns *= factor;
        }
    }
}

static void times_scaled_by_k_scale_the_makespan_by_k(void **state)
{
    ps_rng rng = {13};
    for (int32_t round = 0; round < ROUNDS; round++) {
        ps_pipeline *pipeline;
        ps_schedule schedule = random_schedule(*state, &rng, round, &pipeline);
        int64_t factor = ps_rng_range(&rng, 2, 1000000);
        ps_timeline before = simulate(*state, pipeline, &schedule);
        scale_times(pipeline, factor);
        ps_timeline after = simulate(*state, pipeline, &schedule);
        assert_int_equal(after.makespan_ns, factor * before.makespan_ns);
        assert_int_equal(after.span_ns, factor * before.span_ns);
        assert_int_equal(after.busy_ns, factor * before.busy_ns);
    }
}

static ps_jitter_result jitter(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule,
                               ps_jitter_options options)
{
    ps_jitter_result result;
    ps_status status = {0};
    assert_ok(ps_jitter_sample(arena, pipeline, schedule, &options, &result, &status), &status);
    return result;
}

// Times of 0 to 9 are made tens, so that a tenth more or less is whole.
static void jitter_stays_between_all_times_at_their_least_and_at_their_most(void **state)
{
    ps_rng rng = {16};
    for (int32_t round = 0; round < ROUNDS; round++) {
        ps_pipeline *pipeline;
        ps_schedule schedule = random_schedule(*state, &rng, round, &pipeline);
        ps_timeline unit = simulate(*state, pipeline, &schedule);
        scale_times(pipeline, 10);
        ps_jitter_options options = {.share = PS_JITTER_ONE / 10, .samples = 20, .seed = round, .straggler = -1};
        ps_jitter_result result = jitter(*state, pipeline, &schedule, options);
        for (int32_t i = 0; i < options.samples; i++) {
            assert_true(result.makespan.sample_ns[i] >= 9 * unit.makespan_ns);
            assert_true(result.makespan.sample_ns[i] <= 11 * unit.makespan_ns);
        }
    }
}

static void no_jitter_and_a_straggler_equal_the_simulator_with_its_times(void **state)
{
    ps_rng rng = {17};
    for (int32_t round = 0; round < ROUNDS; round++) {
        ps_pipeline *pipeline;
        ps_schedule schedule = random_schedule(*state, &rng, round, &pipeline);
        ps_jitter_options options = {.samples = 2, .straggler = -1};
        for (int64_t factor = 1; factor <= 3; factor += 2) {
            for (int32_t s = 0; s < pipeline->num_stages; s++)
                for (int kind = 0; kind < PS_OP_KINDS && pipeline->stage[s].device == options.straggler; kind++)
                    pipeline->stage[s].duration_ns[kind] *= factor;
            ps_timeline want = simulate(*state, pipeline, &schedule);
            for (int32_t s = 0; s < pipeline->num_stages; s++)
                for (int kind = 0; kind < PS_OP_KINDS && pipeline->stage[s].device == options.straggler; kind++)
                    pipeline->stage[s].duration_ns[kind] /= factor;
            options.factor = factor * PS_JITTER_ONE;
            ps_jitter_result result = jitter(*state, pipeline, &schedule, options);
            assert_int_equal(result.makespan.sample_ns[0], want.makespan_ns);
            assert_int_equal(result.makespan.max_ns, want.makespan_ns);
            assert_int_equal(result.span.sample_ns[0], want.span_ns);
            assert_int_equal(result.span.max_ns, want.span_ns);
            options.straggler = (int32_t)ps_rng_range(&rng, 0, pipeline->num_devices - 1);
        }
    }
}

static int64_t *random_time(ps_pipeline *pipeline, ps_rng *rng)
{
    int32_t s = (int32_t)ps_rng_range(rng, 0, pipeline->num_stages - 1);
    ps_route route = ps_pipeline_route(pipeline, (int32_t)ps_rng_range(rng, 0, ps_pipeline_num_routes(pipeline) - 1));
    int32_t stop = (int32_t)ps_rng_range(rng, 0, route.num_stops - 1);
    switch (ps_rng_range(rng, 0, 4)) {
    case 0: return &route.forward_hop[stop].occupy_ns;
    case 1: return &route.forward_hop[stop].latency_ns;
    case 2: return &route.backward_hop[stop].occupy_ns;
    case 3: return &route.backward_hop[stop].latency_ns;
    default: return &pipeline->stage[s].duration_ns[ps_rng_range(rng, 0, PS_OP_KINDS - 1)];
    }
}

static void a_faster_op_or_hop_never_delays_anything(void **state)
{
    ps_rng rng = {14};
    for (int32_t round = 0; round < 2 * ROUNDS; round++) {
        ps_pipeline *pipeline;
        ps_schedule schedule = random_schedule(*state, &rng, round, &pipeline);
        ps_timeline before = simulate(*state, pipeline, &schedule);
        int64_t *time = random_time(pipeline, &rng);
        *time = ps_rng_range(&rng, 0, *time);
        ps_timeline after = simulate(*state, pipeline, &schedule);
        assert_true(after.makespan_ns <= before.makespan_ns);
        for (int32_t i = 0; i < schedule.first[schedule.num_devices]; i++)
            assert_true(after.end_ns[i] <= before.end_ns[i]);
    }
}

static void micro_batch_numbers_are_only_names(void **state)
{
    ps_rng rng = {15};
    for (int32_t round = 0; round < ROUNDS; round++) {
        ps_pipeline *pipeline;
        ps_schedule schedule = random_schedule(*state, &rng, round, &pipeline);
        int32_t m = pipeline->num_microbatches;
        int32_t ops = schedule.first[schedule.num_devices];
        ps_timeline before = simulate(*state, pipeline, &schedule);
        int32_t *name = ps_new(*state, int32_t, m);
        for (int32_t i = 0; i < m; i++) {
            int32_t j = (int32_t)ps_rng_range(&rng, 0, i);
            name[i] = name[j];
            name[j] = i;
        }
        for (int32_t i = 0; i < ops; i++)
            schedule.op[i].microbatch = name[schedule.op[i].microbatch];
        int32_t *route_of = ps_new(*state, int32_t, m);
        for (int32_t i = 0; i < m && pipeline->num_routes > 0; i++)
            route_of[name[i]] = pipeline->route_of[i];
        pipeline->route_of = route_of;
        ps_timeline after = simulate(*state, pipeline, &schedule);
        assert_memory_equal(after.start_ns, before.start_ns, (size_t)ops * sizeof(int64_t));
        assert_int_equal(after.makespan_ns, before.makespan_ns);
        for (int32_t d = 0; d < schedule.num_devices; d++)
            assert_int_equal(after.device[d].peak_memory, before.device[d].peak_memory);
    }
}

// Whatever the order, within the limits that it keeps.
static void the_bound_is_below_any_order(void **state)
{
    ps_rng rng = {18};
    for (int32_t round = 0; round < 10 * ROUNDS; round++) {
        ps_arena *arena = ps_arena_new(0);
        ps_pipeline *pipeline;
        ps_schedule schedule = random_schedule(arena, &rng, PS_SCHEDULE_KINDS, &pipeline);
        ps_timeline timeline = simulate(arena, pipeline, &schedule);
        bool split = false;
        for (int32_t i = 0; i < schedule.first[schedule.num_devices]; i++)
            split = split || schedule.op[i].kind == PS_OP_BACKWARD_INPUT;
        for (int limited = 0; limited < 2; limited++) {
            for (int32_t d = 0; d < pipeline->num_devices && limited; d++)
                pipeline->device[d].memory_limit = timeline.device[d].peak_memory;
            ps_schedule_bound bound = bound_with_routes(arena, pipeline, !split);
            assert_true(bound.makespan_ns <= timeline.makespan_ns);
            assert_true(bound.span_ns <= timeline.span_ns);
            assert_true(bound.makespan_ns > 0 || timeline.makespan_ns == 0);
        }
        ps_arena_free(arena);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(timeline_and_peak_memory_equal_a_slow_simulators),
        test_in_arena(idle_classes_equal_a_count_of_ticks),
        test_in_arena(times_scaled_by_k_scale_the_makespan_by_k),
        test_in_arena(jitter_stays_between_all_times_at_their_least_and_at_their_most),
        test_in_arena(no_jitter_and_a_straggler_equal_the_simulator_with_its_times),
        test_in_arena(a_faster_op_or_hop_never_delays_anything),
        test_in_arena(micro_batch_numbers_are_only_names),
        test_in_arena(the_bound_is_below_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
