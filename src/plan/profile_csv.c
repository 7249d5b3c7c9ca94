// SPDX-License-Identifier: Apache-2.0
//
// profile_csv.c: a table of measured layers.
//
//     layer,micro_batch_size,forward_ms,backward_input_ms,backward_weight_ms
//     block,1,2.94,3.31,2.75
//
// Every column of conditions may be left out, and then holds for all rows as the command line says.
#include "plan/profile_csv.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "io/csv_read.h"
#include "model/model_json.h"
#include "pipesched/cluster.h"
#include "pipesched/limits.h"

typedef enum column {
    LAYER,
    FORWARD,
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    GPU,
    PRECISION,
    TP,
    CP,
    EP,
    MICRO_BATCH_SIZE,
    SEQ_LENGTH,
    COLUMNS
} column;

static const char *const column_names[COLUMNS] = {
    "layer", "forward_ms", "backward_input_ms", "backward_weight_ms", "gpu", "precision", "tp",
    "cp",    "ep",         "micro_batch_size",  "seq_length"};

#define COLUMN_HINT                                                                                                    \
    "layer, forward_ms, backward_input_ms and backward_weight_ms are needed; gpu, precision, tp, cp, ep, "             \
    "micro_batch_size and seq_length may be there"

enum { MAX_ROWS = 1 << 16, MAX_SETS = 4096 };

typedef struct profile_row {
    int32_t set;
    int64_t row; // of the file
    ps_measured_layer layer;
} profile_row;

typedef struct profile_table {
    ps_arena *arena;
    const char *source;
    ps_status *status;
    const ps_profile_conditions *conditions;
    ps_csv_reader csv;
    int32_t columns;
    column column[COLUMNS];
    bool given[COLUMNS];
    int64_t num_names;
    const char **name; // of the model's entries, ascending
    ps_vec(ps_measurement) set;
    ps_vec(profile_row) row;
} profile_table;

static const char *cell_text(const profile_table *table, const ps_csv_cell *cell)
{
    return ps_text_copy_n(table->arena, cell->text, cell->size);
}

