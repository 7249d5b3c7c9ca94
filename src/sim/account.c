// SPDX-License-Identifier: Apache-2.0
//
// account.c: busy and idle time and memory of every device.
//
// Memory follows from a device's own op order alone: a micro-batch holds held_after_forward from the start of F to the
// end of B or I, and held_after_backward_input from there to the end of W.
#include "sim/account.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// What a device holds while its ops are walked, static memory left out.
typedef struct holding {
    int64_t held;
    int64_t peak_held;
    int64_t peak; // with the transient of the running op
    int32_t in_flight;
    int32_t peak_in_flight;
    int64_t finished;
    int64_t busy_ns;
} holding;

static inline void hold(holding *h, const ps_stage *stage, uint8_t kind)
{
    int64_t while_running = h->held;
    switch ((ps_op_kind)kind) {
    case PS_OP_FORWARD:
        h->held += stage->held_after_forward;
        h->in_flight++;
        while_running = h->held;
        break;
    case PS_OP_BACKWARD:
        h->held -= stage->held_after_forward;
        h->in_flight--;
        h->finished++;
        break;
    case PS_OP_BACKWARD_INPUT:
        h->held += stage->held_after_backward_input - stage->held_after_forward;
        h->in_flight--;
        break;
    case PS_OP_BACKWARD_WEIGHT:
        h->held -= stage->held_after_backward_input;
        h->finished++;
        break;
    case PS_OP_KINDS: break;
    }
    h->busy_ns += stage->duration_ns[kind];
    h->peak_held = larger(h->peak_held, h->held);
    // What an op leaves behind is held while the next one runs, and the last one leaves nothing.
    h->peak = larger(h->peak, while_running + stage->transient);
    h->peak_in_flight = h->in_flight > h->peak_in_flight ? h->in_flight : h->peak_in_flight;
}

static int64_t account_memory(const ps_pipeline *pipeline, const ps_op *op, const ps_op *end, ps_device_timeline *out)
{
    holding h = {0};
    for (; op < end; op++)
        hold(&h, &pipeline->stage[op->stage], op->kind);
    out->busy_ns = h.busy_ns;
    out->peak_activation = h.peak_held;
    out->peak_memory = h.peak;
    out->in_flight_peak = h.peak_in_flight;
    return h.finished;
}

static bool waits_for_gradient(ps_op op)
{
    return op.kind == PS_OP_BACKWARD || op.kind == PS_OP_BACKWARD_INPUT;
}

// The two instants between which idle time is steady. Ops of a device are in order of time, so its first gradient op
// and its last forward decide. The first gradient anywhere follows an F of its route's last stop without a pause, so
// the instants are in this order.
static void find_steady(const ps_schedule *schedule, const ps_timeline *timeline, int64_t *begin, int64_t *end)
{
    *begin = INT64_MAX;
    *end = 0;
    for (int32_t device = 0; device < schedule->num_devices; device++) {
        int32_t low = schedule->first[device];
        int32_t high = schedule->first[device + 1];
        int32_t gradient = low;
        int32_t forward = high - 1;
        while (gradient < high && !waits_for_gradient(schedule->op[gradient]))
            gradient++;
        while (forward >= low && schedule->op[forward].kind != PS_OP_FORWARD)
            forward--;
        if (gradient < high)
            *begin = smaller(*begin, timeline->start_ns[gradient]);
        if (forward >= low)
            *end = larger(*end, timeline->end_ns[forward]);
    }
}

// Busy time of ops first .. last - 1 of one device before and from an instant on; they look at no more ops than needed.
static int64_t busy_before(const ps_timeline *timeline, int32_t first, int32_t last, int64_t instant)
{
    int64_t busy = 0;
    for (int32_t i = first; i < last && timeline->start_ns[i] < instant; i++)
        busy += smaller(timeline->end_ns[i], instant) - timeline->start_ns[i];
    return busy;
}

static int64_t busy_after(const ps_timeline *timeline, int32_t first, int32_t last, int64_t instant)
{
    int64_t busy = 0;
    for (int32_t i = last - 1; i >= first && timeline->end_ns[i] > instant; i--)
        busy += timeline->end_ns[i] - larger(timeline->start_ns[i], instant);
    return busy;
}

static void account_idle(const ps_schedule *schedule, ps_timeline *timeline, int64_t begin, int64_t end)
{
    int64_t steady_begin;
    int64_t steady_end;
    find_steady(schedule, timeline, &steady_begin, &steady_end);
    steady_begin = smaller(steady_begin, end);
    for (int32_t device = 0; device < schedule->num_devices; device++) {
        int32_t first = schedule->first[device];
        int32_t last = schedule->first[device + 1];
        ps_device_timeline *out = &timeline->device[device];
        out->idle_ns = end - begin - out->busy_ns;
        out->idle.warmup_ns = steady_begin - begin - busy_before(timeline, first, last, steady_begin);
        out->idle.cooldown_ns = end - steady_end - busy_after(timeline, first, last, steady_end);
        out->idle.steady_ns = out->idle_ns - out->idle.warmup_ns - out->idle.cooldown_ns;
    }
}

int64_t ps_account(const ps_pipeline *pipeline, const ps_schedule *schedule, ps_timeline *timeline)
{
    int64_t begin = INT64_MAX;
    int64_t end = 0;
    int64_t finished = 0;
    for (int32_t device = 0; device < schedule->num_devices; device++) {
        int32_t first = schedule->first[device];
        int32_t last = schedule->first[device + 1];
        ps_device_timeline *out = &timeline->device[device];
        finished += account_memory(pipeline, schedule->op + first, schedule->op + last, out);
        out->peak_memory += pipeline->device[device].static_memory;
        timeline->busy_ns += out->busy_ns;
        if (first == last)
            continue;
        out->first_start_ns = timeline->start_ns[first];
        out->last_end_ns = timeline->end_ns[last - 1];
        timeline->span_ns = larger(timeline->span_ns, out->last_end_ns - out->first_start_ns);
        begin = smaller(begin, out->first_start_ns);
        end = larger(end, out->last_end_ns);
    }
    begin = smaller(begin, end);
    timeline->makespan_ns = end - begin;
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        ps_device_timeline *out = &timeline->device[pipeline->stage[s].device];
        out->peak_transient = larger(out->peak_transient, pipeline->stage[s].transient);
    }
    account_idle(schedule, timeline, begin, end);
    return finished;
}
