// SPDX-License-Identifier: Apache-2.0
//
// schedule_interleaved_zb.c: interleaved zero bubble, in the order of PyTorch's InterleavedZeroBubble.
//
// Interleaved 1F1B with the backward split: I goes down at once, so rank r fills with (v - 1) g + p - 1 - r forwards,
// one a hop instead of two; then come F and I in pairs, from the r-th pair on with a W behind. Micro-batches go in
// max(1, m / p) groups of g, as PyTorch forms them. With F = I = W on equal stages, free hops and m a multiple of p a
// device idles (p - 1)(F + I - W) / v, and no rank holds more than p micro-batches between F and the end of W.
// Messages: 2 (v p - 1) m. Any number of micro-batches below 2p is legal, above that the groups must come out even.
#include "schedule/chunk_walk.h"

static int32_t groups_of(int32_t microbatches, int32_t devices)
{
    return microbatches < devices ? 1 : microbatches / devices;
}

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    int32_t devices = shape.num_devices;
    int32_t chunks = shape.num_stages / devices;
    int32_t total = shape.num_microbatches * chunks;
    int32_t group = shape.num_microbatches / groups_of(shape.num_microbatches, devices);
    int64_t fill = devices - 1 - rank + (int64_t)(chunks - 1) * group;
    int32_t warmup = fill < total ? (int32_t)fill : total;
    int32_t weights = 0;
    ps_chunk_walk forward = ps_chunk_walk_start(shape, rank, group, false);
    ps_chunk_walk input = ps_chunk_walk_start(shape, rank, group, true);
    ps_chunk_walk weight = input;

    for (int32_t i = 0; i < warmup; i++)
        op = ps_chunk_walk_put(&forward, PS_OP_FORWARD, op);
    for (int32_t i = 0; i < total; i++) {
        if (warmup + i < total)
            op = ps_chunk_walk_put(&forward, PS_OP_FORWARD, op);
        op = ps_chunk_walk_put(&input, PS_OP_BACKWARD_INPUT, op);
        if (i < rank)
            continue;
        op = ps_chunk_walk_put(&weight, PS_OP_BACKWARD_WEIGHT, op);
        weights++;
    }
    for (; weights < total; weights++)
        op = ps_chunk_walk_put(&weight, PS_OP_BACKWARD_WEIGHT, op);
    return op;
}

static bool even_groups(int32_t microbatches, int32_t devices)
{
    return microbatches % groups_of(microbatches, devices) == 0;
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(ps_family_counts(shape, status));
    int32_t devices = shape.num_devices;
    int32_t microbatches = shape.num_microbatches;
    if (ps_family_several_stages("interleaved-zb", shape, status) != PS_OK)
        return shape.num_stages != devices
                   ? status->code
                   : ps_fail_hint(status, "use %d stages, or zb-h1 with 1 stage a device", (int)(2 * devices));
    if (even_groups(microbatches, devices))
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "interleaved-zb-microbatches",
            "interleaved-zb on %d devices puts %d micro-batches in %d groups of equal size", (int)devices,
            (int)microbatches, (int)groups_of(microbatches, devices));
    int32_t below = microbatches - 1;
    int32_t above = microbatches + 1;
    while (!even_groups(below, devices))
        below--;
    while (!even_groups(above, devices))
        above++;
    return ps_fail_hint(status, "use %d or %d micro-batches", (int)below, (int)above);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_interleaved_zb, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_interleaved_zb = {
    .family = {.kind = PS_SCHEDULE_INTERLEAVED_ZB,
               .name = "interleaved-zb",
               .summary = "zero bubble over several stages a device, with the memory of 1f1b",
               .splits_backward = true,
               .virtual_stages = true,
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
