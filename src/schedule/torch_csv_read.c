// SPDX-License-Identifier: Apache-2.0
//
// torch_csv_read.c: rows of cells to the actions of ranks, and the rank of every stage.
//
// What can be said of a cell by itself, or of the rows, is refused here; what takes all ops of a stage together is
// torch_csv_check.c's.
#include <inttypes.h>
#include <string.h>

#include "base/vec.h"
#include "io/csv_read.h"
#include "pipesched/limits.h"
#include "pipesched/torch_csv.h"
#include "schedule/torch_cell.h"
#include "schedule/torch_csv_place.h"

typedef struct parse {
    ps_arena *arena;
    const char *source;
    ps_vec(ps_action) action;
    ps_vec(int32_t) first;
    int32_t *device;      // [PS_MAX_STAGES], -1: no cell yet
    int32_t *forwards;    // [PS_MAX_STAGES]
    ps_csv_cell idle;     // the first one; row 0: none
    ps_csv_cell transfer; // likewise
    ps_csv_cell highest;  // that names the highest stage
    int32_t last_stage;   // that one
} parse;

static ps_code add_action(parse *p, const ps_csv_cell *cell, ps_action action, ps_status *status)
{
    int32_t rank = (int32_t)p->first.count - 1;
    int32_t *device = &p->device[action.stage];
    if (p->action.count >= PS_MAX_OPS) {
        ps_fail(status, PS_BAD_INPUT, "too-many-ops", "more than %" PRId64 " ops", PS_MAX_OPS);
        return ps_csv_fail_at(p->source, cell, status);
    }
    if (*device >= 0 && *device != rank) {
        ps_fail(status, PS_BAD_INPUT, "stage-on-two-ranks",
                "cell %" PRId64 " puts stage %u on rank %d, but row %d has it on rank %d", cell->number,
                (unsigned)action.stage, (int)rank, (int)*device + 1, (int)*device);
        ps_csv_fail_at(p->source, cell, status);
        return ps_fail_hint(status, "row r is rank r - 1, and all ops of a stage are in one row");
    }
    *device = rank;
    if (action.kind == PS_OP_FORWARD)
        p->forwards[action.stage]++;
    if (action.kind >= PS_OP_KINDS && p->transfer.row == 0)
        p->transfer = *cell;
    if ((int32_t)action.stage > p->last_stage) {
        p->last_stage = (int32_t)action.stage;
        p->highest = *cell;
    }
    *ps_vec_push(p->arena, &p->action) = action;
    return PS_OK;
}

static ps_code add_cell(parse *p, const ps_csv_cell *cell, ps_status *status)
{
    ps_action action[2];
    int32_t count;
    if (cell->size == 0) {
        if (p->idle.row == 0)
            p->idle = *cell;
        return PS_OK;
    }
    const char *fault = ps_torch_cell_parse(cell->text, cell->size, action, &count);
    if (fault) {
        ps_fail(status, PS_BAD_INPUT, "csv-cell", "cell %" PRId64 " is \"%.*s\": %s", cell->number,
                (int)(cell->size < 60 ? cell->size : 60), cell->text, fault);
        return ps_csv_fail_at(p->source, cell, status);
    }
    for (int32_t i = 0; i < count; i++)
        PS_TRY(add_action(p, cell, action[i], status));
    return PS_OK;
}

static ps_code end_row(parse *p, const ps_csv_cell *cell, ps_status *status)
{
    ps_csv_cell start = {.row = cell->row, .column = 1};
    if (p->action.count == p->first.data[p->first.count - 1]) {
        ps_fail(status, PS_BAD_INPUT, "csv-row", "rank %" PRId64 " has no op", cell->row - 1);
        ps_csv_fail_at(p->source, &start, status);
        return ps_fail_hint(status, "take empty rows out: PyTorch counts each as a rank");
    }
    if (p->first.count > PS_MAX_DEVICES) {
        ps_fail(status, PS_BAD_INPUT, "too-many-ranks", "a schedule has at most %d ranks", (int)PS_MAX_DEVICES);
        return ps_csv_fail_at(p->source, &start, status);
    }
    *ps_vec_push(p->arena, &p->first) = (int32_t)p->action.count;
    return PS_OK;
}

