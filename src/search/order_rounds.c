// SPDX-License-Identifier: Apache-2.0
//
// order_rounds.c: orders made in rounds, for pipelines that come back to their devices.
//
// In a round every device puts one gradient op and one F, whose inputs may still be on their way: unlike the list
// scheduler, which knows only what has started, a device here commits to wait for what others have put in the same
// round. W's go where a device would idle: as many as end before the input arrives, and one more where waiting would
// make the device the last to end. How much a device may wait without that is known only in the end, so the rounds are
// played again with the needs found before (the ZB-V scheduler of Qi et al., "Zero Bubble Pipeline Parallelism", 2024,
// works in such rounds; here for any placement, uneven stages and memory).
//
// Before the first round the first micro-batch visits all stages; while it is away, its devices put further F's of
// their first stage. How many is a matter of memory: those nearer to the start come to hold more.
#include "search/order_rounds.h"

#include <stdlib.h>
#include <string.h>

static const int64_t NEVER = INT64_MAX;

enum { REPLAYS = 4 };

// What a device does in a pass of gradient ops.
enum { FIRST, OTHERS, DONE };

// What varies between the orders that are tried.
typedef struct round_rules {
    bool fill_forward;  // W's also where an F would make its device the last
    bool fill_gradient; // the same for gradient ops of other than the first stage
    bool reserve;       // F's leave room for those of the device's later stages
    int32_t ramp;       // in eighths: how much room is kept for devices nearer to the start
} round_rules;

typedef struct round_device {
    int64_t clock_ns;
    int64_t need_ns;    // all work and the idle time so far; with the start for a makespan
    int64_t allowed_ns; // need that is no worse than that of others the last time
    int64_t held;
    int64_t room;
    int32_t written;
    int32_t first_weight; // into `weights`: next of those put, and their end
    int32_t end_weight;
    bool begun;
} round_device;

typedef struct rounds {
    const ps_order_problem *problem;
    round_rules rules;
    round_device *device;
    int64_t *needed_ns;  // [devices] in the end of the last time; 0: not yet
    int64_t *arrival_ns; // [(2 stage + step) * microbatches + microbatch], NEVER: not known
    int32_t *count;      // [3 stage + step] ops put
    uint16_t *weights;   // stages of the W's of each device in the order of their I's, at its first op
    int32_t *turn;       // [devices] what a device does in a pass
    int32_t *device_of;  // [devices] in the order in which the first micro-batch reaches them
    int64_t *lane_free_ns;
    int64_t level_ns; // greatest need so far
    int32_t stages;   // of a device
    int64_t visits;
    ps_order *out;
} rounds;

static int64_t arrival(const rounds *r, int32_t stage, int32_t step)
{
    int32_t microbatch = r->count[PS_STEPS * stage + step];
    if (microbatch >= r->problem->num_microbatches)
        return NEVER;
    if (step == PS_STEP_GRADIENT && microbatch >= r->count[PS_STEPS * stage])
        return NEVER;
    return r->arrival_ns[(2 * (int64_t)stage + step) * r->problem->num_microbatches + microbatch];
}

static void post(rounds *r, int32_t stage, int32_t step, int32_t microbatch, int64_t end)
{
    const ps_order_problem *problem = r->problem;
    int32_t to = step == PS_STEP_FORWARD ? stage + 1 : stage - 1;
    if (step == PS_STEP_WEIGHT || to < 0 || to >= problem->num_stages)
        return;
    const ps_order_hop *hop = &problem->stage[stage].hop[step];
    r->arrival_ns[(2 * (int64_t)to + step) * problem->num_microbatches + microbatch] =
        ps_order_send(problem, hop, r->lane_free_ns, end);
}

static void put(rounds *r, int32_t stage, int32_t step)
{
    const ps_order_stage *s = &r->problem->stage[stage];
    round_device *device = &r->device[s->device];
    int64_t there = step == PS_STEP_WEIGHT ? 0 : arrival(r, stage, step);
    int64_t start = there > device->clock_ns ? there : device->clock_ns;
    if (device->begun || !r->problem->span)
        device->need_ns += start - device->clock_ns;
    r->level_ns = device->need_ns > r->level_ns ? device->need_ns : r->level_ns;
    device->begun = true;
    int32_t microbatch = r->count[PS_STEPS * stage + step]++;
    device->clock_ns = start + s->duration_ns[step];
    device->held = ps_order_held_after(s, step, device->held);
    r->out->op[device->written++] = (ps_order_op){microbatch, (uint16_t)stage, (uint16_t)step};
    r->visits++;
    if (step == PS_STEP_GRADIENT && !r->problem->fused)
        r->weights[device->end_weight++] = (uint16_t)stage;
    post(r, stage, step, microbatch, device->clock_ns);
}

