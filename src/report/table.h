// SPDX-License-Identifier: Apache-2.0
//
// table.h: rows of text in aligned columns.
//
//     ps_table table;
//     ps_table_begin(&table, arena, "lr"); // alignment of each column
//     ps_table_put(&table, "stage");
//     ps_table_put(&table, "%d ms", 7);
//     ps_table_print(file, &table, 2);
#ifndef PS_REPORT_TABLE_H
#define PS_REPORT_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "pipesched/arena.h"

typedef struct ps_table {
    ps_arena *arena;
    const char *align; // 'l' or 'r', one a column
    int32_t num_columns;
    int64_t num_cells;
    int64_t capacity;
    const char **cell; // row by row
} ps_table;

void ps_table_begin(ps_table *table, ps_arena *arena, const char *align);
// The next cell, from left to right, row by row.
void ps_table_put(ps_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Print with two blanks between columns and `indent` before the first. Nothing when there are no rows.
void ps_table_print(FILE *file, const ps_table *table, int32_t indent);

#endif
