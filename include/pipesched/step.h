// SPDX-License-Identifier: Apache-2.0
//
// step.h: the end of a step. What follows the last backward: gradients are reduced among the replicas, norms compared,
// the optimizer steps, parameters are gathered.
//
// These are ops too. A reduction runs on the link lane of its device, from the last weight gradient (W or B) of its
// stage on, while the device goes on computing; so the sync of a stage that is done early hides behind the rest. Then
// either all devices meet at a barrier (global norm, inf check) and step together, or, without one, each steps as soon
// as its own gradients are whole and learns afterwards whether the step holds (post-validation, Qi et al. 2024): the
// state of all gradients is whole at the last device and travels to the first, a hop a device, while the next warm-up
// runs. Should it forbid the step, a device takes it back and steps again; that is not part of the expected time, and
// nobody waits for the state.
#ifndef PIPESCHED_STEP_H
#define PIPESCHED_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"
#include "pipesched/timeline.h"

typedef enum ps_step_kind {
    PS_STEP_REDUCE_GRAD, // of a stage, among the replicas
    PS_STEP_REDUCE_TIED, // of weights that stages of different devices share, between these
    PS_STEP_BARRIER,     // from when the device's gradients are whole until all know the norm
    PS_STEP_VALIDATE,    // the state of all gradients on its way to the device
    PS_STEP_OPTIMIZER,   // on the device itself, which computes nothing else
    PS_STEP_GATHER,      // parameters of a stage, before the next forward needs them
    PS_STEP_KINDS
} ps_step_kind;

typedef struct ps_step_stage {
    int64_t reduce_ns; // its gradients; 0: none to reduce
    int64_t gather_ns; // its parameters; 0: each replica has stepped all of them
    int64_t tied_ns;   // weights that stages of other devices have too, once all these are reduced; 0: none
    int32_t tied_to;   // with tied_ns: the first of the stages that have them, which all take the same time
    int32_t buckets;   // at least 1; parts that leave, or arrive, evenly over the op that makes or needs them
} ps_step_stage;

typedef struct ps_step {
    ps_step_stage *stage;      // [num_stages]
    int64_t *optimizer_ns;     // [num_devices]
    bool barrier;              // off: post-validation
    bool overlap;              // off: reductions wait for all ops of the device, ops for all gathers
    bool every_microbatch;     // each weight gradient is reduced by itself, as with ZeRO-2; else the sum of all
    int64_t barrier_ns;        // the all-reduce of the norm; 0 without a barrier
    int64_t validation_hop_ns; // the state from one device to the one before it; 0 with a barrier
} ps_step;

// One of them, when. A cell as in a plan's timeline: 3REDUCE_GRAD (3REDUCE_GRAD5 of one micro-batch), 3REDUCE_TIED,
// BARRIER, VALIDATE, OPTIMIZER, 3GATHER.
typedef struct ps_step_op {
    int64_t start_ns;
    int64_t end_ns;
    int32_t device;
    int32_t stage;      // -1: of the device
    int32_t microbatch; // -1: of all
    uint8_t kind;       // ps_step_kind
} ps_step_op;

typedef struct ps_step_device {
    int64_t sync_ns;            // all its reductions
    int64_t sync_exposed_ns;    // what of them runs after its last op
    int64_t synced_ns;          // when its gradients are whole
    int64_t optimizer_start_ns; // when it steps
    int64_t gather_ns;          // all its gathers
    int64_t gather_exposed_ns;  // by how much its next first forward has to start later because of them
    int64_t validated_ns;       // when it knows that the step holds
    int64_t ready_ns;           // when it could begin the next step: after the optimizer and the exposed gather
} ps_step_device;

// With a barrier the iteration goes from the first start anywhere to the last device ready. Without one it is the
// longest of the devices' own, first start to ready: what papers call the span, with all that belongs to a step in it.
// Four parts in turn make it up: the ops, what is exposed of reductions, barrier and optimizer, what is exposed of
// gathers. Each part is by how much the last device (without a barrier, the longest) is then further.
typedef struct ps_step_timeline {
    int64_t iteration_ns;
    int64_t pipeline_ns; // makespan, or span
    int64_t sync_exposed_ns;
    int64_t optimizer_ns;
    int64_t gather_exposed_ns;
    ps_step_device *device; // [num_devices]
    int32_t num_ops;
    ps_step_op *op; // device by device, each in the order of ps_step_kind; those that take no time are left out, but
                    // OPTIMIZER, BARRIER, and VALIDATE where there is another device
} ps_step_timeline;

// PS_BAD_INPUT: step-shape (buckets, tied stages, a barrier's time without one and the like), negative-time,
// time-overflow (with all that the pipeline has).
ps_code ps_step_validate(const ps_pipeline *pipeline, const ps_step *step, ps_status *status);

// `timeline` is that of the schedule on the pipeline; the step must have passed ps_step_validate(). O(ops).
void ps_step_place(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule,
                   const ps_timeline *timeline, const ps_step *step, ps_step_timeline *out);

// Steps back to back, each in the same order: a device begins the next step when it is ready, and waits only for its
// inputs. The time from one step to the next, once it repeats; rounded up to a nanosecond where it alternates. It is
// never above iteration_ns, as every device could do each step exactly like the first, that much later; it is below
// where a device that is done early lets others begin early.
// PS_ILLEGAL as ps_simulate(). `steps`: how many were needed to see it repeat.
typedef struct ps_step_period {
    int64_t period_ns;
    int32_t steps;
} ps_step_period;
ps_code ps_step_repeat(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule, const ps_step *step,
                       ps_step_period *out, ps_status *status);

static inline int64_t ps_step_bucket_ns(int64_t transfer_ns, int32_t buckets)
{
    return transfer_ns / buckets + (transfer_ns % buckets > 0);
}

// How much of a transfer in buckets is left when the op beside it ends, or has to come before that op may start: the
// buckets follow each other on the lane, and the last can go, or the first be used, only at the op's end or start.
static inline int64_t ps_step_exposed_ns(int64_t transfer_ns, int32_t buckets, int64_t op_ns)
{
    int64_t last = ps_step_bucket_ns(transfer_ns, buckets);
    int64_t beyond = transfer_ns - (op_ns - op_ns / buckets);
    return beyond > last ? beyond : last;
}

// A cell; writes at most 48 bytes.
int32_t ps_step_op_format(const ps_step_op *op, char text[48]);
// The reverse: kind, stage and micro-batch. False when the text is no such cell.
bool ps_step_op_parse(const char *text, ps_step_op *out);

#endif
