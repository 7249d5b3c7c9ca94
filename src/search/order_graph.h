// SPDX-License-Identifier: Apache-2.0
//
// order_graph.h: starts and tails of an order as ops move about, at the cost of those that change.
//
// The tail of an op is the longest way from its start to the end of a device; with a span for objective, what that
// device started with is taken off. So start + tail is at most the value, and equal to it on the longest paths.
#ifndef PS_SEARCH_ORDER_GRAPH_H
#define PS_SEARCH_ORDER_GRAPH_H

#include "search/order.h"

typedef struct ps_order_graph {
    const ps_order_problem *problem;
    ps_order *order;
    int64_t *tail_ns; // [ops] by position
    int32_t *heap;    // positions still to be looked at, by `key_ns`
    int64_t *key_ns;  // [ops]
    bool *queued;     // [ops] by position
    int32_t num_heap;
    int32_t *changed; // positions whose start differs, and what it was
    int64_t *was_ns;
    int32_t num_changed;
    bool *logged; // [ops] by position
    int64_t visits;
} ps_order_graph;

// Does it work here? Not where transfers queue, nor where F's or gradient ops take no time, so that devices could wait
// for each other without any time going by.
bool ps_order_graph_serves(const ps_order_problem *problem);

void ps_order_graph_new(ps_arena *arena, const ps_order_problem *problem, ps_order *order, ps_order_graph *out);

// Tails anew, of an order that has been timed.
void ps_order_graph_set(ps_order_graph *graph);

// Move the op at `from` to `to`, or as far as it may go, if the value is then at most `limit_ns` and memory suffices.
// False, and nothing changed, where not, or, rarely, where a tail that is no longer right makes it look so.
bool ps_order_graph_move(ps_order_graph *graph, int32_t from, int32_t to, int64_t limit_ns);

#endif
