// SPDX-License-Identifier: Apache-2.0
//
// order_time.c: the times of an order, anew or after a change of one device's ops.
//
// An op that starts before the first changed one ends nothing that it could delay or be delayed by, so only ops that
// started from that instant on are timed again. Each device runs until an input is missing and is put back on a stack
// by whoever sends it. A device whose remaining work cannot end within the limit ends the trial at once. O(ops timed).
#include "search/order.h"

#include <string.h>

void ps_order_trial_new(ps_arena *arena, const ps_order_problem *problem, ps_order_trial *out)
{
    int32_t devices = problem->num_devices;
    int64_t ops = problem->first[devices];
    int64_t pairs = (int64_t)problem->num_stages * problem->num_microbatches;
    *out = (ps_order_trial){.start_ns = ps_new_raw(arena, int64_t, ops),
                            .arrival_ns = ps_new(arena, int64_t, 2 * pairs),
                            .restart = ps_new_raw(arena, int32_t, devices),
                            .next = ps_new_raw(arena, int32_t, devices),
                            .clock_ns = ps_new_raw(arena, int64_t, devices),
                            .left_ns = ps_new_raw(arena, int64_t, devices),
                            .begin_ns = ps_new_raw(arena, int64_t, devices),
                            .waits = ps_new_raw(arena, int32_t, devices),
                            .base = ps_new_raw(arena, int32_t, PS_STEPS * problem->num_stages),
                            .done = ps_new_raw(arena, int32_t, PS_STEPS * problem->num_stages),
                            .ready = ps_new_raw(arena, int32_t, devices),
                            .lane_free_ns = ps_new_raw(arena, int64_t, problem->pipeline->num_lanes + 1)};
}

static int64_t duration(const ps_order_problem *problem, ps_order_op op)
{
    return problem->stage[op.stage].duration_ns[op.step];
}

