// SPDX-License-Identifier: Apache-2.0
//
// order_local.h: local search over the orders of a device's ops.
#ifndef PS_SEARCH_ORDER_LOCAL_H
#define PS_SEARCH_ORDER_LOCAL_H

#include "pipesched/control.h"
#include "search/order.h"

typedef struct ps_local_options {
    int64_t visits;            // ops to time before it ends
    int64_t bound_ns;          // ends as soon as it is reached
    const ps_control *control; // NULL: never stopped
} ps_local_options;

// Improve an order that has times; it is the best one found in the end, and never worse than it was. Deterministic.
ps_code ps_order_local(ps_arena *arena, const ps_order_problem *problem, const ps_local_options *options,
                       ps_order *order, ps_order_trial *trial);

#endif
