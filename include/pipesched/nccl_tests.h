// SPDX-License-Identifier: Apache-2.0
//
// nccl_tests.h: measured collectives from the text that nccl-tests print.
//
// Logs are read as they are: with or without the header, with one or two sets of times, among the lines of MPI and
// NCCL. Out-of-place times count. What is measured more than once takes the median. All sizes of one collective among
// ranks that stood alike are one test, which is a curve for the cluster where the planner knows the collective.
#ifndef PIPESCHED_NCCL_TESTS_H
#define PIPESCHED_NCCL_TESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/cluster.h"
#include "pipesched/status.h"

typedef struct ps_nccl_test {
    const char *source; // file of its first row
    int32_t line;
    const char *name;         // "all_reduce"; also those of which the planner has no curve, "sendrecv"
    bool has_curve;           // the planner uses it
    ps_collective collective; // if has_curve
    int32_t ranks;
    int32_t nodes;
    const char *gpu; // as the driver names it; NULL: not said
    int32_t num_points;
    const double *bytes; // of the full tensor, ascending
    const double *seconds;
} ps_nccl_test;

typedef struct ps_nccl_tests {
    int32_t count;
    ps_nccl_test *test; // by collective, ranks and nodes
    int32_t num_warnings;
    const char **warning;
} ps_nccl_tests;

typedef struct ps_nccl_text {
    const char *source;
    const char *text;
    int64_t size;
} ps_nccl_text;

// Files, or "-". Rules (PS_BAD_INPUT): nccl-rows for a log without results, nccl-collective, nccl-ranks and
// nccl-nodes for what the log does not say or contradicts, nccl-size, nccl-time, nccl-unit, nccl-wrong for results
// that failed their check, nccl-bandwidth for columns that contradict the size and the time, nccl-duplicate for two
// times of one size that are far apart, nccl-sizes for a test with fewer than two sizes or too many, nccl-tests for
// too many of them.
ps_code ps_nccl_tests_load(ps_arena *arena, const char *const *path, int32_t num_paths, ps_nccl_tests *out,
                           ps_status *status);
ps_code ps_nccl_tests_parse(ps_arena *arena, const ps_nccl_text *text, int32_t num_texts, ps_nccl_tests *out,
                            ps_status *status);

// What people compare: max(floor, latency + bytes / bandwidth), by least squares of relative residuals.
typedef struct ps_nccl_fit {
    bool found; // false: too few sizes, or times do not grow with the size
    double latency_seconds;
    double bytes_per_s;
    double floor_seconds; // 0: none is needed
    double error;         // mean absolute residual, a share of the measured time
} ps_nccl_fit;

ps_nccl_fit ps_nccl_fit_line(const ps_nccl_test *test);

#endif
