// SPDX-License-Identifier: Apache-2.0
//
// coverage.c: what is covered with what covers it, then what is not, with why.
#include "report/coverage.h"

#include <string.h>

#include "report/table.h"

static const char *key_of(ps_cover cover)
{
    static const char *const key[] = {"term", "plan", "option", "reason"};
    return key[cover];
}

void ps_coverage_json(ps_json_writer *json, const ps_coverage *coverage)
{
    ps_json_array(json, "coverage");
    for (int32_t index = 0; index < coverage->count; index++) {
        const ps_cost_effect *effect = &coverage->effect[index];
        ps_json_object_inline(json, NULL);
        ps_json_put_string(json, "of", effect->aspect);
        ps_json_put_string(json, "effect", effect->effect);
        ps_json_put_bool(json, "covered", effect->cover != PS_COVER_NONE);
        ps_json_put_string(json, key_of(effect->cover), effect->by);
        ps_json_close(json);
    }
    ps_json_close(json);
}

// Without what separates the name of a term from its formula.
static int name_length(const char *formula)
{
    size_t length = strlen(formula);
    while (length > 0 && (formula[length - 1] == ' ' || formula[length - 1] == ':'))
        length--;
    return (int)length;
}

static void print_part(FILE *file, ps_arena *arena, const ps_coverage *coverage, bool covered)
{
    ps_table table;
    ps_table_begin(&table, arena, covered ? "llll" : "lll");
    for (int32_t index = 0; index < coverage->count; index++) {
        const ps_cost_effect *effect = &coverage->effect[index];
        if (covered != (effect->cover != PS_COVER_NONE))
            continue;
        ps_table_put(&table, "%s", effect->aspect);
        ps_table_put(&table, "%s", effect->effect);
        if (covered)
            ps_table_put(&table, "%s", key_of(effect->cover));
        ps_table_put(&table, "%s%.*s", effect->cover == PS_COVER_OPTION ? "--" : "", name_length(effect->by),
                     effect->by);
    }
    fprintf(file, "\n%s\n", covered ? "covered, by a term, a figure of a plan or an option" : "not covered");
    ps_table_print(file, &table, 2);
}

void ps_coverage_text(FILE *file, ps_arena *arena, const ps_coverage *coverage)
{
    print_part(file, arena, coverage, true);
    print_part(file, arena, coverage, false);
}
