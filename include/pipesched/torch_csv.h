// SPDX-License-Identifier: Apache-2.0
//
// torch_csv.h: schedules as the CSV files of torch.distributed.pipelining, both ways.
//
// A row is a rank, a cell an action: stage, kind, micro-batch, as in "0F3"; an empty cell is idle. Stages are on the
// rank of their row. Stricter than PyTorch's own reader, which takes repeated ops and text after a cell.
#ifndef PIPESCHED_TORCH_CSV_H
#define PIPESCHED_TORCH_CSV_H

#include <stdio.h>

#include "pipesched/action.h"

typedef struct ps_torch_csv {
    ps_stage_map placement; // stages are 0 to the highest named; micro-batches, the most F's that any stage has
    bool has_transfers;     // or UNSHARD, RESHARD, REDUCE_GRAD
    bool whole_backward;    // some backward is B
    bool split_backward;    // some backward is I and W
    ps_actions actions;     // every cell
    ps_schedule schedule;   // the compute ops
    // For the place of a fault.
    const char *source;
    const char *text;
    int64_t size;
} ps_torch_csv;

// Cells, and the rank of every stage. `text` must outlive `out`. PS_BAD_INPUT with row and column; rules csv-empty,
// csv-bom, csv-quote, csv-character, csv-line-end, csv-cell, csv-row, csv-idle, stage-on-two-ranks, missing-stage,
// too-many-ranks, too-many-ops. O(size).
ps_code ps_torch_csv_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_torch_csv *out,
                           ps_status *status);

// Every stage has every op once, in an order that its row allows, and the transfers where there are any. PS_BAD_INPUT
// with row and column; rules microbatch-range, duplicate-op, op-order, mixed-backward, incomplete-schedule,
// unexpected-transfer, transfer-order, missing-transfer, shard-order. Ranks may still wait for each other:
// ps_simulate() and ps_actions_check_transfers() find that. O(actions + micro-batches + stages).
ps_code ps_torch_csv_check(ps_arena *arena, const ps_torch_csv *csv, ps_status *status);

// Both.
ps_code ps_torch_csv_read(ps_arena *arena, const char *source, const char *text, int64_t size, ps_torch_csv *out,
                          ps_status *status);

// A row a rank. `slot` is NULL, or the unit of time at which each action begins: idle units are then empty cells and
// all rows have `num_slots` of them. A fault of writing stays with the stream.
void ps_torch_csv_write(FILE *file, const ps_actions *actions, const int64_t *slot, int64_t num_slots);

#endif
