// SPDX-License-Identifier: Apache-2.0
//
// checked.h: what the checker says of a plan, for its tests.
#ifndef PS_TESTS_UNIT_CHECK_CHECKED_H
#define PS_TESTS_UNIT_CHECK_CHECKED_H

#include "pipesched/check.h"
#include "support/cmocka_all.h"
#include "support/plans.h"

static inline ps_check_result check(ps_arena *arena, const ps_plan *plan)
{
    ps_check_result result;
    ps_status status = {0};
    assert_ok(ps_check_plan(arena, plan, &result, &status), &status);
    return result;
}

static inline void assert_holds(ps_arena *arena, const ps_plan *plan)
{
    ps_check_result result = check(arena, plan);
    if (result.total > 0)
        fail_msg("%s: %s: %s", result.finding[0].pointer, result.finding[0].rule, result.finding[0].message);
}

// The finding of this rule at this place, which must be there.
static inline const ps_finding *assert_found(ps_arena *arena, const ps_plan *plan, const char *rule,
                                             const char *pointer)
{
    ps_check_result result = check(arena, plan);
    for (int32_t index = 0; index < result.count; index++)
        if (strcmp(result.finding[index].rule, rule) == 0 && strcmp(result.finding[index].pointer, pointer) == 0)
            return &result.finding[index];
    for (int32_t index = 0; index < result.count; index++)
        print_message("%s: %s: %s\n", result.finding[index].pointer, result.finding[index].rule,
                      result.finding[index].message);
    fail_msg("no finding %s at %s", rule, pointer);
    return NULL;
}

#endif
