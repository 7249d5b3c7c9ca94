// SPDX-License-Identifier: Apache-2.0
//
// memory_terms.h: what the memory of a plan's devices is made of, as text or JSON.
#ifndef PS_REPORT_MEMORY_TERMS_H
#define PS_REPORT_MEMORY_TERMS_H

#include <stdio.h>

#include "pipesched/memory_terms.h"
#include "report/coverage.h"

typedef struct ps_memory_report {
    const ps_plan *plan;
    const char *not_split; // why layers stand together; NULL: they do not
    int32_t num_devices;
    const ps_memory_terms *device;
    ps_coverage coverage;
} ps_memory_report;

ps_code ps_memory_json(FILE *file, const ps_memory_report *report, ps_status *status);
// `brief` leaves the coverage out.
void ps_memory_text(FILE *file, ps_arena *arena, const ps_memory_report *report, bool brief);

#endif
