// SPDX-License-Identifier: Apache-2.0
//
// check_cells.c: every stage runs every micro-batch forward once and backward once, on its own device, and no more.
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "check/check_parts.h"
#include "pipesched/limits.h"

static const char LETTER[] = {'F', 'B', 'I', 'W', 'R'};

bool ps_check_is_split(ps_schedule_kind kind)
{
    switch (kind) {
    case PS_SCHEDULE_ZB_H1:
    case PS_SCHEDULE_ZB_H2:
    case PS_SCHEDULE_INTERLEAVED_ZB:
    case PS_SCHEDULE_ZB_V:
    case PS_SCHEDULE_V_HALF:
    case PS_SCHEDULE_V_MIN:
    case PS_SCHEDULE_DUALPIPEV:
    case PS_SCHEDULE_DUALPIPE:
    case PS_SCHEDULE_ZB: return true;
    case PS_SCHEDULE_GPIPE:
    case PS_SCHEDULE_1F1B:
    case PS_SCHEDULE_INTERLEAVED:
    case PS_SCHEDULE_LOOPED_BFS:
    case PS_SCHEDULE_H_1F1B:
    case PS_SCHEDULE_GPIPE_RECOMPUTE: break;
    }
    return false;
}

bool ps_check_recomputes(ps_schedule_kind kind)
{
    return kind == PS_SCHEDULE_GPIPE_RECOMPUTE;
}

int32_t ps_check_kinds(ps_schedule_kind kind)
{
    return ps_check_is_split(kind) || ps_check_recomputes(kind) ? 3 : 2;
}

int32_t *ps_cell_slot(const ps_cell_table *table, ps_op op)
{
    int64_t slot = op.kind == PS_OP_FORWARD ? 0 : op.kind >= PS_OP_BACKWARD_WEIGHT ? 2 : 1;
    return &table->at[(slot * table->stages + op.stage) * table->microbatches + op.microbatch];
}

// False when the cell cannot stand in the table.
static bool check_cell(ps_check *check, int32_t device, int32_t index)
{
    const ps_plan *plan = check->plan;
    ps_op op = plan->schedule.op[plan->schedule.first[device] + index];
    ps_place place = PS_AT_2("/schedule/cells/#/#", device, index);
    bool split = ps_check_is_split(plan->layout.schedule);
    if (op.stage >= plan->num_stages || op.microbatch < 0 || op.microbatch >= plan->layout.num_microbatches) {
        ps_check_find(check, "unknown-cell", place,
                      "%u%c%" PRId32 ": there are %" PRId32 " stages and %" PRId32 " micro-batches", (unsigned)op.stage,
                      LETTER[op.kind], op.microbatch, plan->num_stages, plan->layout.num_microbatches);
        return false;
    }
    if (!ps_check_passes(plan, op.stage, op.microbatch)) {
        ps_check_find(check, "cell-route", place,
                      "%u%c%" PRId32 ": micro-batches up to %" PRId32 " pass stages up to %" PRId32
                      ", the others the rest",
                      (unsigned)op.stage, LETTER[op.kind], op.microbatch, plan->layout.num_microbatches / 2 - 1,
                      ps_check_way_stages(plan) - 1);
        return false;
    }
    if (split ? op.kind == PS_OP_BACKWARD : op.kind == PS_OP_BACKWARD_INPUT || op.kind == PS_OP_BACKWARD_WEIGHT) {
        ps_check_find(check, "cell-kind", place, "%u%c%" PRId32 ": backwards of this schedule are %s",
                      (unsigned)op.stage, LETTER[op.kind], op.microbatch, split ? "split into I and W" : "whole: B");
        return false;
    }
    if (op.kind == PS_OP_RECOMPUTE && !ps_check_recomputes(plan->layout.schedule)) {
        ps_check_find(check, "cell-kind", place, "%u%c%" PRId32 ": this schedule recomputes inside its backwards",
                      (unsigned)op.stage, LETTER[op.kind], op.microbatch);
        return false;
    }
    if (plan->stage[op.stage].pp_rank != device)
        ps_check_find(check, "cell-device", place, "%u%c%" PRId32 ": stage %u is on pipeline rank %" PRId32,
                      (unsigned)op.stage, LETTER[op.kind], op.microbatch, (unsigned)op.stage,
                      plan->stage[op.stage].pp_rank);
    return plan->stage[op.stage].pp_rank == device;
}

