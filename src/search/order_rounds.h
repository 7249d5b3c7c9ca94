// SPDX-License-Identifier: Apache-2.0
//
// order_rounds.h: orders made in rounds, for pipelines that come back to their devices.
#ifndef PS_SEARCH_ORDER_ROUNDS_H
#define PS_SEARCH_ORDER_ROUNDS_H

#include "search/order.h"

// Improve `order`, which holds a legal order with its times, where one made in rounds is better. Does nothing unless
// all devices have the same number of stages, two or more.
ps_code ps_order_rounds(ps_arena *arena, ps_order_desk *desk, ps_order *order);

#endif
