// SPDX-License-Identifier: Apache-2.0
//
// schedule_v_min.c: V-Min, a third of the activation memory of 1F1B (Qi et al., "Pipeline Parallelism with Controllable
// Memory", 2024).
//
// Device r of p runs stages r (chunk 0) and 2p - 1 - r (chunk 1). In slots of one op a micro-batch runs F0, F1, I1 and
// I0 on rank r at r, 2p - 1 - r, 2p + q + r and 4p + q - 1 - r, without any wait but q = 2 when p is a multiple of 3,
// which keeps the four apart mod 6; v_pattern.c repeats that. No device holds more than (p + 4) / 3, rounded down,
// micro-batches between F and I. With F = I = W on equal stages and free hops
// the idle time is about two thirds of 1F1B's; times that differ cost far more, since nothing waits ready. Messages: 4
// (p - 1) m. Any number of micro-batches is legal.
#include "schedule/v_pattern.h"

static ps_v_pattern pattern_of(int32_t devices, int32_t rank)
{
    int32_t shift = devices % 3 == 0 ? 2 : 0;
    return (ps_v_pattern){.forward = {rank, 2 * devices - 1 - rank},
                          .input = {4 * devices + shift - 1 - rank, 2 * devices + shift + rank}};
}

static void write_all(ps_arena *arena, ps_schedule_shape shape, ps_op *op)
{
    ps_v_pattern_write(arena, shape, pattern_of, op);
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    return ps_family_slots_fit("v-min", shape, status);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_v_min, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_v_min = {
    .family = {.kind = PS_SCHEDULE_V_MIN,
               .name = "v-min",
               .summary = "a third of the activation memory of 1f1b with stages there and back again",
               .splits_backward = true,
               .virtual_stages = true,
               .placement = PS_PLACEMENT_V,
               .legal = legal,
               .generate = generate},
    .write_all = write_all,
};
