// SPDX-License-Identifier: Apache-2.0
//
// schedule_dualpipe.c: DualPipe of DeepSeek-V3: micro-batches enter from both ends (DeepSeek-AI 2024, section 3.2.1).
//
// Rank r of p holds two of the p stages of the model, number r and number p - 1 - r, so that every parameter is there
// twice. Stages 0 to p - 1 are the way down, on ranks 0 to p - 1, for micro-batches 0 to m / 2 - 1; stages p to 2p - 1
// are the same layers on ranks p - 1 to 0, for the others. Ranks r and p - 1 - r do the same with the two ways changed
// over, and each of them does what rank min(r, p - 1 - r) of DualPipeV on p / 2 devices does with m / 2 micro-batches
// (schedule_dualpipev.c has the phases): its chunk 0 is the stage that its nearer end reaches first. Where DualPipeV's
// micro-batches turn inside the last device, these go on to the rank opposite.
//
// With F = I = W = t on equal stages and free hops a device idles (p / 2 - 1) t: half of what the authors' own table
// has without overlap, (p / 2 - 1)(F + B + B - 3 W). It holds at most p + 1 activations of a stage. Messages: 2 (p - 1)
// m. A pair that DualPipe would overlap is two ops here, and no gain of the overlap is counted.
//
// m / 2 micro-batches a way on p / 2 devices: the phases need m >= 2p, and p and m even.
#include "schedule/family.h"

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    int32_t last = shape.num_devices - 1;
    bool near_down = rank < shape.num_devices / 2; // the way down is the one that reaches it first
    int32_t down = rank;
    int32_t up = shape.num_devices + last - rank;
    int32_t half = shape.num_microbatches / 2;
    return ps_family_write_dual((ps_dual_rank){.devices = shape.num_devices / 2,
                                               .rank = near_down ? rank : last - rank,
                                               .microbatches = half,
                                               .stage = {near_down ? down : up, near_down ? up : down},
                                               .first = {near_down ? 0 : half, near_down ? half : 0}},
                                op);
}

static ps_code check_ranks(ps_schedule_shape shape, ps_status *status)
{
    int32_t devices = shape.num_devices;
    PS_TRY(ps_family_two_stages("dualpipe", shape, status));
    if (devices % 2 == 0)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "dualpipe-ranks",
            "dualpipe pairs the ranks from both ends and needs an even number of them, got %d", (int)devices);
    return devices == 1 ? ps_fail_hint(status, "use 2 ranks")
                        : ps_fail_hint(status, "use %d or %d ranks", (int)devices - 1, (int)devices + 1);
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(check_ranks(shape, status));
    int32_t microbatches = shape.num_microbatches;
    long long least = 2 * (long long)shape.num_devices;
    if (microbatches < least) {
        ps_fail(status, PS_ILLEGAL, "dualpipe-microbatches",
                "dualpipe on %d ranks needs at least %lld micro-batches, got %d", (int)shape.num_devices, least,
                (int)microbatches);
        return ps_fail_hint(status, "use %lld micro-batches, or zb-v, which takes any number", least);
    }
    if (microbatches % 2 == 0)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "dualpipe-halves",
            "dualpipe sends half of the micro-batches in from either end and needs an even number, got %d",
            (int)microbatches);
    return ps_fail_hint(status, "use %d or %d micro-batches", (int)microbatches - 1, (int)microbatches + 1);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_dualpipe, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_dualpipe = {
    .family = {.kind = PS_SCHEDULE_DUALPIPE,
               .name = "dualpipe",
               .summary = "micro-batches from both ends; every stage on two ranks, so all parameters are held twice",
               .splits_backward = true,
               .virtual_stages = true,
               .placement = PS_PLACEMENT_DUAL,
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
