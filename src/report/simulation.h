// SPDX-License-Identifier: Apache-2.0
//
// simulation.h: a schedule that was replayed: time, idle time by class, memory, bound and cells.
#ifndef PS_REPORT_SIMULATION_H
#define PS_REPORT_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipesched/jitter.h"
#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"
#include "pipesched/step.h"
#include "pipesched/timeline.h"

typedef struct ps_simulation {
    const char *name;       // of the schedule
    int32_t virtual_stages; // a rank
    const ps_pipeline *pipeline;
    const ps_schedule *schedule;
    const ps_timeline *timeline;
    const char *objective; // "makespan" or "span": what bound, gap and proved are about
    double bubble;
    double span_bubble;
    int64_t bound_ns;
    double gap;
    bool proved;
    const char *limited_by;         // "load", ...
    bool in_bytes;                  // memory; else the user's own unit
    const ps_status *misfit;        // rule and message of the first rank that exceeds its memory; NULL: all fit
    int32_t misfit_device;          // that rank
    const ps_jitter_result *jitter; // NULL: not asked for
    const ps_step *step;            // what ends the step; NULL: not known
    const ps_step_timeline *tail;
    ps_step_period period;
    bool list_timeline; // in the JSON
    bool searched;      // the order was searched for
    bool limit_hit;     // and the search was cut short
} ps_simulation;

ps_code ps_simulation_json(FILE *file, const ps_simulation *simulation, ps_status *status);
void ps_simulation_text(FILE *file, ps_arena *arena, const ps_simulation *simulation);

#endif
