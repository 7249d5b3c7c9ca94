// SPDX-License-Identifier: Apache-2.0
//
// load.c: files that several commands read.
#include "cli/load.h"

#include <string.h>

#include "base/text.h"
#include "cluster/cluster_formats.h"
#include "io/json_read.h"
#include "pipesched/limits.h"

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static ps_content content_of_json(ps_json root)
{
    const char *format = ps_json_text(ps_json_member(root, "format"));
    if (begins_with(format, "pipesched/model/"))
        return PS_CONTENT_MODEL;
    if (begins_with(format, "pipesched/cluster/"))
        return PS_CONTENT_CLUSTER;
    if (begins_with(format, "pipesched/plan/"))
        return PS_CONTENT_PLAN;
    if (format[0] == '\0' && (ps_json_member(root, "model_type").node || ps_json_member(root, "architectures").node))
        return PS_CONTENT_MODEL;
    return PS_CONTENT_UNKNOWN;
}

// PyTorch's schedule CSV: a row of cells such as "0F0,0F1,,0B0". Neither JSON nor XML begins with a comma, a
// parenthesis, or a number that goes on in a letter. A byte order mark is read over: the reader refuses it by name.
static bool is_schedule_csv(const char *text)
{
    static const char mark[] = "\xEF\xBB\xBF";
    const char *start = begins_with(text, mark) ? text + 3 : text;
    const char *at = start + strspn(start, ", \t\r\n");
    size_t digits = strspn(at, "0123456789");
    char after = at[digits];
    bool letter = (after >= 'A' && after <= 'Z') || (after >= 'a' && after <= 'z' && after != 'e');
    return start[0] == ',' || at[0] == '(' || (digits > 0 && letter);
}

ps_code ps_content_of(ps_arena *arena, const char *source, const ps_file_bytes *bytes, ps_content *out,
                      ps_status *status)
{
    *out = PS_CONTENT_UNKNOWN;
    if (ps_is_node_file(bytes->data, bytes->size))
        *out = PS_CONTENT_CLUSTER;
    else if (is_schedule_csv(bytes->data))
        *out = PS_CONTENT_SCHEDULE_CSV;
    if (*out != PS_CONTENT_UNKNOWN)
        return PS_OK;
    ps_json root;
    PS_TRY(ps_json_parse(arena, source, bytes->data, bytes->size, &root, status));
    *out = content_of_json(root);
    return PS_OK;
}

static const char *content_name(ps_content content)
{
    static const char *const name[] = {"a file of no known format", "a model", "a cluster", "a plan", "a schedule CSV"};
    return name[content];
}

ps_code ps_load_plan(const ps_run *run, const char *path, ps_plan *out, ps_status *status)
{
    ps_file_bytes bytes;
    PS_TRY(ps_file_read(run->arena, path, PS_MAX_FILE_BYTES, &bytes, status));
    return ps_load_plan_bytes(run, path, &bytes, out, status);
}

ps_code ps_load_plan_bytes(const ps_run *run, const char *path, const ps_file_bytes *bytes, ps_plan *out,
                           ps_status *status)
{
    ps_content content;
    PS_TRY(ps_content_of(run->arena, path, bytes, &content, status));
    if (content != PS_CONTENT_PLAN) {
        ps_fail(status, PS_BAD_INPUT, "unsupported-format", "expected a plan, got %s", content_name(content));
        ps_fail_at(status, path, 0, 0, NULL);
        return ps_fail_hint(status, "%s reads pipesched/plan/v1, as `pipesched plan ... -o FILE` writes it",
                            run->command->name);
    }
    PS_TRY(ps_plan_read_json(run->arena, path, bytes->data, bytes->size, out, status));
    for (int32_t index = 0; index < out->num_diagnostics; index++)
        if (strcmp(out->diagnostic[index].level, "warning") == 0)
            ps_run_warn(run, ps_text_format(run->arena, "%s: %s", path, out->diagnostic[index].message));
    return PS_OK;
}
