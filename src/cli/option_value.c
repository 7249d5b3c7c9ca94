// SPDX-License-Identifier: Apache-2.0
//
// option_value.c: one word of the command line to a value of its option's type.
#include "cli/option_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "pipesched/limits.h"

// A value that a parser of quantities refused is a fault of the command line, at this option.
static ps_code fail_value(const char *option, ps_status *status)
{
    status->code = PS_USAGE;
    snprintf(status->rule, sizeof status->rule, "bad-value");
    return ps_fail_at(status, option, 0, 0, NULL);
}

static bool is_bare(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789.eE+-")] == '\0';
}

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

// `bare_ns` is what a bare number counts.
static ps_code parse_time(const char *text, int64_t bare_ns, int64_t max_ns, int64_t *ns, ps_status *status)
{
    if (!is_bare(text))
        PS_TRY(ps_parse_duration(text, ns, status));
    else if (!ps_decimal_scaled(text, (int64_t)strlen(text), bare_ns, ns))
        return ps_fail(status, PS_USAGE, "bad-value", "expected %s, got \"%.80s\"",
                       bare_ns == NS_PER_S ? "seconds or a time such as \"90s\""
                                           : "milliseconds or a time such as \"3.2ms\"",
                       text);
    char most[32];
    if (*ns > max_ns)
        return ps_fail(status, PS_USAGE, "bad-value", "expected a time of at most %s, got \"%.80s\"",
                       ps_format_ns(max_ns, most), text);
    return PS_OK;
}

static ps_code parse_memory(const char *text, int64_t *size, ps_status *status)
{
    if (!is_bare(text))
        return ps_parse_bytes(text, size, status);
    if (ps_parse_int(text, 0, PS_MAX_BYTES, size, status) != PS_OK)
        return ps_fail(status, PS_USAGE, "bad-value",
                       "expected a whole number of your own unit, or bytes such as \"80GiB\", got \"%.80s\"", text);
    return PS_OK;
}

typedef struct list_context {
    ps_arena *arena;
    const char *option;
    bool is_time;
} list_context;

static ps_code parse_list(const list_context *context, const char *text, ps_number_list *out, ps_status *status)
{
    ps_vec(int64_t) values = {0};
    *out = (ps_number_list){0};
    for (const char *at = text;; at++) {
        int64_t size = (int64_t)strcspn(at, ",");
        const char *item = ps_text_copy_n(context->arena, at, size);
        int64_t *value = ps_vec_push(context->arena, &values);
        ps_code code = context->is_time ? parse_time(item, NS_PER_MS, PS_MAX_LAYER_NS, value, status)
                                        : parse_memory(item, value, status);
        if (code != PS_OK)
            return fail_value(context->option, status);
        if (!is_bare(item))
            out->with_unit = true;
        else if (*value != 0)
            out->bare = true;
        at += size;
        if (*at == '\0')
            break;
        if (values.count > PS_MAX_LAYERS)
            return ps_fail(status, PS_USAGE, "bad-value", "more than %d numbers", (int)PS_MAX_LAYERS);
    }
    out->count = (int32_t)values.count;
    out->value = values.data;
    return PS_OK;
}

ps_code ps_times_parse(ps_arena *arena, const char *option, const char *text, ps_number_list *out, ps_status *status)
{
    return parse_list(&(list_context){arena, option, true}, text, out, status);
}

static ps_code parse_choice(const ps_option *option, const char *text, int32_t *index, ps_status *status)
{
    int32_t count = 0;
    char all[256] = "";
    for (; option->choices[count]; count++) {
        if (strcmp(option->choices[count], text) == 0) {
            *index = count;
            return PS_OK;
        }
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", count > 0 ? ", " : "", option->choices[count]);
    }
    ps_fail(status, PS_USAGE, "bad-value", "expected one of %s, got \"%.80s\"", all, text);
    const char *near = ps_text_nearest(text, option->choices, count);
    return near ? ps_fail_hint(status, "did you mean \"%s\"?", near) : status->code;
}

