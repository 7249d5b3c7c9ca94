// SPDX-License-Identifier: Apache-2.0
//
// order_graph.h: starts and tails of an order as ops move about, at the cost of those that change.
//
// The tail of an op is the longest way from its start to the end of a device; with a span for objective, what that
// device started with is taken off. So start + tail is at most the value, and equal to it on the longest paths.
#ifndef PS_SEARCH_ORDER_GRAPH_H
#define PS_SEARCH_ORDER_GRAPH_H

#include "search/order.h"

// A position still to be looked at.
typedef struct ps_order_due {
    int64_t key_ns;
    int32_t position;
} ps_order_due;

typedef struct ps_order_graph {
    ps_arena *arena;
    const ps_order_problem *problem;
    ps_order *order;
    ps_order_trial *trial; // with its times
    int64_t *held;         // [ops] memory before each
    int64_t *tail_ns;      // [ops] by position, where the trial keeps arrivals: timing anew spoils them
    uint8_t *marks;        // [ops] by position: in the heap, in the log
    ps_order_due *heap;    // by `key_ns`
    int32_t num_heap;
    int32_t room_heap;
    int32_t *changed; // a log of positions whose start differs, and what it was
    int64_t *was_ns;
    int32_t num_changed; // more than there is room for: those are marked, not written
    int32_t room_changed;
    int64_t visits;
} ps_order_graph;

// Does it work here? Not where transfers queue, nor where F's or gradient ops take no time, so that devices could wait
// for each other without any time going by.
bool ps_order_graph_serves(const ps_order_problem *problem);

// Of the order that the trial has timed last.
void ps_order_graph_new(ps_arena *arena, const ps_order_problem *problem, ps_order *order, ps_order_trial *trial,
                        ps_order_graph *out);

// Tails and memory anew, of an order that has been timed.
void ps_order_graph_set(ps_order_graph *graph);

// Move the op at `from` to `to`, or as far as it may go, if the value is then at most `limit_ns` and memory suffices.
// False, and nothing changed, where not, or, rarely, where a tail that is no longer right makes it look so.
bool ps_order_graph_move(ps_order_graph *graph, int32_t from, int32_t to, int64_t limit_ns);

#endif
