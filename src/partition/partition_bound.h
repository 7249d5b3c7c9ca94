// SPDX-License-Identifier: Apache-2.0
//
// partition_bound.h: lower bounds that need no search.
#ifndef PS_PARTITION_BOUND_H
#define PS_PARTITION_BOUND_H

#include <stdint.h>

#include "partition/partition_problem.h"

// No cut has a smaller largest stage. O(layers * (divisors of the stages + types) + layers log layers).
int64_t ps_cut_bound_bottleneck(ps_arena *arena, const ps_cut_view *view);

// No cut has a smaller sum of stages.
int64_t ps_cut_bound_sum(ps_arena *arena, const ps_cut_view *view);

// No cut has a smaller objective, given that none has a largest stage below `bottleneck_ns`.
int64_t ps_cut_bound_objective(ps_arena *arena, const ps_cut_view *view, int64_t bottleneck_ns);

#endif
