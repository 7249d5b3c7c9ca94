// SPDX-License-Identifier: Apache-2.0
//
// partition_engine.h: what every engine takes and gives; partition.c chooses among them.
#ifndef PS_PARTITION_ENGINE_H
#define PS_PARTITION_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/partition_problem.h"
#include "pipesched/control.h"

typedef struct ps_cut_request {
    const ps_cut_view *view;
    int32_t top_k;      // at least 1
    int64_t node_limit; // MILP only, at least 1
    const ps_control *control;
} ps_cut_request;

typedef struct ps_cut_answer {
    int32_t count; // of cuts, best first, evaluated
    ps_partition **cut;
    int64_t bound_ns; // no cut has a smaller objective
    int64_t nodes;
    bool limit_hit;
    ps_code stopped; // what should_stop answered, or PS_OK
} ps_cut_answer;

// Engines return PS_INFEASIBLE with a reason when no cut exists, and an answer without cuts when they were stopped
// before they had one.

// Exact. The top_k cuts come first in the order of ps_cut_compare(), exactly. Needs ps_cut_dp_states() to be at most
// PS_LATTICE_MAX_STATES.
ps_code ps_cut_dp(ps_arena *arena, const ps_cut_request *request, ps_cut_answer *out, ps_status *status);
int64_t ps_cut_dp_states(const ps_cut_view *view, int32_t top_k);

// Exact up to the node limit. One cut.
ps_code ps_cut_milp(ps_arena *arena, const ps_cut_request *request, ps_cut_answer *out, ps_status *status);
int64_t ps_cut_milp_columns(const ps_cut_view *view);

// A good cut and its bound. PS_ILLEGAL (rule engine-cannot) when it finds none, which proves nothing.
ps_code ps_cut_heuristic(ps_arena *arena, const ps_cut_request *request, ps_cut_answer *out, ps_status *status);

// The two halves of the exact dynamic program, by objective.
ps_code ps_cut_dp_iteration(ps_arena *arena, const ps_cut_request *request, int64_t least_ns, ps_cut_answer *out,
                            ps_status *status);

#endif
