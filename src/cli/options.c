// SPDX-License-Identifier: Apache-2.0
//
// options.c: words of the command line to options and operands. popt splits the words (options after operands,
// "--name=value", "-ofile", "--"); every value is a string to it and is read by the option's own row.
#include "cli/options.h"

#include <popt.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "cli/option_value.h"

#define COMMON(kind, field, letter, values, text)                                                                      \
    {                                                                                                                  \
        .name = #field, .short_name = (letter), .type = PS_OPTION_##kind,                                              \
        .offset = offsetof(ps_common_options, field), .metavar = (values), .help = (text)                              \
    }

static const ps_option common[] = {
    COMMON(FLAG, help, 'h', NULL, "print this help"),
    COMMON(FLAG, json, '\0', NULL, "print JSON instead of text; help and version are always text"),
    COMMON(STRING, output, 'o', "FILE", "write the result to FILE, whole or not at all"),
    COMMON(FLAG, quiet, 'q', NULL, "no notes, no progress"),
    COMMON(FLAG, verbose, 'v', NULL, "more detail"),
};

const ps_option_group ps_common_option_group = {"Common options", common, PS_OPTION_COUNT(common)};

// Every row of a command in one array, and the names for "did you mean".
typedef struct row_list {
    const ps_option **row;
    const char **name;
    int32_t count;
} row_list;

static row_list collect_rows(ps_arena *arena, const ps_option_group *const *groups)
{
    int32_t count = 0;
    for (const ps_option_group *const *group = groups; *group; group++)
        count += (*group)->count;
    row_list rows = {ps_new(arena, const ps_option *, count), ps_new(arena, const char *, count), 0};
    for (const ps_option_group *const *group = groups; *group; group++) {
        for (int32_t index = 0; index < (*group)->count; index++) {
            rows.row[rows.count] = &(*group)->option[index];
            rows.name[rows.count++] = (*group)->option[index].name;
        }
    }
    return rows;
}

static struct poptOption *popt_table(ps_arena *arena, const row_list *rows)
{
    struct poptOption *table = ps_new(arena, struct poptOption, rows->count + 1); // the last row is all zero
    for (int32_t index = 0; index < rows->count; index++) {
        const ps_option *row = rows->row[index];
        table[index] = (struct poptOption){
            .longName = row->name,
            .shortName = row->short_name,
            .argInfo = row->type == PS_OPTION_FLAG ? POPT_ARG_NONE : POPT_ARG_STRING,
            .val = index + 1,
        };
    }
    return table;
}

static void free_context(void *context)
{
    poptFreeContext(context);
}

static ps_code fail_word(ps_arena *arena, poptContext context, int error, const row_list *rows, ps_status *status)
{
    const char *bad = poptBadOption(context, POPT_BADOPTION_NOALIAS);
    const char *word = ps_text_copy_n(arena, bad, (int64_t)strcspn(bad, "="));
    const char *name = word + strspn(word, "-");

    if (error == POPT_ERROR_NOARG)
        return ps_fail(status, PS_USAGE, "missing-value", "option %s needs a value", word);
    if (error == POPT_ERROR_UNWANTEDARG)
        return ps_fail(status, PS_USAGE, "unwanted-value", "option %s takes no value", word);
    if (error != POPT_ERROR_BADOPT)
        return ps_fail(status, PS_USAGE, "bad-value", "%s: %s", word, poptStrerror(error));
    ps_fail(status, PS_USAGE, "unknown-option", "unknown option %.80s", word);
    const char *near = ps_text_nearest(name, rows->name, rows->count);
    return near ? ps_fail_hint(status, "did you mean --%s?", near) : status->code;
}

// The value that popt hands over is malloc's; it moves to the arena. Flags have none.
static char *take_value(ps_arena *arena, poptContext context)
{
    char *value = poptGetOptArg(context);
    if (!value)
        return NULL;
    char *copy = ps_text_copy(arena, value);
    free(value);
    return copy;
}

typedef struct reader {
    ps_arena *arena;
    const row_list *rows;
    bool *seen; // [rows]
    ps_parsed_options *out;
} reader;

static ps_code read_option(reader *state, int32_t index, const char *value, ps_status *status)
{
    const ps_option *row = state->rows->row[index];
    ps_parsed_options *out = state->out;

    if (state->seen[index] && row->type != PS_OPTION_FLAG && row->type != PS_OPTION_STRINGS)
        return ps_fail(status, PS_USAGE, "repeated-option", "option --%s is given twice", row->name);
    if (!state->seen[index])
        out->given[out->num_given++] = row->name;
    state->seen[index] = true;
    if (row->type == PS_OPTION_JOB)
        out->job_setting[out->num_job_settings++] = (ps_job_setting){row->name, value};
    return ps_option_set(state->arena, row, value, out->values, status);
}

static void set_defaults(ps_arena *arena, const row_list *rows, void *values)
{
    for (int32_t index = 0; index < rows->count; index++) {
        ps_status never = {0}; // a default that does not parse fails the unit test of the tables
        const ps_option *row = rows->row[index];
        if (row->default_text && row->type != PS_OPTION_JOB)
            ps_option_set(arena, row, row->default_text, values, &never);
    }
}

ps_code ps_options_parse(ps_arena *arena, const ps_option_group *const *groups, size_t values_size, int32_t num_words,
                         const char **word, ps_parsed_options *out, ps_status *status)
{
    row_list rows = collect_rows(arena, groups);
    *out = (ps_parsed_options){
        .values = ps_arena_alloc(arena, 1, (int64_t)values_size),
        .job_setting = ps_new(arena, ps_job_setting, rows.count),
        .given = ps_new(arena, const char *, rows.count),
    };
    set_defaults(arena, &rows, out->values);
    if (num_words == 0)
        return PS_OK;

    poptContext context = poptGetContext(NULL, num_words, word, popt_table(arena, &rows), POPT_CONTEXT_KEEP_FIRST);
    if (!context)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "no memory for the command line");
    ps_arena_defer(arena, free_context, context);

    reader state = {.arena = arena, .rows = &rows, .seen = ps_new(arena, bool, rows.count), .out = out};
    int found;
    while ((found = poptGetNextOpt(context)) > 0)
        PS_TRY(read_option(&state, found - 1, take_value(arena, context), status));
    if (found < -1)
        return fail_word(arena, context, found, &rows, status);

    out->operand = poptGetArgs(context); // lives as long as the context; NULL: none
    while (out->operand && out->operand[out->num_operands])
        out->num_operands++;
    return PS_OK;
}

bool ps_option_given(const ps_parsed_options *parsed, const char *name)
{
    for (int32_t index = 0; index < parsed->num_given; index++)
        if (strcmp(parsed->given[index], name) == 0)
            return true;
    return false;
}
