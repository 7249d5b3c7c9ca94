// SPDX-License-Identifier: Apache-2.0
//
// csv_read.h: the cells of a plain CSV one by one: commas, LF or CRLF, no quotes, printable ASCII.
#ifndef PS_IO_CSV_READ_H
#define PS_IO_CSV_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/status.h"

typedef struct ps_csv_cell {
    const char *text; // blanks around it are left out; not terminated
    int64_t size;     // 0: empty
    int64_t row;      // from 1
    int64_t number;   // of the cell in its row, from 1
    int64_t column;   // of its first byte in its row, from 1
    bool ends_row;
} ps_csv_cell;

typedef struct ps_csv_reader {
    const char *source;
    const char *at;
    const char *end;
    const char *row_start;
    int64_t row;
    int64_t number;
    bool after_comma; // so another cell follows, if only an empty one
} ps_csv_reader;

// PS_BAD_INPUT with rule csv-empty or csv-bom. Nothing is copied.
ps_code ps_csv_begin(ps_csv_reader *reader, const char *source, const char *text, int64_t size, ps_status *status);

// Whether the last cell has been read. A line end at the end of the file begins no row.
static inline bool ps_csv_done(const ps_csv_reader *reader)
{
    return reader->at == reader->end && !reader->after_comma;
}

// The next cell; an empty line is one empty cell. PS_BAD_INPUT with row and column; rules csv-quote, csv-character,
// csv-line-end.
ps_code ps_csv_next(ps_csv_reader *reader, ps_csv_cell *cell, ps_status *status);

// The first cell of the next row that is neither empty nor a comment, which begins with '#'; false at the end of the
// file.
ps_code ps_csv_next_row(ps_csv_reader *reader, ps_csv_cell *cell, bool *found, ps_status *status);

// Add the place of a cell to a status just filled.
ps_code ps_csv_fail_at(const char *source, const ps_csv_cell *cell, ps_status *status);

#endif
