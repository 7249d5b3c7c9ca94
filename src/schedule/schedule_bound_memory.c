// SPDX-License-Identifier: Apache-2.0
//
// schedule_bound_memory.c: lower bounds on any order of ops that stays within every device's memory limit.
//
// Notation as in schedule_bound.c. RT(s, t) is the least time from the start of an F at stage s to the start of the b
// of the same micro-batch at stage t: all of its ops and hops between. Room is what micro-batches may hold on a device,
// h what one holds at a stage from F to b, h' from b to W. All of it holds for any order within the limits.
//   Start-up. Between the first F on a device, at its first stage, and its first b, at its last stage or later, lies
//   RT;
//     only F's, and R's of theirs, run there, as many as room / h, so the rest of RT is idle.
//   Drain, for a device's only stage. Between the last F and its b lies RT. At the start of that F the device holds n
//     micro-batches before b and n' between b and W with n h + n' h' <= room - h; no other work is left, so RT less
//     that F and n (b + W) + n' W is idle, less n + 1 R's too where there are any. With more micro-batches than fit,
//     the first b has ended by then, so that both idle times count.
//   Turnaround. The (i + k)-th F of a stage, where k fit, waits for the i-th b to end, and so starts RT + b after the
//     i-th F at the earliest.
//   Occupancy (Little's law). A micro-batch holds h for RT + b and h' for W at every stage, so that m times this is at
//     most room times the span.
// The idle times add to load and to the chains; a device's span needs no head. Each bound is at most what one
// micro-batch after the other takes, so that sums stay below 2^63 once ps_pipeline_validate() has passed.
#include "base/number.h"
#include "schedule/schedule_bound.h"

// Sums over the stages of one device, of one micro-batch.
typedef struct device_sums {
    int64_t head; // of its first stage; -1: it has none
    int64_t forward;
    int64_t work;            // all ops
    int64_t gradient;        // of the stages from the one at hand on, R's too
    int64_t idle;            // start-up
    int64_t longest_fill;    // F and R of one stage
    int64_t fill;            // F's and R's
    int64_t least_held;      // of one stage after F
    int64_t least_transient; // of one stage
    double occupancy;        // memory * ns
    int32_t stages;
    bool seen;    // its last stage is behind
    bool limited; // memory keeps it from running all F's at once
} device_sums;

// One stage seen from its F and its b.
typedef struct place {
    int32_t stage;
    int64_t round_trip; // RT(stage, stage)
    int64_t down;       // from the end of its b to that of stage 0
} place;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// What may be held while a stage with this transient runs. A limit that nothing fits has no bound worth the name; it
// counts as the least that an F needs.
static int64_t room_of(const ps_bound_problem *p, int32_t device, int64_t transient, int64_t held)
{
    const ps_device *d = &p->pipeline->device[device];
    if (d->memory_limit == INT64_MAX)
        return INT64_MAX;
    return larger(d->memory_limit - d->static_memory - transient, held);
}

static int64_t fitting(int64_t room, int64_t held, int64_t most)
{
    return held > 0 ? smaller(room / held, most) : most;
}

static void sum_devices(const ps_bound_problem *p, int32_t first, device_sums *sums)
{
    const ps_pipeline *pipeline = p->pipeline;
    int64_t reach = 0;
    for (int32_t i = 0; i < PS_BOUND_BLOCK; i++)
        sums[i] = (device_sums){.head = -1, .least_held = INT64_MAX, .least_transient = INT64_MAX};
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        const ps_stage *stage = &pipeline->stage[s];
        int32_t i = stage->device - first;
        if (i >= 0 && i < PS_BOUND_BLOCK) {
            device_sums *sum = &sums[i];
            sum->head = sum->head < 0 ? reach : sum->head;
            sum->forward += ps_bound_forward(p, s);
            sum->work +=
                ps_bound_forward(p, s) + ps_bound_recompute(p, s) + ps_bound_gradient(p, s) + ps_bound_weight(p, s);
            sum->fill += ps_bound_forward(p, s) + ps_bound_recompute(p, s);
            sum->longest_fill = larger(sum->longest_fill, ps_bound_forward(p, s) + ps_bound_recompute(p, s));
            sum->least_held = smaller(sum->least_held, stage->held_after_forward);
            sum->least_transient = smaller(sum->least_transient, stage->transient);
            sum->stages++;
        }
        reach += ps_bound_forward(p, s) + (s + 1 < pipeline->num_stages ? ps_bound_hop(&pipeline->forward_hop[s]) : 0);
    }
}

