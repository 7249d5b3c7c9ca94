// SPDX-License-Identifier: Apache-2.0
//
// step_repeat.c: steps back to back, until they repeat.
//
// When each device is ready for the next step is a max-plus linear map of when it was for this one. So the times grow
// by a constant a step in the end, or by a constant every few steps: as soon as all devices are later than some steps
// before by the same amount, they will be for ever. A chain of devices that wait for each other both ways gets there
// within a few steps.
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "pipesched/limits.h"
#include "pipesched/step.h"

enum { MOST_STEPS = 64 };

typedef struct repeating {
    ps_arena *scratch;
    const ps_pipeline *pipeline;
    const ps_schedule *schedule;
    const ps_step *step;
    int64_t *ready_ns; // [MOST_STEPS + 1][devices] when each device may begin a step, from the first device on
    int64_t *since_ns; // [MOST_STEPS + 1] time from the first step to the first device of each
    int64_t *late_ns;  // [devices] exposed gathers of the first step, which stand for those of all
    ps_step_period *out;
} repeating;

static int64_t *ready_before(const repeating *r, int32_t step)
{
    return r->ready_ns + (int64_t)step * r->pipeline->num_devices;
}

static ps_code run_step(void *context, ps_status *status)
{
    const repeating *r = context;
    int32_t devices = r->pipeline->num_devices;
    int32_t number = r->out->steps;
    ps_timeline timeline;
    ps_step_timeline placed;
    PS_TRY(ps_simulate_from(r->scratch, r->pipeline, r->schedule, ready_before(r, number), &timeline, status));
    ps_step_place(r->scratch, r->pipeline, r->schedule, &timeline, r->step, &placed);
    int64_t *next = ready_before(r, number + 1);
    int64_t first = INT64_MAX;
    for (int32_t d = 0; d < devices; d++) {
        if (number == 0)
            r->late_ns[d] = placed.device[d].gather_exposed_ns;
        next[d] = placed.device[d].optimizer_start_ns + r->step->optimizer_ns[d] + r->late_ns[d];
        first = next[d] < first ? next[d] : first;
    }
    if (first > PS_MAX_TIME_NS / (2 * MOST_STEPS))
        return ps_fail(status, PS_BAD_INPUT, "time-overflow", "a step of more than %" PRId64 " ns cannot be repeated",
                       PS_MAX_TIME_NS / (2 * MOST_STEPS));
    for (int32_t d = 0; d < devices; d++)
        next[d] -= first;
    r->since_ns[number + 1] = r->since_ns[number] + first;
    return PS_OK;
}

static int64_t rounded_up(int64_t value, int64_t by)
{
    return value / by + (value % by > 0);
}

// The longest that a device took from one step to a later one, a step.
static int64_t mean_between(const repeating *r, int32_t from, int32_t to)
{
    int64_t most = 0;
    for (int32_t d = 0; d < r->pipeline->num_devices; d++) {
        int64_t grown = r->since_ns[to] - r->since_ns[from] + ready_before(r, to)[d] - ready_before(r, from)[d];
        most = grown > most ? grown : most;
    }
    return rounded_up(most, to - from);
}

static bool has_repeated(repeating *r)
{
    size_t bytes = (size_t)r->pipeline->num_devices * sizeof *r->ready_ns;
    for (int32_t before = r->out->steps - 1; before >= 0; before--) {
        if (memcmp(ready_before(r, before), ready_before(r, r->out->steps), bytes) != 0)
            continue;
        r->out->period_ns = mean_between(r, before, r->out->steps);
        return true;
    }
    return false;
}

ps_code ps_step_repeat(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule, const ps_step *step,
                       ps_step_period *out, ps_status *status)
{
    *out = (ps_step_period){0};
    repeating r = {.pipeline = pipeline, .schedule = schedule, .step = step, .out = out};
    r.ready_ns = ps_new(arena, int64_t, (int64_t)(MOST_STEPS + 1) * pipeline->num_devices);
    r.since_ns = ps_new(arena, int64_t, MOST_STEPS + 1);
    r.late_ns = ps_new(arena, int64_t, pipeline->num_devices);
    r.scratch = ps_arena_new(0);
    if (!r.scratch)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "no memory to repeat a step");
    ps_code code = PS_OK;
    while (code == PS_OK && out->steps < MOST_STEPS) {
        code = ps_guard(run_step, &r, r.scratch, status);
        ps_arena_reset(r.scratch);
        out->steps++;
        if (code == PS_OK && has_repeated(&r))
            break;
    }
    if (code == PS_OK && out->period_ns == 0) // not within so many steps, or no time passes at all
        out->period_ns = mean_between(&r, out->steps / 2, out->steps);
    ps_arena_free(r.scratch);
    return code;
}
