// SPDX-License-Identifier: Apache-2.0
//
// load.h: files that several commands read.
#ifndef PS_CLI_LOAD_H
#define PS_CLI_LOAD_H

#include "cli/command.h"
#include "io/file.h"
#include "pipesched/plan.h"

// What the content of a file is.
typedef enum ps_content {
    PS_CONTENT_UNKNOWN,
    PS_CONTENT_MODEL,
    PS_CONTENT_CLUSTER,
    PS_CONTENT_PLAN,
    PS_CONTENT_SCHEDULE_CSV
} ps_content;

// By "format", by the keys of a Hugging Face config.json, or XML for a cluster. A JSON fault is that of
// ps_json_parse().
ps_code ps_content_of(ps_arena *arena, const char *source, const ps_file_bytes *bytes, ps_content *out,
                      ps_status *status);

// A plan file or "-"; its diagnostics become warnings on stderr. Rule unsupported-format for anything else.
ps_code ps_load_plan(const ps_run *run, const char *path, ps_plan *out, ps_status *status);
// The same of a file that has been read.
ps_code ps_load_plan_bytes(const ps_run *run, const char *path, const ps_file_bytes *bytes, ps_plan *out,
                           ps_status *status);

#endif
