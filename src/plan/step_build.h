// SPDX-License-Identifier: Apache-2.0
//
// step_build.h: what ends the step of a cut: reductions, barrier, optimizer and gathers.
#ifndef PS_PLAN_STEP_BUILD_H
#define PS_PLAN_STEP_BUILD_H

#include "pipesched/arena.h"
#include "pipesched/cost.h"
#include "pipesched/pipeline.h"
#include "pipesched/step.h"
#include "plan/candidates.h"

// A cut of a candidate: `stage` are its costs with copies, on `pipeline`.
typedef struct ps_step_ground {
    const ps_plan_context *context;
    const ps_layout *layout;
    const ps_pipeline *pipeline;
    const ps_layer_cost *stage; // [num_stages]
    const int32_t *first_layer; // [cuts + 1]
} ps_step_ground;

void ps_step_build(ps_arena *arena, const ps_step_ground *ground, ps_step *out);

#endif
