// SPDX-License-Identifier: Apache-2.0
//
// schedule_depth.c: how many micro-batches each stage of a named family has in flight, counted on its own op order.
//
// Time does not matter: what a device holds depends on the order of its own ops alone. One rank is written at a time
// where the family can, into one buffer, so memory is that of the longest rank. O(ops).
#include <stddef.h>

#include "schedule/family.h"

// One stage's counts while its rank's ops are walked.
typedef struct counts {
    int32_t full;
    int32_t weight;
    bool recomputes;
    int32_t *most_weight; // by `full`: the most weights held with so many full at the same time, -1: never seen
} counts;

static void observe(counts *c)
{
    if (c->most_weight[c->full] < c->weight)
        c->most_weight[c->full] = c->weight;
}

// What is held grows only at the start of F and of R and may grow at the end of I; no other moment can be a new worst
// one.
static void count_op(counts *c, ps_op op)
{
    switch ((ps_op_kind)op.kind) {
    case PS_OP_FORWARD:
        c->full++;
        observe(c);
        break;
    case PS_OP_BACKWARD:
        c->full--;
        c->weight -= c->recomputes;
        break;
    case PS_OP_RECOMPUTE:
        c->weight++;
        observe(c);
        break;
    case PS_OP_BACKWARD_INPUT:
        c->full--;
        c->weight++;
        observe(c);
        break;
    case PS_OP_BACKWARD_WEIGHT: c->weight--; break;
    case PS_OP_KINDS: break;
    }
}

// From the most full downwards a point is worth keeping only when it holds more weights than all before.
static int32_t front_size(const int32_t *most_weight, int32_t microbatches, ps_depth *point)
{
    int32_t count = 0;
    int32_t weight = -1;
    for (int32_t full = microbatches; full >= 0; full--) {
        if (most_weight[full] <= weight)
            continue;
        weight = most_weight[full];
        if (point)
            point[count] = (ps_depth){.full = full, .weight = weight};
        count++;
    }
    return count;
}

ps_code ps_schedule_depths(ps_arena *arena, ps_schedule_kind kind, ps_schedule_shape shape, ps_depth_list *out,
                           ps_status *status)
{
    const ps_family *family = ps_family_at(kind);
    PS_TRY(family->family.legal(shape, status));
    int32_t devices = shape.num_devices;
    int32_t microbatches = shape.num_microbatches;
    int32_t chunks = shape.num_stages / devices;
    int64_t rank_ops = ps_family_rank_ops(family, shape);
    PS_TRY(ps_family_ops_fit(family, shape, status));

    ps_op *op = ps_new_raw(arena, ps_op, family->write_all ? rank_ops * devices : rank_ops);
    if (family->write_all)
        family->write_all(arena, shape, op);
    int32_t *most_weight = ps_new_raw(arena, int32_t, (int64_t)chunks * (microbatches + 1));
    counts *count = ps_new_raw(arena, counts, chunks);
    ps_depth **front = ps_new_raw(arena, ps_depth *, shape.num_stages);
    out->num_stages = shape.num_stages;
    out->first = ps_new(arena, int32_t, shape.num_stages + 1);

    for (int32_t rank = 0; rank < devices; rank++) {
        for (int32_t chunk = 0; chunk < chunks; chunk++)
            count[chunk] = (counts){.recomputes = family->family.recomputes,
                                    .most_weight = most_weight + (int64_t)chunk * (microbatches + 1)};
        for (int64_t i = 0; i < (int64_t)chunks * (microbatches + 1); i++)
            most_weight[i] = -1;
        const ps_op *first = family->write_all ? op + rank * rank_ops : op;
        const ps_op *end = family->write_all ? first + rank_ops : family->write_rank(shape, rank, op);
        for (const ps_op *o = first; o < end; o++)
            count_op(&count[o->stage / devices], *o);
        for (int32_t chunk = 0; chunk < chunks; chunk++) {
            int32_t stage = ps_schedule_stage(family->family.placement, shape, rank, chunk);
            int32_t size = front_size(count[chunk].most_weight, microbatches, NULL);
            out->first[stage + 1] = size;
            front[stage] = ps_new_raw(arena, ps_depth, size);
            front_size(count[chunk].most_weight, microbatches, front[stage]);
        }
    }
    for (int32_t stage = 0; stage < shape.num_stages; stage++)
        out->first[stage + 1] += out->first[stage];
    out->point = ps_new_raw(arena, ps_depth, out->first[shape.num_stages]);
    for (int32_t stage = 0; stage < shape.num_stages; stage++)
        for (int32_t i = out->first[stage]; i < out->first[stage + 1]; i++)
            out->point[i] = front[stage][i - out->first[stage]];
    return PS_OK;
}
