// SPDX-License-Identifier: Apache-2.0
//
// candidate_walk.h: the point that the loops over layouts have come to. Degrees and micro-batches (candidate_degrees.c)
// are the outer loops, what runs on them (candidates.c) the inner ones.
#ifndef PS_PLAN_CANDIDATE_WALK_H
#define PS_PLAN_CANDIDATE_WALK_H

#include "plan/candidates.h"

typedef struct ps_candidate_walk {
    ps_arena *arena;
    const ps_plan_context *context;
    ps_candidate_list *list;
    bool has_parts;   // some layer is known by its architecture, of which selective recompute takes parts
    int64_t experts;  // that expert parallel ranks may divide; 0: the model has none
    ps_layout layout; // the point being built, outer loops first
} ps_candidate_walk;

bool ps_set_allows(const ps_int_set *set, int64_t value); // an empty set allows everything
void ps_walk_reject(ps_candidate_walk *walk, const ps_status *status);

// All candidates with the degrees and micro-batches of the current point.
void ps_walk_recompute(ps_candidate_walk *walk);

#endif
