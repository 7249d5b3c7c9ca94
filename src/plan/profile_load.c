// SPDX-License-Identifier: Apache-2.0
//
// profile_load.c: which format a profile has. JSON is a model or a calibration with measurements; the rest is a table.
#include "pipesched/profile.h"

#include <string.h>

#include "base/text.h"
#include "io/file.h"
#include "io/json_read.h"
#include "pipesched/calibration.h"
#include "pipesched/limits.h"
#include "plan/profile_csv.h"

static ps_code take_model(ps_arena *arena, const char *text, int64_t size, ps_profile *out, ps_status *status)
{
    ps_model model;
    PS_TRY(ps_model_parse(arena, out->source, text, size, &model, status));
    out->measurement = model.measurement;
    out->num_measurements = model.num_measurements;
    return PS_OK;
}

static ps_code take_calibration(ps_arena *arena, const char *text, int64_t size, ps_profile *out, ps_status *status)
{
    ps_calibration calibration;
    PS_TRY(ps_calibration_parse(arena, out->source, text, size, &calibration, status));
    out->measurement = calibration.measurement;
    out->num_measurements = calibration.num_measurements;
    return PS_OK;
}

static ps_code take_json(ps_arena *arena, const char *text, int64_t size, ps_profile *out, ps_status *status)
{
    ps_json root;
    PS_TRY(ps_json_parse(arena, out->source, text, size, &root, status));
    const char *format = ps_json_text(ps_json_member(root, "format"));
    if (strncmp(format, "pipesched/calibration/", 22) == 0)
        return take_calibration(arena, text, size, out, status);
    if (strncmp(format, "pipesched/model/", 16) == 0)
        return take_model(arena, text, size, out, status);
    ps_json_fail(root, "wrong-format", status,
                 "expected \"pipesched/model/v1\" or \"pipesched/calibration/v1\", got \"%.64s\"", format);
    return ps_fail_hint(status, "a CSV with layer,forward_ms,backward_input_ms,backward_weight_ms is read too");
}

ps_code ps_profile_parse(ps_arena *arena, const char *source, const char *text, int64_t size, const ps_model *model,
                         const ps_profile_conditions *conditions, ps_profile *out, ps_status *status)
{
    *out = (ps_profile){.source = ps_text_copy(arena, source)};
    const char *first = text;
    while (first < text + size && (*first == ' ' || *first == '\t' || *first == '\r' || *first == '\n'))
        first++;
    if (first < text + size && (*first == '{' || *first == '['))
        PS_TRY(take_json(arena, text, size, out, status));
    else
        PS_TRY(ps_profile_read_csv(arena, text, size, model, conditions, out, status));
    if (out->num_measurements > 0)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "profile-empty", "the file has no measured times of layers");
    ps_fail_at(status, out->source, 1, 1, NULL);
    return ps_fail_hint(status,
                        "a CSV with layer,forward_ms,backward_input_ms,backward_weight_ms, or a model file with "
                        "\"measurements\"");
}

ps_code ps_profile_load(ps_arena *arena, const char *path, const ps_model *model,
                        const ps_profile_conditions *conditions, ps_profile *out, ps_status *status)
{
    ps_file_bytes bytes;
    PS_TRY(ps_file_read(arena, path, PS_MAX_FILE_BYTES, &bytes, status));
    return ps_profile_parse(arena, path, bytes.data, bytes.size, model, conditions, out, status);
}
