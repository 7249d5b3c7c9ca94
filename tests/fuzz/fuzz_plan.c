// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include "pipesched/check.h"
#include "pipesched/plan.h"

// A plan file that the checker accepts must also replay, to the very makespan that it states.
ps_code fuzz_one(ps_arena *arena, const char *text, int64_t size, ps_status *status)
{
    ps_plan plan;
    ps_check_result result = {0};
    PS_TRY(ps_plan_read_json(arena, "fuzz", text, size, &plan, status));
    PS_TRY(ps_check_plan(arena, &plan, &result, status));
    if (result.count > 0 || !plan.feasible)
        return PS_OK;
    ps_pipeline pipeline;
    ps_timeline timeline;
    if (ps_plan_pipeline(arena, &plan, &pipeline, status) ||
        ps_simulate(arena, &pipeline, &plan.schedule, &timeline, status) ||
        timeline.makespan_ns != plan.prediction.makespan_ns)
        abort();
    return PS_OK;
}
