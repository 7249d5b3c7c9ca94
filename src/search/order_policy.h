// SPDX-License-Identifier: Apache-2.0
//
// order_policy.h: the best order that the list scheduler makes under many rules.
#ifndef PS_SEARCH_ORDER_POLICY_H
#define PS_SEARCH_ORDER_POLICY_H

#include "search/order.h"

// Improve `order`, which holds a legal order with its times, where one made by rules is better: all of a grid, then
// random changes of the best rules until `visits` ops were placed.
ps_code ps_order_policy(ps_arena *arena, ps_order_desk *desk, int64_t visits, ps_order *order);

#endif
