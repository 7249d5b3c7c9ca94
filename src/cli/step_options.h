// SPDX-License-Identifier: Apache-2.0
//
// step_options.h: the end of the step in bare numbers: --grad-sync, --optimizer-step and what goes with them.
#ifndef PS_CLI_STEP_OPTIONS_H
#define PS_CLI_STEP_OPTIONS_H

#include "cli/command.h"
#include "pipesched/step.h"

typedef struct ps_step_words {
    ps_number_list grad_sync;      // one, or one a virtual stage
    ps_number_list param_gather;   // likewise
    ps_number_list optimizer_step; // one, or one a rank
    ps_number_list barrier;        // one
    int32_t optimizer_barrier;     // index into ps_step_switch
    int32_t overlap;
    int64_t buckets;
} ps_step_words;

extern const char *const ps_step_switch[]; // "on", "off"; ends with NULL

// *out is NULL when none of the options was given. The state of the gradients takes the slowest hop's latency from rank
// to rank. PS_USAGE with rules list-length, missing-option, conflicting-options; time-overflow.
ps_code ps_step_options_read(const ps_run *run, const ps_step_words *words, const ps_pipeline *pipeline, ps_step **out,
                             ps_status *status);

// PS_USAGE, rule conflicting-options, when one was given beside the option `other`.
ps_code ps_step_options_exclude(const ps_run *run, const char *other, ps_status *status);

// PS_USAGE, rule conflicting-options, when one was given: a plan says its own.
ps_code ps_step_options_refuse(const ps_run *run, ps_status *status);

#endif
