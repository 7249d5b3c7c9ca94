// SPDX-License-Identifier: Apache-2.0
//
// searched_phase.h: the part of the loop over candidates that tries orders that are searched for. It comes after the
// named families, whose best plan it has to beat.
#ifndef PS_PLAN_SEARCHED_PHASE_H
#define PS_PLAN_SEARCHED_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/control.h"
#include "plan/layout_search.h"

typedef struct ps_searched_phase {
    ps_arena *arena;
    const ps_plan_context *context;
    const ps_control *control;
    ps_search_outcome *out;
    ps_ranked_candidate *ranked; // layouts of zb, best bound first
    int64_t count;
    bool alone; // the job allows no named family: orders known without a search are its other plans
} ps_searched_phase;

// Survey all whose bound beats what is known, then search orders for those that promise most, in fixed batches and at
// counted effort. PS_STOPPED when interrupted; a time limit ends it with out->limit_hit.
ps_code ps_searched_phase_run(ps_searched_phase *phase, ps_status *status);

#endif
