// SPDX-License-Identifier: Apache-2.0
//
// plan_summary.h: a plan as a person reads it on a terminal: verdict, layout, stages, memory, prediction, bound,
// alternatives; or why nothing fits.
#ifndef PS_REPORT_PLAN_SUMMARY_H
#define PS_REPORT_PLAN_SUMMARY_H

#include <stdio.h>

#include "pipesched/plan.h"
#include "report/style.h"

// `verbose` adds the counted reasons, hops, ranks and every diagnostic.
void ps_report_plan(ps_arena *arena, FILE *file, const ps_plan *plan, bool verbose, const ps_report_style *style);

#endif