static void add_string(ps_arena *arena, ps_string_list *list, const char *text)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity > 0 ? 2 * list->capacity : 8;
        const char **grown = ps_new(arena, const char *, list->capacity);
        for (int32_t index = 0; index < list->count; index++)
            grown[index] = list->value[index];
        list->value = grown;
    }
    list->value[list->count++] = text;
}

static ps_code parse_value(ps_arena *arena, const ps_option *option, const char *text, void *place, ps_status *status)
{
    list_context list = {arena, "", option->type == PS_OPTION_TIMES};
    switch (option->type) {
    case PS_OPTION_FLAG: *(bool *)place = true; return PS_OK;
    case PS_OPTION_INT: return ps_parse_int(text, option->min, option->max, place, status);
    case PS_OPTION_STRING:
    case PS_OPTION_STRINGS:
        if (text[0] == '\0')
            return ps_fail(status, PS_USAGE, "bad-value", "expected %s, got nothing", option->metavar);
        if (option->type == PS_OPTION_STRINGS)
            add_string(arena, place, text);
        else
            *(const char **)place = text;
        return PS_OK;
    case PS_OPTION_CHOICE: return parse_choice(option, text, place, status);
    case PS_OPTION_RATE:
        PS_TRY(ps_parse_rate(text, place, status));
        if (!(*(double *)place > 0))
            return ps_fail(status, PS_USAGE, "bad-value", "expected a rate above 0, got \"%.80s\"", text);
        return PS_OK;
    case PS_OPTION_DURATION: return parse_time(text, NS_PER_S, PS_MAX_TIME_NS, place, status);
    case PS_OPTION_TIMES:
    case PS_OPTION_MEMORY: return parse_list(&list, text, place, status);
    case PS_OPTION_JOB: return PS_OK; // kept as words
    }
    return PS_OK;
}

ps_code ps_option_set(ps_arena *arena, const ps_option *option, const char *text, void *values, ps_status *status)
{
    if (parse_value(arena, option, text, (char *)values + option->offset, status) == PS_OK)
        return PS_OK;
    char name[64];
    snprintf(name, sizeof name, "--%s", option->name);
    return fail_value(name, status);
}

ps_code ps_memory_units_agree(const ps_number_list *const *list, const char *const *name, int32_t count,
                              ps_status *status)
{
    const char *bare = NULL;
    const char *with_unit = NULL;
    for (int32_t index = 0; index < count; index++) {
        if (list[index]->bare && !bare)
            bare = name[index];
        if (list[index]->with_unit && !with_unit)
            with_unit = name[index];
    }
    if (!bare || !with_unit)
        return PS_OK;
    ps_fail(status, PS_USAGE, "mixed-units", "memory with a unit in %s and a bare number in %s", with_unit, bare);
    return ps_fail_hint(status, "give every memory figure a unit, or none");
}

ps_code ps_memory_limit_expect(const ps_number_list *limit, ps_status *status)
{
    for (int32_t index = 0; index < limit->count; index++) {
        if (limit->value[index] > 0)
            continue;
        ps_fail(status, PS_USAGE, "bad-value", "expected a size above 0, got 0");
        return ps_fail_at(status, "--memory-limit", 0, 0, NULL);
    }
    return PS_OK;
}

int64_t ps_number_at(const ps_number_list *list, int64_t index)
{
    if (list->count == 0)
        return 0;
    return list->value[list->count == 1 ? 0 : index];
}

ps_code ps_numbers_expect(const ps_number_list *list, const char *option, int64_t count, const char *what,
                          ps_status *status)
{
    if (list->count <= 1 || list->count == count)
        return PS_OK;
    ps_fail(status, PS_USAGE, "list-length", "expected one number or one a %s (%" PRId64 "), got %d", what, count,
            (int)list->count);
    return ps_fail_at(status, option, 0, 0, NULL);
}
