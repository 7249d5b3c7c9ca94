// SPDX-License-Identifier: Apache-2.0
//
// runs_json.c: pipesched/runs/v1. Every run is job options and a time; "job" holds what they share.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/json_read.h"
#include "job/job_read.h"
#include "pipesched/limits.h"
#include "plan/runs.h"

#define FORMAT "pipesched/runs/v1"

static const char *const keys[] = {"format", "framework", "gpu", "job", "runs", NULL};
static const char *const job_keys[] = {NULL};
static const char *const run_keys[] = {"name", "iteration_ms", "framework", "gpu", NULL};

static ps_code read_format(ps_json root, ps_status *status)
{
    const char *format = NULL;
    PS_TRY(ps_json_get_string(root, "format", PS_REQUIRED, &format, status));
    if (strcmp(format, FORMAT) == 0)
        return PS_OK;
    bool version = strncmp(format, "pipesched/runs/", 15) == 0;
    return ps_json_fail(ps_json_member(root, "format"), version ? "unknown-version" : "wrong-format", status,
                        "expected \"%s\", got \"%.64s\"", FORMAT, format);
}

static ps_code read_run(ps_runs_reader *reader, ps_json object, const ps_measured_run *shared)
{
    int32_t number = (int32_t)reader->runs.count;
    ps_measured_run *run = ps_vec_push(reader->arena, &reader->runs);
    int64_t ns = 0;

    *run = *shared;
    run->name = ps_text_format(reader->arena, "run %d", (int)number);
    run->pointer = ps_text_format(reader->arena, "/runs/%d", (int)number);
    PS_TRY(ps_json_expect(object, PS_JSON_OBJECT, reader->status));
    PS_TRY(ps_job_read_members(reader->arena, object, run_keys, &run->job, reader->status));
    PS_TRY(ps_json_get_string(object, "name", PS_OPTIONAL, &run->name, reader->status));
    PS_TRY(ps_json_get_string(object, "framework", PS_OPTIONAL, &run->framework, reader->status));
    PS_TRY(ps_json_get_string(object, "gpu", PS_OPTIONAL, &run->gpu, reader->status));
    PS_TRY(ps_json_get_ms(object, "iteration_ms", PS_REQUIRED, PS_MAX_TIME_NS / 1024, &ns, reader->status));
    if (ns < 1)
        return ps_json_fail(ps_json_member(object, "iteration_ms"), "run-time", reader->status,
                            "the time of an iteration must be above 0");
    run->seconds = (double)ns * 1e-9;
    return PS_OK;
}

ps_code ps_runs_read_json(ps_runs_reader *reader)
{
    ps_status *status = reader->status;
    ps_measured_run shared = {.framework = reader->framework, .job = *reader->base};
    ps_json root;

    PS_TRY(ps_json_parse(reader->arena, reader->source, reader->text, reader->size, &root, status));
    PS_TRY(read_format(root, status));
    PS_TRY(ps_json_check_keys(root, keys, status));
    PS_TRY(ps_json_get_string(root, "framework", PS_OPTIONAL, &shared.framework, status));
    PS_TRY(ps_json_get_string(root, "gpu", PS_OPTIONAL, &shared.gpu, status));
    ps_json job = ps_json_member(root, "job");
    if (job.node) {
        PS_TRY(ps_json_expect(job, PS_JSON_OBJECT, status));
        PS_TRY(ps_job_read_members(reader->arena, job, job_keys, &shared.job, status));
    }
    ps_json runs = ps_json_member(root, "runs");
    if (!runs.node)
        return ps_json_fail(root, "missing-key", status, "the key \"runs\" is missing");
    PS_TRY(ps_json_expect(runs, PS_JSON_ARRAY, status));
    for (ps_json run = ps_json_first(runs); run.node; run = ps_json_next(run))
        PS_TRY(read_run(reader, run, &shared));
    return PS_OK;
}
