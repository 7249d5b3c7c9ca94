// SPDX-License-Identifier: Apache-2.0
//
// partition.h: cutting a chain of layers into stages, as a problem of plain numbers.
//
// A problem knows no model and no GPU: costs per layer and device type, memory per layer, what is in flight on each
// stage, the price of a cut, pins. Every answer says which engine ran, its bound and whether the result is proved.
#ifndef PIPESCHED_PARTITION_H
#define PIPESCHED_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/control.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"

typedef enum ps_objective {
    PS_OBJECTIVE_BOTTLENECK, // least largest stage
    PS_OBJECTIVE_ITERATION   // least sum of stages + (microbatches - 1) * largest stage
} ps_objective;

typedef enum ps_engine { PS_ENGINE_AUTO, PS_ENGINE_DP, PS_ENGINE_MILP, PS_ENGINE_HEURISTIC } ps_engine;

typedef struct ps_device_type {
    const char *name;
    int32_t count;        // devices of it that a stage each may take
    int64_t memory_limit; // INT64_MAX: none
} ps_device_type;

// Stage s = layers i .. j - 1 on type t costs
//     sum of cost_ns[t][i .. j - 1] + cut_ns[i - 1] (if i > 0) + cut_ns[j - 1] (if j < n)
// and needs
//     sum of static_bytes + max over depth points (full * sum of held_full + weight * sum of held_weight)
//     + the largest transient_bytes <= type t's memory_limit.
// Arrays that may be NULL are all zero, or unconstrained.
typedef struct ps_partition_problem {
    int32_t num_layers;
    int32_t num_stages;         // exactly so many, none empty; 0 with several types: any number up to the sum of counts
    int32_t num_types;          // at least 1
    const ps_device_type *type; // [num_types]
    const int64_t *const *cost_ns;     // [num_types][num_layers]
    const int64_t *cut_ns;             // [num_layers - 1] or NULL
    const int64_t *static_bytes;       // [num_layers] or NULL
    const int64_t *held_full;          // [num_layers] or NULL
    const int64_t *held_weight;        // [num_layers] or NULL
    const int64_t *transient_bytes;    // [num_layers] or NULL
    const int64_t *stage_static_bytes; // [num_stages] memory of the stage itself, or NULL
    const ps_depth_list *depth;        // per stage, or NULL: full 1, weight 0. Needs num_stages > 0
    const int32_t *pinned_stage;       // [num_layers] stage or -1, or NULL
    const bool *keep_with_next;        // [num_layers - 1] no cut after this layer, or NULL
    int32_t min_layers;                // of a stage; 0 reads as 1
    int32_t max_layers;                // of a stage; 0: no limit
    int32_t num_microbatches;          // for PS_OBJECTIVE_ITERATION
    ps_objective objective;
    bool memory_is_bytes; // memory is bytes, and messages say so; else it is in a unit of the caller's own
    bool rule_only;       // infeasible: name the rule, do not look for how much memory is missing
} ps_partition_problem;

typedef struct ps_partition {
    int32_t num_stages;
    int32_t *first_layer; // [num_stages + 1]
    int32_t *type;        // [num_stages]
    int64_t *stage_ns;    // [num_stages]
    int64_t bottleneck_ns;
    int64_t sum_ns;
    int64_t objective_ns;
} ps_partition;

typedef struct ps_partition_result {
    int32_t count;           // of distinct cuts found, best first; at least 1
    ps_partition *partition; // [count]
    int64_t bound_ns;        // no cut has a smaller objective
    double gap;              // (objective - bound) / bound of the best; 0 when both are 0
    bool proved;             // gap is 0
    const char *engine;      // which ran: "dp", "milp" or "heuristic"
    int64_t nodes;           // branch-and-bound nodes, or DP states visited
    bool limit_hit;          // a node limit or the caller's should_stop cut the search short
} ps_partition_result;

typedef struct ps_partition_options {
    ps_engine engine;
    int32_t top_k;             // cuts wanted; 0 reads as 1
    int64_t node_limit;        // MILP nodes; 0: the default
    const ps_control *control; // may be NULL
} ps_partition_options;

// PS_INFEASIBLE: fewer-layers-than-stages, memory (the layer or stage that cannot fit, need and have), pins;
// PS_ILLEGAL: engine-cannot (an engine asked for by name that does not cover the problem).
// Deterministic. dp: O(layers * stages * layers in a stage) a type; see partition.c for which engine `auto` picks.
ps_code ps_partition_solve(ps_arena *arena, const ps_partition_problem *problem, const ps_partition_options *options,
                           ps_partition_result *out, ps_status *status);

#endif
