// SPDX-License-Identifier: Apache-2.0
//
// order_policy.h: the best order that the list scheduler makes under many rules.
#ifndef PS_SEARCH_ORDER_POLICY_H
#define PS_SEARCH_ORDER_POLICY_H

#include "pipesched/control.h"
#include "search/order.h"

typedef struct ps_policy_options {
    int64_t visits;            // ops to place before it ends; the grid of rules is always gone through
    int64_t bound_ns;          // ends as soon as it is reached
    const ps_control *control; // NULL: never stopped
} ps_policy_options;

// Replace the order by the best of a grid of rules that are alike on all devices, and then of rules changed one device
// at a time, where one is better. Deterministic.
ps_code ps_order_policy(ps_arena *arena, const ps_order_problem *problem, const ps_policy_options *options,
                        ps_order *order, ps_order_trial *trial);

#endif
