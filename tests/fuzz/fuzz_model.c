// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include "pipesched/limits.h"
#include "pipesched/model.h"

ps_code fuzz_one(ps_arena *arena, const char *text, int64_t size, ps_status *status)
{
    ps_model model;
    PS_TRY(ps_model_parse(arena, "fuzz", text, size, &model, status));
    if (model.num_layers < 1 || model.num_layers > PS_MAX_LAYERS || model.parameters < 0)
        abort();
    return PS_OK;
}
