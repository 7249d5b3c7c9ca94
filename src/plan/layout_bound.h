// SPDX-License-Identifier: Apache-2.0
//
// layout_bound.h: how fast one layout can be at best, over every cut of its layers and every order of its ops that
// keeps the schedule family's number of micro-batches in flight, or, of zb, within memory.
#ifndef PS_PLAN_LAYOUT_BOUND_H
#define PS_PLAN_LAYOUT_BOUND_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "plan/candidates.h"

// Closed forms, in O(layers log layers); sets bound_ns and limited_by. Bounds the iteration: pipeline, optimizer and
// parameter gather. Used to order and to prune.
void ps_layout_bound_quick(ps_arena *arena, const ps_plan_context *context, ps_candidate *candidate);

// Least bytes that the fullest device of this layout needs, whatever the cut.
int64_t ps_layout_bound_memory(const ps_plan_context *context, const ps_candidate *candidate);

// A sharper bound than the quick one, at least as large, for one layout: over every cut that fits, work that memory
// keeps from being spread evenly (memory_bound.h); and for vp 1 and chains of some thousand layers at most, the least
// over every cut of what each stage needs to start up, work and drain, by dynamic programming in O(pp * layers * layers
// in a stage). `value_ns` is an iteration already reached: the bound is at most that.
int64_t ps_layout_bound_sharp(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                              int64_t value_ns, const char **limited_by);

#endif
