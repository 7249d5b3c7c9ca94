// SPDX-License-Identifier: Apache-2.0
//
// runs.h: readers of measured runs, one file a format.
#ifndef PS_PLAN_RUNS_H
#define PS_PLAN_RUNS_H

#include "base/vec.h"
#include "pipesched/calibrate.h"

// A file that is being read into runs.
typedef struct ps_runs_reader {
    ps_arena *arena;
    const char *source;
    const char *text; // ends with a NUL that is not counted
    int64_t size;
    const ps_job *base;
    const char *framework; // NULL: not given
    ps_vec(ps_measured_run) runs;
    ps_vec(const char *) warnings;
    ps_status *status;
} ps_runs_reader;

ps_code ps_runs_read_json(ps_runs_reader *reader);
ps_code ps_runs_read_csv(ps_runs_reader *reader);
ps_code ps_runs_read_log(ps_runs_reader *reader);
// The log of Megatron-LM: some line tells the time of an iteration.
bool ps_runs_is_log(const char *text);

#endif
