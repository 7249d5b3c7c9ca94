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

// Of what ends the step; its kinds follow those of ops in a row.
static const char *const step_color = "\033[45;97m";
static const char step_letter[PS_STEP_KINDS] = {
    [PS_STEP_REDUCE_GRAD] = 'S', [PS_STEP_BARRIER] = '=', [PS_STEP_OPTIMIZER] = 'O', [PS_STEP_GATHER] = 'G'};

typedef struct gantt_row {
    char text[MAX_COLUMNS];        // what stands in each column
    signed char kind[MAX_COLUMNS]; // ps_op_kind, PS_OP_KINDS + ps_step_kind, or -1 for idle
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
            fputs(color < 0 ? "\033[0m" : color < PS_OP_KINDS ? kind_color[color] : step_color, file);
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

// Where a kind of end stands in a row, in columns of the whole.
typedef struct gantt_scale {
    int64_t end_ns;
    int32_t columns;
} gantt_scale;

static void draw_end(gantt_row *row, ps_step_kind kind, int64_t from_ns, int64_t to_ns, gantt_scale scale)
{
    int32_t to = column_of(to_ns, scale.end_ns, scale.columns);
    for (int32_t column = column_of(from_ns, scale.end_ns, scale.columns); column < to; column++) {
        row->text[column] = step_letter[kind];
        row->kind[column] = (signed char)(PS_OP_KINDS + kind);
    }
}

static void draw_tail(gantt_row *row, const ps_gantt *gantt, int32_t device, gantt_scale scale)
{
    const ps_step_device *tail = &gantt->tail->device[device];
    int64_t steps = tail->optimizer_start_ns;
    int64_t stepped = steps + gantt->step->optimizer_ns[device];
    draw_end(row, PS_STEP_REDUCE_GRAD, tail->synced_ns - tail->sync_exposed_ns, tail->synced_ns, scale);
    draw_end(row, PS_STEP_BARRIER, steps - gantt->step->barrier_ns, steps, scale);
    draw_end(row, PS_STEP_OPTIMIZER, steps, stepped, scale);
    draw_end(row, PS_STEP_GATHER, stepped, tail->ready_ns, scale);
}

static int64_t whole_ns(const ps_gantt *gantt)
{
    int64_t end = gantt->timeline->makespan_ns;
    for (int32_t device = 0; gantt->tail && device < gantt->schedule->num_devices; device++)
        if (gantt->tail->device[device].ready_ns > end)
            end = gantt->tail->device[device].ready_ns;
    return end;
}

void ps_report_gantt(FILE *file, const ps_gantt *gantt, const ps_report_style *style)
{
    const ps_schedule *schedule = gantt->schedule;
    const ps_timeline *timeline = gantt->timeline;
    bool with_stage = gantt->pipeline->num_stages > gantt->pipeline->num_devices;
    gantt_scale scale = {.end_ns = whole_ns(gantt), .columns = style->width - LABEL_COLUMNS - 1};
    gantt_row row;

    if (scale.end_ns <= 0)
        return;
    if (scale.columns > MAX_COLUMNS)
        scale.columns = MAX_COLUMNS;
    for (int32_t device = 0; device < schedule->num_devices; device++) {
        memset(row.text, '.', sizeof row.text);
        memset(row.kind, -1, sizeof row.kind);
        for (int32_t index = schedule->first[device]; index < schedule->first[device + 1]; index++)
            draw_op(&row, schedule->op[index], with_stage,
                    column_of(timeline->start_ns[index], scale.end_ns, scale.columns),
                    column_of(timeline->end_ns[index], scale.end_ns, scale.columns));
        if (gantt->tail)
            draw_tail(&row, gantt, device, scale);
        fprintf(file, "%*d |", LABEL_COLUMNS - 2, (int)device);
        print_row(file, &row, scale.columns, style);
        fputs("|\n", file);
    }
    print_scale(file, scale.end_ns, scale.columns);
    fprintf(file,
            "       F forward, B backward, I input gradient, W weight gradient%s; the number is the micro-batch\n",
            has_recompute(schedule) ? ", R recompute" : "");
    if (gantt->tail)
        fputs("       S gradient sync and G parameter gather, where exposed; = barrier, O optimizer\n", file);
}
