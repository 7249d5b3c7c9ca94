// SPDX-License-Identifier: Apache-2.0
//
// predicted.h: time and bytes of a layer, from its architecture.
#ifndef PS_COST_PREDICTED_H
#define PS_COST_PREDICTED_H

#include "cost/ledger.h"
#include "cost/rank_view.h"

// Forward, input gradient, weight gradient and recompute, communication that is not hidden included; bytes held,
// transient and sent. `layer` has an architecture.
void ps_predicted_terms(const ps_rank_view *view, const ps_layer *layer, ps_ledger *ledger);

// Does full recompute run this layer again?
bool ps_layer_is_recomputed(const ps_layer *layer);

#endif
