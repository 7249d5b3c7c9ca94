// SPDX-License-Identifier: Apache-2.0
//
// memory.h: bytes that a layer holds between its passes, and while one runs.
#ifndef PS_COST_MEMORY_H
#define PS_COST_MEMORY_H

#include "cost/ledger.h"
#include "cost/rank_view.h"

// Held, transient and output bytes of a layer with an architecture.
void ps_layer_memory_terms(const ps_rank_view *view, const ps_layer *layer, ps_ledger *ledger);

// Weights, gradients and optimizer state of `parameters` elements on this rank.
void ps_layer_state_terms(const ps_rank_view *view, double parameters, ps_ledger *ledger);

#endif
