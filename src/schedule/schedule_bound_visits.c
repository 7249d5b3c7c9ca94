// SPDX-License-Identifier: Apache-2.0
//
// schedule_bound_visits.c: lower bounds of devices that every micro-batch visits several times, as with virtual stages.
//
// A micro-batch visits a device of n stages 2 n times: F at each stage in ascending order, then b in descending order.
// Visit j of a micro-batch starts T(i, j) after visit i at the earliest: all ops and hops between.
//   Start-up. Before the first visit j of any micro-batch nobody is past visit j - 1, so only so much work can have
//     been done as micro-batches that fit side by side have up to there; the rest of T(0, j) is idle.
//   Drain. When the last visit j starts, all others are past theirs, and only so much work is left as fits beside it;
//     of the time until the last visit of that micro-batch starts, what it and they cannot fill is idle.
// A micro-batch that is past visit i and not past i + 1 holds what its stages hold whose b is still to come. So the
// work of all that fit is at most the room times the greatest work per memory of any i; at most the number that fit,
// each with the least that any of them holds, times the greatest work; and at most all micro-batches times that. The
// two idle times add up when the drain begins after the start-up: when its visit is no earlier one, or when fewer
// micro-batches than there are fit before the start-up ends.
#include "base/number.h"
#include "schedule/schedule_bound.h"

enum { MOST_STAGES = 8, BLOCK = 64 };

typedef struct device_visits {
    int32_t device;
    int32_t stages; // counted on beyond MOST_STAGES
    int32_t stage[MOST_STAGES];
    int64_t at_ns[2 * MOST_STAGES]; // start of each visit of a micro-batch by itself
    int64_t down_ns[MOST_STAGES];   // from the end of b to that of stage 0
} device_visits;

// What is needed of a device, once its stages are known. Arrays are by visit, or by stage in ascending order.
typedef struct device_bound {
    const ps_bound_problem *p;
    const device_visits *v;
    int32_t n;
    int64_t microbatches;
    int64_t room; // INT64_MAX: no limit
    int64_t least_transient;
    bool grows; // some stage holds more after I than before
    int64_t took[2 * MOST_STAGES];
    int64_t done[2 * MOST_STAGES]; // work up to a visit, with the W's of its b's
    int64_t held[2 * MOST_STAGES]; // at least, past a visit
    int64_t weights;               // of all stages
} device_bound;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static const ps_stage *stage_at(const device_bound *b, int32_t i)
{
    return &b->p->pipeline->stage[b->v->stage[i]];
}

// Index of the stage of a visit.
static int32_t stage_of(const device_bound *b, int32_t visit)
{
    return visit < b->n ? visit : 2 * b->n - 1 - visit;
}

static void set_device(const ps_bound_problem *p, const device_visits *v, device_bound *b)
{
    const ps_device *device = &p->pipeline->device[v->device];
    *b = (device_bound){.p = p, .v = v, .n = v->stages, .microbatches = p->pipeline->num_microbatches};
    b->room = device->memory_limit == INT64_MAX ? INT64_MAX : device->memory_limit - device->static_memory;
    b->least_transient = INT64_MAX;
    int64_t done = 0;
    int64_t held = 0;
    for (int32_t visit = 0; visit < 2 * b->n; visit++) {
        int32_t s = v->stage[stage_of(b, visit)];
        const ps_stage *stage = &p->pipeline->stage[s];
        bool forward = visit < b->n;
        b->took[visit] = forward ? ps_bound_forward(p, s) : ps_bound_gradient(p, s);
        done += b->took[visit] + (forward ? 0 : ps_bound_weight(p, s));
        held += forward ? stage->held_after_forward : -stage->held_after_forward;
        b->done[visit] = done;
        b->held[visit] = held;
        if (!forward)
            continue;
        b->weights += ps_bound_weight(p, s);
        b->least_transient = smaller(b->least_transient, stage->transient);
        b->grows = b->grows || (!p->fused && stage->held_after_backward_input > stage->held_after_forward);
    }
}

// The most that `value` per `held` comes to in `room`; above the exact quotient, never below.
static int64_t fill(int64_t room, int64_t value, int64_t held, int64_t most)
{
    if (value <= 0)
        return 0;
    if (held <= 0)
        return most;
    if (room <= 0)
        return 0;
    double filled = (double)room * (double)value / (double)held * (1 + 1e-9) + 1;
    return filled < (double)most ? (int64_t)filled : most;
}

// Room beside the op of a visit; for a visit to b, of what is held when the op before it ended.
static int64_t room_before(const device_bound *b, int32_t visit)
{
    if (b->room == INT64_MAX)
        return INT64_MAX;
    if (visit < b->n) {
        const ps_stage *stage = stage_at(b, visit);
        return larger(0, b->room - stage->held_after_forward - stage->transient);
    }
    return larger(0, b->room - (b->grows ? 0 : b->least_transient));
}

// Idle before the first visit `visit`; `*fit`: how many micro-batches can have begun by then.
static int64_t start_idle(const device_bound *b, int32_t visit, int64_t *fit)
{
    int64_t room = room_before(b, visit);
    int64_t all = ps_multiply_saturating(b->microbatches, b->done[visit - 1]);
    int64_t least = INT64_MAX;
    int64_t filled = 0;
    for (int32_t i = 0; i < visit; i++) {
        least = smaller(least, b->held[i]);
        filled = larger(filled, fill(room, b->done[i], b->held[i], all));
    }
    *fit = room == INT64_MAX || least <= 0 ? b->microbatches : smaller(b->microbatches, room / least);
    int64_t work = smaller(room == INT64_MAX ? all : filled, ps_multiply_saturating(*fit, b->done[visit - 1]));
    return larger(0, b->v->at_ns[visit] - b->v->at_ns[0] - work);
}

