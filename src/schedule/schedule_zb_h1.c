// SPDX-License-Identifier: Apache-2.0
//
// schedule_zb_h1.c: ZB-H1, the zero-bubble schedule with 1F1B's memory (Qi et al., ICLR 2024, section 2).
//
// The backward is split: I goes down the pipeline at once, W fills what would be idle. Rank r of p fills with p - 1 - r
// forwards, then repeats F, I, W, where W's begin with the r-th I. With equal stages it takes
// m (F + I + W) + (p - 1)(F + I - W + 4 c) for m >= 2p and hops of latency c: a third of 1F1B's bubble when F = I = W.
// Rank r holds p - r micro-batches between F and I and r between I and W. Messages: 2 (p - 1) m. Any number of
// micro-batches is legal.
#include "schedule/family.h"

// The k-th I is followed by a W once warm-up + k reaches factor (p - 1), where the warm-up is cut to the micro-batches
// there are: the published rule, also where it is not the fastest (m < 2p).
ps_op *ps_family_write_zb_h(ps_schedule_shape shape, int32_t rank, int32_t factor, ps_op *op)
{
    int32_t microbatches = shape.num_microbatches;
    int64_t ahead = (int64_t)factor * (shape.num_devices - 1 - rank);
    int32_t warmup = ahead < microbatches ? (int32_t)ahead : microbatches;
    int64_t held_back = (int64_t)factor * (shape.num_devices - 1) - warmup;
    int32_t forward = 0;
    int32_t weight = 0;

    while (forward < warmup)
        op = ps_family_put(op, PS_OP_FORWARD, rank, forward++);
    for (int32_t input = 0; input < microbatches; input++) {
        if (forward < microbatches)
            op = ps_family_put(op, PS_OP_FORWARD, rank, forward++);
        op = ps_family_put(op, PS_OP_BACKWARD_INPUT, rank, input);
        if (input >= held_back)
            op = ps_family_put(op, PS_OP_BACKWARD_WEIGHT, rank, weight++);
    }
    while (weight < microbatches)
        op = ps_family_put(op, PS_OP_BACKWARD_WEIGHT, rank, weight++);
    return op;
}

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    return ps_family_write_zb_h(shape, rank, 1, op);
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    return ps_family_one_stage("zb-h1", shape, status);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_zb_h1, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_zb_h1 = {
    .family = {.kind = PS_SCHEDULE_ZB_H1,
               .name = "zb-h1",
               .summary = "zero bubble with the memory of 1f1b: weight gradients fill a part of the idle time",
               .splits_backward = true,
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
