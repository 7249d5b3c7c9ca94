// SPDX-License-Identifier: Apache-2.0
//
// family.h: what the files of the named families share.
//
// Every family here orders the ops of a rank from the shape alone, so a family is a legality rule and a function that
// writes one rank, or all of them when they depend on each other. Rank r is the device of stage r; the placement of the
// family says where later stages are.
#ifndef PS_SCHEDULE_FAMILY_H
#define PS_SCHEDULE_FAMILY_H

#include "pipesched/schedule.h"

// Writes the ops of one rank in order and returns the end. The shape is legal.
typedef ps_op *(*ps_rank_writer)(ps_schedule_shape shape, int32_t rank, ps_op *op);

// Writes the ops of all ranks, one rank after the other; every rank has equally many. The shape is legal.
typedef void (*ps_ranks_writer)(ps_arena *arena, ps_schedule_shape shape, ps_op *op);

typedef struct ps_family {
    ps_schedule_family family; // what the public table shows
    ps_rank_writer write_rank; // one of the two
    ps_ranks_writer write_all;
} ps_family;

// One a family file; schedule_table.c lists them.
extern const ps_family ps_family_gpipe;
extern const ps_family ps_family_1f1b;
extern const ps_family ps_family_interleaved;
extern const ps_family ps_family_zb_h1;
extern const ps_family ps_family_zb_h2;
extern const ps_family ps_family_looped_bfs;
extern const ps_family ps_family_interleaved_zb;
extern const ps_family ps_family_zb_v;
extern const ps_family ps_family_v_half;
extern const ps_family ps_family_v_min;
extern const ps_family ps_family_dualpipev;
extern const ps_family ps_family_h_1f1b;
extern const ps_family ps_family_dualpipe;

const ps_family *ps_family_at(ps_schedule_kind kind);

// PS_BAD_INPUT with rule "pipeline-shape" unless there is at least one device, stage and micro-batch.
ps_code ps_family_counts(ps_schedule_shape shape, ps_status *status);

// The same, and PS_ILLEGAL with rule "<family>-one-stage" unless there are as many stages as devices.
ps_code ps_family_one_stage(const char *family, ps_schedule_shape shape, ps_status *status);

// The same as ps_family_counts(), and PS_ILLEGAL with rule "<family>-two-stages" unless there are two a device.
ps_code ps_family_two_stages(const char *family, ps_schedule_shape shape, ps_status *status);

// Slots of one op that a V schedule takes at most, all ops alike: six a micro-batch and six a device on the way.
int64_t ps_family_v_slots(ps_schedule_shape shape);

// The same as ps_family_two_stages(), and PS_BAD_INPUT with rule "too-many-slots" where all slots of all devices are
// too many to go through.
ps_code ps_family_slots_fit(const char *family, ps_schedule_shape shape, ps_status *status);

// PS_ILLEGAL with rule "<family>-stages" unless every device has equally many, with rule "<family>-virtual-stages"
// unless they are at least two.
ps_code ps_family_several_stages(const char *family, ps_schedule_shape shape, ps_status *status);

// PS_ILLEGAL with rule "<family>-placement" unless stages follow the family's placement, up to a renaming of devices;
// then all ranks written, each on its device. O(ops) and what the writer takes.
ps_code ps_family_generate(ps_arena *arena, const ps_family *family, const ps_pipeline *pipeline,
                           ps_schedule_shape shape, ps_schedule *out, ps_status *status);

// ZB-H1 (factor 1) and ZB-H2 (factor 2) differ only in how far ahead forwards run; see schedule_zb_h1.c.
ps_op *ps_family_write_zb_h(ps_schedule_shape shape, int32_t rank, int32_t factor, ps_op *op);

// One rank of DualPipeV, or of DualPipe, which is two of them face to face; see schedule_dualpipev.c.
typedef struct ps_dual_rank {
    int32_t devices; // of the V
    int32_t rank;
    int32_t microbatches; // of each chunk
    int32_t stage[2];     // of chunk 0, nearer to where its micro-batches enter, and of chunk 1
    int32_t first[2];     // first micro-batch of each
} ps_dual_rank;
ps_op *ps_family_write_dual(ps_dual_rank rank, ps_op *op);

// PS_BAD_INPUT with rule "too-many-ops" beyond limits.h.
ps_code ps_family_ops_fit(const ps_family *family, ps_schedule_shape shape, ps_status *status);

// Ops of one rank, whatever the rank.
int64_t ps_family_rank_ops(const ps_family *family, ps_schedule_shape shape);

ps_schedule_shape ps_family_shape(const ps_pipeline *pipeline);

static inline ps_op *ps_family_put(ps_op *op, ps_op_kind kind, int32_t stage, int32_t microbatch)
{
    *op = (ps_op){.microbatch = microbatch, .stage = (uint16_t)stage, .kind = (uint8_t)kind};
    return op + 1;
}

#endif
