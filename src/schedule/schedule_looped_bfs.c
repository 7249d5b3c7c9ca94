// SPDX-License-Identifier: Apache-2.0
//
// schedule_looped_bfs.c: breadth first over looped stages (Lamy-Poirier, MLSys 2023), in the order of PyTorch's
// LoopedBFS.
//
// Each of p devices holds v chunks; stage = chunk * p + rank. F of all micro-batches runs chunk by chunk, then B from
// the last chunk to the first, micro-batches in reverse. With equal stages and free hops a device idles (p - 1)(F + B)
// / v when m >= p, and all m micro-batches are held, as with GPipe. Messages: 2 (v p - 1) m. Weights of a chunk are
// needed in one piece of time in each direction, so that sharded ones are gathered twice an iteration only. Any number
// of micro-batches and of chunks is legal; one chunk is GPipe with its backwards in reverse.
#include "schedule/family.h"

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    int32_t devices = shape.num_devices;
    int32_t microbatches = shape.num_microbatches;
    for (int32_t stage = rank; stage < shape.num_stages; stage += devices)
        for (int32_t m = 0; m < microbatches; m++)
            op = ps_family_put(op, PS_OP_FORWARD, stage, m);
    for (int32_t stage = shape.num_stages - devices + rank; stage >= 0; stage -= devices)
        for (int32_t m = microbatches - 1; m >= 0; m--)
            op = ps_family_put(op, PS_OP_BACKWARD, stage, m);
    return op;
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(ps_family_counts(shape, status));
    if (shape.num_stages == shape.num_devices)
        return PS_OK;
    return ps_family_several_stages("looped-bfs", shape, status);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_looped_bfs, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_looped_bfs = {
    .family = {.kind = PS_SCHEDULE_LOOPED_BFS,
               .name = "looped-bfs",
               .summary = "all forwards chunk by chunk, then all backwards; holds every micro-batch",
               .virtual_stages = true,
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