static bool has_weight(const round_device *device)
{
    return device->first_weight < device->end_weight;
}

static void put_weight(rounds *r, round_device *device)
{
    put(r, r->weights[device->first_weight++], PS_STEP_WEIGHT);
}

// W's before an op whose input arrives at `there`.
static void fill(rounds *r, int32_t d, int64_t there, bool hurry)
{
    round_device *device = &r->device[d];
    while (has_weight(device) &&
           device->clock_ns + r->problem->stage[r->weights[device->first_weight]].duration_ns[PS_STEP_WEIGHT] <= there)
        put_weight(r, device);
    int64_t most = r->level_ns > device->allowed_ns ? r->level_ns : device->allowed_ns;
    if (hurry && has_weight(device) && there - device->clock_ns > most - device->need_ns)
        put_weight(r, device);
}

// Room for an op, with W's put for it where they help; false when they do not suffice.
static bool make_room(rounds *r, int32_t stage, int32_t step)
{
    const ps_order_stage *s = &r->problem->stage[stage];
    round_device *device = &r->device[s->device];
    int64_t reserve = step == PS_STEP_FORWARD && r->rules.reserve ? s->later_held : 0;
    for (;;) {
        int64_t after = ps_order_held_after(s, step, device->held);
        if (ps_order_held_within(s, step, device->held) <= device->room && after <= device->room - reserve)
            return true;
        if (!has_weight(device))
            return false;
        put_weight(r, device);
    }
}

static bool put_filled(rounds *r, int32_t stage, int32_t step, bool hurry)
{
    fill(r, r->problem->stage[stage].device, arrival(r, stage, step), hurry);
    if (!make_room(r, stage, step))
        return false;
    put(r, stage, step);
    return true;
}

// Is the gradient op of a device's first stage next? Once its input has been put, or when all others are done.
static bool turns_to_first(const rounds *r, int32_t d)
{
    const ps_order_problem *problem = r->problem;
    int32_t begin = problem->first_stage[d];
    if (arrival(r, problem->stage_of[begin], PS_STEP_GRADIENT) != NEVER)
        return true;
    for (int32_t i = begin + 1; i < problem->first_stage[d + 1]; i++)
        if (r->count[PS_STEPS * problem->stage_of[i] + PS_STEP_GRADIENT] < problem->num_microbatches)
            return false;
    return true;
}

// A gradient op on every device that can: first those of first stages, then of the others, each in the order in which
// gradients flow. What a device does of the two is settled before.
static bool pass_gradients(rounds *r)
{
    const ps_order_problem *problem = r->problem;
    bool any = false;
    for (int32_t d = 0; d < problem->num_devices; d++)
        r->turn[d] = turns_to_first(r, d) ? FIRST : OTHERS;
    for (int32_t turn = FIRST; turn <= OTHERS; turn++) {
        for (int32_t s = problem->num_stages - 1; s >= 0; s--) {
            int32_t d = problem->stage[s].device;
            bool first = s == problem->stage_of[problem->first_stage[d]];
            if (r->turn[d] != turn || (turn == FIRST) != first || arrival(r, s, PS_STEP_GRADIENT) == NEVER)
                continue;
            any = put_filled(r, s, PS_STEP_GRADIENT, first || r->rules.fill_gradient) || any;
            r->turn[d] = DONE;
        }
    }
    return any;
}

// An F on every device that can: of its latest stage whose input has been put.
static bool pass_forwards(rounds *r)
{
    const ps_order_problem *problem = r->problem;
    bool any = false;
    for (int32_t i = 0; i < problem->num_devices; i++) {
        int32_t d = r->device_of[i];
        int32_t s = -1;
        for (int32_t at = problem->first_stage[d]; at < problem->first_stage[d + 1]; at++)
            if (arrival(r, problem->stage_of[at], PS_STEP_FORWARD) != NEVER)
                s = problem->stage_of[at];
        if (s >= 0)
            any = put_filled(r, s, PS_STEP_FORWARD, r->rules.fill_forward) || any;
    }
    return any;
}

