// SPDX-License-Identifier: Apache-2.0
//
// job_read.h: job options as members of a JSON object, for files other than a job's.
#ifndef PS_JOB_JOB_READ_H
#define PS_JOB_JOB_READ_H

#include "io/json_read.h"
#include "pipesched/job.h"

// Every member is an option with '_' for '-', or one of `others`, which ends with NULL and is left to the caller.
ps_code ps_job_read_members(ps_arena *arena, ps_json object, const char *const *others, ps_job *job, ps_status *status);

#endif
