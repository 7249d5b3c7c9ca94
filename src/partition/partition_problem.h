// SPDX-License-Identifier: Apache-2.0
//
// partition_problem.h: a checked partition problem in the form that every engine reads.
//
// With P the prefix sums of a type's costs and c(x) the price of a cut before layer x (0 at both ends), a stage of
// layers i .. j - 1 costs (P[j] + c(j)) - (P[i] - c(i)). What fits in memory is monotone: when i .. j - 1 fits, so does
// every part of it. So memory, and the largest number of layers, reduce to one table: the furthest end of a stage that
// starts at layer i. Pins and the smallest number of layers reduce to a band of first layers for every stage.
#ifndef PS_PARTITION_PROBLEM_H
#define PS_PARTITION_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/partition.h"
#include "pipesched/status.h"

typedef struct ps_cut_view {
    const ps_partition_problem *problem;
    int32_t layers;
    int32_t types;
    int32_t stages;           // exactly so many; 0: any number
    int32_t max_stages;       // stages, or the most that can be used
    int32_t min_layers;       // of a stage, at least 1
    int32_t *count;           // [types] devices, at most max_stages
    int64_t **prefix_ns;      // [types][layers + 1]
    int64_t *least_prefix_ns; // [layers + 1] every layer on the type that runs it fastest
    int64_t *cut_ns;          // [layers + 1] price of a cut before the layer, to each of the two stages
    bool *may_cut;            // [layers + 1] a stage may start here; both ends included
    int32_t *band_low;        // [max_stages + 1] least first layer of a stage
    int32_t *band_high;       // [max_stages + 1] greatest
    int32_t num_classes;      // stages with the same memory depth share a class
    int32_t *stage_class;     // [max_stages]
    int32_t **end;            // [types * num_classes][layers + 1] furthest end of a stage that starts at the layer
    struct ps_memory_window *window; // prefix sums of memory
} ps_cut_view;

// Checks the problem (PS_BAD_INPUT, rule out-of-range) and what needs no search to refuse: fewer layers than stages,
// fewer devices than stages, a layer that fits nowhere. O(types * classes * layers * depth points).
ps_code ps_cut_view_build(ps_arena *arena, const ps_partition_problem *problem, ps_cut_view *out, ps_status *status);

// Fill stage_class, window and end; the last step of ps_cut_view_build().
ps_code ps_cut_memory_build(ps_arena *arena, ps_cut_view *view, ps_status *status);

// Build `end` anew with every memory limit raised by `extra_bytes`; used to say how much memory is missing.
void ps_cut_view_fit(ps_cut_view *view, int64_t extra_bytes);

// Furthest end of `stage` when it starts at `first` on `type`; `first` when not even one layer fits.
static inline int32_t ps_cut_end(const ps_cut_view *view, int32_t type, int32_t stage, int32_t first)
{
    return view->end[(int64_t)type * view->num_classes + view->stage_class[stage]][first];
}

static inline int64_t ps_cut_cost(const ps_cut_view *view, int32_t type, int32_t first, int32_t end)
{
    return view->prefix_ns[type][end] + view->cut_ns[end] - view->prefix_ns[type][first] + view->cut_ns[first];
}

// No stage of any cut costs more.
int64_t ps_cut_most_ns(const ps_cut_view *view);

// Memory of layers first .. end - 1 as `stage` on any device; sticks at INT64_MAX.
int64_t ps_cut_memory(const ps_partition_problem *problem, int32_t stage, int32_t first, int32_t end);

// For messages: "79.1 GiB", or a count where the unit is the caller's own. In hints, where a rounded size may be too
// small, with all its bytes: "79.1 GiB (84934656001B)".
const char *ps_cut_format_memory(const ps_partition_problem *problem, int64_t size, char text[64]);
const char *ps_cut_format_memory_exact(const ps_partition_problem *problem, int64_t size, char text[64]);

// Cost a cut layer by layer, from the problem alone and not from the tables of a view, and check every rule of the
// problem. PS_INTERNAL (rule partition-rule) when one is broken: a bug of the engine that made the cut. O(layers).
ps_code ps_cut_evaluate(const ps_partition_problem *problem, ps_partition *cut, ps_status *status);

// A copy of a cut: `num_stages`, first_layer and type; the rest is filled by ps_cut_evaluate().
ps_partition *ps_cut_new(ps_arena *arena, int32_t num_stages, const int32_t *first_layer, const int32_t *type);

// Order of cuts: objective, then first_layer[1], type[0], first_layer[2], type[1], ... Total over distinct cuts.
int ps_cut_compare(const ps_partition *a, const ps_partition *b);

// Why no cut exists: fills the status with PS_INFEASIBLE and rule keep-with-next, max-layers, pins or memory.
// Call only when there is none.
ps_code ps_cut_explain_infeasible(ps_arena *arena, const ps_partition_problem *problem, ps_status *status);

#endif