static bool leaves_ramp(const rounds *r, int32_t s)
{
    for (int32_t i = 0; i <= s; i++) {
        const ps_order_stage *stage = &r->problem->stage[i];
        const round_device *device = &r->device[stage->device];
        if (r->count[PS_STEPS * i] >= r->problem->num_microbatches)
            return false;
        int64_t kept = stage->held_forward * r->stages * (s + 1) * r->rules.ramp / 8;
        int64_t least = stage->held_forward + (r->rules.reserve ? stage->later_held : 0);
        if (device->held > device->room - (kept > least ? kept : least) - stage->transient)
            return false;
    }
    return true;
}

// The first micro-batch up to the last stage. False when it does not fit.
static bool begin(rounds *r)
{
    const ps_order_problem *problem = r->problem;
    for (int32_t s = 0; s < problem->num_stages; s++) {
        int32_t d = problem->stage[s].device;
        int32_t first = problem->stage_of[problem->first_stage[d]];
        int64_t there = arrival(r, s, PS_STEP_FORWARD);
        if (s != first)
            while (leaves_ramp(r, first) &&
                   r->device[d].clock_ns + problem->stage[first].duration_ns[PS_STEP_FORWARD] <= there)
                for (int32_t i = 0; i <= first; i++)
                    put(r, i, PS_STEP_FORWARD);
        if (!make_room(r, s, PS_STEP_FORWARD))
            return false;
        put(r, s, PS_STEP_FORWARD);
    }
    return true;
}

static int32_t forwards(const rounds *r, int32_t d)
{
    return r->device[d].written - r->problem->first[d];
}

// Has a device put fewer F's than the one that the first micro-batch reaches before it, or as few of a last stage on
// which that one waits?
static bool lags(const rounds *r, int32_t d, int32_t before)
{
    const ps_order_problem *problem = r->problem;
    int32_t own_last = problem->stage_of[problem->first_stage[d + 1] - 1];
    int32_t last = problem->stage_of[problem->first_stage[before + 1] - 1];
    int32_t done = r->count[PS_STEPS * last];
    return forwards(r, d) < forwards(r, before) ||
           (own_last < last && r->count[PS_STEPS * own_last] <= done && done < problem->num_microbatches);
}

// Further F's, of each stage of a device in turn, until no device has put fewer than the one before.
static void level_out(rounds *r)
{
    const ps_order_problem *problem = r->problem;
    int32_t chunk = 0;
    for (int32_t k = 1; k < problem->num_devices; k++) {
        for (int32_t idle = 0; lags(r, r->device_of[k], r->device_of[k - 1]) && idle < r->stages;) {
            bool any = false;
            for (int32_t i = problem->num_devices - 1; i >= k; i--) {
                int32_t s = problem->stage_of[problem->first_stage[r->device_of[i]] + chunk];
                if (arrival(r, s, PS_STEP_FORWARD) == NEVER || !make_room(r, s, PS_STEP_FORWARD))
                    continue;
                put(r, s, PS_STEP_FORWARD);
                any = true;
            }
            chunk = (chunk + 1) % r->stages;
            idle = any ? 0 : idle + 1;
        }
    }
}

static void reset(rounds *r)
{
    const ps_order_problem *problem = r->problem;
    int64_t microbatches = problem->num_microbatches;
    int64_t last = (2 * (int64_t)problem->num_stages - 1) * microbatches;
    for (int64_t i = 0; i < 2 * problem->num_stages * microbatches; i++)
        r->arrival_ns[i] = i < microbatches || i >= last ? 0 : NEVER;
    memset(r->count, 0, (size_t)PS_STEPS * (size_t)problem->num_stages * sizeof *r->count);
    memset(r->lane_free_ns, 0, (size_t)problem->pipeline->num_lanes * sizeof *r->lane_free_ns);
    r->level_ns = 0;
    int64_t most = 0;
    for (int32_t d = 0; d < problem->num_devices; d++)
        most = r->needed_ns[d] > most ? r->needed_ns[d] : most;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int64_t spare = r->needed_ns[d] > 0 ? most - r->needed_ns[d] : 0;
        r->device[d] = (round_device){.need_ns = problem->work_ns[d],
                                      .allowed_ns = problem->work_ns[d] + spare,
                                      .room = problem->room[d],
                                      .written = problem->first[d],
                                      .first_weight = problem->first[d],
                                      .end_weight = problem->first[d]};
    }
}

