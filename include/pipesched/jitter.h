// SPDX-License-Identifier: Apache-2.0
//
// jitter.h: how long a fixed order takes when times are not what they should be.
//
// In each sample every op and every transfer takes its own random multiple of its time, uniform in [1 - share,
// 1 + share], and one device may be slower throughout. The order of the ops stays: nobody reorders a schedule at run
// time because a kernel was late.
#ifndef PIPESCHED_JITTER_H
#define PIPESCHED_JITTER_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"

// Shares and factors count millionths.
enum { PS_JITTER_ONE = 1000000, PS_JITTER_MAX_FACTOR = 1000 * PS_JITTER_ONE };

typedef struct ps_jitter_options {
    int64_t share;     // 0 to PS_JITTER_ONE
    int32_t samples;   // 1 or more
    int64_t seed;      // the same seed gives the same samples everywhere
    int32_t straggler; // device whose ops take `factor` times as long; -1: none
    int64_t factor;    // PS_JITTER_ONE to PS_JITTER_MAX_FACTOR
} ps_jitter_options;

// Percentiles are of nearest rank: the least sample that so many percent do not exceed.
typedef struct ps_jitter_statistics {
    int64_t p50_ns;
    int64_t p95_ns;
    int64_t mean_ns; // rounded down
    int64_t max_ns;
    int64_t *sample_ns; // [samples], in ascending order
} ps_jitter_statistics;

typedef struct ps_jitter_result {
    ps_jitter_options options;
    ps_jitter_statistics makespan;
    ps_jitter_statistics span;
} ps_jitter_result;

// The schedule must be one that ps_simulate() accepts on the pipeline. PS_BAD_INPUT, rule time-overflow, when the worst
// case of all times exceeds PS_MAX_TIME_NS. O(samples * (ops + log samples)), about 30 ns an op and sample.
ps_code ps_jitter_sample(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule,
                         const ps_jitter_options *options, ps_jitter_result *out, ps_status *status);

#endif
