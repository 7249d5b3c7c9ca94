// SPDX-License-Identifier: Apache-2.0
//
// candidates.h: every layout that a job allows on a cluster, and the counted reasons for those that are ruled out.
//
// All GPUs are used: tp * pp * dp is their number. Tensor parallel groups stay inside a node. Each candidate carries
// the cost table of its (tp, dp, micro-batch size, recompute), shared with its siblings.
#ifndef PS_PLAN_CANDIDATES_H
#define PS_PLAN_CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "pipesched/arena.h"
#include "pipesched/cluster.h"
#include "pipesched/control.h"
#include "pipesched/cost.h"
#include "pipesched/job.h"
#include "pipesched/layout.h"
#include "pipesched/model.h"
#include "pipesched/plan.h"
#include "pipesched/status.h"

// Ops of all searched layouts together, at effort 1, when named families compete: a share of a second. A larger layout
// is searched only for a job that names zb.
enum { PS_SEARCHED_OPS_BESIDE_FAMILIES = 1 << 14 };

// What all candidates share; read-only while workers run.
typedef struct ps_plan_context {
    const ps_model *model;
    const ps_group *group;
    const ps_job *job;
    int64_t num_gpus;
    int64_t capacity_bytes;    // of one GPU: the job's limit or the usable memory
    int64_t room_bytes;        // of that, for state, activations and transients (device_room.h); may be negative
    const ps_control *control; // asked between the runs of one layout, which may have millions of ops; NULL: never
} ps_plan_context;

// The time limit was hit, or an interrupt came: wind up with what there is.
static inline bool ps_plan_is_stopped(const ps_plan_context *context)
{
    const ps_control *control = context->control;
    return control && control->should_stop && control->should_stop(control->context) != PS_OK;
}

typedef struct ps_candidate {
    ps_layout layout;
    const ps_cost_table *table;
    int64_t bound_ns;       // no cut and no order of this layout is faster
    const char *limited_by; // which part of the bound is largest
} ps_candidate;

// The last status seen for each rule that ruled something out, with how often.
typedef struct ps_rejection {
    ps_status status;
    int64_t count;
} ps_rejection;

typedef struct ps_candidate_list {
    ps_vec(ps_candidate) candidate;
    ps_vec(ps_rejection) rejection;
    ps_vec(ps_cost_table *) table;
} ps_candidate_list;

// What a layout cannot do is counted, not an error. Bounds are not yet filled in.
void ps_candidates_enumerate(ps_arena *arena, const ps_plan_context *context, ps_candidate_list *out);

// Count one more rejection under status->rule.
void ps_candidates_reject(ps_arena *arena, ps_candidate_list *list, const ps_status *status);

#endif
