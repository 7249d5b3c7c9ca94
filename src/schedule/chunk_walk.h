// SPDX-License-Identifier: Apache-2.0
//
// chunk_walk.h: the order in which interleaved schedules visit the chunks of a rank.
//
// Micro-batches go in groups: all of a group through one chunk, then through the next, and so on; backwards take the
// chunks in reverse. The last group is what is left over. Stage = chunk * devices + rank.
#ifndef PS_SCHEDULE_CHUNK_WALK_H
#define PS_SCHEDULE_CHUNK_WALK_H

#include "schedule/family.h"

typedef struct ps_chunk_walk {
    int32_t microbatches;
    int32_t group;       // micro-batches in one, but for the last
    int32_t stage_step;  // + devices forward, - devices backward
    int32_t first_stage; // of every group
    int32_t chunks;
    int32_t chunks_left; // after the current one
    int32_t base;        // first micro-batch of the group
    int32_t in_group;    // micro-batches of the group done on this chunk
    int32_t stage;
} ps_chunk_walk;

static inline ps_chunk_walk ps_chunk_walk_start(ps_schedule_shape shape, int32_t rank, int32_t group, bool backward)
{
    int32_t devices = shape.num_devices;
    int32_t chunks = shape.num_stages / devices;
    int32_t first = backward ? (chunks - 1) * devices + rank : rank;
    return (ps_chunk_walk){.microbatches = shape.num_microbatches,
                           .group = group,
                           .stage_step = backward ? -devices : devices,
                           .first_stage = first,
                           .chunks = chunks,
                           .chunks_left = chunks - 1,
                           .stage = first};
}

static inline ps_op *ps_chunk_walk_put(ps_chunk_walk *w, ps_op_kind kind, ps_op *op)
{
    int32_t left = w->microbatches - w->base;
    op = ps_family_put(op, kind, w->stage, w->base + w->in_group);
    if (++w->in_group < (left < w->group ? left : w->group))
        return op;
    w->in_group = 0;
    w->stage += w->stage_step;
    if (w->chunks_left-- == 0) {
        w->chunks_left = w->chunks - 1;
        w->stage = w->first_stage;
        w->base += w->group;
    }
    return op;
}

#endif
