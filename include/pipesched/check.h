// SPDX-License-Identifier: Apache-2.0
//
// check.h: the independent checker. It re-derives placement, dependencies, times, memory and every printed figure from
// the plan alone, and shares no code with partitioners, schedulers, search or simulator.
#ifndef PIPESCHED_CHECK_H
#define PIPESCHED_CHECK_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/plan.h"
#include "pipesched/status.h"

typedef struct ps_finding {
    const char *rule;    // "layer-missing", "memory-sum", ...
    const char *pointer; // JSON pointer into the plan
    const char *message; // what the plan says, what it should say
} ps_finding;

typedef struct ps_check_result {
    int32_t count; // of findings kept, in a fixed order; 0: the plan holds
    int64_t total; // of findings altogether; at most PS_CHECK_MAX_FINDINGS are kept
    ps_finding *finding;
} ps_check_result;

enum { PS_CHECK_MAX_FINDINGS = 100 };

// PS_OK when the check could be carried out, whatever it found. O(ops).
ps_code ps_check_plan(ps_arena *arena, const ps_plan *plan, ps_check_result *out, ps_status *status);

#endif
