// SPDX-License-Identifier: Apache-2.0
//
// order_list.h: a list scheduler: it makes an order by letting devices decide, in order of time, what to run next.
#ifndef PS_SEARCH_ORDER_LIST_H
#define PS_SEARCH_ORDER_LIST_H

#include "search/order.h"

// How one device decides. A gradient op or an F that is known to arrive within its patience is waited for, rather than
// run a W meanwhile; patience below 0 lets a pending W go first.
typedef struct ps_list_rule {
    int64_t gradient_patience_ns;
    int64_t forward_patience_ns;
    int32_t most_in_flight; // (stage, micro-batch) pairs between F and the gradient op, later stages reserved
    bool forward_first;     // F before a gradient op when both could run
    bool late_forward;      // of several stages, the F of the latest, else of the earliest
    bool late_gradient;
} ps_list_rule;

typedef struct ps_list ps_list; // scratch

ps_list *ps_list_new(ps_arena *arena, const ps_order_problem *problem);

// Write the ops of an order by one rule a device; times are not set. False when it would take longer than `limit_ns`.
// The order keeps within memory, and within the rules' in-flight counts as long as these leave room for one micro-batch
// at every stage. O(ops log devices).
bool ps_list_schedule(ps_list *list, const ps_list_rule *rule, int64_t limit_ns, ps_order *out);

int64_t ps_list_visits(const ps_list *list); // ops placed so far

#endif
