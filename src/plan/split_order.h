// SPDX-License-Identifier: Apache-2.0
//
// split_order.h: orders of F, I and W that need no search.
#ifndef PS_PLAN_SPLIT_ORDER_H
#define PS_PLAN_SPLIT_ORDER_H

#include "pipesched/arena.h"
#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"

// One micro-batch after the other: nothing holds less. O(ops).
void ps_order_in_sequence(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out);

// The same order with every whole backward as I and, right after it, W. O(ops).
ps_schedule ps_order_split(ps_arena *arena, const ps_schedule *order);

#endif
