// SPDX-License-Identifier: Apache-2.0
//
// cut.h: the answer of a partitioner: stages, bottleneck, bound, proof, and other cuts.
#ifndef PS_REPORT_CUT_H
#define PS_REPORT_CUT_H

#include <stdint.h>
#include <stdio.h>

#include "pipesched/arena.h"
#include "pipesched/partition.h"
#include "pipesched/status.h"

typedef struct ps_cut_report {
    const ps_partition_problem *problem;
    const ps_partition_result *result;
    const char *const *layer_name; // [num_layers] or NULL
} ps_cut_report;

ps_code ps_cut_json(FILE *file, const ps_cut_report *cut, ps_status *status);
void ps_cut_text(FILE *file, ps_arena *arena, const ps_cut_report *cut);

#endif
