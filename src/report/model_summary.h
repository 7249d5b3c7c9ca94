// SPDX-License-Identifier: Apache-2.0
//
// model_summary.h: what was understood of a model: parameters per kind of layer and in all, and what was assumed.
#ifndef PS_REPORT_MODEL_SUMMARY_H
#define PS_REPORT_MODEL_SUMMARY_H

#include <stdio.h>

#include "pipesched/arena.h"
#include "pipesched/model.h"
#include "pipesched/status.h"

ps_code ps_model_json(FILE *file, ps_arena *arena, const ps_model *model, ps_status *status);
// `verbose` lists every layer.
void ps_model_text(FILE *file, ps_arena *arena, const ps_model *model, bool verbose);

// For each of `count` names the index of the first that equals it. O(count log count).
const int32_t *ps_first_of_each(ps_arena *arena, const char *const *name, int32_t count);

#endif
