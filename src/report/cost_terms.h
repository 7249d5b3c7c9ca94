// SPDX-License-Identifier: Apache-2.0
//
// cost_terms.h: every term of what layers cost, with its formula, and what the model covers.
#ifndef PS_REPORT_COST_TERMS_H
#define PS_REPORT_COST_TERMS_H

#include <stdio.h>

#include "pipesched/arena.h"
#include "pipesched/calibration.h"
#include "pipesched/cost.h"
#include "pipesched/status.h"
#include "report/coverage.h"

// The terms of the cost of one layer of each type, as ps_cost_explain() gives them.
typedef struct ps_cost_report {
    const char *model;
    const char *gpu;
    int64_t micro_batch_size;
    int64_t seq_length;
    int32_t tp;
    const ps_calibration *calibration; // NULL: none
    int32_t num_layers;
    const ps_cost_terms *layer; // [num_layers]
    ps_coverage coverage;
} ps_cost_report;

ps_code ps_cost_json(FILE *file, const ps_cost_report *report, ps_status *status);
// `brief` leaves the coverage out.
void ps_cost_text(FILE *file, ps_arena *arena, const ps_cost_report *report, bool brief);

#endif
