// SPDX-License-Identifier: Apache-2.0
//
// pipeline_build.h: from a cut of a cost table to the ps_pipeline that is scheduled and timed.
#ifndef PS_PLAN_PIPELINE_BUILD_H
#define PS_PLAN_PIPELINE_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/cost.h"
#include "pipesched/pipeline.h"
#include "plan/candidates.h"

// Costs of layers first .. end - 1 together: sums, the largest transient, the last layer's output. State of copied
// weights (a tied head away from its embedding) is included when there are `copies`.
ps_layer_cost ps_stage_cost(const ps_cost_table *table, const ps_job *job, int32_t first, int32_t end, bool copies);

// Shape of a layout's schedule, and the device of one of its stages.
ps_schedule_shape ps_layout_shape(const ps_layout *layout);
int32_t ps_layout_device(const ps_layout *layout, int32_t stage);

// The layout that the model is cut for. With dualpipe ranks r and pp - 1 - r hold the same two stages of the model, so
// that is a V over pp / 2 pairs of ranks, of which each rank has half of the micro-batches; otherwise the layout
// itself.
ps_layout ps_layout_folded(const ps_layout *layout);
// Stages that the model is cut into, and the one of them that a stage of the layout is.
int32_t ps_layout_cuts(const ps_layout *layout);
int32_t ps_layout_cut_of(const ps_layout *layout, int32_t stage);
// Micro-batches that one stage runs.
int32_t ps_layout_stage_microbatches(const ps_layout *layout);

// The rank that owns a tied weight of which another rank has a copy. -1: nothing is tied, or one rank has both, as the
// first and the last stage of a V have. With dualpipe a rank of the folded layout.
int32_t ps_cut_tied_owner(const ps_model *model, const ps_layout *layout, const int32_t *first_layer);

// All work of one micro-batch on it, op overheads left out.
static inline int64_t ps_layer_work_ns(const ps_layer_cost *cost)
{
    return cost->forward_ns + cost->recompute_ns + cost->backward_input_ns + cost->backward_weight_ns;
}

// Cut s holds layers first_layer[s] .. first_layer[s + 1] - 1; its stage runs where the schedule's placement says.
// Static memory includes the reserve.
void ps_pipeline_build(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                       const int32_t *first_layer, ps_pipeline *out);

#endif
