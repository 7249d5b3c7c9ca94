// SPDX-License-Identifier: Apache-2.0
//
// coverage.h: the list of what the cost model accounts for and what it leaves out.
#ifndef PS_REPORT_COVERAGE_H
#define PS_REPORT_COVERAGE_H

#include <stdio.h>

#include "io/json_write.h"
#include "pipesched/arena.h"
#include "pipesched/coverage.h"

typedef struct ps_coverage {
    int32_t count;
    const ps_cost_effect *effect;
} ps_coverage;

// The member "coverage" of the open object.
void ps_coverage_json(ps_json_writer *json, const ps_coverage *coverage);
void ps_coverage_text(FILE *file, ps_arena *arena, const ps_coverage *coverage);

#endif
