// SPDX-License-Identifier: Apache-2.0
#include "unit/cost/csv.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/vec.h"
#include "support/cmocka_all.h"

typedef ps_vec(const char *) cells;

// One field from `text`; leaves *text behind its separator and returns that ('\0' at the end).
static char next_field(ps_arena *arena, const char **text, const char **field)
{
    ps_text value = {.arena = arena};
    const char *at = *text;
    bool quoted = *at == '"';

    ps_text_add(&value, "", 0);
    at += quoted;
    while (*at && (quoted || (*at != ',' && *at != '\n'))) {
        if (quoted && *at == '"') {
            if (at[1] != '"') {
                quoted = false;
                at++;
                continue;
            }
            at++;
        }
        ps_text_add(&value, at++, 1);
    }
    *field = value.data ? value.data : "";
    *text = *at ? at + 1 : at;
    return *at;
}

csv csv_read(ps_arena *arena, const char *name)
{
    const char *path = ps_text_format(arena, "%s/%s", reference_data(), name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    int64_t capacity = INT64_C(1) << 20;
    char *bytes = ps_new(arena, char, capacity);
    size_t size = fread(bytes, 1, (size_t)capacity - 1, file);
    fclose(file);
    assert_true((int64_t)size < capacity - 1);

    csv table = {0};
    cells all = {0};
    const char *at = bytes;
    char separator = ',';
    while (separator == ',') {
        separator = next_field(arena, &at, ps_vec_push(arena, &all));
        table.num_columns++;
    }
    while (*at)
        next_field(arena, &at, ps_vec_push(arena, &all));
    assert_int_equal(all.count % table.num_columns, 0);
    table.name = all.data;
    table.cell = all.data + table.num_columns;
    table.num_rows = (int32_t)(all.count / table.num_columns) - 1;
    return table;
}

const char *csv_text(const csv *table, int32_t row, const char *column)
{
    for (int32_t i = 0; i < table->num_columns; i++)
        if (strcmp(table->name[i], column) == 0)
            return table->cell[(int64_t)row * table->num_columns + i];
    fail_msg("no column %s", column);
    return "";
}

double csv_number(const csv *table, int32_t row, const char *column, double if_empty)
{
    const char *text = csv_text(table, row, column);
    char *end;
    double value = strtod(text, &end);
    return end == text ? if_empty : value;
}
