// SPDX-License-Identifier: Apache-2.0
//
// order_cycle.h: orders that repeat one pattern every so often, as controllable-memory schedules do.
#ifndef PS_SEARCH_ORDER_CYCLE_H
#define PS_SEARCH_ORDER_CYCLE_H

#include "search/order.h"

// Replace the order by the best of some that repeat a pattern, where one fits and is better. O(ops * kinds of op on a
// device) for each of at most 64.
void ps_order_cycles(ps_arena *arena, const ps_order_problem *problem, ps_order *order, ps_order_trial *trial);

#endif
