// SPDX-License-Identifier: Apache-2.0
//
// simulate_curve.h: `simulate --memory-curve`: a search at each of several memory limits.
#ifndef PS_CLI_SIMULATE_CURVE_H
#define PS_CLI_SIMULATE_CURVE_H

#include "cli/command.h"
#include "pipesched/order_search.h"

typedef struct ps_curve_call {
    const char *name; // of the schedule
    const ps_number_list *limit;
    const ps_pipeline *pipeline;
    const ps_order_options *search;
    bool in_bytes;
} ps_curve_call;

// PS_USAGE: rule bad-value where the limits do not rise, rule conflicting-options where another option would not be
// heard. Prints the curve; the verdict is infeasible where no limit fits.
ps_code ps_simulate_curve(ps_run *run, const ps_curve_call *call, ps_status *status);

#endif
