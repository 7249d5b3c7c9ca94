// SPDX-License-Identifier: Apache-2.0
//
// memory_bound.h: how evenly the work of a layout can be spread at best when memory is counted too.
#ifndef PS_PLAN_MEMORY_BOUND_H
#define PS_PLAN_MEMORY_BOUND_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "plan/candidates.h"

// The least work of one micro-batch on the busiest device, over every cut that fits, as far as memory_bound.c can tell;
// at least `even_ns`, which any cut has, and at most `most_ns`: no cut with less than most_ns fits. Valid for any
// placement of layers on the family's order of chunks. O(ops) to read the order, then O(devices * layers) a step of a
// bisection.
int64_t ps_memory_bound_work(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                             int64_t even_ns, int64_t most_ns);

#endif
