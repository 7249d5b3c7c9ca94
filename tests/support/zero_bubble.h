// SPDX-License-Identifier: Apache-2.0
//
// zero_bubble.h: rows of the reference table zero_bubble_baseline.csv, as pipelines.
//
// The table holds what the schedulers of the Zero Bubble and the controllable-memory papers make, at given costs, hops
// and memory limits. It is no part of the project: tests over it run only where it is.
#ifndef PS_TESTS_ZERO_BUBBLE_H
#define PS_TESTS_ZERO_BUBBLE_H

#include <stdio.h>

#include "pipesched/pipeline.h"

typedef struct zero_bubble_row {
    char set[32];
    char method[64];
    char model[32];
    int32_t devices;
    int32_t microbatches;
    int64_t forward_ns; // of a whole device
    int64_t input_ns;
    int64_t weight_ns;
    int64_t hop_ns;
    int64_t held;         // of a stage, from F to I
    int64_t weight_held;  // of a stage, from I to W
    int64_t memory_limit; // of a device
    bool folded;          // two stages a device, stage s and its mirror image share one
    bool span;            // the metric; else the makespan
    int64_t value_ns;     // what the table's schedule comes to
} zero_bubble_row;

// Opens the table; NULL where it is not there.
FILE *zero_bubble_open(void);
// The next row of a method; false at the end.
bool zero_bubble_next(FILE *table, const char *method, zero_bubble_row *out);
void zero_bubble_pipeline(ps_arena *arena, const zero_bubble_row *row, ps_pipeline *out);

#endif
