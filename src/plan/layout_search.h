// SPDX-License-Identifier: Apache-2.0
//
// layout_search.h: the loop over candidates. Bounds first, then batches of fixed size, best bound first, until no bound
// beats the incumbent. The outcome does not depend on the number of threads.
#ifndef PS_PLAN_LAYOUT_SEARCH_H
#define PS_PLAN_LAYOUT_SEARCH_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/control.h"
#include "plan/candidates.h"
#include "plan/evaluate.h"

enum { PS_SEARCH_BATCH = 64, PS_SEARCH_KEPT = 11 }; // the best and ten alternatives

typedef struct ps_found_layout {
    const ps_candidate *candidate;
    int64_t iteration_ns;
    int64_t p95_ns; // of the iteration when times vary; 0: not asked for
    int64_t peak_bytes;
    const char *engine;
    int32_t *first_layer; // NULL: a figure to compare with, found on the way
    ps_schedule *order;   // that was searched for; NULL: the family's own
} ps_found_layout;

typedef struct ps_search_outcome {
    ps_candidate_list list;
    int64_t enumerated; // candidates and rejected points together
    int64_t evaluated;
    int64_t pruned;
    int32_t num_found;
    ps_found_layout found[PS_SEARCH_KEPT]; // best first
    ps_found_layout whole;                 // best with whole backwards; no candidate: none was found
    int64_t bound_ns;                      // no enumerated layout is faster
    const char *limited_by;                // of the layout with the least bound
    bool limit_hit;
} ps_search_outcome;

typedef struct ps_ranked_candidate {
    ps_candidate *candidate;
    int64_t key;     // bound on time, or on memory
    int64_t memory;  // least bytes of the fullest device
    int64_t index;   // in order of enumeration: ties are visited in this order
    bool evaluated;  // looked at: a sharper bound is worth its time
    bool impossible; // evaluated, and proven to have no cut that fits
} ps_ranked_candidate;

// Put a feasible layout in its place among the best found. Its cut is copied, its order taken as it is.
void ps_search_keep(ps_arena *arena, ps_search_outcome *out, const ps_candidate *candidate,
                    const ps_evaluation *evaluation);

typedef enum ps_search_mode {
    PS_SEARCH_BEST,
    PS_SEARCH_ANY_FIT // stop at the first batch with a layout that fits; least memory first
} ps_search_mode;

// Hints are not worth simulating schedules of many millions of ops: only such layouts are tried for them.
bool ps_layout_is_quick(const ps_layout *layout);

// PS_OK also when nothing fits (num_found 0). PS_STOPPED when interrupted; a time limit ends the loop with limit_hit.
ps_code ps_layout_search(ps_arena *arena, const ps_plan_context *context, ps_search_mode mode,
                         const ps_control *control, ps_search_outcome *out, ps_status *status);

#endif
