// SPDX-License-Identifier: Apache-2.0
//
// json_get.c: what readers of a format ask of an object: known keys, and members of a type and range.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/json_read.h"
#include "pipesched/limits.h"

enum { SHOWN = 96 }; // bytes of a value that an error repeats

// The value as an error shows it: numbers and strings as written, cut where too long.
static const char *describe(ps_json value, char text[SHOWN])
{
    int64_t size;
    const char *raw = ps_json_raw(value, &size);
    if (ps_json_is(value, PS_JSON_OBJECT))
        return "an object";
    if (ps_json_is(value, PS_JSON_ARRAY))
        return "an array";
    if (size == 0)
        return "nothing";
    bool cut = size > SHOWN - 8;
    snprintf(text, SHOWN, "%.*s%s", cut ? SHOWN - 8 : (int)size, raw, cut ? "..." : "");
    return text;
}

static ps_code fail_expected(ps_json value, const char *rule, const char *expected, ps_status *status)
{
    char got[SHOWN];
    return ps_json_fail(value, rule, status, "expected %s, got %s", expected, describe(value, got));
}

static void hint_known_keys(const char *unknown, const char *const *names, ps_status *status)
{
    int32_t count = 0;
    while (names[count])
        count++;
    const char *near = ps_text_nearest(unknown, names, count);
    if (near) {
        ps_fail_hint(status, "did you mean \"%s\"?", near);
        return;
    }
    char list[sizeof status->hint] = "";
    for (int32_t name = 0; name < count; name++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", name > 0 ? ", " : "", names[name]);
    }
    ps_fail_hint(status, "the keys known here are %s", count > 0 ? list : "none");
}

ps_code ps_json_check_keys(ps_json object, const char *const *names, ps_status *status)
{
    PS_TRY(ps_json_expect(object, PS_JSON_OBJECT, status));
    for (ps_json member = ps_json_first(object); member.node; member = ps_json_next(member)) {
        const char *key = ps_json_key(member);
        const char *const *name = names;
        while (*name && strcmp(*name, key) != 0)
            name++;
        if (*name || key[0] == '_' || key[0] == '$')
            continue;
        ps_json_fail(member, "unknown-key", status, "unknown key \"%.80s\"", key);
        hint_known_keys(key, names, status);
        return status->code;
    }
    return PS_OK;
}

ps_code ps_json_expect(ps_json value, ps_json_type type, ps_status *status)
{
    static const char *const name[] = {"null", "true or false", "a number", "a string", "an array", "an object"};
    return ps_json_is(value, type) ? PS_OK : fail_expected(value, "json-type", name[type], status);
}

// The member, or an absent cursor; fails when it is needed.
static ps_code find(ps_json object, const char *key, ps_need need, ps_json *value, ps_status *status)
{
    *value = ps_json_member(object, key);
    if (ps_json_is(*value, PS_JSON_NULL))
        value->node = NULL;
    if (value->node || need == PS_OPTIONAL)
        return PS_OK;
    return ps_json_fail(object, "missing-key", status, "the key \"%s\" is missing", key);
}

static bool ends_with(const char *key, const char *suffix)
{
    size_t key_size = strlen(key);
    size_t suffix_size = strlen(suffix);
    return key_size >= suffix_size && strcmp(key + key_size - suffix_size, suffix) == 0;
}

static ps_code check_int(ps_json value, int64_t min, int64_t max, int64_t *out, ps_status *status)
{
    static const char whole[] = "a whole number";
    double number = ps_json_number(value);
    if (!ps_json_is(value, PS_JSON_NUMBER) || number != floor(number))
        return fail_expected(value, "json-type", whole, status);
    char expected[96];
    if (max == INT64_MAX)
        snprintf(expected, sizeof expected, "%s of at least %" PRId64, whole, min);
    else
        snprintf(expected, sizeof expected, "%s from %" PRId64 " to %" PRId64, whole, min, max);
    if (fabs(number) > 0x1p53 || (int64_t)number < min || (int64_t)number > max)
        return fail_expected(value, "out-of-range", expected, status);
    *out = (int64_t)number;
    return PS_OK;
}

ps_code ps_json_get_int(ps_json object, const char *key, ps_need need, int64_t min, int64_t max, int64_t *out,
                        ps_status *status)
{
    ps_json value;
    PS_TRY(find(object, key, need, &value, status));
    return value.node ? check_int(value, min, max, out, status) : PS_OK;
}

ps_code ps_json_get_int32(ps_json object, const char *key, ps_need need, int32_t min, int32_t max, int32_t *out,
                          ps_status *status)
{
    int64_t wide = *out;
    PS_TRY(ps_json_get_int(object, key, need, min, max, &wide, status));
    *out = (int32_t)wide;
    return PS_OK;
}

