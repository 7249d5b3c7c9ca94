// SPDX-License-Identifier: Apache-2.0
//
// table.c: rows of text in aligned columns.
#include "report/table.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"

void ps_table_begin(ps_table *table, ps_arena *arena, const char *align)
{
    *table = (ps_table){.arena = arena, .align = align, .num_columns = (int32_t)strlen(align)};
}

void ps_table_put(ps_table *table, const char *format, ...)
{
    char text[512]; // longer cells are cut
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    table->cell = ps_vec_grow(table->arena, table->cell, table->num_cells, &table->capacity, sizeof *table->cell);
    table->cell[table->num_cells++] = ps_text_copy(table->arena, text);
}

// Columns on a terminal: UTF-8 continuation bytes take none.
static int32_t shown_width(const char *text)
{
    int32_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static int32_t column_width(const ps_table *table, int32_t column)
{
    int32_t width = 0;
    for (int64_t cell = column; cell < table->num_cells; cell += table->num_columns)
        if (shown_width(table->cell[cell]) > width)
            width = shown_width(table->cell[cell]);
    return width;
}

void ps_table_print(FILE *file, const ps_table *table, int32_t indent)
{
    int32_t *width = ps_new(table->arena, int32_t, table->num_columns);
    for (int32_t column = 0; column < table->num_columns; column++)
        width[column] = column_width(table, column);

    for (int64_t cell = 0; cell < table->num_cells; cell++) {
        int32_t column = (int32_t)(cell % table->num_columns);
        bool is_last = column + 1 == table->num_columns;
        int32_t pad = width[column] - shown_width(table->cell[cell]);
        if (column == 0)
            fprintf(file, "%*s", (int)indent, "");
        if (table->align[column] == 'r')
            fprintf(file, "%*s%s", (int)pad, "", table->cell[cell]);
        else
            fprintf(file, "%s%*s", table->cell[cell], is_last ? 0 : (int)pad, "");
        fputs(is_last ? "\n" : "  ", file);
    }
}
