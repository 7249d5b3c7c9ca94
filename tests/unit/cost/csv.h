// SPDX-License-Identifier: Apache-2.0
//
// csv.h: reads the published measurements; fields may be quoted and then hold commas.
#ifndef PS_TESTS_COST_CSV_H
#define PS_TESTS_COST_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"

typedef struct csv {
    int32_t num_columns;
    int32_t num_rows;
    const char **name; // [num_columns]
    const char **cell; // [num_rows * num_columns]
} csv;

// `name` in the directory of the reference data. Fails the test when it cannot be read.
csv csv_read(ps_arena *arena, const char *name);
const char *csv_text(const csv *table, int32_t row, const char *column);
double csv_number(const csv *table, int32_t row, const char *column, double if_empty);

#endif
