// SPDX-License-Identifier: Apache-2.0
//
// simulate_search.h: the search for an order in `simulate`, and the options that belong to it.
#ifndef PS_CLI_SIMULATE_SEARCH_H
#define PS_CLI_SIMULATE_SEARCH_H

#include "cli/bare_pipeline.h"
#include "cli/command.h"
#include "report/simulation.h"

typedef struct ps_search_call {
    const ps_schedule_family *family; // ps_bare_zb or ps_bare_auto
    const ps_bare_options *bare;
    const ps_pipeline *pipeline;
    bool of_span;
    int32_t effort;
    int64_t time_limit; // ns; read where the option is given
} ps_search_call;

// PS_USAGE, rule conflicting-options: an option of a search beside `schedule`, which is none.
ps_code ps_search_options_refuse(const ps_run *run, const char *schedule, ps_status *status);

// Before and after anything that searches: the clock, interrupts, progress on a terminal, and what is said when the
// time limit was hit.
void ps_search_start(ps_run *run, int64_t time_limit);
void ps_search_end(ps_run *run, bool limit_hit);

// Fills order, times, bound and how the search ended; with --memory-curve prints the curve instead. Errors as
// ps_order_search() and ps_simulate_curve().
ps_code ps_simulate_search(ps_run *run, const ps_search_call *call, ps_simulation *simulation, ps_status *status);

#endif
