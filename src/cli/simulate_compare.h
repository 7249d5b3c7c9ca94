// SPDX-License-Identifier: Apache-2.0
//
// simulate_compare.h: simulate --compare: every schedule of one pipeline, ranked.
#ifndef PS_CLI_SIMULATE_COMPARE_H
#define PS_CLI_SIMULATE_COMPARE_H

#include "cli/bare_pipeline.h"
#include "cli/command.h"
#include "cli/jitter_options.h"

typedef struct ps_compare_options {
    const ps_bare_options *bare;
    const ps_jitter_words *jitter; // with a share: rank by p95; else by the time itself
    bool of_span;
    int32_t effort;
} ps_compare_options;

// All families that can be made from bare numbers without R, and the best order that a search finds, written as a table
// or JSON. Families of two stages a rank run on the halves of the stages where one a rank is given. What is illegal or
// does not fit is listed with its reason; run->verdict is PS_INFEASIBLE when that is all. PS_USAGE and PS_BAD_INPUT as
// ps_bare_pipeline(), and PS_USAGE for options that do not go with it. run->control is polled.
ps_code ps_compare_run(ps_run *run, const ps_compare_options *options, bool *limit_hit, ps_status *status);

#endif