// `round_trip` is RT from the first stage of the device to its last.
static void find_start_idle(const ps_bound_problem *p, int32_t device, int64_t round_trip, device_sums *sum)
{
    int64_t most = (int64_t)p->pipeline->num_microbatches * sum->stages;
    int64_t all = p->pipeline->num_microbatches * sum->fill;
    int64_t fit = fitting(room_of(p, device, sum->least_transient, sum->least_held), sum->least_held, most);
    sum->seen = true;
    sum->limited = fit < most;
    sum->idle =
        larger(0, round_trip - (sum->limited ? smaller(all, ps_multiply_saturating(fit, sum->longest_fill)) : all));
}

// Every mix that memory allows beside the last F. O(micro-batches that fit).
static int64_t drain_idle(const ps_bound_problem *p, place at, int64_t room, int64_t fit)
{
    const ps_stage *stage = &p->pipeline->stage[at.stage];
    int64_t others = p->pipeline->num_microbatches - 1;
    int64_t held = p->fused ? 0 : stage->held_after_backward_input;
    int64_t weight = ps_bound_weight(p, at.stage);
    int64_t recompute = ps_bound_recompute(p, at.stage);
    int64_t most = 0;
    for (int64_t n = 0; n < fit; n++) {
        int64_t between = fitting(room - (n + 1) * stage->held_after_forward, held, others - n);
        most = larger(most, n * (recompute + ps_bound_gradient(p, at.stage) + weight) + between * weight);
    }
    return larger(0, at.round_trip - ps_bound_forward(p, at.stage) - recompute - most);
}

// The W's left after the last b wait for its end, but no more than memory keeps back.
static int64_t pending_weights(const ps_bound_problem *p, int32_t stage)
{
    const ps_stage *s = &p->pipeline->stage[stage];
    int64_t room = room_of(p, s->device, s->transient, s->held_after_backward_input);
    return fitting(room, s->held_after_backward_input, p->pipeline->num_microbatches) * ps_bound_weight(p, stage);
}

static void bound_only_stage(const ps_bound_problem *p, place at, const device_sums *sum, ps_schedule_bound *out)
{
    const ps_stage *stage = &p->pipeline->stage[at.stage];
    int64_t microbatches = p->pipeline->num_microbatches;
    int64_t room = room_of(p, stage->device, stage->transient, stage->held_after_forward);
    int64_t fit = fitting(room, stage->held_after_forward, microbatches);
    int64_t own = microbatches * sum->work + sum->idle;
    if (fit < microbatches)
        own += drain_idle(p, at, room, fit);
    ps_bound_improve(&out->span_ns, &out->span_by, own, "memory");
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, sum->head + own, "memory");
    if (at.stage > 0)
        ps_bound_improve_both(out, sum->head + own - pending_weights(p, at.stage) + at.down + ps_bound_weight(p, 0),
                              "memory");
}

static void bound_turnaround(const ps_bound_problem *p, place at, int64_t head, ps_schedule_bound *out)
{
    const ps_stage *stage = &p->pipeline->stage[at.stage];
    int64_t microbatches = p->pipeline->num_microbatches;
    int64_t room = room_of(p, stage->device, stage->transient, stage->held_after_forward);
    int64_t fit = larger(1, fitting(room, stage->held_after_forward, microbatches));
    if (fit >= microbatches)
        return;
    int64_t turn = at.round_trip + ps_bound_gradient(p, at.stage);
    int64_t end = (microbatches - 1) / fit * turn + (microbatches - 1) % fit * ps_bound_forward(p, at.stage) + turn;
    int64_t weight = ps_bound_weight(p, at.stage);
    ps_bound_improve(&out->span_ns, &out->span_by, end + weight, "memory");
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, head + end + weight, "memory");
    ps_bound_improve_both(out, head + end + at.down + ps_bound_weight(p, 0), "memory");
}

