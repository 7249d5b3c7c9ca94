// SPDX-License-Identifier: Apache-2.0
//
// order_extend.h: an order for more micro-batches from one for fewer.
#ifndef PS_SEARCH_ORDER_EXTEND_H
#define PS_SEARCH_ORDER_EXTEND_H

#include "search/order.h"

// Micro-batches of the small problem: enough for the ramps and for a few periods between them; 0 when no fewer than
// those of `problem`. The difference is a multiple of every period that ps_order_extend() repeats.
int32_t ps_order_core_microbatches(const ps_order_problem *problem);

// Improve `order`, a timed order of the desk's problem, where one from `core_order` is better. `core` is the problem
// but for the number of micro-batches. On every device, a stretch in which every kind of op comes equally often is
// repeated; memory stays what it was.
void ps_order_extend(ps_arena *arena, const ps_order_problem *core, ps_order *core_order, ps_order_desk *desk,
                     ps_order *order);

#endif
