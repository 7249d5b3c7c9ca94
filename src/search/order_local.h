// SPDX-License-Identifier: Apache-2.0
//
// order_local.h: local search over the orders of a device's ops.
#ifndef PS_SEARCH_ORDER_LOCAL_H
#define PS_SEARCH_ORDER_LOCAL_H

#include "search/order.h"

// Improve an order until `visits` more ops were looked at or the bound is reached. The order need not hold its times;
// afterwards it does.
ps_code ps_order_local(ps_arena *arena, ps_order_desk *desk, int64_t visits, ps_order *order);

#endif
