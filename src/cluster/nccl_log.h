// SPDX-License-Identifier: Apache-2.0
//
// nccl_log.h: from lines of nccl-tests to rows, before rows become tests.
#ifndef PS_CLUSTER_NCCL_LOG_H
#define PS_CLUSTER_NCCL_LOG_H

#include "base/vec.h"
#include "cluster/nccl_line.h"
#include "pipesched/nccl_tests.h"

// Rows below one header.
typedef struct ps_nccl_table {
    const char *source;
    const ps_nccl_kind *kind;
    int32_t ranks;
    int32_t nodes;
    const char *gpu;
    int32_t multiple; // full tensor : size as printed, 1 or ranks; 0: no row tells
} ps_nccl_table;

typedef struct ps_nccl_row {
    int64_t table;
    int64_t order; // among all rows
    int32_t line;
    double bytes; // as printed
    double seconds;
} ps_nccl_row;

typedef struct ps_nccl_rows {
    ps_vec(ps_nccl_table) table;
    ps_vec(ps_nccl_row) row;
    ps_vec(const char *) warning;
} ps_nccl_rows;

// All rows of a log behind those that are there.
ps_code ps_nccl_log_read(ps_arena *arena, const ps_nccl_text *text, ps_nccl_rows *rows, ps_status *status);

// Who takes part (nccl_ranks.c): the lines "#  Rank  0 Group  0 Pid 54740 on node01 device  0 [0x07] NVIDIA A100".
typedef struct ps_nccl_rank {
    int64_t rank;
    int64_t group; // of ranks that talk to each other; other groups ran the same at the same time
    ps_nccl_word host;
    ps_nccl_word gpu;
} ps_nccl_rank;

typedef struct ps_nccl_ranks {
    ps_vec(ps_nccl_rank) list;
} ps_nccl_ranks;

// False when the line is none of a rank.
bool ps_nccl_ranks_take(ps_arena *arena, const ps_nccl_line *line, ps_nccl_ranks *ranks);
// Ranks of a group, their nodes and GPU. Rules nccl-ranks and nccl-nodes; the caller adds the place.
ps_code ps_nccl_ranks_count(ps_arena *arena, const ps_nccl_ranks *ranks, ps_nccl_table *out, ps_status *status);

#endif
