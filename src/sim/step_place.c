// SPDX-License-Identifier: Apache-2.0
//
// step_place.c: when reductions, barrier, optimizer and gathers run, once all ops have their times.
//
// A device has one link lane for reductions and one for gathers, each a queue. In buckets, a reduction may begin once
// the first of them is made, k equal parts of the op that makes them, and its last bucket follows the op's end; so
//   start = max(lane free, end of op - (1 - 1/k) op),  end = max(start + t, end of op + t/k).
// All of it is max and plus of the times of ops, so it is monotone in them.
#include "pipesched/step.h"

#include <stdlib.h>
#include <string.h>

typedef struct placing {
    const ps_pipeline *pipeline;
    const ps_schedule *schedule;
    const ps_timeline *timeline;
    const ps_step *step;
    ps_step_timeline *out;
    int32_t *reduces_at;   // [num_stages] index of the op whose end starts the reduction: the last weight gradient
    bool *seen;            // [num_stages] a forward of the stage was met
    ps_step_op *reduction; // of all devices in turn
    int32_t num_reductions;
    int32_t num_listed;     // of them, in out->op
    int32_t *next_tied;     // [num_stages] after each of the stages of one weight, -1: none
    int64_t *tied_start_ns; // [num_stages]
    ps_step_op *tied;       // device by device
    int32_t num_tied;
    int32_t num_tied_listed;
} placing;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int by_device(const void *a, const void *b)
{
    const ps_step_op *x = a;
    const ps_step_op *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->stage < y->stage ? -1 : x->stage > y->stage;
}

static void add_op(placing *p, ps_step_op op)
{
    p->out->op[p->out->num_ops++] = op;
}

static bool makes_weight_gradient(ps_op op)
{
    return op.kind == PS_OP_BACKWARD || op.kind == PS_OP_BACKWARD_WEIGHT;
}

static int64_t reduce_after(placing *p, int32_t device, int32_t index, int64_t lane_free)
{
    ps_op op = p->schedule->op[index];
    const ps_step_stage *stage = &p->step->stage[op.stage];
    int64_t op_end = p->timeline->end_ns[index];
    int64_t op_ns = op_end - p->timeline->start_ns[index];
    int64_t start = op_end - (op_ns - op_ns / stage->buckets);
    if (!p->step->overlap)
        start = p->timeline->device[device].last_end_ns;
    start = larger(start, lane_free);
    int64_t end = larger(start + stage->reduce_ns, op_end + ps_step_bucket_ns(stage->reduce_ns, stage->buckets));
    p->reduction[p->num_reductions++] = (ps_step_op){.device = device,
                                                     .stage = op.stage,
                                                     .microbatch = p->step->every_microbatch ? op.microbatch : -1,
                                                     .kind = PS_STEP_REDUCE_GRAD,
                                                     .start_ns = start,
                                                     .end_ns = end};
    p->out->device[device].sync_ns += stage->reduce_ns;
    return end;
}

static void reduce_device(placing *p, int32_t device)
{
    ps_step_device *out = &p->out->device[device];
    int64_t last_end = p->timeline->device[device].last_end_ns;
    int64_t lane_free = 0;
    for (int32_t index = p->schedule->first[device]; index < p->schedule->first[device + 1]; index++) {
        ps_op op = p->schedule->op[index];
        bool reduces = makes_weight_gradient(op) && (p->step->every_microbatch || p->reduces_at[op.stage] == index);
        if (reduces && p->step->stage[op.stage].reduce_ns > 0)
            lane_free = reduce_after(p, device, index, lane_free);
    }
    out->synced_ns = larger(last_end, lane_free);
    out->sync_exposed_ns = out->synced_ns - last_end;
}

static ps_step_device *device_of(const placing *p, int32_t stage)
{
    return &p->out->device[p->pipeline->stage[stage].device];
}

// All holders of a shared weight have to be done with theirs. Weights in the order of their first stages.
static void reduce_weight(placing *p, int32_t first)
{
    int64_t start = 0;
    int64_t time = p->step->stage[first].tied_ns;
    for (int32_t s = first; s >= 0; s = p->next_tied[s])
        start = larger(start, device_of(p, s)->synced_ns);
    for (int32_t s = first; s >= 0; s = p->next_tied[s]) {
        ps_step_device *out = device_of(p, s);
        p->tied_start_ns[s] = start;
        out->synced_ns = start + time;
        out->sync_ns += time;
        out->sync_exposed_ns += time;
    }
}

