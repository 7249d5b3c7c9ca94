// SPDX-License-Identifier: Apache-2.0
//
// layer_terms.h: all terms of one layer, from whichever source its times have.
#ifndef PS_COST_LAYER_TERMS_H
#define PS_COST_LAYER_TERMS_H

#include "cost/ledger.h"
#include "cost/rank_view.h"

typedef enum ps_time_source { PS_TIMES_GIVEN, PS_TIMES_MEASURED, PS_TIMES_PREDICTED } ps_time_source;

// Times: given in the layer, else measured, else predicted. Enters everything into `ledger`.
ps_code ps_layer_terms(const ps_rank_view *view, const ps_model *model, int32_t layer, ps_ledger *ledger,
                       ps_time_source *source, ps_status *status);

// The only place where times and bytes are rounded. Rule out-of-range.
ps_code ps_layer_cost_of(const ps_ledger *ledger, ps_layer_cost *out, ps_status *status);

#endif
