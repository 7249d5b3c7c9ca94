// SPDX-License-Identifier: Apache-2.0
//
// schedule_gpipe_recompute.c: gpipe that keeps only the inputs of its stages, and runs each forward again, as an op R
// of its own, right before its backward (Huang et al., NeurIPS 2019, section 2.3: re-materialisation).
//
// R needs nothing from another stage, so a device runs it while the gradient is on its way: with p equal stages and
// free hops the makespan is (m + p - 1)(F + B) + m R, where gpipe with R inside B takes (p - 1) R more. A device holds
// the inputs of all m micro-batches and what R adds for one. Messages: 2 (p - 1) m, as gpipe: R sends nothing. Any
// number of micro-batches is legal.
//
// The paper spares the last stage the micro-batch whose backward follows its forward at once. Backwards here come in
// the order of the forwards, as PyTorch runs them, so with more than one micro-batch there is none; and a module under
// activation checkpointing recomputes always. So every stage recomputes every micro-batch.
#include "schedule/family.h"

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    for (int32_t microbatch = 0; microbatch < shape.num_microbatches; microbatch++)
        op = ps_family_put(op, PS_OP_FORWARD, rank, microbatch);
    for (int32_t microbatch = 0; microbatch < shape.num_microbatches; microbatch++) {
        op = ps_family_put(op, PS_OP_RECOMPUTE, rank, microbatch);
        op = ps_family_put(op, PS_OP_BACKWARD, rank, microbatch);
    }
    return op;
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    return ps_family_one_stage("gpipe-recompute", shape, status);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_gpipe_recompute, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_gpipe_recompute = {
    .family = {.kind = PS_SCHEDULE_GPIPE_RECOMPUTE,
               .name = "gpipe-recompute",
               .summary = "gpipe that keeps inputs and runs forwards again while it waits for gradients",
               .recomputes = true,
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
