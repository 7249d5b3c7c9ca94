// SPDX-License-Identifier: Apache-2.0
//
// schedule_1f1b.c: one forward, one backward (PipeDream-flush; Narayanan et al., ICML 2021).
//
// Rank r of p fills with p - 1 - r forwards, then alternates, then drains. It holds at most min(m, p - r) micro-batches
// and with equal stages and free hops idles (p - 1)(F + B), as GPipe does. Messages: 2 (p - 1) m; as exactly p - r are
// in flight, a hop's time is not hidden in the steady state. Any number of micro-batches is legal.
#include "schedule/family.h"

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    int32_t microbatches = shape.num_microbatches;
    int32_t to_last = shape.num_devices - 1 - rank;
    int32_t warmup = to_last < microbatches ? to_last : microbatches;
    int32_t forward = 0;
    int32_t backward = 0;

    while (forward < warmup)
        op = ps_family_put(op, PS_OP_FORWARD, rank, forward++);
    while (forward < microbatches) {
        op = ps_family_put(op, PS_OP_FORWARD, rank, forward++);
        op = ps_family_put(op, PS_OP_BACKWARD, rank, backward++);
    }
    while (backward < microbatches)
        op = ps_family_put(op, PS_OP_BACKWARD, rank, backward++);
    return op;
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    return ps_family_one_stage("1f1b", shape, status);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_1f1b, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_1f1b = {
    .family = {.kind = PS_SCHEDULE_1F1B,
               .name = "1f1b",
               .summary = "one forward, one backward; holds at most as many micro-batches as there are devices",
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
