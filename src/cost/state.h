// SPDX-License-Identifier: Apache-2.0
//
// state.h: bytes of weights, gradients and optimizer state.
#ifndef PS_COST_STATE_H
#define PS_COST_STATE_H

#include "cost/ledger.h"
#include "cost/weights.h"

void ps_state_terms(const ps_rank_view *view, ps_rank_weights weights, ps_ledger *ledger);

#endif
