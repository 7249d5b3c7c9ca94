// SPDX-License-Identifier: Apache-2.0
//
// milp.h: a mixed integer linear program as plain arrays, solved by branch and bound.
//
// Minimise objective * x, which must be bounded below, subject to row_lower <= A x <= row_upper and column_lower <= x
// <= column_upper, some columns integer. Infinities mean no bound. Effort is counted in nodes, never timed, so equal
// inputs give equal answers. milp.c is the only file that knows GLPK. A call owns the GLPK environment of its thread
// and frees it at the end, so a program that uses GLPK itself solves on another thread.
#ifndef PS_MILP_MILP_H
#define PS_MILP_MILP_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/control.h"
#include "pipesched/status.h"

typedef struct ps_milp_problem {
    int32_t num_rows;
    int32_t num_columns;
    const double *row_lower;    // [num_rows]
    const double *row_upper;    // [num_rows]
    const double *column_lower; // [num_columns]
    const double *column_upper; // [num_columns]
    const double *objective;    // [num_columns]
    const bool *is_integer;     // [num_columns]
    // Column c has entries first[c] .. first[c + 1] - 1; a row appears at most once in a column, zeros are left out.
    const int64_t *first;     // [num_columns + 1]
    const int32_t *entry_row; // from 0
    const double *entry_value;
} ps_milp_problem;

typedef struct ps_milp_options {
    int64_t node_limit;        // branch-and-bound nodes; 0: none
    double relative_gap;       // stop when (objective - bound) / |objective| is at most this; 0: search the whole tree
    const ps_control *control; // polled at every node; may be NULL
} ps_milp_options;

typedef enum ps_milp_outcome {
    PS_MILP_OPTIMAL,    // the tree is exhausted, within the solver's relative tolerance of 1e-7
    PS_MILP_FEASIBLE,   // a limit came first; values hold the best so far
    PS_MILP_INFEASIBLE, // no solution exists
    PS_MILP_LIMIT       // a limit came before any solution
} ps_milp_outcome;

typedef struct ps_milp_result {
    ps_milp_outcome outcome;
    double objective; // of values; +infinity without a solution
    double bound;     // no solution has a smaller objective, within the tolerance; -infinity when unknown
    double *value;    // [num_columns], or NULL without a solution
    int64_t nodes;    // nodes of the tree that were made
    ps_code stopped;  // what should_stop answered; PS_OK when it did not stop the search
} ps_milp_result;

// PS_INTERNAL (rule milp-solver) when the solver fails or aborts; it stays usable afterwards.
ps_code ps_milp_solve(ps_arena *arena, const ps_milp_problem *problem, const ps_milp_options *options,
                      ps_milp_result *out, ps_status *status);

const char *ps_milp_library_version(void); // of GLPK

#endif