// False when memory leaves devices waiting for each other.
static bool play(rounds *r)
{
    const ps_order_problem *problem = r->problem;
    reset(r);
    if (!begin(r))
        return false;
    level_out(r);
    bool any = true;
    while (any) {
        any = pass_gradients(r);
        any = pass_forwards(r) || any;
        for (int32_t d = 0; d < problem->num_devices && !any; d++)
            if (has_weight(&r->device[d])) {
                put_weight(r, &r->device[d]);
                any = true;
            }
    }
    for (int32_t d = 0; d < problem->num_devices; d++)
        if (r->device[d].written < problem->first[d + 1])
            return false;
    return true;
}

static int compare_reach(const void *a, const void *b)
{
    const int32_t *left = a;
    const int32_t *right = b;
    return (*left > *right) - (*left < *right);
}

static rounds *new_rounds(ps_arena *arena, const ps_order_problem *problem, ps_order *out)
{
    rounds *r = ps_new(arena, rounds, 1);
    int32_t devices = problem->num_devices;
    int64_t pairs = (int64_t)problem->num_stages * problem->num_microbatches;
    r->problem = problem;
    r->device = ps_new(arena, round_device, devices);
    r->needed_ns = ps_new(arena, int64_t, devices);
    r->arrival_ns = ps_new_raw(arena, int64_t, 2 * pairs);
    r->count = ps_new_raw(arena, int32_t, PS_STEPS * problem->num_stages);
    r->weights = ps_new_raw(arena, uint16_t, problem->first[devices]);
    r->turn = ps_new_raw(arena, int32_t, devices);
    r->lane_free_ns = ps_new_raw(arena, int64_t, problem->pipeline->num_lanes + 1);
    r->stages = problem->first_stage[1];
    r->out = out;
    // Sorted by first stage, then the stage's device.
    r->device_of = ps_new_raw(arena, int32_t, devices);
    for (int32_t d = 0; d < devices; d++)
        r->device_of[d] = problem->stage_of[problem->first_stage[d]];
    qsort(r->device_of, (size_t)devices, sizeof *r->device_of, compare_reach);
    for (int32_t d = 0; d < devices; d++)
        r->device_of[d] = problem->stage[r->device_of[d]].device;
    return r;
}

// Play, and again with the needs found, as long as that helps.
static void try_rules(rounds *r, ps_order_desk *desk, ps_order *order)
{
    int64_t best = INT64_MAX;
    for (int32_t d = 0; d < r->problem->num_devices; d++)
        r->needed_ns[d] = 0;
    for (int32_t i = 0; i < REPLAYS && play(r) && r->level_ns < best; i++) {
        best = r->level_ns;
        for (int32_t d = 0; d < r->problem->num_devices; d++)
            r->needed_ns[d] = r->device[d].need_ns;
        if (ps_order_time(r->problem, r->out, &desk->trial, order->value_ns - 1))
            ps_order_copy(r->problem, r->out, order);
    }
}

ps_code ps_order_rounds(ps_arena *arena, ps_order_desk *desk, ps_order *order)
{
    static const int32_t ramps[] = {8, 6, 4, 3, 0};
    const ps_order_problem *problem = desk->problem;
    int32_t stages = problem->first_stage[1];
    for (int32_t d = 0; d < problem->num_devices; d++)
        if (stages < 2 || problem->first_stage[d + 1] - problem->first_stage[d] != stages)
            return PS_OK;
    rounds *r = new_rounds(arena, problem, &desk->candidate);
    for (size_t i = 0; i < sizeof ramps / sizeof *ramps; i++) {
        for (int32_t knobs = 0; knobs < 8 && order->value_ns > desk->bound_ns; knobs++) {
            r->rules = (round_rules){.fill_forward = (knobs & 1) == 0,
                                     .fill_gradient = (knobs & 2) == 0,
                                     .reserve = (knobs & 4) != 0,
                                     .ramp = ramps[i]};
            try_rules(r, desk, order);
            PS_TRY(ps_order_poll(desk));
        }
    }
    desk->trial.visits += r->visits;
    return PS_OK;
}
