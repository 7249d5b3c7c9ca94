// SPDX-License-Identifier: Apache-2.0
//
// evaluate.h: what one layout is worth: cut, scheduled, simulated, and checked for memory.
#ifndef PS_PLAN_EVALUATE_H
#define PS_PLAN_EVALUATE_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/partition.h"
#include "pipesched/pipeline.h"
#include "pipesched/plan.h"
#include "pipesched/schedule.h"
#include "pipesched/step.h"
#include "pipesched/timeline.h"
#include "plan/candidates.h"

// Memory of the fullest device, by term; total is their sum.
typedef struct ps_device_memory {
    int32_t device;
    ps_plan_memory memory;
} ps_device_memory;

typedef struct ps_evaluation {
    bool skipped; // not looked at: the time limit was hit
    bool feasible;
    bool proven_infeasible;   // no cut fits; otherwise none was found
    ps_status refusal;        // why not, when not
    ps_device_memory fullest; // of the best cut; of the one nearest to fitting when none fits (total 0: none was tried)
    int64_t iteration_ns;
    const char *engine;   // of the partitioner
    int32_t *first_layer; // [num_layers + 1], room given by the caller; the cut
    ps_schedule *order;   // of a layout whose order is searched for, room given by the caller; NULL: the family's own
    bool limit_hit;       // the search for an order was cut short
} ps_evaluation;

// Cut with the partitioner's best `effort`-many cuts, schedule and simulate each, keep the fastest that fits. Uses only
// `scratch`; first_layer of `out` must have room. A layout that cannot work is no error: out->feasible is false.
ps_code ps_evaluate(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                    ps_evaluation *out, ps_status *status);

// The cut that the partitioner likes best when memory does not count, run in full: how far a layout is from fitting.
// Uses only `scratch`; out->fullest is the answer. PS_INFEASIBLE when it cannot be cut at all.
ps_code ps_evaluate_unlimited(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                              ps_device_memory *out, ps_status *status);

// In-flight depths for cutting a layout whose order is searched for: one micro-batch on the last stage, and `share`
// more with every stage before it; 1 is what 1F1B holds, 0 one micro-batch at a time.
void ps_layout_depths(ps_arena *arena, const ps_layout *layout, double share, ps_depth_list *out);

// The best few cuts of a layout when every stage has so much memory and holds so many micro-batches. Errors are those
// of ps_partition_solve().
ps_code ps_layout_cut(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                      const ps_depth_list *depth, int64_t stage_limit, ps_partition_result *out, ps_status *status);

// One cut in full: everything that a plan prints.
typedef struct ps_run {
    ps_pipeline pipeline;
    ps_schedule schedule;
    ps_timeline timeline;
    ps_plan_memory *memory; // [devices]
    ps_step step;
    ps_step_timeline tail;         // what follows the last ops
    ps_layer_cost *stage;          // [stages]
    ps_plan_prediction prediction; // the five times, makespan and span
    bool fits;
    int32_t fullest; // device with the least headroom
} ps_run;
// In the order that the layout's family makes; of zb one micro-batch after the other, which fits if anything does.
ps_code ps_run_cut(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                   const int32_t *first_layer, ps_run *out, ps_status *status);
// In this order; NULL: as above.
ps_code ps_run_order(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                     const int32_t *first_layer, const ps_schedule *order, ps_run *out, ps_status *status);

#endif
