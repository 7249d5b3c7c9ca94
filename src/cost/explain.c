// SPDX-License-Identifier: Apache-2.0
//
// explain.c: the terms behind one row of the cost table, entered by the functions that compute it.
#include "cost/layer_terms.h"

ps_code ps_cost_explain(ps_arena *arena, const ps_model *model, const ps_group *group, const ps_job *job,
                        const ps_layout *layout, int32_t layer, ps_cost_terms *out, ps_status *status)
{
    ps_rank_view view = ps_rank_view_of(group, job, layout);
    ps_ledger ledger = {.arena = arena};
    ps_time_source source = PS_TIMES_PREDICTED;

    if (layer < 0 || layer >= model->num_layers)
        return ps_fail(status, PS_USAGE, "unknown-layer", "layer %d does not exist; the model has layers 0 to %d",
                       (int)layer, (int)model->num_layers - 1);
    PS_TRY(ps_rank_view_check(&view, model, status));
    PS_TRY(ps_layer_terms(&view, model, layer, &ledger, &source, status));
    *out = (ps_cost_terms){.count = (int32_t)ledger.terms.count, .term = ledger.terms.data};
    return PS_OK;
}
