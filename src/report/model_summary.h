// SPDX-License-Identifier: Apache-2.0
//
// model_summary.h: what was understood of a model: parameters per kind of layer and in all, and what was assumed.
#ifndef PS_REPORT_MODEL_SUMMARY_H
#define PS_REPORT_MODEL_SUMMARY_H

#include <stdio.h>

#include "pipesched/arena.h"
#include "pipesched/cost.h"
#include "pipesched/model.h"
#include "pipesched/status.h"

ps_code ps_model_json(FILE *file, ps_arena *arena, const ps_model *model, ps_status *status);
// `verbose` lists every layer.
void ps_model_text(FILE *file, ps_arena *arena, const ps_model *model, bool verbose);

// For each of `count` names the index of the first that equals it. O(count log count).
const int32_t *ps_first_of_each(ps_arena *arena, const char *const *name, int32_t count);

// The terms of the cost of one layer of each type, as ps_cost_explain() gives them.
typedef struct ps_cost_report {
    const char *model;
    const char *gpu;
    int64_t micro_batch_size;
    int64_t seq_length;
    int32_t tp;
    int32_t num_layers;
    const ps_cost_terms *layer; // [num_layers]
} ps_cost_report;

ps_code ps_cost_json(FILE *file, const ps_cost_report *report, ps_status *status);
void ps_cost_text(FILE *file, ps_arena *arena, const ps_cost_report *report);

#endif
