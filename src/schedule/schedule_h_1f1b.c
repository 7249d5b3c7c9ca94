// SPDX-License-Identifier: Apache-2.0
//
// schedule_h_1f1b.c: 1F1B with a launch count a rank, for pipelines of unequal devices or links.
//
// Rank r runs k_r forwards, then backwards and forwards in turn, then the backwards that are left. k_r = min(m, p - r)
// is 1F1B; more on the early ranks hide the time of hops and of slow stages, and cost memory: rank r holds exactly k_r
// micro-batches. Messages: 2 (p - 1) m.
//
// A rank that runs k forwards before its first backward needs k forwards of the rank before it, which stops at its own
// count until that first backward: counts never rise along the pipeline, or nothing would ever run.
#include "schedule/family.h"

static int32_t count_of(ps_schedule_shape shape, int32_t rank)
{
    if (shape.launch_count)
        return shape.launch_count[rank];
    int32_t depth = shape.num_devices - rank;
    return depth < shape.num_microbatches ? depth : shape.num_microbatches;
}

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    int32_t forward = 0;
    int32_t count = count_of(shape, rank);
    while (forward < count)
        op = ps_family_put(op, PS_OP_FORWARD, rank, forward++);
    for (int32_t backward = 0; backward < shape.num_microbatches; backward++) {
        op = ps_family_put(op, PS_OP_BACKWARD, rank, backward);
        if (forward < shape.num_microbatches)
            op = ps_family_put(op, PS_OP_FORWARD, rank, forward++);
    }
    return op;
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(ps_family_one_stage("h-1f1b", shape, status));
    for (int32_t rank = 0; shape.launch_count && rank < shape.num_devices; rank++) {
        int32_t count = shape.launch_count[rank];
        if (count < 1 || count > shape.num_microbatches) {
            ps_fail(status, PS_ILLEGAL, "h-1f1b-launch-count",
                    "rank %d cannot launch %d forwards before its first backward: at least 1, at most the %d "
                    "micro-batches",
                    (int)rank, (int)count, (int)shape.num_microbatches);
            return ps_fail_hint(status, "use %d", (int)(count < 1 ? 1 : shape.num_microbatches));
        }
        if (rank > 0 && count > shape.launch_count[rank - 1]) {
            ps_fail(status, PS_ILLEGAL, "h-1f1b-deadlock",
                    "rank %d waits for %d forwards before its first backward, but rank %d stops at %d until that "
                    "backward",
                    (int)rank, (int)count, (int)(rank - 1), (int)shape.launch_count[rank - 1]);
            return ps_fail_hint(status, "launch at most %d on rank %d", (int)shape.launch_count[rank - 1], (int)rank);
        }
    }
    return PS_OK;
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_h_1f1b, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_h_1f1b = {
    .family = {.kind = PS_SCHEDULE_H_1F1B,
               .name = "h-1f1b",
               .summary = "1f1b with a number of forwards ahead of your own for every rank",
               .needs_choices = true,
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
