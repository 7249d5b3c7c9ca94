// SPDX-License-Identifier: Apache-2.0
//
// compute.h: predicted seconds of a layer's forward, input gradient and weight gradient, tensor parallel communication
// that is not hidden included.
#ifndef PS_COST_COMPUTE_H
#define PS_COST_COMPUTE_H

#include "cost/ledger.h"
#include "cost/rank_view.h"

// `layer` has an architecture.
void ps_layer_compute_terms(const ps_rank_view *view, const ps_layer *layer, ps_ledger *ledger);

// FLOP of one sequence, forward and backward, of the whole layer: causal attention, unpadded vocabulary, no recompute.
double ps_layer_model_flops(const ps_layer *layer, int64_t seq_length);

#endif
