// SPDX-License-Identifier: Apache-2.0
//
// job_json.c: a job file. Its keys are the options with '_' for '-', so every value goes through ps_job_set() and the
// two ways to say something cannot differ.
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "io/builtin.h"
#include "io/file.h"
#include "io/json_read.h"
#include "job/job_options.h"
#include "job/job_read.h"
#include "pipesched/limits.h"

static ps_code add_value(ps_text *text, ps_json value, ps_status *status)
{
    char number[32];
    switch (ps_json_type_of(value)) {
    case PS_JSON_STRING: ps_text_addf(text, "%s", ps_json_text(value)); return PS_OK;
    case PS_JSON_BOOL: ps_text_addf(text, "%s", ps_json_bool(value) ? "on" : "off"); return PS_OK;
    case PS_JSON_NUMBER: {
        // Whole numbers within 2^53 as digits, so that 1e3 reads as 1000.
        double real = ps_json_number(value);
        if (fabs(real) <= 0x1p53 && real == (double)(int64_t)real)
            ps_text_addf(text, "%lld", (long long)real);
        else
            ps_text_addf(text, "%s", ps_format_double(real, number));
        return PS_OK;
    }
    default:
        return ps_json_fail(value, "json-type", status,
                            "expected a number, a string, true or false, or a list of them");
    }
}

// As it would stand on a command line: "1,2,4".
static ps_code option_text(ps_arena *arena, ps_json value, const char **out, ps_status *status)
{
    ps_text text = {.arena = arena};
    ps_text_add(&text, "", 0);
    if (ps_json_is(value, PS_JSON_ARRAY)) {
        for (ps_json item = ps_json_first(value); item.node; item = ps_json_next(item)) {
            if (text.size > 0)
                ps_text_add(&text, ",", 1);
            PS_TRY(add_value(&text, item, status));
        }
    } else {
        PS_TRY(add_value(&text, value, status));
    }
    *out = text.data;
    return PS_OK;
}

static const char *option_name(ps_arena *arena, const char *key)
{
    char *name = ps_text_copy(arena, key);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return name;
}

static ps_code check_keys(ps_arena *arena, ps_json root, const char *const *others, ps_status *status)
{
    int32_t count = 0;
    while (others[count])
        count++;
    const char **keys = ps_new(arena, const char *, (int64_t)ps_job_num_options + count + 1);
    for (int32_t other = 0; other < count; other++)
        keys[other] = others[other];
    for (int32_t index = 0; index < ps_job_num_options; index++) {
        char *key = ps_text_copy(arena, ps_job_options[index].name);
        for (char *c = key; *c; c++)
            *c = *c == '-' ? '_' : *c;
        keys[count++] = key;
    }
    return ps_json_check_keys(root, keys, status);
}

static bool is_among(const char *key, const char *const *others)
{
    while (*others && strcmp(*others, key) != 0)
        others++;
    return *others || key[0] == '_' || key[0] == '$';
}

ps_code ps_job_read_members(ps_arena *arena, ps_json object, const char *const *others, ps_job *job, ps_status *status)
{
    PS_TRY(check_keys(arena, object, others, status));
    for (ps_json member = ps_json_first(object); member.node; member = ps_json_next(member)) {
        const char *key = ps_json_key(member);
        if (is_among(key, others) || ps_json_is(member, PS_JSON_NULL))
            continue;
        const char *value = NULL;
        PS_TRY(option_text(arena, member, &value, status));
        if (ps_job_set(job, option_name(arena, key), value, status) != PS_OK) {
            status->code = PS_BAD_INPUT; // the file is at fault, not the command line
            return ps_json_fail_place(member, status);
        }
    }
    return PS_OK;
}

static ps_code check_format(ps_json root, ps_status *status)
{
    const char *format = NULL;
    PS_TRY(ps_json_expect(root, PS_JSON_OBJECT, status));
    PS_TRY(ps_json_get_string(root, "format", PS_REQUIRED, &format, status));
    if (strcmp(format, "pipesched/job/v1") == 0)
        return PS_OK;
    bool version = strncmp(format, "pipesched/job/", 14) == 0;
    return ps_json_fail(ps_json_member(root, "format"), version ? "unknown-version" : "wrong-format", status,
                        "expected \"pipesched/job/v1\", got \"%.64s\"", format);
}

static ps_code parse_job(ps_arena *arena, const char *source, ps_file_bytes bytes, ps_job *job, ps_status *status)
{
    static const char *const others[] = {"format", "name", NULL};
    ps_json root;
    PS_TRY(ps_json_parse(arena, source, bytes.data, bytes.size, &root, status));
    PS_TRY(check_format(root, status));
    return ps_job_read_members(arena, root, others, job, status);
}

ps_code ps_job_load(ps_arena *arena, const char *path, ps_job *job, ps_status *status)
{
    bool may_be_builtin = strcmp(path, "-") != 0 && !strchr(path, '/');
    const ps_builtin *builtin = may_be_builtin ? ps_builtin_find(PS_BUILTIN_JOB, path) : NULL;
    ps_file_bytes bytes;
    if (builtin && !ps_file_exists(path)) {
        bytes = (ps_file_bytes){.data = ps_text_copy_n(arena, builtin->data, builtin->size), .size = builtin->size};
        return parse_job(arena, builtin->path, bytes, job, status);
    }
    PS_TRY(ps_file_read(arena, path, PS_MAX_FILE_BYTES, &bytes, status));
    return parse_job(arena, path, bytes, job, status);
}
