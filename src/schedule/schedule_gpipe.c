// SPDX-License-Identifier: Apache-2.0
//
// schedule_gpipe.c: all forwards, then all backwards (Huang et al., NeurIPS 2019), backwards in the order of the
// forwards, as PyTorch runs it.
//
// With p equal stages and free hops every device idles (p - 1)(F + B). A device holds all m micro-batches at once,
// which is what the later families avoid. Messages: 2 (p - 1) m. Any number of micro-batches is legal.
#include "schedule/family.h"

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    for (int32_t microbatch = 0; microbatch < shape.num_microbatches; microbatch++)
        op = ps_family_put(op, PS_OP_FORWARD, rank, microbatch);
    for (int32_t microbatch = 0; microbatch < shape.num_microbatches; microbatch++)
        op = ps_family_put(op, PS_OP_BACKWARD, rank, microbatch);
    return op;
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    return ps_family_one_stage("gpipe", shape, status);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_gpipe, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_gpipe = {
    .family = {.kind = PS_SCHEDULE_GPIPE,
               .name = "gpipe",
               .summary = "all forwards, then all backwards; holds every micro-batch",
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
