// SPDX-License-Identifier: Apache-2.0
//
// v_pattern.h: schedules that repeat one pattern of a micro-batch in a V placement.
#ifndef PS_SCHEDULE_V_PATTERN_H
#define PS_SCHEDULE_V_PATTERN_H

#include "schedule/family.h"

// When the first micro-batch's F and I of chunk 0 and 1 run on a rank, in slots of one op. Four different numbers mod
// 6, in which F0 <= F1 <= I1 <= I0 and neighbours follow each other by one slot at least.
typedef struct ps_v_pattern {
    int32_t forward[2];
    int32_t input[2];
} ps_v_pattern;

typedef ps_v_pattern (*ps_v_pattern_of)(int32_t devices, int32_t rank);

// Memory is that of the ops of all devices and the slots of one.
void ps_v_pattern_write(ps_arena *arena, ps_schedule_shape shape, ps_v_pattern_of pattern_of, ps_op *op);

#endif