static ps_code check_rows(const parse *p, ps_status *status)
{
    for (int32_t stage = 0; stage < p->last_stage; stage++) {
        if (p->device[stage] >= 0)
            continue;
        ps_fail(status, PS_BAD_INPUT, "missing-stage", "cell %" PRId64 " is of stage %d, but no row has stage %d",
                p->highest.number, (int)p->last_stage, (int)stage);
        ps_csv_fail_at(p->source, &p->highest, status);
        return ps_fail_hint(status, "there is a row for every rank, and every stage up to the highest is in one");
    }
    if (p->idle.row == 0 || p->transfer.row == 0)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "csv-idle",
            "cell %" PRId64 " is empty, but row %" PRId64 " has transfers, and PyTorch takes no idle cells beside them",
            p->idle.number, p->transfer.row);
    return ps_csv_fail_at(p->source, &p->idle, status);
}

// The compute ops, and what kinds of backward there are.
static void fill_schedule(ps_arena *arena, ps_torch_csv *out)
{
    const ps_actions *actions = &out->actions;
    ps_schedule *schedule = &out->schedule;
    int32_t count = 0;
    schedule->num_devices = actions->num_devices;
    schedule->first = ps_new(arena, int32_t, actions->num_devices + 1);
    schedule->op = ps_new_raw(arena, ps_op, actions->first[actions->num_devices] + 1);
    for (int32_t rank = 0; rank < actions->num_devices; rank++) {
        for (int32_t i = actions->first[rank]; i < actions->first[rank + 1]; i++) {
            ps_action action = actions->action[i];
            if (action.kind >= PS_OP_KINDS)
                continue;
            schedule->op[count++] =
                (ps_op){.microbatch = action.microbatch, .stage = action.stage, .kind = action.kind};
            out->whole_backward |= action.kind == PS_OP_BACKWARD;
            out->split_backward |= action.kind == PS_OP_BACKWARD_INPUT || action.kind == PS_OP_BACKWARD_WEIGHT;
        }
        schedule->first[rank + 1] = count;
    }
}

static void fill(parse *p, ps_torch_csv *out)
{
    int32_t stages = p->last_stage + 1;
    int32_t *device = ps_new_raw(p->arena, int32_t, stages);
    memcpy(device, p->device, (size_t)stages * sizeof *device);
    out->placement = (ps_stage_map){.num_stages = stages, .num_microbatches = 1, .device = device};
    for (int32_t stage = 0; stage < stages; stage++)
        if (p->forwards[stage] > out->placement.num_microbatches)
            out->placement.num_microbatches = p->forwards[stage];
    out->has_transfers = p->transfer.row != 0;
    out->actions =
        (ps_actions){.num_devices = (int32_t)p->first.count - 1, .first = p->first.data, .action = p->action.data};
    fill_schedule(p->arena, out);
}

ps_code ps_torch_csv_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_torch_csv *out,
                           ps_status *status)
{
    parse p = {.arena = arena, .source = source, .last_stage = -1};
    ps_csv_reader reader;
    ps_csv_cell cell;
    *out = (ps_torch_csv){.source = source, .text = text, .size = size};
    p.device = ps_new_raw(arena, int32_t, PS_MAX_STAGES);
    memset(p.device, 0xff, (size_t)PS_MAX_STAGES * sizeof *p.device);
    p.forwards = ps_new(arena, int32_t, PS_MAX_STAGES);
    *ps_vec_push(arena, &p.first) = 0;
    PS_TRY(ps_csv_begin(&reader, source, text, size, status));
    while (!ps_csv_done(&reader)) {
        PS_TRY(ps_csv_next(&reader, &cell, status));
        PS_TRY(add_cell(&p, &cell, status));
        if (cell.ends_row)
            PS_TRY(end_row(&p, &cell, status));
    }
    PS_TRY(check_rows(&p, status));
    fill(&p, out);
    return PS_OK;
}

ps_code ps_torch_csv_read(ps_arena *arena, const char *source, const char *text, int64_t size, ps_torch_csv *out,
                          ps_status *status)
{
    PS_TRY(ps_torch_csv_parse(arena, source, text, size, out, status));
    return ps_torch_csv_check(arena, out, status);
}

// Places are needed once, for a fault, so they are found again rather than kept.
ps_code ps_torch_csv_fail_at(const ps_torch_csv *csv, int32_t action, ps_status *status)
{
    ps_csv_reader reader;
    ps_csv_cell cell = {0};
    ps_status ignored = {0};
    int64_t seen = 0;
    ps_csv_begin(&reader, csv->source, csv->text, csv->size, &ignored);
    while (seen <= action && ps_csv_next(&reader, &cell, &ignored) == PS_OK)
        seen += cell.size == 0 ? 0 : cell.text[0] == '(' ? 2 : 1;
    return ps_csv_fail_at(csv->source, &cell, status);
}