static bool fill_table(ps_check *check, ps_cell_table *table)
{
    const ps_plan *plan = check->plan;
    bool good = true;
    for (int32_t device = 0; device < plan->num_devices; device++) {
        int32_t first = plan->schedule.first[device];
        for (int32_t index = 0; first + index < plan->schedule.first[device + 1]; index++) {
            if (!check_cell(check, device, index)) {
                good = false;
                continue;
            }
            ps_op op = plan->schedule.op[first + index];
            int32_t *slot = ps_cell_slot(table, op);
            if (*slot >= 0) {
                ps_check_find(check, "duplicate-cell", PS_AT_2("/schedule/cells/#/#", device, index),
                              "%u%c%" PRId32 " runs twice", (unsigned)op.stage, LETTER[op.kind], op.microbatch);
                good = false;
                continue;
            }
            *slot = first + index;
        }
    }
    return good;
}

static bool find_missing(ps_check *check, const ps_cell_table *table)
{
    const ps_plan *plan = check->plan;
    bool split = ps_check_is_split(plan->layout.schedule);
    const char letter[] = {'F', split ? 'I' : 'B', split ? 'W' : 'R'};
    int64_t total = ps_check_kinds(plan->layout.schedule) * table->stages * table->microbatches;
    bool good = true;
    for (int64_t cell = 0; cell < total; cell++) {
        if (table->at[cell] >= 0)
            continue;
        int64_t microbatch = cell % table->microbatches;
        int64_t stage = cell / table->microbatches % table->stages;
        if (!ps_check_passes(plan, stage, microbatch))
            continue;
        ps_check_find(check, "missing-cell", PS_AT_1("/schedule/cells/#", plan->stage[stage].pp_rank),
                      "%" PRId64 "%c%" PRId64 " never runs", stage, letter[cell / table->microbatches / table->stages],
                      microbatch);
        good = false;
    }
    return good;
}

// Ops in their own device's order: F before B or I, I before W, R between F and B. What is reported here would be a
// deadlock of one op with another behind it on the same device.
static bool check_own_order(ps_check *check, const ps_cell_table *table)
{
    const ps_plan *plan = check->plan;
    bool again = ps_check_recomputes(plan->layout.schedule);
    bool good = true;
    for (int32_t device = 0; device < plan->num_devices; device++) {
        int32_t first = plan->schedule.first[device];
        for (int32_t at = first; at < plan->schedule.first[device + 1]; at++) {
            ps_op op = plan->schedule.op[at];
            if (op.kind == PS_OP_FORWARD)
                continue;
            ps_op needs = op;
            needs.kind = op.kind == PS_OP_BACKWARD_WEIGHT     ? PS_OP_BACKWARD_INPUT
                         : op.kind == PS_OP_BACKWARD && again ? PS_OP_RECOMPUTE
                                                              : PS_OP_FORWARD;
            if (*ps_cell_slot(table, needs) < at)
                continue;
            ps_check_find(check, "deadlock", PS_AT_2("/schedule/cells/#/#", device, at - first),
                          "%u%c%" PRId32 " waits for %u%c%" PRId32 ", which stands behind it", (unsigned)op.stage,
                          LETTER[op.kind], op.microbatch, (unsigned)op.stage, LETTER[needs.kind], op.microbatch);
            good = false;
        }
    }
    return good;
}

bool ps_check_cells(ps_check *check, ps_cell_table *table)
{
    const ps_plan *plan = check->plan;
    int64_t listed = plan->schedule.first[plan->num_devices];
    *table = (ps_cell_table){.stages = plan->num_stages, .microbatches = plan->layout.num_microbatches};
    int64_t cells = ps_check_kinds(plan->layout.schedule) * table->stages * table->microbatches;
    bool good = ps_check_equal(check, "cell-count", PS_AT("/schedule/cells"), listed, cells / ps_check_ways(plan));
    // A small file cannot make the table much larger than itself.
    if (cells > PS_MAX_OPS || cells > 4 * listed + 1024)
        return false;
    table->at = ps_new_raw(check->arena, int32_t, cells);
    memset(table->at, 0xFF, (size_t)cells * sizeof *table->at); // all -1
    good = fill_table(check, table) && good;
    good = find_missing(check, table) && good;
    return good && check_own_order(check, table);
}
