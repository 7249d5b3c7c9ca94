// SPDX-License-Identifier: Apache-2.0
//
// jitter_rank.h: the best layouts found, ranked by how long they take when times are not what they should be.
#ifndef PS_PLAN_JITTER_RANK_H
#define PS_PLAN_JITTER_RANK_H

#include "plan/layout_search.h"

// Fill p95_ns of all found and put the least first; equal ones stay in the order of their times. Layouts whose cut is
// not kept leave the list. The seed is fixed. PS_STOPPED when interrupted; a time limit leaves all as it was, with
// out->limit_hit.
ps_code ps_rank_by_jitter(ps_arena *arena, const ps_plan_context *context, const ps_control *control,
                          ps_search_outcome *out, ps_status *status);

#endif
