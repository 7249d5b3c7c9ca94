// SPDX-License-Identifier: Apache-2.0
//
// ledger.c: sums by quantity, and the terms behind them in the units that people read.
#include "cost/ledger.h"

typedef struct quantity_row {
    const char *name;
    const char *unit;
    double scale; // from the ledger's unit to the one shown
} quantity_row;

static const quantity_row rows[PS_QUANTITIES] = {
    [PS_QUANTITY_WORK] = {"forward work", "FLOP", 1},
    [PS_QUANTITY_FORWARD] = {"forward", "ms", 1e3},
    [PS_QUANTITY_BACKWARD_INPUT] = {"backward input", "ms", 1e3},
    [PS_QUANTITY_BACKWARD_WEIGHT] = {"backward weight", "ms", 1e3},
    [PS_QUANTITY_RECOMPUTE] = {"recompute", "ms", 1e3},
    [PS_QUANTITY_HELD_FORWARD] = {"held after forward", "bytes", 1},
    [PS_QUANTITY_HELD_BACKWARD_INPUT] = {"held after backward input", "bytes", 1},
    [PS_QUANTITY_RECOMPUTED] = {"recomputed", "bytes", 1},
    [PS_QUANTITY_TRANSIENT] = {"transient", "bytes", 1},
    [PS_QUANTITY_OUTPUT] = {"output", "bytes", 1},
    [PS_QUANTITY_PARAMETERS] = {"parameters", "elements", 1},
    [PS_QUANTITY_EXPERT_PARAMETERS] = {"expert parameters", "elements", 1},
    [PS_QUANTITY_FROZEN_PARAMETERS] = {"frozen parameters", "elements", 1},
    [PS_QUANTITY_COPY_PARAMETERS] = {"copied parameters", "elements", 1},
    [PS_QUANTITY_PARAMETER_BYTES] = {"parameter state", "bytes", 1},
    [PS_QUANTITY_GRADIENT_BYTES] = {"gradient state", "bytes", 1},
    [PS_QUANTITY_OPTIMIZER_BYTES] = {"optimizer state", "bytes", 1},
};

static void enter(ps_ledger *ledger, ps_quantity quantity, const char *formula, double value)
{
    if (ledger->closed[quantity])
        return;
    ledger->sum[quantity] += value;
    if (!ledger->arena || value == 0)
        return;
    *ps_vec_push(ledger->arena, &ledger->terms) = (ps_cost_term){.layer = ledger->layer,
                                                                 .quantity = rows[quantity].name,
                                                                 .formula = formula,
                                                                 .value = value * rows[quantity].scale,
                                                                 .unit = rows[quantity].unit};
}

void ps_ledger_add(ps_ledger *ledger, ps_quantity quantity, const char *formula, double value)
{
    if (!ledger->recomputed) {
        enter(ledger, quantity, formula, value);
        return;
    }
    if (quantity == PS_QUANTITY_HELD_FORWARD) {
        enter(ledger, PS_QUANTITY_RECOMPUTED, formula, value);
        enter(ledger, PS_QUANTITY_TRANSIENT, formula, value);
        return;
    }
    enter(ledger, quantity, formula, value);
    if (quantity == PS_QUANTITY_FORWARD)
        enter(ledger, PS_QUANTITY_RECOMPUTE, formula, value);
}

void ps_ledger_add_kernels(ps_ledger *ledger, ps_quantity quantity, const char *formula, double seconds, double kernels)
{
    ledger->kernels[quantity] += kernels;
    if (ledger->recomputed && quantity == PS_QUANTITY_FORWARD)
        ledger->kernels[PS_QUANTITY_RECOMPUTE] += kernels;
    ps_ledger_add(ledger, quantity, formula, seconds);
}
