// SPDX-License-Identifier: Apache-2.0
//
// plan_step.h: what ends the step of a plan made by hand.
#ifndef PS_TESTS_SUPPORT_PLAN_STEP_H
#define PS_TESTS_SUPPORT_PLAN_STEP_H

#include "pipesched/plan.h"

// Fill what devices and prediction say of it, given when every op runs. The stages' own figures and the optimizer's
// time are given; the barrier takes 2500 ns.
void settle_step(ps_arena *arena, ps_plan *plan, const int64_t *start, const int64_t *end);

#endif
