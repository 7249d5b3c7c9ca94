// SPDX-License-Identifier: Apache-2.0
//
// ledger.h: where every term of a layer's cost is entered.
//
// The cost of a layer is the sum of its terms by quantity, and `explain` prints the very same entries, so the two
// cannot disagree. Without an arena only the sums are kept.
#ifndef PS_COST_LEDGER_H
#define PS_COST_LEDGER_H

#include "base/vec.h"
#include "pipesched/cost.h"

typedef enum ps_quantity {
    PS_QUANTITY_WORK,    // FLOP of the forward
    PS_QUANTITY_FORWARD, // seconds
    PS_QUANTITY_BACKWARD_INPUT,
    PS_QUANTITY_BACKWARD_WEIGHT,
    PS_QUANTITY_RECOMPUTE,
    PS_QUANTITY_HELD_FORWARD, // bytes
    PS_QUANTITY_HELD_BACKWARD_INPUT,
    PS_QUANTITY_RECOMPUTED, // also in the transient
    PS_QUANTITY_TRANSIENT,
    PS_QUANTITY_OUTPUT,
    PS_QUANTITY_PARAMETERS, // elements
    PS_QUANTITY_EXPERT_PARAMETERS,
    PS_QUANTITY_FROZEN_PARAMETERS,
    PS_QUANTITY_COPY_PARAMETERS,
    PS_QUANTITY_PARAMETER_BYTES,
    PS_QUANTITY_GRADIENT_BYTES,
    PS_QUANTITY_OPTIMIZER_BYTES,
    PS_QUANTITIES
} ps_quantity;

typedef struct ps_ledger {
    double sum[PS_QUANTITIES];
    double kernels[PS_QUANTITIES]; // launched in each pass
    bool closed[PS_QUANTITIES];    // given by the user: further terms are ignored
    // While set, what is entered runs again before the backward: forward time is recompute time too, and what is held
    // after the forward is brought back instead.
    bool recomputed;
    ps_arena *arena;   // NULL: terms are not kept
    const char *layer; // name for the terms
    ps_vec(ps_cost_term) terms;
} ps_ledger;

// `formula` must live as long as the terms. Terms that are 0 are not kept.
void ps_ledger_add(ps_ledger *ledger, ps_quantity quantity, const char *formula, double value);
// A time that launches `kernels` kernels.
void ps_ledger_add_kernels(ps_ledger *ledger, ps_quantity quantity, const char *formula, double seconds,
                           double kernels);

#endif
