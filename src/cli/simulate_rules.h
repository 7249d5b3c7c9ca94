// SPDX-License-Identifier: Apache-2.0
//
// simulate_rules.h: rule files in `simulate`.
#ifndef PS_CLI_SIMULATE_RULES_H
#define PS_CLI_SIMULATE_RULES_H

#include "cli/bare_pipeline.h"
#include "cli/command.h"

typedef struct ps_rules_simulation {
    ps_pipeline pipeline;
    ps_schedule schedule;
    const char *source; // of the rules, for what the simulator finds
    int32_t virtual_stages;
} ps_rules_simulation;

// The rules of a file or of a name, laid on bare numbers. PS_USAGE as ps_bare_pipeline(); otherwise as
// schedule/rule_file.h.
ps_code ps_rules_simulation_load(ps_run *run, const char *name, const ps_bare_options *bare, ps_rules_simulation *out,
                                 ps_status *status);

#endif
