// SPDX-License-Identifier: Apache-2.0
//
// planner.h: parts of the planner that share a context.
#ifndef PS_PLAN_PLANNER_H
#define PS_PLAN_PLANNER_H

#include "base/vec.h"
#include "pipesched/plan.h"
#include "plan/candidates.h"
#include "plan/evaluate.h"
#include "plan/layout_search.h"

typedef ps_vec(ps_plan_diagnostic) ps_diagnostic_list;
typedef ps_vec(ps_reason) ps_reason_list;

// Everything but inputs, search and diagnostics, from the winning layout and its cut.
ps_code ps_plan_fill(ps_arena *arena, const ps_plan_context *context, const ps_search_outcome *outcome, ps_plan *plan,
                     ps_status *status);

// ", cp 2, ep 8": degrees that only some layouts have, behind the others; "" where all are as usual.
const char *ps_layout_rank_text(ps_arena *arena, const ps_layout *layout);

// What a reader of a feasible, filled plan should know beside its figures.
ps_code ps_notes_add(ps_arena *arena, const ps_search_outcome *outcome, const ps_plan *plan, ps_diagnostic_list *notes,
                     ps_status *status);

// By what the plans were ranked, and which one is the fastest when no time varies.
void ps_notes_add_jitter(ps_arena *arena, const ps_job *job, const ps_search_outcome *outcome,
                         const ps_found_layout *fastest, ps_diagnostic_list *notes);

// The memory that no layout can do without, against what the cluster has: true when it proves the job infeasible, with
// the reason added.
bool ps_reasons_from_bound(ps_arena *arena, const ps_plan_context *context, ps_reason_list *reasons);

// Why no candidate fits: the nearest miss with its dominant term, the rules that ruled layouts out, and the nearest
// change of the job or the cluster that fits, found by trying.
ps_code ps_reasons_from_search(ps_arena *arena, const ps_plan_context *context, const ps_search_outcome *outcome,
                               ps_reason_list *reasons, ps_status *status);

#endif
