// SPDX-License-Identifier: Apache-2.0
//
// bench_simulate.c: ops generated and simulated a second, beside a plain round-robin simulator.
//
// The plain one only times: it trusts the schedule, and counts neither memory nor idle time, so a ratio of 1 means that
// all of that comes for free. Both makespans must agree; no time is asserted. Best of several rounds, as other work on
// the machine only ever adds time; the first round also pays for fresh memory pages and is shown apart.
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "pipesched/timeline.h"

enum { ROUNDS = 15 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fill_pipeline(ps_arena *arena, ps_schedule_shape shape, ps_pipeline *out)
{
    *out = (ps_pipeline){.num_stages = shape.num_stages,
                         .num_devices = shape.num_devices,
                         .num_microbatches = shape.num_microbatches,
                         .stage = ps_new(arena, ps_stage, shape.num_stages),
                         .forward_hop = ps_new(arena, ps_hop, shape.num_stages),
                         .backward_hop = ps_new(arena, ps_hop, shape.num_stages),
                         .device = ps_new(arena, ps_device, shape.num_devices)};
    for (int32_t s = 0; s < shape.num_stages; s++) {
        int64_t f = 1000 + 37 * (s % 11);
        out->stage[s] = (ps_stage){.device = ps_schedule_device(PS_PLACEMENT_LOOP, shape, s),
                                   .duration_ns = {f, 2 * f, f, f},
                                   .held_after_forward = 10,
                                   .held_after_backward_input = 4};
        out->forward_hop[s] = out->backward_hop[s] = (ps_hop){.occupy_ns = 50, .latency_ns = 20};
    }
    for (int32_t d = 0; d < shape.num_devices; d++)
        out->device[d].memory_limit = INT64_MAX;
    ps_pipeline_assign_lanes(arena, out);
}

// The reference: sweep over the devices and run whatever can run, until a sweep runs nothing. Arrival times of F and of
// the gradient by stage and micro-batch, -1: not yet.
typedef struct sweep {
    const ps_pipeline *pipeline;
    const ps_schedule *schedule;
    int64_t *input;
    int64_t *gradient;
    int64_t *lane_free;
    int64_t *clock;
    int32_t *next;
    int64_t *start_ns;
    int64_t *end_ns;
} sweep;

static int64_t arrive(sweep *w, const ps_hop *hop, int64_t sent)
{
    if (hop->lane == PS_NO_LANE)
        return sent;
    int64_t *lane_free = &w->lane_free[hop->lane];
    *lane_free = (sent > *lane_free ? sent : *lane_free) + hop->occupy_ns;
    return *lane_free + hop->latency_ns;
}

static int run_op(sweep *w, int32_t device)
{
    const ps_pipeline *pipeline = w->pipeline;
    ps_op op = w->schedule->op[w->next[device]];
    int64_t m = pipeline->num_microbatches;
    int64_t at = op.stage * m + op.microbatch;
    int64_t there = op.kind == PS_OP_FORWARD ? w->input[at] : op.kind == PS_OP_BACKWARD_WEIGHT ? 0 : w->gradient[at];
    if (there < 0)
        return 0;
    int64_t start = there > w->clock[device] ? there : w->clock[device];
    int64_t end = start + pipeline->stage[op.stage].duration_ns[op.kind];
    w->start_ns[w->next[device]] = start;
    w->end_ns[w->next[device]] = end;
    w->clock[device] = end;
    w->next[device]++;
    if (op.kind == PS_OP_FORWARD && op.stage + 1 < pipeline->num_stages)
        w->input[at + m] = arrive(w, &pipeline->forward_hop[op.stage], end);
    else if (op.kind == PS_OP_FORWARD)
        w->gradient[at] = end;
    else if (op.kind != PS_OP_BACKWARD_WEIGHT && op.stage > 0)
        w->gradient[at - m] = arrive(w, &pipeline->backward_hop[op.stage - 1], end);
    return 1;
}

static int64_t run_sweeps(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule)
{
    int64_t cells = (int64_t)pipeline->num_stages * pipeline->num_microbatches;
    int32_t devices = pipeline->num_devices;
    sweep w = {.pipeline = pipeline,
               .schedule = schedule,
               .input = ps_new_raw(arena, int64_t, cells),
               .gradient = ps_new_raw(arena, int64_t, cells),
               .lane_free = ps_new(arena, int64_t, pipeline->num_lanes + 1),
               .clock = ps_new(arena, int64_t, devices),
               .next = ps_new_raw(arena, int32_t, devices),
               .start_ns = ps_new_raw(arena, int64_t, schedule->first[devices]),
               .end_ns = ps_new_raw(arena, int64_t, schedule->first[devices])};
    for (int64_t i = 0; i < cells; i++) {
        w.input[i] = i < pipeline->num_microbatches ? 0 : -1;
        w.gradient[i] = -1;
    }
    for (int32_t d = 0; d < devices; d++)
        w.next[d] = schedule->first[d];
    for (int ran = 1; ran;) {
        ran = 0;
        for (int32_t d = 0; d < devices; d++)
            while (w.next[d] < schedule->first[d + 1] && run_op(&w, d))
                ran = 1;
    }
    int64_t makespan = 0;
    for (int32_t d = 0; d < devices; d++)
        makespan = w.clock[d] > makespan ? w.clock[d] : makespan;
    return makespan;
}

typedef struct least_times {
    double generate_s;
    double simulate_s;
    double sweep_s;
    double first_s; // of ps_simulate(), in fresh memory
} least_times;

static void keep_least(double *least, double value)
{
    if (*least <= 0 || value < *least)
        *least = value;
}

typedef struct bench_case {
    ps_schedule_kind kind;
    ps_schedule_shape shape;
    ps_arena *arena;
} bench_case;

static void print_case(const bench_case *c, int64_t ops, const least_times *best)
{
    double million = 1e-6 * (double)ops;
    printf("%-12s %6d %6d %6d %9" PRId64 " %10.1f %10.1f %10.1f %10.1f %8.2f\n", ps_schedule_family_at(c->kind)->name,
           (int)c->shape.num_devices, (int)c->shape.num_stages, (int)c->shape.num_microbatches, ops,
           million / best->generate_s, million / best->simulate_s, million / best->first_s, million / best->sweep_s,
           best->sweep_s / best->simulate_s);
}

static ps_code bench(void *context, ps_status *status)
{
    const bench_case *c = context;
    least_times best = {0};
    int64_t ops = 0;
    for (int round = 0; round < ROUNDS; round++) {
        ps_pipeline pipeline;
        ps_schedule schedule;
        ps_timeline timeline;
        ps_arena_reset(c->arena);
        fill_pipeline(c->arena, c->shape, &pipeline);
        PS_TRY(ps_pipeline_validate(&pipeline, status));
        double t0 = now_s();
        PS_TRY(ps_schedule_generate(c->arena, c->kind, &pipeline, &schedule, status));
        double t1 = now_s();
        PS_TRY(ps_simulate(c->arena, &pipeline, &schedule, &timeline, status));
        double t2 = now_s();
        int64_t makespan = run_sweeps(c->arena, &pipeline, &schedule);
        double t3 = now_s();
        if (makespan != timeline.makespan_ns)
            return ps_fail(status, PS_INTERNAL, "bench", "makespans differ: %" PRId64 " and %" PRId64,
                           timeline.makespan_ns, makespan);
        keep_least(&best.generate_s, t1 - t0);
        keep_least(&best.simulate_s, t2 - t1);
        keep_least(&best.sweep_s, t3 - t2);
        best.first_s = round == 0 ? t2 - t1 : best.first_s;
        ops = schedule.first[schedule.num_devices];
    }
    print_case(c, ops, &best);
    return PS_OK;
}

// Each case has an arena of its own, so that its first round meets fresh memory.
static int run_case(bench_case c)
{
    ps_status status = {0};
    c.arena = ps_arena_new(0);
    if (!c.arena)
        return ps_exit_status(PS_EXHAUSTED);
    ps_code code = ps_guard(bench, &c, c.arena, &status);
    if (code != PS_OK)
        fprintf(stderr, "bench_simulate: %s: %s\n", status.rule, status.message);
    ps_arena_free(c.arena);
    return ps_exit_status(code);
}

int main(void)
{
    static const bench_case cases[] = {
        {.kind = PS_SCHEDULE_GPIPE, .shape = {.num_devices = 64, .num_stages = 64, .num_microbatches = 1024}},
        {.kind = PS_SCHEDULE_1F1B, .shape = {.num_devices = 64, .num_stages = 64, .num_microbatches = 1024}},
        {.kind = PS_SCHEDULE_ZB_H1, .shape = {.num_devices = 64, .num_stages = 64, .num_microbatches = 1024}},
        {.kind = PS_SCHEDULE_ZB_H2, .shape = {.num_devices = 64, .num_stages = 64, .num_microbatches = 1024}},
        {.kind = PS_SCHEDULE_INTERLEAVED, .shape = {.num_devices = 8, .num_stages = 32, .num_microbatches = 128}},
        {.kind = PS_SCHEDULE_INTERLEAVED, .shape = {.num_devices = 64, .num_stages = 256, .num_microbatches = 1024}},
    };
    int exit_status = 0;
    printf("%-12s %6s %6s %6s %9s %10s %10s %10s %10s %8s\n", "million/s", "pp", "stages", "m", "ops", "generate",
           "simulate", "first", "sweeps", "ratio");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && exit_status == 0; i++)
        exit_status = run_case(cases[i]);
    return exit_status;
}
