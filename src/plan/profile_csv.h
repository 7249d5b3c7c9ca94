// SPDX-License-Identifier: Apache-2.0
//
// profile_csv.h: measured layers from a table.
#ifndef PS_PLAN_PROFILE_CSV_H
#define PS_PLAN_PROFILE_CSV_H

#include "pipesched/profile.h"

ps_code ps_profile_read_csv(ps_arena *arena, const char *text, int64_t size, const ps_model *model,
                            const ps_profile_conditions *conditions, ps_profile *out, ps_status *status);

#endif
