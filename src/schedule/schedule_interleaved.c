// SPDX-License-Identifier: Apache-2.0
//
// schedule_interleaved.c: interleaved 1F1B in Megatron-LM's order (Narayanan et al., SC 2021, section 2.2).
//
// Each of p devices holds v chunks; stage = chunk * p + rank. Micro-batches go in groups of p: all of a group through
// chunk 0, then chunk 1, and so on; backwards take the chunks in reverse. With equal stages and free hops a device
// idles (p - 1)(F + B) / v, F and B being the times of all its chunks. Rank 0 holds ((v - 1) p + 2 (p - 1) + 1) / v
// micro-batches, more than 1F1B's p. Messages: 2 (v p - 1) m, about v times those of 1F1B.
//
// The order is defined for whole groups only, hence the rule on micro-batches.
#include "schedule/family.h"

#include "base/text.h"

// Walks groups of micro-batches through the chunks of one rank, in forward or backward direction.
typedef struct walk {
    int32_t group;       // micro-batches in one
    int32_t stage_step;  // + devices forward, - devices backward
    int32_t first_stage; // of every group
    int32_t chunks_left; // after the current one
    int32_t in_group;    // micro-batches of the group done on this chunk
    int32_t chunks;
    int32_t stage;
    int32_t base; // first micro-batch of the group
} walk;

static walk walk_start(ps_schedule_shape shape, int32_t first_stage, int32_t stage_step)
{
    int32_t chunks = shape.num_stages / shape.num_devices;
    return (walk){.group = shape.num_devices,
                  .stage_step = stage_step,
                  .first_stage = first_stage,
                  .chunks = chunks,
                  .chunks_left = chunks - 1,
                  .stage = first_stage};
}

static inline ps_op *walk_put(walk *w, ps_op_kind kind, ps_op *op)
{
    op = ps_family_put(op, kind, w->stage, w->base + w->in_group);
    if (++w->in_group < w->group)
        return op;
    w->in_group = 0;
    w->stage += w->stage_step;
    if (w->chunks_left-- == 0) {
        w->chunks_left = w->chunks - 1;
        w->stage = w->first_stage;
        w->base += w->group;
    }
    return op;
}

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    int32_t devices = shape.num_devices;
    int32_t chunks = shape.num_stages / devices;
    int32_t total = shape.num_microbatches * chunks;
    int64_t fill = 2 * (int64_t)(devices - 1 - rank) + (int64_t)(chunks - 1) * devices;
    int32_t warmup = fill < total ? (int32_t)fill : total;
    walk forward = walk_start(shape, rank, devices);
    walk backward = walk_start(shape, rank + (chunks - 1) * devices, -devices);

    for (int32_t i = 0; i < warmup; i++)
        op = walk_put(&forward, PS_OP_FORWARD, op);
    for (int32_t i = warmup; i < total; i++) {
        op = walk_put(&forward, PS_OP_FORWARD, op);
        op = walk_put(&backward, PS_OP_BACKWARD, op);
    }
    for (int32_t i = 0; i < warmup; i++)
        op = walk_put(&backward, PS_OP_BACKWARD, op);
    return op;
}

static ps_code legal_chunks(ps_schedule_shape shape, ps_status *status)
{
    int32_t devices = shape.num_devices;
    int32_t below = shape.num_stages / devices * devices;
    if (shape.num_stages != below) {
        ps_fail(status, PS_ILLEGAL, "interleaved-stages",
                "interleaved puts equally many stages on every device: %d stages are not a multiple of %d devices",
                (int)shape.num_stages, (int)devices);
        int32_t low = below < 2 * devices ? 2 * devices : below;
        return low > shape.num_stages ? ps_fail_hint(status, "use %d stages", (int)low)
                                      : ps_fail_hint(status, "use %d or %d stages", (int)low, (int)(low + devices));
    }
    if (below >= 2 * devices)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "interleaved-virtual-stages",
            "interleaved needs at least 2 stages a device, got %d stage%s on %d device%s", (int)shape.num_stages,
            ps_plural(shape.num_stages), (int)devices, ps_plural(devices));
    return ps_fail_hint(status, "use %d stages, or 1f1b, which is the same with 1 stage a device", (int)(2 * devices));
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(ps_family_counts(shape, status));
    PS_TRY(legal_chunks(shape, status));
    int32_t devices = shape.num_devices;
    int32_t microbatches = shape.num_microbatches;
    if (microbatches % devices == 0)
        return PS_OK;
    if (microbatches < devices) {
        ps_fail(status, PS_ILLEGAL, "interleaved-microbatches",
                "interleaved on %d devices needs at least %d micro-batches, got %d", (int)devices, (int)devices,
                (int)microbatches);
        return ps_fail_hint(status, "use %d micro-batches, or 1f1b, which takes any number", (int)devices);
    }
    ps_fail(status, PS_ILLEGAL, "interleaved-microbatches",
            "interleaved needs micro-batches in whole groups of its %d devices: %d is not a multiple of %d",
            (int)devices, (int)microbatches, (int)devices);
    int32_t below = microbatches / devices * devices;
    return ps_fail_hint(status, "use %d or %d micro-batches", (int)below, (int)(below + devices));
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_interleaved, pipeline, out, status);
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
