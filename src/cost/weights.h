// SPDX-License-Identifier: Apache-2.0
//
// weights.h: elements of a layer's weights on one rank.
#ifndef PS_COST_WEIGHTS_H
#define PS_COST_WEIGHTS_H

#include "cost/rank_view.h"

typedef struct ps_rank_weights {
    double dense;  // trained, replicated among D*c ranks
    double expert; // trained, of routed experts
    double frozen; // under LoRA, of all kinds: only the adapters are trained
    double copy;   // of a weight that another layer owns
} ps_rank_weights;

ps_rank_weights ps_rank_weights_of(const ps_rank_view *view, const ps_layer *layer);

#endif
