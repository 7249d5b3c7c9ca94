// SPDX-License-Identifier: Apache-2.0
//
// order_time.c: the times of an order.
//
// Each device runs until an input is missing and is put back on a stack by whoever sends it. A device whose remaining
// work cannot end within the limit ends the trial at once. O(ops timed).
#include "search/order.h"

#include <string.h>

void ps_order_trial_new(ps_arena *arena, const ps_order_problem *problem, ps_order_trial *out)
{
    int32_t devices = problem->num_devices;
    int64_t pairs = (int64_t)problem->num_stages * problem->num_microbatches;
    int64_t ops = problem->first[devices];
    *out = (ps_order_trial){.start_ns = ps_new_raw(arena, int64_t, ops),
                            .position = ps_new_raw(arena, int32_t, PS_STEPS * pairs),
                            .arrival_ns = ps_new_raw(arena, int64_t, ops),
                            .next = ps_new_raw(arena, int32_t, devices),
                            .clock_ns = ps_new_raw(arena, int64_t, devices),
                            .left_ns = ps_new_raw(arena, int64_t, devices),
                            .begin_ns = ps_new_raw(arena, int64_t, devices),
                            .waits = ps_new_raw(arena, int32_t, devices),
                            .done = ps_new_raw(arena, int32_t, PS_STEPS * problem->num_stages),
                            .ready = ps_new_raw(arena, int32_t, devices),
                            .lane_free_ns = ps_new_raw(arena, int64_t, problem->pipeline->num_lanes + 1)};
}

// Positions of a device's ops. False when memory does not suffice.
static bool settle(const ps_order_problem *problem, const ps_order *order, ps_order_trial *trial, int32_t device)
{
    int64_t held = 0;
    for (int32_t i = problem->first[device]; i < problem->first[device + 1]; i++) {
        ps_order_op op = order->op[i];
        const ps_order_stage *stage = &problem->stage[op.stage];
        if (ps_order_held_within(stage, op.step, held) > problem->room[device])
            return false;
        trial->position[((int64_t)PS_STEPS * op.stage + op.step) * problem->num_microbatches + op.microbatch] = i;
        held = ps_order_held_after(stage, op.step, held);
    }
    return true;
}

// Hand the result of an op on; the device that waits for it, or -1.
static inline int32_t send(const ps_order_problem *problem, ps_order_trial *trial, ps_order_op op, int64_t end)
{
    bool forward = op.step == PS_STEP_FORWARD;
    int32_t to = forward ? op.stage + 1 : op.stage - 1;
    if (to < 0 || to >= problem->num_stages)
        return -1;
    const ps_order_hop *hop = &problem->stage[op.stage].hop[op.step];
    int32_t input = 2 * to + op.step;
    trial->arrival_ns[(int64_t)input * problem->num_microbatches + op.microbatch] =
        ps_order_send(problem, hop, trial->lane_free_ns, end);
    int32_t receiver = problem->stage[to].device;
    if (trial->waits[receiver] != input)
        return -1;
    trial->waits[receiver] = -1;
    return receiver;
}

// Which kind of op sends the input of an op; -1: it needs none.
static inline int32_t sender_of(const ps_order_problem *problem, ps_order_op op)
{
    if (op.step == PS_STEP_FORWARD)
        return op.stage > 0 ? PS_STEPS * (op.stage - 1) : -1;
    if (op.step == PS_STEP_GRADIENT)
        return op.stage + 1 < problem->num_stages ? PS_STEPS * (op.stage + 1) + PS_STEP_GRADIENT : -1;
    return -1;
}

// False when the device cannot end within the limit any more.
static bool run_device(const ps_order_problem *problem, const ps_order *order, ps_order_trial *trial, int32_t d,
                       int32_t *num_ready, int64_t limit_ns)
{
    int32_t end = problem->first[d + 1];
    int32_t i = trial->next[d];
    int32_t begun = i;
    int64_t clock = trial->clock_ns[d];
    int64_t left = trial->left_ns[d];
    for (; i < end; i++) {
        ps_order_op op = order->op[i];
        int32_t sender = sender_of(problem, op);
        int64_t start = clock;
        if (sender >= 0) {
            int32_t input = 2 * op.stage + op.step;
            if (trial->done[sender] <= op.microbatch) {
                trial->waits[d] = input;
                break;
            }
            int64_t there = trial->arrival_ns[(int64_t)input * problem->num_microbatches + op.microbatch];
            start = there > clock ? there : clock;
        }
        if (i == problem->first[d] && problem->span)
            trial->begin_ns[d] = start;
        if (start + left - trial->begin_ns[d] > limit_ns) {
            trial->visits += i - begun;
            return false;
        }
        int64_t took = problem->stage[op.stage].duration_ns[op.step];
        trial->start_ns[i] = start;
        clock = start + took;
        left -= took;
        trial->done[PS_STEPS * op.stage + op.step]++;
        int32_t woken = op.step == PS_STEP_WEIGHT ? -1 : send(problem, trial, op, clock);
        if (woken >= 0)
            trial->ready[(*num_ready)++] = woken;
    }
    trial->visits += i - begun;
    trial->next[d] = i;
    trial->clock_ns[d] = clock;
    trial->left_ns[d] = left;
    return true;
}

static int32_t start_devices(const ps_order_problem *problem, ps_order_trial *trial)
{
    int32_t num_ready = 0;
    memset(trial->done, 0, (size_t)PS_STEPS * (size_t)problem->num_stages * sizeof *trial->done);
    memset(trial->lane_free_ns, 0, (size_t)problem->pipeline->num_lanes * sizeof *trial->lane_free_ns);
    for (int32_t d = problem->num_devices - 1; d >= 0; d--) {
        trial->next[d] = problem->first[d];
        trial->waits[d] = -1;
        trial->clock_ns[d] = 0;
        trial->left_ns[d] = problem->work_ns[d];
        trial->begin_ns[d] = 0;
        if (problem->first[d] < problem->first[d + 1])
            trial->ready[num_ready++] = d;
    }
    return num_ready;
}

bool ps_order_time(const ps_order_problem *problem, ps_order *order, ps_order_trial *trial, int64_t limit_ns)
{
    for (int32_t d = 0; d < problem->num_devices; d++)
        if (!settle(problem, order, trial, d))
            return false;
    int32_t num_ready = start_devices(problem, trial);
    while (num_ready > 0) {
        int32_t d = trial->ready[--num_ready];
        if (!run_device(problem, order, trial, d, &num_ready, limit_ns))
            return false;
    }
    int64_t value = 0;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        if (trial->next[d] < problem->first[d + 1])
            return false; // devices wait for each other
        int64_t took = trial->clock_ns[d] - trial->begin_ns[d];
        value = took > value ? took : value;
    }
    if (value > limit_ns)
        return false;
    order->value_ns = value;
    return true;
}