// The product is beyond 63 bits, so it is a double, taken down by more than rounding can have lifted it.
static void bound_occupancy(const ps_bound_problem *p, int32_t device, const device_sums *sum, ps_schedule_bound *out)
{
    int64_t room = room_of(p, device, sum->least_transient, sum->least_held);
    if (room == INT64_MAX || room < 1)
        return;
    double ns = p->pipeline->num_microbatches * sum->occupancy / (double)room * (1 - 1e-9);
    if (ns >= (double)(INT64_MAX / 4))
        return;
    ps_bound_improve(&out->span_ns, &out->span_by, (int64_t)ns, "memory");
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, sum->head + (int64_t)ns, "memory");
}

// From the last stage to the first, so that a device's last stage, which has its first b, comes before the others.
static void bound_block(const ps_bound_problem *p, int32_t first, ps_schedule_bound *out)
{
    const ps_pipeline *pipeline = p->pipeline;
    device_sums sums[PS_BOUND_BLOCK];
    int64_t microbatches = pipeline->num_microbatches;
    int64_t last_weight = ps_bound_weight(p, 0);
    int64_t all_down = p->single - p->up - last_weight;
    int64_t head = p->up; // of the stage at hand
    int64_t down = all_down;

    sum_devices(p, first, sums);
    for (int32_t s = pipeline->num_stages - 1; s >= 0; s--) {
        const ps_stage *stage = &pipeline->stage[s];
        int32_t i = stage->device - first;
        int64_t before = all_down - down; // b's and hops after stage s
        head -= ps_bound_forward(p, s);
        down -= ps_bound_gradient(p, s);
        if (i >= 0 && i < PS_BOUND_BLOCK) {
            device_sums *sum = &sums[i];
            place at = {.stage = s, .round_trip = p->up - head + before, .down = down};
            if (!sum->seen)
                find_start_idle(p, stage->device, p->up - sum->head + before, sum);
            sum->gradient += ps_bound_recompute(p, s) + ps_bound_gradient(p, s);
            sum->occupancy += (double)stage->held_after_forward * (double)(at.round_trip + ps_bound_gradient(p, s)) +
                              (p->fused ? 0 : (double)stage->held_after_backward_input * (double)ps_bound_weight(p, s));
            ps_bound_improve_both(
                out, sum->head + microbatches * (sum->forward + sum->gradient) + sum->idle + down + last_weight,
                sum->limited ? "memory" : "start-up");
            bound_turnaround(p, at, head, out);
            if (sum->stages == 1)
                bound_only_stage(p, at, sum, out);
        }
        if (s > 0) {
            head -= ps_bound_hop(&pipeline->forward_hop[s - 1]);
            down -= ps_bound_hop(&pipeline->backward_hop[s - 1]);
        }
    }
    for (int32_t i = 0; i < PS_BOUND_BLOCK; i++) {
        if (sums[i].head < 0)
            continue;
        int64_t own = microbatches * sums[i].work + sums[i].idle;
        const char *by = sums[i].limited ? "memory" : "start-up";
        bound_occupancy(p, first + i, &sums[i], out);
        ps_bound_improve(&out->span_ns, &out->span_by, own, by);
        ps_bound_improve(&out->makespan_ns, &out->makespan_by, sums[i].head + own, by);
    }
}

void ps_bound_memory(const ps_bound_problem *p, ps_schedule_bound *out)
{
    for (int32_t first = 0; first < p->pipeline->num_devices; first += PS_BOUND_BLOCK)
        bound_block(p, first, out);
}
