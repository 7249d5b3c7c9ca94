// SPDX-License-Identifier: Apache-2.0
//
// rebalance.h: even out a cut whose stages share devices. The chain partitioner minimises the largest stage; with
// several virtual stages a device, and among the many cuts of equal bottleneck, the load of whole devices decides.
#ifndef PS_PLAN_REBALANCE_H
#define PS_PLAN_REBALANCE_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "plan/candidates.h"

// Move boundaries by one layer while that makes the loads of the two devices more even, or leaves them as they are and
// makes the two stages more even; and where none does, several in a row that lower the load of a busiest device.
// Changes first_layer in place; keeps every stage non-empty and every pin. Counted: at most 4 * stages * layers moves
// are tried, O(1) each, and as many boundaries in rows.
void ps_cut_rebalance(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                      int32_t *first_layer);

#endif
