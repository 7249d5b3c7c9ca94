// SPDX-License-Identifier: Apache-2.0
//
// job.h: what to train. Sets of allowed values; an empty set is `auto`: the planner enumerates.
#ifndef PIPESCHED_JOB_H
#define PIPESCHED_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/layout.h"
#include "pipesched/precision.h"
#include "pipesched/status.h"

enum { PS_SET_MAX = 32 };

typedef struct ps_int_set {
    int32_t count; // 0: auto
    int32_t value[PS_SET_MAX];
} ps_int_set;

typedef enum ps_optimizer { PS_OPTIMIZER_ADAM, PS_OPTIMIZER_ADAMW, PS_OPTIMIZER_SGD, PS_OPTIMIZERS } ps_optimizer;

typedef struct ps_job {
    int64_t global_batch_size; // sequences; required
    int64_t seq_length;        // tokens; required
    ps_int_set micro_batch_size;
    ps_int_set tp;
    ps_int_set pp;
    ps_int_set vp;
    ps_int_set dp;
    ps_int_set schedule;  // ps_schedule_kind values
    ps_int_set recompute; // ps_recompute values
    ps_precision precision;
    bool precision_given; // on the command line or in the job file: then it is not replaced
    ps_optimizer optimizer;
    int32_t zero;            // 0..3
    int32_t gradient_bytes;  // of one element: 4 or 2
    int32_t optimizer_bytes; // of one moment: 4 or 2
    bool flash_attention;
    bool sequence_parallel;
    bool overlap_grad_sync;
    bool overlap_tp;
    bool optimizer_barrier;
    bool extrapolate;             // measurements beyond their sizes
    int64_t memory_reserve_bytes; // context, communicators, fragmentation; per device
    int64_t memory_limit_bytes;   // 0: the device's usable memory
    int64_t op_overhead_ns;       // added to every op
    int64_t jitter_ppm;           // rank the best plans by their p95 when times vary by this share; 0: by time
    int32_t jitter_samples;       // runs of each; of no account without jitter
    int32_t effort;               // cuts tried a layout and more: counted, at least 1
    int32_t threads;              // 0: all cores
} ps_job;

// All defaults in one place.
void ps_job_init(ps_job *job);

// One option by its INTERFACE name without the dashes ("tp", "1,2,4"). Also how a job JSON sets its keys. PS_USAGE with
// rules unknown-option, bad-value.
ps_code ps_job_set(ps_job *job, const char *name, const char *value, ps_status *status);
// A job file: {"format": "pipesched/job/v1", "global_batch_size": 1024, "tp": [1, 2], ...}.
ps_code ps_job_load(ps_arena *arena, const char *path, ps_job *job, ps_status *status);
// All rules across options, once everything is set.
ps_code ps_job_check(const ps_job *job, ps_status *status);

const char *ps_optimizer_name(ps_optimizer optimizer);

#endif
