// SPDX-License-Identifier: Apache-2.0
//
// order_list.h: a list scheduler: it makes an order by letting devices decide, in order of time, what to run next.
#ifndef PS_SEARCH_ORDER_LIST_H
#define PS_SEARCH_ORDER_LIST_H

#include "search/order.h"

typedef enum ps_list_turn {
    PS_TURN_GRADIENT, // a gradient op goes before an F when both could run
    PS_TURN_FORWARD,  // an F does
    PS_TURN_ALTERNATE // whichever was not the last
} ps_list_turn;

// How one device decides. A gradient op or an F that is known to arrive within its patience is waited for, rather than
// run a W meanwhile; patience below 0 lets a pending W go first.
typedef struct ps_list_rule {
    int64_t gradient_patience_ns;
    int64_t forward_patience_ns;
    int64_t warmup_slack_ns; // by how much F's may delay the first gradient op beyond its earliest time
    ps_list_turn turn;
    bool thrifty;      // waits no longer than the device can idle without being the last to end
    bool late_forward; // of several stages, the F of the latest, else of the earliest
    bool late_gradient;
} ps_list_rule;

typedef struct ps_list_rules {
    ps_list_rule *device;    // [devices]
    int32_t *most_in_flight; // [stages] micro-batches between F and the gradient op, 1 or more
    int64_t bound_ns;        // no order is shorter: what a thrifty device starts to count from
} ps_list_rules;

typedef struct ps_list ps_list; // scratch

ps_list *ps_list_new(ps_arena *arena, const ps_order_problem *problem);

// Write the ops of an order by these rules, within memory; times are not set. False when it would take longer than
// `limit_ns`. O(ops log devices).
bool ps_list_schedule(ps_list *list, const ps_list_rules *rules, int64_t limit_ns, ps_order *out);

int64_t ps_list_visits(const ps_list *list); // ops placed so far

#endif
