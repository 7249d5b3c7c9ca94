// SPDX-License-Identifier: Apache-2.0
//
// jitter.c: the longest path through a fixed order, over and over with random times.
//
// One walk finds an order of all ops in which each comes after all it waits for; that order depends on the schedule
// alone, so a sample is one pass over it. W needs no edge to its I, nor B to its F: they are on one device, whose own
// order the clock keeps.
#include "pipesched/jitter.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/rng.h"
#include "pipesched/limits.h"
#include "sim/leg.h"

enum { NONE = -1 };

typedef struct fixed_order {
    const ps_pipeline *pipeline;
    const ps_schedule *schedule;
    ps_leg_table legs;
    int64_t (*duration_ns)[PS_OP_KINDS]; // [stages]; a straggler's are its own
    int32_t *order;                      // [ops], indices into the schedule
    int32_t *receiver;                   // [ops] op that waits for the result of each, NONE: none
    int64_t *arrival_ns;                 // [ops] when that result is there; 0 where nothing is sent
    int64_t *clock_ns;                   // [devices]
    int64_t *lane_free_ns;               // [lanes]
} fixed_order;

// time * factor, rounded half up: monotone in both.
static int64_t stretch(int64_t time_ns, int64_t factor)
{
    int64_t rest = (time_ns % PS_JITTER_ONE * factor + PS_JITTER_ONE / 2) / PS_JITTER_ONE;
    return ps_add_saturating(ps_multiply_saturating(time_ns / PS_JITTER_ONE, factor), rest);
}

// The sum of all times bounds every start and end, as in ps_pipeline_validate(); jitter at most doubles it.
static ps_code set_durations(ps_arena *arena, const ps_jitter_options *options, fixed_order *path, ps_status *status)
{
    const ps_pipeline *pipeline = path->pipeline;
    int64_t total = ps_longest_hops(pipeline);
    path->duration_ns = (int64_t(*)[PS_OP_KINDS])ps_new_raw(arena, int64_t, pipeline->num_stages * PS_OP_KINDS);
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        const ps_stage *stage = &pipeline->stage[s];
        int64_t factor = stage->device == options->straggler ? options->factor : PS_JITTER_ONE;
        for (int kind = 0; kind < PS_OP_KINDS; kind++) {
            path->duration_ns[s][kind] = stretch(stage->duration_ns[kind], factor);
            total = ps_add_saturating(total, path->duration_ns[s][kind]);
        }
    }
    if (ps_multiply_saturating(total, pipeline->num_microbatches) <= PS_MAX_TIME_NS / 2)
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "time-overflow",
                   "with jitter, all ops and hops of %d micro-batches may take more than %" PRId64 " ns together",
                   (int)pipeline->num_microbatches, PS_MAX_TIME_NS);
}

static bool is_gradient(ps_op op)
{
    return op.kind == PS_OP_BACKWARD || op.kind == PS_OP_BACKWARD_INPUT;
}

static void set_receivers(ps_arena *arena, fixed_order *path)
{
    const ps_schedule *schedule = path->schedule;
    int64_t row = path->pipeline->num_microbatches;
    int32_t ops = schedule->first[schedule->num_devices];
    int32_t *forward = ps_new_raw(arena, int32_t, row * path->pipeline->num_stages);
    int32_t *gradient = ps_new_raw(arena, int32_t, row * path->pipeline->num_stages);
    for (int32_t i = 0; i < ops; i++) {
        ps_op op = schedule->op[i];
        if (op.kind == PS_OP_FORWARD)
            forward[row * op.stage + op.microbatch] = i;
        else if (is_gradient(op))
            gradient[row * op.stage + op.microbatch] = i;
    }
    path->receiver = ps_new_raw(arena, int32_t, ops);
    for (int32_t i = 0; i < ops; i++) {
        ps_op op = schedule->op[i];
        const ps_leg *leg = ps_leg_at(&path->legs, op.stage, op.microbatch);
        path->receiver[i] = NONE;
        if (op.kind == PS_OP_FORWARD && leg->next != PS_NO_STAGE)
            path->receiver[i] = forward[row * leg->next + op.microbatch];
        else if (is_gradient(op) && leg->previous != PS_NO_STAGE)
            path->receiver[i] = gradient[row * leg->previous + op.microbatch];
    }
}

// A device goes on until its next op waits for one that has no place yet; the one it waits for brings it back.
static void set_order(ps_arena *arena, fixed_order *path)
{
    const ps_schedule *schedule = path->schedule;
    int32_t devices = schedule->num_devices;
    int32_t ops = schedule->first[devices];
    int32_t *next = ps_new_raw(arena, int32_t, devices);
    int32_t *ready = ps_new_raw(arena, int32_t, devices);
    bool *stopped = ps_new(arena, bool, devices);
    bool *awaits = ps_new(arena, bool, ops); // a result that is still to come
    int32_t num_ready = 0;
    int32_t count = 0;
    memcpy(next, schedule->first, (size_t)devices * sizeof *next);
    for (int32_t device = devices - 1; device >= 0; device--)
        ready[num_ready++] = device;
    for (int32_t i = 0; i < ops; i++)
        if (path->receiver[i] != NONE)
            awaits[path->receiver[i]] = true;
    path->order = ps_new_raw(arena, int32_t, ops);
    while (num_ready > 0) {
        int32_t device = ready[--num_ready];
        int32_t i = next[device];
        for (stopped[device] = false; i < schedule->first[device + 1] && !awaits[i]; i++) {
            int32_t receiver = path->receiver[i];
            path->order[count++] = i;
            if (receiver == NONE)
                continue;
            awaits[receiver] = false;
            int32_t other = path->pipeline->stage[schedule->op[receiver].stage].device;
            if (!stopped[other] || next[other] != receiver)
                continue;
            stopped[other] = false;
            ready[num_ready++] = other;
        }
        next[device] = i;
        stopped[device] = true;
    }
}

