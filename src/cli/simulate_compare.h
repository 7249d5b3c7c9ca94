// SPDX-License-Identifier: Apache-2.0
//
// simulate_compare.h: simulate --compare: every schedule of one pipeline, ranked.
#ifndef PS_CLI_SIMULATE_COMPARE_H
#define PS_CLI_SIMULATE_COMPARE_H

#include "cli/bare_pipeline.h"
#include "cli/command.h"
#include "pipesched/jitter.h"
#include "report/comparison.h"

typedef struct ps_compare_options {
    const ps_bare_options *bare;
    const ps_jitter_options *jitter; // rank by p95; NULL: by the time itself
    bool of_span;
    int32_t effort;
} ps_compare_options;

// All families that can be made from bare numbers, and the best order that a search finds. Families of two stages a
// rank run on the halves of the stages where one a rank is given. What is illegal or does not fit is listed with its
// reason. PS_USAGE and PS_BAD_INPUT as ps_bare_pipeline(). run->control is polled.
ps_code ps_compare_schedules(ps_run *run, const ps_compare_options *options, ps_comparison *out, ps_status *status);

#endif
