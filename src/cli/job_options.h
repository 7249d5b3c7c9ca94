// SPDX-License-Identifier: Apache-2.0
//
// job_options.h: the job options as rows of the command line; ps_job_set() reads their values.
#ifndef PS_CLI_JOB_OPTIONS_H
#define PS_CLI_JOB_OPTIONS_H

#include "cli/command.h"
#include "cli/options.h"
#include "pipesched/job.h"

extern const ps_option_group ps_job_option_group;      // all of them: plan
extern const ps_option_group ps_job_cost_option_group; // those that shape the cost of a layer: partition, show --cost

// Defaults, then the file (NULL: none), then the options in their order.
ps_code ps_job_from_options(const ps_run *run, const char *file, ps_job *job, ps_status *status);

#endif
