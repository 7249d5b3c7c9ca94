// SPDX-License-Identifier: Apache-2.0
//
// schedule_zb_h2.c: ZB-H2, the zero-bubble schedule that pays with memory (Qi et al., ICLR 2024, section 2).
//
// As ZB-H1 with twice the forwards ahead: rank r of p fills with 2 (p - 1 - r) and W's begin with the 2r-th I. With
// equal stages its span is m (F + I + W) + (p - 1)(F + I + 2c - 2W) for m >= 2p and hops of latency c: no bubble at all
// when F = I = W and c = 0. The makespan, which an optimizer barrier sees, keeps the staggered start. Rank r holds
// min(m, 2 (p - r) - 1) micro-batches between F and I, up to 2p - 1. Messages: 2 (p - 1) m. Any number of micro-batches
// is legal; below 2p the pipeline never fills and ZB-H1 is as fast or faster.
#include "schedule/family.h"

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    return ps_family_write_zb_h(shape, rank, 2, op);
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    return ps_family_one_stage("zb-h2", shape, status);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_zb_h2, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_zb_h2 = {
    .family = {.kind = PS_SCHEDULE_ZB_H2,
               .name = "zb-h2",
               .summary = "zero bubble with up to twice the memory of 1f1b; pays off without an optimizer barrier",
               .splits_backward = true,
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
