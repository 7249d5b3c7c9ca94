// SPDX-License-Identifier: Apache-2.0
//
// curve.h: time against memory.
#ifndef PS_REPORT_CURVE_H
#define PS_REPORT_CURVE_H

#include <stdio.h>

#include "pipesched/order_search.h"

typedef struct ps_curve {
    const char *name; // of the schedule
    int32_t ranks;
    int32_t virtual_stages; // a rank
    int32_t num_microbatches;
    const char *objective; // "makespan" or "span"
    bool in_bytes;         // memory; else the user's own unit
    const ps_order_rung *rung;
    int32_t count;
} ps_curve;

ps_code ps_curve_json(FILE *file, const ps_curve *curve, ps_status *status);
void ps_curve_text(FILE *file, ps_arena *arena, const ps_curve *curve);

#endif