ps_code ps_json_get_double(ps_json object, const char *key, ps_need need, double min, double max, double *out,
                           ps_status *status)
{
    ps_json value;
    PS_TRY(find(object, key, need, &value, status));
    if (!value.node)
        return PS_OK;
    PS_TRY(ps_json_expect(value, PS_JSON_NUMBER, status));
    double number = ps_json_number(value);
    if (number >= min && number <= max) {
        *out = number;
        return PS_OK;
    }
    char least[32];
    char most[32];
    char expected[128];
    if (!(max < 0x1.fffffffffffffp1023))
        snprintf(expected, sizeof expected, "a number of at least %s", ps_format_double(min, least));
    else
        snprintf(expected, sizeof expected, "a number from %s to %s", ps_format_double(min, least),
                 ps_format_double(max, most));
    return fail_expected(value, "out-of-range", expected, status);
}

ps_code ps_json_get_bool(ps_json object, const char *key, ps_need need, bool *out, ps_status *status)
{
    ps_json value;
    PS_TRY(find(object, key, need, &value, status));
    if (!value.node)
        return PS_OK;
    PS_TRY(ps_json_expect(value, PS_JSON_BOOL, status));
    *out = ps_json_bool(value);
    return PS_OK;
}

ps_code ps_json_get_string(ps_json object, const char *key, ps_need need, const char **out, ps_status *status)
{
    ps_json value;
    PS_TRY(find(object, key, need, &value, status));
    if (!value.node)
        return PS_OK;
    PS_TRY(ps_json_expect(value, PS_JSON_STRING, status));
    *out = ps_json_text(value);
    return PS_OK;
}

ps_code ps_json_get_bytes(ps_json object, const char *key, ps_need need, int64_t *out, ps_status *status)
{
    ps_json value;
    PS_TRY(find(object, key, need, &value, status));
    if (!value.node)
        return PS_OK;
    if (ps_json_is(value, PS_JSON_NUMBER) && ends_with(key, "_bytes"))
        return check_int(value, 0, PS_MAX_BYTES, out, status);
    if (!ps_json_is(value, PS_JSON_STRING))
        return fail_expected(value, "json-type", "bytes such as \"80GiB\"", status);
    if (ps_parse_bytes(ps_json_text(value), out, status) != PS_OK)
        return ps_json_fail_place(value, status);
    return PS_OK;
}

ps_code ps_json_get_rate(ps_json object, const char *key, ps_need need, double *bytes_per_second, ps_status *status)
{
    if (ps_json_is(ps_json_member(object, key), PS_JSON_NUMBER) && ends_with(key, "_bytes_per_s"))
        return ps_json_get_double(object, key, need, 0, (double)PS_MAX_BYTES, bytes_per_second, status);
    ps_json value;
    PS_TRY(find(object, key, need, &value, status));
    if (!value.node)
        return PS_OK;
    if (!ps_json_is(value, PS_JSON_STRING))
        return fail_expected(value, "json-type", "a rate such as \"400Gb/s\" or \"25GB/s\"", status);
    if (ps_parse_rate(ps_json_text(value), bytes_per_second, status) != PS_OK)
        return ps_json_fail_place(value, status);
    return PS_OK;
}

static ps_code get_time(ps_json object, const char *key, ps_need need, bool takes_number, int64_t max_ns, int64_t *ns,
                        ps_status *status)
{
    ps_json value;
    PS_TRY(find(object, key, need, &value, status));
    if (!value.node)
        return PS_OK;

    bool in_range = false;
    int64_t number_ns = 0;
    if (ps_json_is(value, PS_JSON_NUMBER) && takes_number) {
        int64_t size;
        const char *raw = ps_json_raw(value, &size);
        if (ps_json_number(value) == 0) // -0 too
            in_range = true;
        else
            in_range = ps_decimal_scaled(raw, size, 1000000, &number_ns);
    } else if (ps_json_is(value, PS_JSON_STRING)) {
        if (ps_parse_duration(ps_json_text(value), &number_ns, status) != PS_OK)
            return ps_json_fail_place(value, status);
        in_range = true;
    } else {
        return fail_expected(value, "json-type",
                             takes_number ? "milliseconds or a time such as \"3.2ms\"" : "a time such as \"3.2ms\"",
                             status);
    }
    if (!in_range || number_ns > max_ns) {
        char most[32];
        char expected[96];
        snprintf(expected, sizeof expected, "a time from 0 to %s ms", ps_format_ms(max_ns, most));
        return fail_expected(value, "out-of-range", expected, status);
    }
    *ns = number_ns;
    return PS_OK;
}

ps_code ps_json_get_ms(ps_json object, const char *key, ps_need need, int64_t max_ns, int64_t *ns, ps_status *status)
{
    return get_time(object, key, need, ends_with(key, "_ms"), max_ns, ns, status);
}

ps_code ps_json_get_plain_ms(ps_json object, const char *key, ps_need need, int64_t max_ns, int64_t *ns,
                             ps_status *status)
{
    return get_time(object, key, need, true, max_ns, ns, status);
}
