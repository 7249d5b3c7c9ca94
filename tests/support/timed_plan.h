// SPDX-License-Identifier: Apache-2.0
//
// timed_plan.h: the file of a consistent plan that lists when its ops and transfers run, as the simulator has it.
#ifndef PS_TESTS_SUPPORT_TIMED_PLAN_H
#define PS_TESTS_SUPPORT_TIMED_PLAN_H

#include "support/plan_text.h"
#include "support/plans.h"

static inline char *timed_plan_text(ps_arena *arena, plan_spec spec)
{
    const ps_plan *plan = consistent_plan(arena, spec);
    ps_pipeline pipeline;
    ps_timeline timeline;
    ps_status status = {0};
    assert_ok(ps_plan_pipeline(arena, plan, &pipeline, &status), &status);
    assert_ok(ps_simulate(arena, &pipeline, &plan->schedule, &timeline, &status), &status);
    return plan_text(arena, plan, &timeline);
}

#endif
