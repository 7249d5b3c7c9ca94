// SPDX-License-Identifier: Apache-2.0
//
// order_compact.h: idle time filled with ops from later on, at nobody's cost.
#ifndef PS_SEARCH_ORDER_COMPACT_H
#define PS_SEARCH_ORDER_COMPACT_H

#include "search/order.h"

// Move ops of a timed order into idle intervals before them, where memory allows and nothing starts later for it; the
// value never grows.
void ps_order_compact(const ps_order_problem *problem, ps_order *order, ps_order_trial *trial);

#endif
