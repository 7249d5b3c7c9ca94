// SPDX-License-Identifier: Apache-2.0
//
// order.h: what the files of the order search share: the problem, an order with its times, and how one is timed.
//
// Micro-batches are alike, so in some best order each stage runs each kind of op in the order of micro-batches: giving
// the k-th F, gradient op and W of every stage to micro-batch k changes no time and no memory. An order is therefore
// what kinds of op a device runs one after the other; only such orders are searched.
#ifndef PS_SEARCH_ORDER_H
#define PS_SEARCH_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/control.h"
#include "pipesched/order_search.h"
#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"

// The steps of a micro-batch at a stage. `PS_STEP_GRADIENT` is B or I; a fused backward has no W.
enum { PS_STEP_FORWARD, PS_STEP_GRADIENT, PS_STEP_WEIGHT, PS_STEPS };

typedef struct ps_order_op {
    int32_t microbatch;
    uint16_t stage;
    uint16_t step;
} ps_order_op;

// Where what an op computes goes.
typedef struct ps_order_hop {
    int64_t occupy_ns;
    int64_t latency_ns;
    int32_t lane; // PS_NO_LANE: stays on the device
} ps_order_hop;

typedef struct ps_order_stage {
    int64_t duration_ns[PS_STEPS];
    ps_order_hop hop[2];  // of the forward and of the gradient step
    int64_t held_forward; // from F to the gradient op
    int64_t held_weight;  // from I to W; 0 when fused
    int64_t transient;
    int64_t later_held; // held_forward of the later stages on its device together
    int32_t device;
} ps_order_stage;

typedef struct ps_order_problem {
    const ps_pipeline *pipeline;
    bool fused;
    bool span;   // objective
    bool queues; // some transfer occupies its lane, so that times depend on all sent before
    int32_t num_stages;
    int32_t num_devices;
    int32_t num_microbatches;
    ps_order_stage *stage;
    int32_t *first_stage; // [devices + 1] into stage_of
    int32_t *stage_of;    // [stages], those of a device in ascending order
    int32_t *first;       // [devices + 1]: a device's ops are first[d] .. first[d + 1] - 1
    int64_t *room;        // [devices] memory for micro-batches and transients
    int64_t *work_ns;     // [devices] all ops
} ps_order_problem;

// The ops of each device, one after the other.
typedef struct ps_order {
    ps_order_op *op; // [ops] by position
    int64_t value_ns;
} ps_order;

// The times of the order that was timed last, and what timing takes. A search keeps several orders but needs the times
// of one, which are most of the memory.
typedef struct ps_order_trial {
    int64_t *start_ns;   // [ops] by position
    int32_t *position;   // [(3 stage + step) * microbatches + microbatch]
    int64_t *arrival_ns; // [(2 stage + step) * microbatches + microbatch]: input of F, or of the gradient op; room for
                         // [ops], which until the next timing may serve for something else
    int32_t *next;       // [devices]
    int64_t *clock_ns;   // [devices]
    int64_t *left_ns;    // [devices] work from `next` on
    int64_t *begin_ns;   // [devices] start of the first op, what a span counts from; 0 for the makespan
    int32_t *waits;      // [devices] for which input, 2 stage + step; -1: none
    int32_t *done;       // [3 stages] ops of a kind done
    int32_t *ready;      // stack of devices
    int64_t *lane_free_ns;
    int64_t visits; // ops timed or placed, over all trials and by all who share them
} ps_order_trial;

// What all phases of a search share: an order to try things in, and the scratch of timings.
typedef struct ps_order_desk {
    const ps_order_problem *problem;
    const ps_control *control; // NULL: never stopped
    int64_t bound_ns;          // no order is below it: a search ends there
    ps_order candidate;
    ps_order_trial trial;
} ps_order_desk;

// No order of any kind allowed is below it; `*by` says why.
int64_t ps_order_bound(const ps_pipeline *pipeline, const ps_order_options *options, const char **by);

// PS_ILLEGAL with rule routes-not-searched or too-many-ops-to-search.
ps_code ps_order_searchable(const ps_pipeline *pipeline, ps_status *status);

void ps_order_problem_set(ps_arena *arena, const ps_pipeline *pipeline, bool fused, bool span, ps_order_problem *out);

// PS_INFEASIBLE with rule "memory" when not even one micro-batch at a time fits.
ps_code ps_order_problem_fits(const ps_order_problem *problem, ps_status *status);

void ps_order_new(ps_arena *arena, const ps_order_problem *problem, ps_order *out);
void ps_order_trial_new(ps_arena *arena, const ps_order_problem *problem, ps_order_trial *out);
void ps_order_desk_new(ps_arena *arena, const ps_order_problem *problem, ps_order_desk *out);

// PS_OK, or why the search has to end.
ps_code ps_order_poll(const ps_order_desk *desk);
void ps_order_copy(const ps_order_problem *problem, const ps_order *from, ps_order *to);

// When what an op ending at `end` sends over a hop is there. Where transfers queue, the hop's lane is busy until then.
static inline int64_t ps_order_send(const ps_order_problem *problem, const ps_order_hop *hop, int64_t *lane_free_ns,
                                    int64_t end)
{
    if (!problem->queues || hop->lane == PS_NO_LANE)
        return end + hop->latency_ns;
    int64_t *lane_free = &lane_free_ns[hop->lane];
    *lane_free = (end > *lane_free ? end : *lane_free) + hop->occupy_ns;
    return *lane_free + hop->latency_ns;
}

// Memory held once the op has ended, and while it runs with its transient, when `held` is held before it.
int64_t ps_order_held_after(const ps_order_stage *stage, int32_t step, int64_t held);
int64_t ps_order_held_within(const ps_order_stage *stage, int32_t step, int64_t held);

// Time an order whose ops were just written; positions and starts are then its own. False when it does not fit into
// memory, can never finish, or takes longer than `limit_ns`; they are then anything, its value what it was.
bool ps_order_time(const ps_order_problem *problem, ps_order *order, ps_order_trial *trial, int64_t limit_ns);

// Memory held before each op of an order that fits: [ops].
void ps_order_hold(const ps_order_problem *problem, const ps_order *order, int64_t *held);

// Take over a schedule with its micro-batches renumbered, and give one back, whose arrays are there. False when its
// backward is of the other kind. Counts in the trial, whose times are then anything.
bool ps_order_from_schedule(const ps_order_problem *problem, const ps_schedule *schedule, ps_order_trial *trial,
                            ps_order *out);
void ps_order_to_schedule(const ps_order_problem *problem, const ps_order *order, ps_schedule *out);

#endif