static ps_code fail_at(const profile_table *table, const ps_csv_cell *cell)
{
    return ps_csv_fail_at(table->source, cell, table->status);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void collect_names(profile_table *table, const ps_model *model)
{
    table->name = ps_new(table->arena, const char *, model->num_layers);
    for (int32_t layer = 0; layer < model->num_layers; layer++)
        if (layer == 0 || strcmp(model->layer[layer].base_name, model->layer[layer - 1].base_name) != 0)
            table->name[table->num_names++] = model->layer[layer].base_name;
    qsort(table->name, (size_t)table->num_names, sizeof *table->name, compare_names);
}

static ps_code add_column(profile_table *table, const ps_csv_cell *cell)
{
    char *name = ps_text_copy_n(table->arena, cell->text, cell->size);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
    for (int32_t known = 0; known < COLUMNS; known++) {
        if (strcmp(name, column_names[known]) != 0)
            continue;
        if (table->given[known]) {
            ps_fail(table->status, PS_BAD_INPUT, "csv-duplicate-column", "the column \"%s\" is there twice", name);
            return fail_at(table, cell);
        }
        table->given[known] = true;
        table->column[table->columns++] = (column)known;
        return PS_OK;
    }
    const char *near = ps_text_nearest(name, column_names, COLUMNS);
    ps_fail(table->status, PS_BAD_INPUT, "unknown-column", "the column \"%.64s\" is not known", name);
    fail_at(table, cell);
    return near ? ps_fail_hint(table->status, "did you mean \"%s\"?", near) : ps_fail_hint(table->status, COLUMN_HINT);
}

static ps_code read_header(profile_table *table)
{
    ps_csv_cell cell;
    bool found = false;
    PS_TRY(ps_csv_next_row(&table->csv, &cell, &found, table->status));
    ps_csv_cell first = cell;
    PS_TRY(add_column(table, &cell));
    while (!cell.ends_row) {
        PS_TRY(ps_csv_next(&table->csv, &cell, table->status));
        PS_TRY(add_column(table, &cell));
    }
    for (int32_t needed = LAYER; needed <= BACKWARD_WEIGHT; needed++) {
        if (table->given[needed])
            continue;
        ps_fail(table->status, PS_BAD_INPUT, "missing-column", "the header has no column \"%s\"", column_names[needed]);
        fail_at(table, &first);
        return ps_fail_hint(table->status, COLUMN_HINT);
    }
    return PS_OK;
}

static ps_code read_layer(const profile_table *table, const ps_csv_cell *cell, const char **out)
{
    const char *name = cell_text(table, cell);
    const char **found = bsearch(&name, table->name, (size_t)table->num_names, sizeof *table->name, compare_names);
    if (found) {
        *out = *found;
        return PS_OK;
    }
    const char *entry = ps_text_copy_n(table->arena, name, (int64_t)strcspn(name, "."));
    const char *near = bsearch(&entry, table->name, (size_t)table->num_names, sizeof *table->name, compare_names)
                           ? entry
                           : ps_text_nearest(name, table->name, (int32_t)table->num_names);
    ps_fail(table->status, PS_BAD_INPUT, "unknown-layer", "the model has no entry \"%.64s\"", name);
    fail_at(table, cell);
    if (near)
        return ps_fail_hint(table->status, "did you mean \"%.64s\"? Equal layers are one entry", near);
    return ps_fail_hint(table->status, "pipesched show MODEL lists them");
}

static ps_code read_time(const profile_table *table, column which, const ps_csv_cell *cell, int64_t *ns)
{
    int64_t least = which == FORWARD; // what is differentiated may cost nothing
    if (ps_decimal_scaled(cell->text, cell->size, 1000000, ns) && *ns >= least && *ns <= PS_MAX_LAYER_NS)
        return PS_OK;
    ps_fail(table->status, PS_BAD_INPUT, "profile-time", "%s must be %s and at most %lld, got \"%.40s\"",
            column_names[which], least > 0 ? "above 0" : "0 or more", (long long)(PS_MAX_LAYER_NS / 1000000),
            cell_text(table, cell));
    fail_at(table, cell);
    return ps_fail_hint(table->status, "times are of one micro-batch on one rank, in milliseconds");
}

static ps_code read_count(const profile_table *table, column which, const ps_csv_cell *cell, int64_t most, int64_t *out)
{
    ps_status ignored = {0};
    if (ps_parse_int(cell_text(table, cell), 1, most, out, &ignored) == PS_OK)
        return PS_OK;
    ps_fail(table->status, PS_BAD_INPUT, "profile-condition", "%s must be from 1 to %lld, got \"%.40s\"",
            column_names[which], (long long)most, cell_text(table, cell));
    return fail_at(table, cell);
}

static ps_code read_degree(const profile_table *table, column which, const ps_csv_cell *cell, int32_t *out)
{
    int64_t value = 0;
    PS_TRY(read_count(table, which, cell, PS_MAX_GPUS, &value));
    *out = (int32_t)value;
    return PS_OK;
}

static ps_code read_precision(const profile_table *table, const ps_csv_cell *cell, ps_precision *out)
{
    int named = ps_precision_named(cell_text(table, cell));
    if (named >= 0) {
        *out = (ps_precision)named;
        return PS_OK;
    }
    ps_fail(table->status, PS_BAD_INPUT, "profile-condition",
            "expected bf16, fp16, fp32, fp8, mxfp8 or nvfp4, got \"%.40s\"", cell_text(table, cell));
    return fail_at(table, cell);
}

static const char *read_gpu(const profile_table *table, const ps_csv_cell *cell)
{
    const char *name = cell_text(table, cell);
    const char *known = ps_catalog_match(table->arena, name, 0);
    return known ? known : name;
}

static ps_code read_cell(const profile_table *table, column which, const ps_csv_cell *cell, ps_measurement *set,
                         ps_measured_layer *layer)
{
    if (which >= GPU && cell->size == 0)
        return PS_OK; // as the command line says
    switch (which) {
    case LAYER: return read_layer(table, cell, &layer->base_name);
    case FORWARD: return read_time(table, which, cell, &layer->forward_ns);
    case BACKWARD_INPUT: return read_time(table, which, cell, &layer->backward_input_ns);
    case BACKWARD_WEIGHT: return read_time(table, which, cell, &layer->backward_weight_ns);
    case GPU: set->gpu = read_gpu(table, cell); return PS_OK;
    case PRECISION: return read_precision(table, cell, &set->precision);
    case TP: return read_degree(table, which, cell, &set->tp);
    case CP: return read_degree(table, which, cell, &set->cp);
    case EP: return read_degree(table, which, cell, &set->ep);
    case MICRO_BATCH_SIZE: return read_count(table, which, cell, PS_MAX_BATCH, &set->micro_batch_size);
    case SEQ_LENGTH: return read_count(table, which, cell, PS_MAX_SEQUENCE, &set->seq_length);
    case COLUMNS: break;
    }
    return PS_OK;
}

static int32_t single(const ps_int_set *set, int32_t otherwise)
{
    return set->count == 1 ? set->value[0] : otherwise;
}

static ps_measurement conditions_given(const profile_table *table)
{
    const ps_job *job = table->conditions->job;
    return (ps_measurement){.gpu = table->conditions->gpu,
                            .precision = table->conditions->precision,
                            .tp = single(&job->tp, 1),
                            .cp = single(&job->cp, 1),
                            .ep = single(&job->ep, 1),
                            .micro_batch_size = single(&job->micro_batch_size, 0),
                            .seq_length = job->seq_length};
}

static ps_code check_conditions(const profile_table *table, const ps_measurement *set, const ps_csv_cell *cell)
{
    if (set->micro_batch_size >= 1 && set->seq_length >= 1)
        return PS_OK;
    bool micro_batch = set->micro_batch_size < 1;
    const char *name = column_names[micro_batch ? MICRO_BATCH_SIZE : SEQ_LENGTH];
    ps_fail(table->status, PS_BAD_INPUT, "profile-condition", "the %s of this row is not said", name);
    fail_at(table, cell);
    return ps_fail_hint(table->status, "add a column %s, or give --%s", name,
                        micro_batch ? "micro-batch-size N" : "seq-length N");
}

// Rows of one set mostly follow each other.
static ps_code find_set(profile_table *table, const ps_measurement *wanted, const ps_csv_cell *cell, int32_t *out)
{
    for (int64_t set = table->set.count - 1; set >= 0; set--)
        if (ps_measurement_same_conditions(&table->set.data[set], wanted)) {
            *out = (int32_t)set;
            return PS_OK;
        }
    if (table->set.count == MAX_SETS) {
        ps_fail(table->status, PS_BAD_INPUT, "too-many-measurements", "at most %d conditions are read", (int)MAX_SETS);
        return fail_at(table, cell);
    }
    *out = (int32_t)table->set.count;
    *ps_vec_push(table->arena, &table->set) = *wanted;
    return PS_OK;
}

static ps_code read_row(profile_table *table, ps_csv_cell cell)
{
    const ps_csv_cell first = cell;
    ps_measurement set = conditions_given(table);
    profile_row row = {.row = first.row};
    int32_t at = 0;

    for (;; at++) {
        if (at < table->columns)
            PS_TRY(read_cell(table, table->column[at], &cell, &set, &row.layer));
        if (cell.ends_row)
            break;
        PS_TRY(ps_csv_next(&table->csv, &cell, table->status));
    }
    if (at + 1 != table->columns) {
        ps_fail(table->status, PS_BAD_INPUT, "csv-cells", "%d cells in this row, the header has %d", (int)at + 1,
                (int)table->columns);
        return fail_at(table, &cell);
    }
    PS_TRY(check_conditions(table, &set, &first));
    PS_TRY(find_set(table, &set, &first, &row.set));
    if (table->row.count == MAX_ROWS) {
        ps_fail(table->status, PS_BAD_INPUT, "too-many-measurements", "at most %d rows are read", (int)MAX_ROWS);
        return fail_at(table, &first);
    }
    *ps_vec_push(table->arena, &table->row) = row;
    return PS_OK;
}

static int compare_rows(const void *left, const void *right)
{
    const profile_row *a = left;
    const profile_row *b = right;
    if (a->set != b->set)
        return a->set < b->set ? -1 : 1;
    int name = strcmp(a->layer.base_name, b->layer.base_name);
    return name != 0 ? name : (a->row > b->row) - (a->row < b->row);
}

static ps_code fill_sets(profile_table *table, ps_profile *out)
{
    int64_t count = table->row.count;
    profile_row *row = table->row.data;
    ps_measured_layer *layer = ps_new(table->arena, ps_measured_layer, count);

    if (count > 0) // without rows there is no table to sort
        qsort(row, (size_t)count, sizeof *row, compare_rows);
    for (int64_t at = 0; at < count; at++) {
        ps_measurement *set = &table->set.data[row[at].set];
        if (at > 0 && row[at].set == row[at - 1].set &&
            strcmp(row[at].layer.base_name, row[at - 1].layer.base_name) == 0) {
            ps_fail(table->status, PS_BAD_INPUT, "duplicate-layer",
                    "\"%.64s\" is in row %lld under the same conditions", row[at].layer.base_name,
                    (long long)row[at - 1].row);
            fail_at(table, &(ps_csv_cell){.row = row[at].row, .column = 1});
            return ps_fail_hint(table->status, "give their median once");
        }
        layer[at] = row[at].layer;
        if (set->num_layers++ == 0)
            set->layer = &layer[at];
    }
    out->measurement = table->set.data;
    out->num_measurements = (int32_t)table->set.count;
    return PS_OK;
}

ps_code ps_profile_read_csv(ps_arena *arena, const char *text, int64_t size, const ps_model *model,
                            const ps_profile_conditions *conditions, ps_profile *out, ps_status *status)
{
    profile_table table = {.arena = arena, .source = out->source, .status = status, .conditions = conditions};
    ps_csv_cell cell;
    bool found = true;

    PS_TRY(ps_csv_begin(&table.csv, out->source, text, size, status));
    collect_names(&table, model);
    PS_TRY(read_header(&table));
    while (found) {
        PS_TRY(ps_csv_next_row(&table.csv, &cell, &found, status));
        if (found)
            PS_TRY(read_row(&table, cell));
    }
    return fill_sets(&table, out);
}
