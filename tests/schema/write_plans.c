// SPDX-License-Identifier: Apache-2.0
//
// write_plans.c: a small plan as JSON: "feasible", with a "timeline", or "infeasible". For run.py, which holds it
// against docs/schema.
#include <stdio.h>
#include <string.h>

#include "support/plans.h"

static ps_code write_plan(ps_arena *arena, const char *which, FILE *file, ps_status *status)
{
    static ps_reason reason = {.rule = "memory", .message = "too large", .have = 80, .need = 90, .hint = "more GPUs"};
    ps_plan *plan = small_plan(arena);
    ps_timeline timeline = {.num_devices = plan->num_devices};
    timeline.device = ps_new(arena, ps_device_timeline, plan->num_devices);
    int32_t ops = plan->schedule.first[plan->num_devices];
    timeline.start_ns = ps_new(arena, int64_t, ops);
    timeline.end_ns = ps_new(arena, int64_t, ops);
    if (strcmp(which, "infeasible") == 0) {
        plan->feasible = false;
        plan->num_reasons = 1;
        plan->reason = &reason;
    }
    return ps_plan_write_json(plan, strcmp(which, "timeline") == 0 ? &timeline : NULL, file, status);
}

int main(int argc, char **argv)
{
    ps_arena *arena = ps_arena_new(0);
    ps_status status = {0};
    if (argc != 2 || !arena)
        return 2;
    ps_code code = write_plan(arena, argv[1], stdout, &status);
    ps_arena_free(arena);
    if (code != PS_OK)
        fprintf(stderr, "%s\n", status.message);
    return ps_exit_status(code);
}
