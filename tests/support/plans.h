// SPDX-License-Identifier: Apache-2.0
//
// plans.h: small plans made by hand whose every figure is consistent, for tests that then break one of them.
//
// Times are by a plain relaxation over the ops (plans.c), which shares nothing with the simulator or the checker.
#ifndef PS_TESTS_SUPPORT_PLANS_H
#define PS_TESTS_SUPPORT_PLANS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/plan.h"

typedef struct plan_spec {
    int32_t pp;
    int32_t vp;
    int32_t dp;
    int32_t tp;
    int32_t num_microbatches;
    ps_schedule_kind schedule;
    ps_recompute recompute;
    int32_t gpus_per_node; // nodes follow from the number of ranks
    bool no_barrier;
    ps_placement placement; // of zb, whose order is one that needs no search: zb-h1, interleaved-zb or zb-v
} plan_spec;

// Two layers a stage, uneven stages, a slow link between nodes and a fast one within.
ps_plan *consistent_plan(ps_arena *arena, plan_spec spec);

// All figures that follow from others, once more: after a test has changed stages, links or the order of ops.
void settle_plan(ps_arena *arena, ps_plan *plan);

// 1F1B on two nodes: pp 2, dp 2, 4 layers. What most tests break.
ps_plan *small_plan(ps_arena *arena);

#endif
