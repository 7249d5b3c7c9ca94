// SPDX-License-Identifier: Apache-2.0
//
// runs_load.c: which format a file of runs has. JSON begins with a brace; a log tells times of iterations; the rest is
// a table.
#include <string.h>

#include "base/text.h"
#include "io/file.h"
#include "pipesched/limits.h"
#include "plan/runs.h"

ps_code ps_measured_runs_parse(ps_arena *arena, const char *source, const char *text, int64_t size, const ps_job *base,
                               const char *framework, ps_measured_runs *out, ps_status *status)
{
    ps_runs_reader reader = {.arena = arena,
                             .source = ps_text_copy(arena, source),
                             .text = text,
                             .size = size,
                             .base = base,
                             .framework = framework,
                             .status = status};

    if (text[strspn(text, " \t\r\n")] == '{')
        PS_TRY(ps_runs_read_json(&reader));
    else if (ps_runs_is_log(text))
        PS_TRY(ps_runs_read_log(&reader));
    else
        PS_TRY(ps_runs_read_csv(&reader));
    if (reader.runs.count < 1) {
        ps_fail(status, PS_BAD_INPUT, "runs-missing", "the file has no runs");
        return ps_fail_at(status, source, 0, 0, NULL);
    }
    *out = (ps_measured_runs){.source = reader.source,
                              .count = (int32_t)reader.runs.count,
                              .run = reader.runs.data,
                              .num_warnings = (int32_t)reader.warnings.count,
                              .warning = reader.warnings.data};
    return PS_OK;
}

ps_code ps_measured_runs_load(ps_arena *arena, const char *path, const ps_job *base, const char *framework,
                              ps_measured_runs *out, ps_status *status)
{
    ps_file_bytes bytes;
    PS_TRY(ps_file_read(arena, path, PS_MAX_FILE_BYTES, &bytes, status));
    return ps_measured_runs_parse(arena, path, bytes.data, bytes.size, base, framework, out, status);
}