// First position of a device whose op started at `instant` or later.
static int32_t first_from(const ps_order *order, int32_t low, int32_t high, int64_t instant)
{
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (order->start_ns[middle] < instant)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// How many ops of a kind stand before a position.
static int32_t count_before(const int32_t *position, int32_t microbatches, int32_t limit)
{
    int32_t low = 0;
    int32_t high = microbatches;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (position[middle] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void restart_device(const ps_order_problem *problem, const ps_order *order, ps_order_trial *trial, int32_t d)
{
    int32_t at = trial->restart[d];
    bool fresh = at == problem->first[d];
    trial->next[d] = at;
    trial->waits[d] = -1;
    trial->clock_ns[d] = fresh ? 0 : order->start_ns[at - 1] + duration(problem, order->op[at - 1]);
    trial->left_ns[d] = at == problem->first[d + 1] ? 0 : problem->work_ns[d] - (fresh ? 0 : order->busy_ns[at]);
    trial->begin_ns[d] = problem->span && !fresh ? order->start_ns[problem->first[d]] : 0;
    for (int32_t i = problem->first_stage[d]; i < problem->first_stage[d + 1]; i++) {
        for (int32_t step = 0; step < PS_STEPS; step++) {
            int32_t kind = PS_STEPS * problem->stage_of[i] + step;
            bool none = fresh || (problem->fused && step == PS_STEP_WEIGHT);
            const int32_t *position = order->position + (int64_t)kind * problem->num_microbatches;
            trial->base[kind] = none ? 0 : count_before(position, problem->num_microbatches, at);
            trial->done[kind] = trial->base[kind];
        }
    }
}

// Hand the result of an op on, and wake the device that waits for it.
static inline int32_t send(const ps_order_problem *problem, ps_order_trial *trial, ps_order_op op, int64_t end)
{
    bool forward = op.step == PS_STEP_FORWARD;
    int32_t to = forward ? op.stage + 1 : op.stage - 1;
    if (to < 0 || to >= problem->num_stages)
        return -1;
    const ps_order_hop *hop = &problem->stage[op.stage].hop[op.step];
    int64_t passed = end;
    if (problem->queues && hop->lane != PS_NO_LANE) {
        int64_t *lane_free = &trial->lane_free_ns[hop->lane];
        passed = (end > *lane_free ? end : *lane_free) + hop->occupy_ns;
        *lane_free = passed;
    }
    int32_t input = 2 * to + op.step;
    trial->arrival_ns[(int64_t)input * problem->num_microbatches + op.microbatch] = passed + hop->latency_ns;
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
            int64_t cell = (int64_t)input * problem->num_microbatches + op.microbatch;
            int64_t there = op.microbatch < trial->base[sender] ? order->arrival_ns[cell] : trial->arrival_ns[cell];
            start = there > clock ? there : clock;
        }
        if (i == problem->first[d] && problem->span)
            trial->begin_ns[d] = start;
        if (start + left - trial->begin_ns[d] > limit_ns) {
            trial->visits += i - begun;
            return false;
        }
        int64_t took = duration(problem, op);
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

// Run all devices from their restarts.
static bool run_all(const ps_order_problem *problem, const ps_order *order, ps_order_trial *trial, int64_t limit_ns)
{
    int32_t num_ready = 0;
    trial->visits += PS_STEPS * problem->num_stages;
    for (int32_t d = problem->num_devices - 1; d >= 0; d--) {
        restart_device(problem, order, trial, d);
        if (trial->next[d] < problem->first[d + 1])
            trial->ready[num_ready++] = d;
    }
    if (problem->queues)
        memset(trial->lane_free_ns, 0, (size_t)problem->pipeline->num_lanes * sizeof *trial->lane_free_ns);
    while (num_ready > 0) {
        int32_t d = trial->ready[--num_ready];
        if (!run_device(problem, order, trial, d, &num_ready, limit_ns))
            return false;
    }
    trial->value_ns = 0;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        if (trial->next[d] < problem->first[d + 1])
            return false; // devices wait for each other
        int64_t took = trial->clock_ns[d] - trial->begin_ns[d];
        trial->value_ns = took > trial->value_ns ? took : trial->value_ns;
    }
    return trial->value_ns <= limit_ns;
}

bool ps_order_retime(const ps_order_problem *problem, const ps_order *order, ps_order_trial *trial, int32_t position,
                     int64_t limit_ns)
{
    int32_t device = problem->stage[order->op[position].stage].device;
    int64_t instant = 0;
    if (position > problem->first[device] && !problem->queues)
        instant = order->start_ns[position - 1] + duration(problem, order->op[position - 1]);
    for (int32_t d = 0; d < problem->num_devices; d++)
        trial->restart[d] =
            problem->queues ? problem->first[d] : first_from(order, problem->first[d], problem->first[d + 1], instant);
    if (!problem->queues)
        trial->restart[device] = position;
    return run_all(problem, order, trial, limit_ns);
}

void ps_order_accept(const ps_order_problem *problem, ps_order *order, const ps_order_trial *trial)
{
    int64_t microbatches = problem->num_microbatches;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int32_t from = trial->restart[d];
        memcpy(order->start_ns + from, trial->start_ns + from,
               (size_t)(problem->first[d + 1] - from) * sizeof *order->start_ns);
    }
    for (int32_t s = 0; s < problem->num_stages; s++) {
        for (int32_t step = 0; step < 2; step++) {
            ps_order_op op = {.stage = (uint16_t)s, .step = (uint16_t)step};
            int32_t sender = sender_of(problem, op);
            if (sender < 0)
                continue;
            int64_t from = (2 * (int64_t)s + step) * microbatches + trial->base[sender];
            memcpy(order->arrival_ns + from, trial->arrival_ns + from,
                   (size_t)(microbatches - trial->base[sender]) * sizeof *order->arrival_ns);
        }
    }
    order->value_ns = trial->value_ns;
}

bool ps_order_time(const ps_order_problem *problem, ps_order *order, ps_order_trial *trial, int64_t limit_ns)
{
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int32_t first = problem->first[d];
        trial->restart[d] = first;
        if (first == problem->first[d + 1])
            continue;
        order->busy_ns[first] = 0;
        order->held[first] = 0;
        if (!ps_order_settle(problem, order, first, problem->first[d + 1]))
            return false;
    }
    if (!run_all(problem, order, trial, limit_ns))
        return false;
    ps_order_accept(problem, order, trial);
    return true;
}
