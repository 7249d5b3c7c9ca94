// SPDX-License-Identifier: Apache-2.0
//
// runs_csv.c: a table of runs. The header names job options, with '-' or '_', and iteration_ms; an empty cell is not
// given. Lines that begin with '#' are comments.
#include <string.h>

#include "base/text.h"
#include "io/csv_read.h"
#include "pipesched/limits.h"
#include "plan/runs.h"

enum { MAX_COLUMNS = 128 };

typedef struct csv_table {
    ps_runs_reader *reader;
    ps_csv_reader csv;
    int32_t columns;
    const char *name[MAX_COLUMNS]; // with '-'
    bool has_time;
} csv_table;

static const char *cell_text(const csv_table *table, const ps_csv_cell *cell)
{
    return ps_text_copy_n(table->reader->arena, cell->text, cell->size);
}

static ps_code fail_at(const csv_table *table, const ps_csv_cell *cell)
{
    table->reader->status->code = PS_BAD_INPUT; // the file is at fault, not the command line
    return ps_csv_fail_at(table->reader->source, cell, table->reader->status);
}

static bool is_own(const char *name)
{
    return strcmp(name, "name") == 0 || strcmp(name, "framework") == 0 || strcmp(name, "gpu") == 0 ||
           strcmp(name, "iteration-ms") == 0;
}

static ps_code add_column(csv_table *table, const ps_csv_cell *cell)
{
    ps_status *status = table->reader->status;
    char *name = ps_text_copy_n(table->reader->arena, cell->text, cell->size);
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    if (table->columns == MAX_COLUMNS) {
        ps_fail(status, PS_BAD_INPUT, "csv-columns", "at most %d columns are read", (int)MAX_COLUMNS);
        return fail_at(table, cell);
    }
    for (int32_t column = 0; column < table->columns; column++)
        if (strcmp(table->name[column], name) == 0) {
            ps_fail(status, PS_BAD_INPUT, "csv-duplicate-column", "the column \"%.64s\" is there twice", name);
            return fail_at(table, cell);
        }
    if (!is_own(name)) { // is it an option at all? The value is tried later.
        ps_job job = *table->reader->base;
        if (ps_job_set(&job, name, "auto", status) != PS_OK && strcmp(status->rule, "unknown-option") == 0)
            return fail_at(table, cell);
        *status = (ps_status){0};
    }
    table->has_time = table->has_time || strcmp(name, "iteration-ms") == 0;
    table->name[table->columns++] = name;
    return PS_OK;
}

static ps_code read_header(csv_table *table)
{
    ps_csv_cell cell;
    bool found = false;
    PS_TRY(ps_csv_next_row(&table->csv, &cell, &found, table->reader->status));
    ps_csv_cell first = cell;
    PS_TRY(add_column(table, &cell));
    while (!cell.ends_row) {
        PS_TRY(ps_csv_next(&table->csv, &cell, table->reader->status));
        PS_TRY(add_column(table, &cell));
    }
    if (table->has_time)
        return PS_OK;
    ps_fail(table->reader->status, PS_BAD_INPUT, "missing-column", "the header has no column \"iteration_ms\"");
    fail_at(table, &first);
    return ps_fail_hint(table->reader->status, "the first line names the columns: iteration_ms, tp, pp, dp, "
                                               "micro_batch_size, global_batch_size, seq_length, ...");
}

static ps_code read_time(const csv_table *table, const ps_csv_cell *cell, ps_measured_run *run)
{
    int64_t ns = 0;
    bool number = ps_decimal_scaled(cell->text, cell->size, 1000000, &ns);
    if (number && ns >= 1 && ns <= PS_MAX_TIME_NS / 1024) {
        run->seconds = (double)ns * 1e-9;
        return PS_OK;
    }
    ps_fail(table->reader->status, PS_BAD_INPUT, "run-time",
            "the time of an iteration must be above 0 in milliseconds, got \"%.40s\"", cell_text(table, cell));
    return fail_at(table, cell);
}

static ps_code read_cell(const csv_table *table, int32_t column, const ps_csv_cell *cell, ps_measured_run *run)
{
    const char *name = table->name[column];
    if (strcmp(name, "iteration-ms") == 0)
        return read_time(table, cell, run);
    if (cell->size == 0)
        return PS_OK;
    if (strcmp(name, "name") == 0)
        run->name = cell_text(table, cell);
    else if (strcmp(name, "framework") == 0)
        run->framework = cell_text(table, cell);
    else if (strcmp(name, "gpu") == 0)
        run->gpu = cell_text(table, cell);
    else if (ps_job_set(&run->job, name, cell_text(table, cell), table->reader->status) != PS_OK)
        return fail_at(table, cell);
    return PS_OK;
}

static ps_code read_run(csv_table *table, ps_csv_cell cell)
{
    ps_runs_reader *reader = table->reader;
    ps_measured_run *run = ps_vec_push(reader->arena, &reader->runs);
    int32_t column = 0;

    *run = (ps_measured_run){.name = ps_text_format(reader->arena, "line %lld", (long long)cell.row),
                             .line = cell.row < INT32_MAX ? (int32_t)cell.row : INT32_MAX,
                             .framework = reader->framework,
                             .job = *reader->base};
    for (;;) {
        if (column < table->columns)
            PS_TRY(read_cell(table, column, &cell, run));
        column++;
        if (cell.ends_row)
            break;
        PS_TRY(ps_csv_next(&table->csv, &cell, reader->status));
    }
    if (column == table->columns)
        return PS_OK;
    ps_fail(reader->status, PS_BAD_INPUT, "csv-cells", "%d cells in this row, the header has %d", (int)column,
            (int)table->columns);
    return fail_at(table, &cell);
}

ps_code ps_runs_read_csv(ps_runs_reader *reader)
{
    csv_table table = {.reader = reader};
    ps_csv_cell cell;
    bool found = true;

    PS_TRY(ps_csv_begin(&table.csv, reader->source, reader->text, reader->size, reader->status));
    PS_TRY(read_header(&table));
    while (found) {
        PS_TRY(ps_csv_next_row(&table.csv, &cell, &found, reader->status));
        if (found)
            PS_TRY(read_run(&table, cell));
    }
    return PS_OK;
}
