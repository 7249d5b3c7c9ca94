// SPDX-License-Identifier: Apache-2.0
//
// nccl_tests.c: rows of logs, sorted into tests.
#include "pipesched/nccl_tests.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cluster/nccl_log.h"
#include "io/file.h"
#include "pipesched/limits.h"

#define CONTRADICTS 2.0 // between two times of one size

enum { LEAST_SIZES = 2, MOST_SIZES = 4096, MOST_TESTS = 1024 };

// A row that knows its table.
typedef struct placed_row {
    const ps_nccl_table *table;
    int64_t order;
    int32_t line;
    double bytes; // of the full tensor
    double seconds;
} placed_row;

static int compare_tests(const placed_row *a, const placed_row *b)
{
    if (a->table->kind != b->table->kind)
        return a->table->kind < b->table->kind ? -1 : 1;
    if (a->table->ranks != b->table->ranks)
        return a->table->ranks < b->table->ranks ? -1 : 1;
    return (a->table->nodes > b->table->nodes) - (a->table->nodes < b->table->nodes);
}

static int compare_rows(const void *left, const void *right)
{
    const placed_row *a = left;
    const placed_row *b = right;
    int test = compare_tests(a, b);

    if (test != 0)
        return test;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static placed_row *place_rows(ps_arena *arena, const ps_nccl_rows *rows)
{
    placed_row *placed = ps_new(arena, placed_row, rows->row.count);
    for (int64_t index = 0; index < rows->row.count; index++) {
        const ps_nccl_row *row = &rows->row.data[index];
        const ps_nccl_table *table = &rows->table.data[row->table];
        placed[index] = (placed_row){.table = table,
                                     .order = row->order,
                                     .line = row->line,
                                     .bytes = row->bytes * (table->multiple > 1 ? table->multiple : 1),
                                     .seconds = row->seconds};
    }
    qsort(placed, (size_t)rows->row.count, sizeof *placed, compare_rows);
    return placed;
}

static ps_code fail_at(const placed_row *row, ps_status *status)
{
    return ps_fail_at(status, row->table->source, row->line, 1, NULL);
}

// The median of times of one size, which ascend.
static ps_code merge_size(const placed_row *row, int64_t count, double *seconds, ps_status *status)
{
    const placed_row *last = &row[count - 1];
    *seconds = count % 2 ? row[count / 2].seconds : (row[count / 2 - 1].seconds + row[count / 2].seconds) / 2;
    if (last->seconds <= CONTRADICTS * row[0].seconds)
        return PS_OK;
    const placed_row *later = last->order > row[0].order ? last : &row[0];
    const placed_row *earlier = later == last ? &row[0] : last;
    ps_fail(status, PS_BAD_INPUT, "nccl-duplicate",
            "%s of %.15g bytes among %d ranks takes %.4g us here, %.4g us in "
            "%.80s:%d",
            row->table->kind->name, row->bytes, (int)row->table->ranks, later->seconds * 1e6, earlier->seconds * 1e6,
            earlier->table->source, (int)earlier->line);
    fail_at(later, status);
    return ps_fail_hint(status, "are both of the same cluster? Leave out the log that is wrong");
}

static ps_code check_gpus(const placed_row *row, int64_t count, const char **gpu, ps_status *status)
{
    *gpu = NULL;
    for (int64_t index = 0; index < count; index++) {
        const char *own = row[index].table->gpu;
        if (!*gpu)
            *gpu = own;
        if (!own || strcmp(own, *gpu) == 0)
            continue;
        ps_fail(status, PS_BAD_INPUT, "nccl-duplicate", "%s among %d ranks is measured on %.64s, and on %.64s",
                row->table->kind->name, (int)row->table->ranks, *gpu, own);
        fail_at(&row[index], status);
        return ps_fail_hint(status, "a calibration is of one GPU type");
    }
    return PS_OK;
}

static ps_code fill_points(ps_arena *arena, const placed_row *row, int64_t count, ps_nccl_test *out, ps_status *status)
{
    double *bytes = ps_new(arena, double, count);
    double *seconds = ps_new(arena, double, count);
    int64_t points = 0;

    for (int64_t first = 0; first < count; points++) {
        int64_t next = first;
        while (next < count && row[next].bytes == row[first].bytes)
            next++;
        bytes[points] = row[first].bytes;
        PS_TRY(merge_size(&row[first], next - first, &seconds[points], status));
        first = next;
    }
    if (points < LEAST_SIZES || points > MOST_SIZES || !(bytes[points - 1] <= 0x1p53)) {
        if (points >= LEAST_SIZES)
            ps_fail(status, PS_BAD_INPUT, "nccl-sizes", "%lld sizes up to %.15g bytes, %d up to 2^53 are read",
                    (long long)points, bytes[points - 1], (int)MOST_SIZES);
        else
            ps_fail(status, PS_BAD_INPUT, "nccl-sizes", "%s among %d ranks has one size, two or more make a curve",
                    row->table->kind->name, (int)row->table->ranks);
        fail_at(row, status);
        return ps_fail_hint(status, "measure from small to large, as in -b 8 -e 4G -f 2");
    }
    out->num_points = (int32_t)points;
    out->bytes = bytes;
    out->seconds = seconds;
    return PS_OK;
}

static ps_code fill_test(ps_arena *arena, const placed_row *row, int64_t count, ps_nccl_test *out, ps_status *status)
{
    const ps_nccl_table *table = row->table;
    *out = (ps_nccl_test){.source = table->source,
                          .line = row->line,
                          .name = table->kind->name,
                          .has_curve = table->kind->collective >= 0,
                          .ranks = table->ranks,
                          .nodes = table->nodes};
    if (out->has_curve) {
        out->collective = (ps_collective)table->kind->collective;
        out->name = ps_collective_name(out->collective);
    }
    PS_TRY(check_gpus(row, count, &out->gpu, status));
    return fill_points(arena, row, count, out, status);
}

static ps_code make_tests(ps_arena *arena, const ps_nccl_rows *rows, ps_nccl_tests *out, ps_status *status)
{
    const placed_row *row = place_rows(arena, rows);
    ps_vec(ps_nccl_test) tests = {0};

    for (int64_t first = 0; first < rows->row.count;) {
        int64_t next = first;
        while (next < rows->row.count && compare_tests(&row[next], &row[first]) == 0)
            next++;
        if (tests.count == MOST_TESTS) {
            ps_fail(status, PS_BAD_INPUT, "nccl-tests", "at most %d curves are read", (int)MOST_TESTS);
            return fail_at(&row[first], status);
        }
        PS_TRY(fill_test(arena, &row[first], next - first, ps_vec_push(arena, &tests), status));
        first = next;
    }
    *out = (ps_nccl_tests){.count = (int32_t)tests.count,
                           .test = tests.data,
                           .num_warnings = (int32_t)rows->warning.count,
                           .warning = rows->warning.data};
    return PS_OK;
}

ps_code ps_nccl_tests_parse(ps_arena *arena, const ps_nccl_text *text, int32_t num_texts, ps_nccl_tests *out,
                            ps_status *status)
{
    ps_nccl_rows rows = {0};
    for (int32_t index = 0; index < num_texts; index++)
        PS_TRY(ps_nccl_log_read(arena, &text[index], &rows, status));
    return make_tests(arena, &rows, out, status);
}

ps_code ps_nccl_tests_load(ps_arena *arena, const char *const *path, int32_t num_paths, ps_nccl_tests *out,
                           ps_status *status)
{
    ps_nccl_text *text = ps_new(arena, ps_nccl_text, num_paths);
    for (int32_t index = 0; index < num_paths; index++) {
        ps_file_bytes bytes;
        PS_TRY(ps_file_read(arena, path[index], PS_MAX_FILE_BYTES, &bytes, status));
        text[index] = (ps_nccl_text){path[index], bytes.data, bytes.size};
    }
    return ps_nccl_tests_parse(arena, text, num_paths, out, status);
}
