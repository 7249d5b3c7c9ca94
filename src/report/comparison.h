// SPDX-License-Identifier: Apache-2.0
//
// comparison.h: schedules of one pipeline side by side, best first.
#ifndef PS_REPORT_COMPARISON_H
#define PS_REPORT_COMPARISON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipesched/arena.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"

typedef struct ps_compared {
    const char *name;
    int32_t virtual_stages; // a rank
    ps_placement placement;
    const ps_status *refusal; // why it is left out; NULL: it is not, and the figures below hold
    int64_t makespan_ns;
    int64_t span_ns;
    double bubble;
    double span_bubble;
    int64_t p50_ns; // of the objective; 0 without jitter
    int64_t p95_ns;
    int64_t peak_activation; // of the fullest rank
    int64_t value_ns;        // what it is ranked by
    double loses;            // value / the best value - 1
} ps_compared;

typedef struct ps_comparison {
    int32_t num_devices;
    int32_t num_microbatches;
    const char *ranked_by; // "makespan", "span", "p95 of the makespan" or "p95 of the span"
    bool with_jitter;
    bool halved;    // schedules of two stages a rank run on the halves of the stages given
    bool in_bytes;  // memory; else the user's own unit
    bool limit_hit; // a search was cut short
    int32_t count;
    const ps_compared *row; // [count] ranked ones first, best first, then those left out
} ps_comparison;

ps_code ps_comparison_json(FILE *file, const ps_comparison *comparison, ps_status *status);
void ps_comparison_text(FILE *file, ps_arena *arena, const ps_comparison *comparison);

#endif