// The share only scales what is drawn, so that runs with one seed and different shares compare like with like.
static int64_t draw(ps_rng *rng, int64_t share)
{
    return PS_JITTER_ONE + ps_rng_range(rng, -PS_JITTER_ONE, PS_JITTER_ONE) * share / PS_JITTER_ONE;
}

static void run_sample(fixed_order *path, int64_t share, ps_rng *rng)
{
    const ps_pipeline *pipeline = path->pipeline;
    const ps_schedule *schedule = path->schedule;
    int32_t ops = schedule->first[schedule->num_devices];
    memset(path->clock_ns, 0, (size_t)schedule->num_devices * sizeof *path->clock_ns);
    memset(path->lane_free_ns, 0, (size_t)pipeline->num_lanes * sizeof *path->lane_free_ns);
    for (int32_t at = 0; at < ops; at++) {
        int32_t i = path->order[at];
        ps_op op = schedule->op[i];
        int64_t *clock = &path->clock_ns[pipeline->stage[op.stage].device];
        int64_t begin = path->arrival_ns[i] > *clock ? path->arrival_ns[i] : *clock;
        *clock = begin + stretch(path->duration_ns[op.stage][op.kind], draw(rng, share));
        int32_t receiver = path->receiver[i];
        if (receiver == NONE)
            continue;
        const ps_leg *leg = ps_leg_at(&path->legs, op.stage, op.microbatch);
        const ps_hop *hop = op.kind == PS_OP_FORWARD ? leg->forward_hop : leg->backward_hop;
        path->arrival_ns[receiver] = *clock;
        if (hop->lane == PS_NO_LANE)
            continue;
        int64_t factor = draw(rng, share);
        int64_t *free_ns = &path->lane_free_ns[hop->lane];
        *free_ns = (*clock > *free_ns ? *clock : *free_ns) + stretch(hop->occupy_ns, factor);
        path->arrival_ns[receiver] = *free_ns + stretch(hop->latency_ns, factor);
    }
}

// A device's clock was 0 before its first op, so that one starts when its input is there.
static void measure(const fixed_order *path, int64_t *makespan_ns, int64_t *span_ns)
{
    const ps_schedule *schedule = path->schedule;
    int64_t begin = INT64_MAX;
    int64_t end = 0;
    *span_ns = 0;
    for (int32_t device = 0; device < schedule->num_devices; device++) {
        if (schedule->first[device] == schedule->first[device + 1])
            continue;
        int64_t own_begin = path->arrival_ns[schedule->first[device]];
        int64_t own_end = path->clock_ns[device];
        begin = own_begin < begin ? own_begin : begin;
        end = own_end > end ? own_end : end;
        *span_ns = own_end - own_begin > *span_ns ? own_end - own_begin : *span_ns;
    }
    *makespan_ns = begin < end ? end - begin : 0;
}

static int by_time(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

// The mean is summed as quotients and remainders, since the sum of the samples may not fit.
static void summarise(ps_jitter_statistics *out, int64_t count)
{
    int64_t whole = 0;
    int64_t rest = 0;
    qsort(out->sample_ns, (size_t)count, sizeof *out->sample_ns, by_time);
    for (int64_t i = 0; i < count; i++) {
        whole += out->sample_ns[i] / count;
        rest += out->sample_ns[i] % count;
    }
    out->mean_ns = whole + rest / count;
    out->p50_ns = out->sample_ns[ps_ceil_div(50 * count, 100) - 1];
    out->p95_ns = out->sample_ns[ps_ceil_div(95 * count, 100) - 1];
    out->max_ns = out->sample_ns[count - 1];
}

ps_code ps_jitter_sample(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule,
                         const ps_jitter_options *options, ps_jitter_result *out, ps_status *status)
{
    fixed_order path = {.pipeline = pipeline, .schedule = schedule, .legs = ps_leg_table_of(arena, pipeline)};
    PS_TRY(set_durations(arena, options, &path, status));
    set_receivers(arena, &path);
    set_order(arena, &path);
    path.arrival_ns = ps_new(arena, int64_t, schedule->first[schedule->num_devices]);
    path.clock_ns = ps_new_raw(arena, int64_t, schedule->num_devices);
    path.lane_free_ns = ps_new_raw(arena, int64_t, pipeline->num_lanes + 1);
    *out = (ps_jitter_result){.options = *options,
                              .makespan.sample_ns = ps_new_raw(arena, int64_t, options->samples),
                              .span.sample_ns = ps_new_raw(arena, int64_t, options->samples)};
    ps_rng rng = {(uint64_t)options->seed};
    for (int32_t sample = 0; sample < options->samples; sample++) {
        run_sample(&path, options->share, &rng);
        measure(&path, &out->makespan.sample_ns[sample], &out->span.sample_ns[sample]);
    }
    summarise(&out->makespan, options->samples);
    summarise(&out->span, options->samples);
    return PS_OK;
}