static void reduce_tied(placing *p)
{
    int32_t stages = p->pipeline->num_stages;
    for (int32_t s = stages - 1; s >= 0; s--) {
        const ps_step_stage *stage = &p->step->stage[s];
        if (stage->tied_ns == 0 || stage->tied_to == s)
            continue;
        p->next_tied[s] = p->next_tied[stage->tied_to];
        p->next_tied[stage->tied_to] = s;
    }
    for (int32_t s = 0; s < stages; s++)
        if (p->step->stage[s].tied_ns > 0 && p->step->stage[s].tied_to == s)
            reduce_weight(p, s);
}

// By start, which is the order of their weights' first stages.
static void list_tied(placing *p)
{
    for (int32_t first = 0; first < p->pipeline->num_stages; first++) {
        if (p->step->stage[first].tied_ns == 0 || p->step->stage[first].tied_to != first)
            continue;
        for (int32_t s = first; s >= 0; s = p->next_tied[s])
            p->tied[p->num_tied++] = (ps_step_op){.device = p->pipeline->stage[s].device,
                                                  .stage = s,
                                                  .microbatch = -1,
                                                  .kind = PS_STEP_REDUCE_TIED,
                                                  .start_ns = p->tied_start_ns[s],
                                                  .end_ns = p->tied_start_ns[s] + p->step->stage[s].tied_ns};
    }
    qsort(p->tied, (size_t)p->num_tied, sizeof *p->tied, by_device);
}

static int64_t last_synced(const placing *p)
{
    int64_t last = 0;
    for (int32_t d = 0; d < p->pipeline->num_devices; d++)
        last = larger(last, p->out->device[d].synced_ns);
    return last;
}

// When the state of all gradients is whole at the last device, each device's having travelled down to it.
static int64_t state_whole(const placing *p)
{
    int64_t whole = 0;
    for (int32_t d = 0; d < p->pipeline->num_devices; d++)
        whole = larger(whole + (d > 0 ? p->step->validation_hop_ns : 0), p->out->device[d].synced_ns);
    return whole;
}

static void agree(const placing *p)
{
    int32_t devices = p->pipeline->num_devices;
    int64_t at = p->step->barrier ? last_synced(p) + p->step->barrier_ns : state_whole(p);
    for (int32_t d = devices - 1; d >= 0; d--) {
        ps_step_device *out = &p->out->device[d];
        out->validated_ns = at;
        out->optimizer_start_ns = p->step->barrier ? at : out->synced_ns;
        at += p->step->validation_hop_ns;
    }
}

// Gathers in the order in which the next step's forwards come, each beside its own forward.
static void gather_device(placing *p, int32_t device)
{
    ps_step_device *out = &p->out->device[device];
    int64_t stepped = out->optimizer_start_ns + p->step->optimizer_ns[device];
    for (int32_t index = p->schedule->first[device]; index < p->schedule->first[device + 1]; index++) {
        ps_op op = p->schedule->op[index];
        const ps_step_stage *stage = &p->step->stage[op.stage];
        if (op.kind != PS_OP_FORWARD || p->seen[op.stage])
            continue;
        p->seen[op.stage] = true;
        if (stage->gather_ns == 0)
            continue;
        int64_t begin = out->gather_ns;
        out->gather_ns += stage->gather_ns;
        add_op(p, (ps_step_op){.device = device,
                               .stage = op.stage,
                               .microbatch = -1,
                               .kind = PS_STEP_GATHER,
                               .start_ns = stepped + begin,
                               .end_ns = stepped + out->gather_ns});
        int64_t forward = p->pipeline->stage[op.stage].duration_ns[PS_OP_FORWARD];
        int64_t wanted = p->timeline->start_ns[index] - p->timeline->device[device].first_start_ns;
        int64_t late = begin + ps_step_exposed_ns(stage->gather_ns, stage->buckets, forward) - wanted;
        out->gather_exposed_ns = larger(out->gather_exposed_ns, p->step->overlap ? late : out->gather_ns);
    }
    out->ready_ns = stepped + out->gather_exposed_ns;
}

