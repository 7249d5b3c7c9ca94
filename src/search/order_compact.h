// SPDX-License-Identifier: Apache-2.0
//
// order_compact.h: idle time filled with ops from later on, at nobody's cost.
#ifndef PS_SEARCH_ORDER_COMPACT_H
#define PS_SEARCH_ORDER_COMPACT_H

#include "search/order.h"

typedef struct ps_compact_scratch {
    int64_t *held; // [ops]
    int32_t *seen; // [3 stages]
} ps_compact_scratch;

void ps_compact_scratch_new(ps_arena *arena, const ps_order_problem *problem, ps_compact_scratch *out);

// Move ops of a timed order into idle intervals before them, where memory allows and nothing starts later for it; the
// value never grows, but where transfers queue. `trial` must be what timed the order last.
void ps_order_compact(const ps_order_problem *problem, ps_order *order, ps_compact_scratch *scratch,
                      ps_order_trial *trial);

#endif
