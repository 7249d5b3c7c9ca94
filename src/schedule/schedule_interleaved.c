// SPDX-License-Identifier: Apache-2.0
//
// schedule_interleaved.c: interleaved 1F1B in Megatron-LM's order (Narayanan et al., SC 2021, section 2.2).
//
// Each of p devices holds v chunks; stage = chunk * p + rank. Micro-batches go in groups of G, p unless the user says
// otherwise: all of a group through chunk 0, then chunk 1, and so on; backwards take the chunks in reverse. Rank r
// fills with 2 (p - 1 - r) + (v - 1) G forwards. With equal stages and free hops a device idles (p - 1)(F + B) / v, F
// and B being the times of all its chunks, whatever G. Rank 0 holds ((v - 1) G + 2 (p - 1) + 1) / v micro-batches, more
// than 1F1B's p. Messages: 2 (v p - 1) m, about v times those of 1F1B; a larger G gives each of them more time.
//
// A chunk's output must be back at rank 0 before the next chunk begins, so no group is smaller than p: p <= G <= m, and
// what m leaves over is a group of its own.
#include "schedule/chunk_walk.h"

static int32_t group_of(ps_schedule_shape shape)
{
    return shape.group_size > 0 ? shape.group_size : shape.num_devices;
}

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    int32_t chunks = shape.num_stages / shape.num_devices;
    int32_t total = shape.num_microbatches * chunks;
    int32_t group = group_of(shape);
    int64_t fill = 2 * (int64_t)(shape.num_devices - 1 - rank) + (int64_t)(chunks - 1) * group;
    int32_t warmup = fill < total ? (int32_t)fill : total;
    ps_chunk_walk forward = ps_chunk_walk_start(shape, rank, group, false);
    ps_chunk_walk backward = ps_chunk_walk_start(shape, rank, group, true);

    for (int32_t i = 0; i < warmup; i++)
        op = ps_chunk_walk_put(&forward, PS_OP_FORWARD, op);
    for (int32_t i = warmup; i < total; i++) {
        op = ps_chunk_walk_put(&forward, PS_OP_FORWARD, op);
        op = ps_chunk_walk_put(&backward, PS_OP_BACKWARD, op);
    }
    for (int32_t i = 0; i < warmup; i++)
        op = ps_chunk_walk_put(&backward, PS_OP_BACKWARD, op);
    return op;
}

static ps_code legal_group(ps_schedule_shape shape, ps_status *status)
{
    int32_t devices = shape.num_devices;
    int32_t microbatches = shape.num_microbatches;
    int32_t group = shape.group_size;
    if (group < devices || group > microbatches) {
        ps_fail(status, PS_ILLEGAL, "interleaved-group-size",
                "a group is at least as large as the pipeline (%d) and at most all micro-batches (%d), got %d",
                (int)devices, (int)microbatches, (int)group);
        return ps_fail_hint(status, "use a group of %d", (int)(group < devices ? devices : microbatches));
    }
    int32_t rest = microbatches % group;
    if (rest == 0 || rest >= devices)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "interleaved-group-size",
            "the last group would have %d micro-batches (%d mod %d), fewer than the %d devices", (int)rest,
            (int)microbatches, (int)group, (int)devices);
    return ps_fail_hint(status, "use a group of %d, or %d micro-batches", (int)microbatches,
                        (int)(microbatches - rest + group));
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(ps_family_counts(shape, status));
    int32_t devices = shape.num_devices;
    int32_t microbatches = shape.num_microbatches;
    if (ps_family_several_stages("interleaved", shape, status) != PS_OK)
        return shape.num_stages != devices
                   ? status->code
                   : ps_fail_hint(status, "use %d stages, or 1f1b, which is the same with 1 stage a device",
                                  (int)(2 * devices));
    if (microbatches < devices) {
        ps_fail(status, PS_ILLEGAL, "interleaved-microbatches",
                "interleaved on %d devices needs at least %d micro-batches, got %d", (int)devices, (int)devices,
                (int)microbatches);
        return ps_fail_hint(status, "use %d micro-batches, or 1f1b, which takes any number", (int)devices);
    }
    if (shape.group_size > 0)
        return legal_group(shape, status);
    if (microbatches % devices == 0)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "interleaved-microbatches",
            "interleaved needs micro-batches in whole groups of its %d devices: %d is not a multiple of %d",
            (int)devices, (int)microbatches, (int)devices);
    int32_t below = microbatches / devices * devices;
    return ps_fail_hint(status, "use %d or %d micro-batches", (int)below, (int)(below + devices));
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_interleaved, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_interleaved = {
    .family = {.kind = PS_SCHEDULE_INTERLEAVED,
               .name = "interleaved",
               .summary = "1f1b over several stages a device; less bubble, more messages and memory",
               .virtual_stages = true,
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