static void finish_device(placing *p, int32_t device)
{
    const ps_step_device *out = &p->out->device[device];
    bool is_last = device == p->pipeline->num_devices - 1;
    while (p->num_listed < p->num_reductions && p->reduction[p->num_listed].device == device)
        add_op(p, p->reduction[p->num_listed++]);
    while (p->num_tied_listed < p->num_tied && p->tied[p->num_tied_listed].device == device)
        add_op(p, p->tied[p->num_tied_listed++]);
    ps_step_op op = {.device = device, .stage = -1, .microbatch = -1, .end_ns = out->validated_ns};
    op.kind = p->step->barrier ? PS_STEP_BARRIER : PS_STEP_VALIDATE;
    op.start_ns = p->step->barrier || is_last ? out->synced_ns : p->out->device[device + 1].validated_ns;
    if (p->step->barrier || p->pipeline->num_devices > 1)
        add_op(p, op);
    op.kind = PS_STEP_OPTIMIZER;
    op.start_ns = out->optimizer_start_ns;
    op.end_ns = op.start_ns + p->step->optimizer_ns[device];
    add_op(p, op);
    gather_device(p, device);
}

// The ends of the four parts, from the first start of all or, without a barrier, from each device's own.
static void sum_up(const placing *p)
{
    ps_step_timeline *out = p->out;
    bool barrier = p->step->barrier;
    int64_t begin = INT64_MAX;
    int64_t end[4] = {0};
    for (int32_t d = 0; d < p->pipeline->num_devices; d++)
        if (p->timeline->device[d].first_start_ns < begin)
            begin = p->timeline->device[d].first_start_ns;
    for (int32_t d = 0; d < p->pipeline->num_devices; d++) {
        const ps_step_device *device = &out->device[d];
        int64_t from = barrier ? begin : p->timeline->device[d].first_start_ns;
        end[0] = larger(end[0], p->timeline->device[d].last_end_ns - from);
        end[1] = larger(end[1], device->synced_ns - from);
        end[2] = larger(end[2], device->optimizer_start_ns + p->step->optimizer_ns[d] - from);
        end[3] = larger(end[3], device->ready_ns - from);
    }
    out->pipeline_ns = end[0];
    out->sync_exposed_ns = end[1] - end[0];
    out->optimizer_ns = end[2] - end[1];
    out->gather_exposed_ns = end[3] - end[2];
    out->iteration_ns = end[3];
}

void ps_step_place(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule,
                   const ps_timeline *timeline, const ps_step *step, ps_step_timeline *out)
{
    placing p = {.pipeline = pipeline, .schedule = schedule, .timeline = timeline, .step = step, .out = out};
    int64_t reductions = (int64_t)pipeline->num_stages * (step->every_microbatch ? pipeline->num_microbatches : 1);
    int64_t others = 2 * ((int64_t)pipeline->num_stages + pipeline->num_devices);
    *out = (ps_step_timeline){.device = ps_new(arena, ps_step_device, pipeline->num_devices),
                              .op = ps_new_raw(arena, ps_step_op, reductions + others)};
    p.tied = ps_new_raw(arena, ps_step_op, pipeline->num_stages);
    p.tied_start_ns = ps_new(arena, int64_t, pipeline->num_stages);
    p.next_tied = ps_new_raw(arena, int32_t, pipeline->num_stages);
    memset(p.next_tied, 0xff, (size_t)pipeline->num_stages * sizeof *p.next_tied); // all -1
    p.reduction = ps_new_raw(arena, ps_step_op, reductions);
    p.reduces_at = ps_new(arena, int32_t, pipeline->num_stages);
    p.seen = ps_new(arena, bool, pipeline->num_stages);
    for (int32_t index = 0; index < schedule->first[schedule->num_devices]; index++)
        if (makes_weight_gradient(schedule->op[index]))
            p.reduces_at[schedule->op[index].stage] = index;

    for (int32_t d = 0; d < pipeline->num_devices; d++)
        reduce_device(&p, d);
    reduce_tied(&p);
    list_tied(&p);
    agree(&p);
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        finish_device(&p, d);
    sum_up(&p);
}
