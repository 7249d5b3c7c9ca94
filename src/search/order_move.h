// SPDX-License-Identifier: Apache-2.0
//
// order_move.h: ops moved about on their device.
#ifndef PS_SEARCH_ORDER_MOVE_H
#define PS_SEARCH_ORDER_MOVE_H

#include "search/order.h"

// An op never passes another of its own kind, which would be the same order, nor one that it depends on or that depends
// on it.
bool ps_order_may_pass(ps_order_op earlier, ps_order_op later);

// Move the op at `from` towards `to` as far as it may go; returns where it ends.
int32_t ps_order_shift(ps_order_op *op, int32_t from, int32_t to);

// Would memory suffice from position low to high of a device, given what is held before low?
bool ps_order_window_fits(const ps_order_problem *problem, const ps_order *order, const int64_t *held, int32_t low,
                          int32_t high);

// Positions of the ops from low to high of a device, and the memory held before them, given that at low.
void ps_order_settle(const ps_order_problem *problem, const ps_order *order, int32_t *position, int64_t *held,
                     int32_t low, int32_t high);

// May the op at `from` go before the one at `to`, ahead of it on its device, in order and in memory?
bool ps_order_may_jump(const ps_order_problem *problem, const ps_order *order, const int64_t *held, int32_t from,
                       int32_t to);

// Move it there, with its start `at_ns`; starts of those passed go along.
void ps_order_jump(ps_order *order, int64_t *start_ns, int32_t from, int32_t to, int64_t at_ns);

#endif