// Idle between the start of the last visit `visit` and the last visit of the same micro-batch.
static int64_t drain_idle(const device_bound *b, int32_t visit)
{
    int32_t last = 2 * b->n - 1;
    int64_t window = b->v->at_ns[last] - b->v->at_ns[visit];
    int64_t own = b->weights - ps_bound_weight(b->p, b->v->stage[0]);
    for (int32_t i = visit; i < last; i++)
        own += b->took[i];
    // Of what others have left, W's of before the visit count too.
    int64_t left = b->done[last] - b->done[visit];
    for (int32_t i = b->n; i <= visit; i++)
        left += ps_bound_weight(b->p, b->v->stage[stage_of(b, i)]);
    int64_t all = ps_multiply_saturating(b->microbatches - 1, left);
    int64_t most = all;
    if (b->room < INT64_MAX) {
        const ps_stage *stage = stage_at(b, stage_of(b, visit));
        int64_t held = visit < b->n ? b->held[visit] : b->held[visit - 1];
        int64_t room = b->room - held - stage->transient;
        most = 0;
        for (int32_t i = visit; i < last; i++)
            most = larger(most, fill(room, b->done[last] - b->done[i], b->held[i], all));
        for (int32_t i = 0; i < b->n && !b->p->fused; i++)
            most = larger(most, fill(room, ps_bound_weight(b->p, b->v->stage[i]),
                                     stage_at(b, i)->held_after_backward_input, all));
    }
    return larger(0, window - own - most);
}

// W's that can be left when the last b of the device has ended.
static int64_t pending_weights(const device_bound *b)
{
    int64_t all = ps_multiply_saturating(b->microbatches, b->weights);
    int64_t most = 0;
    if (b->room == INT64_MAX)
        return all;
    for (int32_t i = 0; i < b->n; i++)
        most = larger(most, fill(b->room, ps_bound_weight(b->p, b->v->stage[i]),
                                 b->p->fused ? 0 : stage_at(b, i)->held_after_backward_input, all));
    return most;
}

static void bound_device(const ps_bound_problem *p, const device_visits *v, ps_schedule_bound *out)
{
    device_bound b;
    set_device(p, v, &b);
    const char *by = b.room == INT64_MAX ? "start-up" : "memory";
    int32_t visits = 2 * b.n;
    int64_t drain[2 * MOST_STAGES];
    int64_t idle = 0;
    int64_t early = 0; // start-up idle up to the visit at hand
    int64_t gradients = 0;
    for (int32_t i = 0; i + 1 < visits; i++)
        drain[i] = drain_idle(&b, i);
    for (int32_t start = 1; start < visits; start++) {
        int64_t fit = 0;
        int64_t begun = start_idle(&b, start, &fit);
        early = larger(early, begun);
        idle = larger(idle, begun);
        for (int32_t i = 0; i + 1 < visits; i++)
            if (i >= start || fit < b.microbatches)
                idle = larger(idle, begun + drain[i]);
        if (start < b.n)
            continue;
        int32_t stage = stage_of(&b, start);
        gradients += b.took[start];
        ps_bound_improve_both(out,
                              v->at_ns[0] + b.microbatches * (b.done[b.n - 1] + gradients) + early + v->down_ns[stage] +
                                  ps_bound_weight(p, 0),
                              by);
    }
    int64_t own = b.microbatches * b.done[visits - 1] + idle;
    ps_bound_improve(&out->span_ns, &out->span_by, own, by);
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, v->at_ns[0] + own, by);
    if (v->stage[0] > 0)
        ps_bound_improve_both(out, v->at_ns[0] + own - pending_weights(&b) + v->down_ns[0] + ps_bound_weight(p, 0), by);
}

// Times of the visits of a block of devices.
static void find_visits(const ps_bound_problem *p, int32_t first, device_visits *visits)
{
    const ps_pipeline *pipeline = p->pipeline;
    int64_t reach = 0;
    for (int32_t i = 0; i < BLOCK; i++)
        visits[i] = (device_visits){.device = first + i};
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        int32_t i = pipeline->stage[s].device - first;
        if (i >= 0 && i < BLOCK) {
            device_visits *v = &visits[i];
            if (v->stages < MOST_STAGES) {
                v->stage[v->stages] = s;
                v->at_ns[v->stages] = reach;
            }
            v->stages++;
        }
        reach += ps_bound_forward(p, s) + (s + 1 < pipeline->num_stages ? ps_bound_hop(&pipeline->forward_hop[s]) : 0);
    }
    int64_t end = p->single - ps_bound_weight(p, 0);
    int32_t seen[BLOCK] = {0};
    reach = p->up;
    for (int32_t s = pipeline->num_stages - 1; s >= 0; s--) {
        int32_t i = pipeline->stage[s].device - first;
        if (i >= 0 && i < BLOCK && visits[i].stages <= MOST_STAGES) {
            device_visits *v = &visits[i];
            v->at_ns[v->stages + seen[i]] = reach;
            v->down_ns[v->stages - 1 - seen[i]] = end - reach - ps_bound_gradient(p, s);
            seen[i]++;
        }
        reach += ps_bound_gradient(p, s) + (s > 0 ? ps_bound_hop(&pipeline->backward_hop[s - 1]) : 0);
    }
}

void ps_bound_visits(const ps_bound_problem *p, ps_schedule_bound *out)
{
    device_visits visits[BLOCK];
    for (int32_t first = 0; first < p->pipeline->num_devices; first += BLOCK) {
        find_visits(p, first, visits);
        for (int32_t i = 0; i < BLOCK && first + i < p->pipeline->num_devices; i++)
            if (visits[i].stages > 0 && visits[i].stages <= MOST_STAGES)
                bound_device(p, &visits[i], out);
    }
}
