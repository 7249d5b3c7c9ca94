// SPDX-License-Identifier: Apache-2.0
//
// gantt.c: each op is drawn over the columns whose middle instant it covers, so that neighbours never overlap and
// widths are true to within a column. An op that is wide enough is labelled with its letter and micro-batch.
#include "report/gantt.h"

#include <string.h>

#include "base/text.h"

enum { LABEL_COLUMNS = 7, MAX_COLUMNS = 4096 };

static const char *const kind_color[PS_OP_KINDS] = {"\033[44;97m", "\033[42;30m", "\033[46;30m", "\033[43;30m",
                                                    "\033[45;97m"};

typedef struct gantt_row {
    char text[MAX_COLUMNS];        // what stands in each column
    signed char kind[MAX_COLUMNS]; // ps_op_kind, or -1 for idle
} gantt_row;

// First column whose middle is at or after an instant: the least c with (2 c + 1) makespan >= 2 instant columns.
static int32_t column_of(int64_t instant, int64_t makespan, int32_t columns)
{
    double middle = (double)instant / (double)makespan * columns - 0.5;
    int32_t column = middle <= 0 ? 0 : (int32_t)middle;
    while (column < middle)
        column++;
    return column < columns ? column : columns;
}

// With several stages a device the label is the whole cell ("5F12"), otherwise its letter and micro-batch ("F12").
static void draw_op(gantt_row *row, ps_op op, bool with_stage, int32_t from, int32_t to)
{
    char cell[32];
    int32_t length = ps_op_format(op, cell);
    const char *label = with_stage ? cell : strchr(cell, ps_op_letter((ps_op_kind)op.kind));
    length -= (int32_t)(label - cell);
    if (length > to - from) {
        label = strchr(cell, ps_op_letter((ps_op_kind)op.kind));
        length = 1;
    }
    for (int32_t column = from; column < to; column++) {
        row->text[column] = column - from < length ? label[column - from] : '-';
        row->kind[column] = (signed char)op.kind;
    }
}

static void print_row(FILE *file, const gantt_row *row, int32_t columns, const ps_report_style *style)
{
    int32_t color = -1;
    for (int32_t column = 0; column < columns; column++) {
        if (style->color && row->kind[column] != color) {
            color = row->kind[column];
            fputs(color < 0 ? "\033[0m" : kind_color[color], file);
        }
        if (row->kind[column] < 0)
            fputs(style->unicode ? "\u00b7" : ".", file);
        else
            fputc(row->text[column], file);
    }
    if (style->color)
        fputs("\033[0m", file);
}

static void print_scale(FILE *file, int64_t makespan, int32_t columns)
{
    char end[32];
    int32_t width = (int32_t)strlen(ps_format_ns(makespan, end));
    int32_t blanks = columns - 1 - width;
    fprintf(file, "%*s0%*s%s\n", LABEL_COLUMNS, "", blanks > 0 ? blanks : 1, "", end);
}

static bool has_recompute(const ps_schedule *schedule)
{
    for (int32_t index = 0; index < schedule->first[schedule->num_devices]; index++)
        if (schedule->op[index].kind == PS_OP_RECOMPUTE)
            return true;
    return false;
}

void ps_report_gantt(FILE *file, const ps_pipeline *pipeline, const ps_schedule *schedule, const ps_timeline *timeline,
                     const ps_report_style *style)
{
    int32_t columns = style->width - LABEL_COLUMNS - 1;
    bool with_stage = pipeline->num_stages > pipeline->num_devices;
    gantt_row row;

    if (timeline->makespan_ns <= 0)
        return;
    if (columns > MAX_COLUMNS)
        columns = MAX_COLUMNS;
    for (int32_t device = 0; device < schedule->num_devices; device++) {
        memset(row.text, '.', sizeof row.text);
        memset(row.kind, -1, sizeof row.kind);
        for (int32_t index = schedule->first[device]; index < schedule->first[device + 1]; index++)
            draw_op(&row, schedule->op[index], with_stage,
                    column_of(timeline->start_ns[index], timeline->makespan_ns, columns),
                    column_of(timeline->end_ns[index], timeline->makespan_ns, columns));
        fprintf(file, "%*d |", LABEL_COLUMNS - 2, (int)device);
        print_row(file, &row, columns, style);
        fputs("|\n", file);
    }
    print_scale(file, timeline->makespan_ns, columns);
    fprintf(file,
            "       F forward, B backward, I input gradient, W weight gradient%s; the number is the micro-batch\n",
            has_recompute(schedule) ? ", R recompute" : "");
}
