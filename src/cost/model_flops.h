// SPDX-License-Identifier: Apache-2.0
//
// model_flops.h: the FLOP that a model needs, whatever a layout makes of them.
#ifndef PS_COST_MODEL_FLOPS_H
#define PS_COST_MODEL_FLOPS_H

#include "pipesched/model.h"

// FLOP of one sequence, forward and backward, of the whole layer: causal attention, unpadded vocabulary, no recompute.
double ps_layer_model_flops(const ps_layer *layer, int64_t seq_length);

#endif
