// SPDX-License-Identifier: Apache-2.0
//
// refusal.h: what is wrong with a schedule that could not be run to its end.
#ifndef PS_SIM_REFUSAL_H
#define PS_SIM_REFUSAL_H

#include "pipesched/arena.h"
#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"

// `next`: the op at which each device stopped, index as in ps_schedule. The first of these that applies: unknown-op,
// off-route, wrong-device, duplicate-op, incomplete-schedule, deadlock. Never PS_OK. O(ops).
ps_code ps_simulate_refuse(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule,
                           const int32_t *next, ps_status *status);

#endif
