// SPDX-License-Identifier: Apache-2.0
//
// schedule_v_half.c: V-Half, half the activation memory of 1F1B (Qi et al., "Pipeline Parallelism with Controllable
// Memory", 2024).
//
// Device r of p runs stages r (chunk 0) and 2p - 1 - r (chunk 1). In slots of one op a micro-batch runs F0, F1, I1 and
// I0 on rank r at 2r, 3p - 2 - r, 3p + q - 1 + 2r and 6p + q - 2 - r, where q = 3 for even p and 0 for odd p keeps the
// four apart mod 6; v_pattern.c repeats that. No device holds more than (p + 2) / 2, rounded down, micro-batches
// between F and I. With F = I = W on equal stages and free hops the idle time is at most half of 1F1B's from p = 3 on.
// Messages: 4 (p - 1) m. Any number of micro-batches is legal.
#include "schedule/v_pattern.h"

static ps_v_pattern pattern_of(int32_t devices, int32_t rank)
{
    int32_t shift = devices % 2 == 0 ? 3 : 0;
    return (ps_v_pattern){.forward = {2 * rank, 3 * devices - 2 - rank},
                          .input = {6 * devices + shift - 2 - rank, 3 * devices + shift - 1 + 2 * rank}};
}

static void write_all(ps_arena *arena, ps_schedule_shape shape, ps_op *op)
{
    ps_v_pattern_write(arena, shape, pattern_of, op);
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    return ps_family_slots_fit("v-half", shape, status);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_v_half, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_v_half = {
    .family = {.kind = PS_SCHEDULE_V_HALF,
               .name = "v-half",
               .summary = "half the activation memory of 1f1b with stages there and back again",
               .splits_backward = true,
               .virtual_stages = true,
               .placement = PS_PLACEMENT_V,
               .legal = legal,
               .generate = generate},
    .write_all = write_all,
};
