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

// How context parallel ranks share attention.
typedef enum ps_cp_method {
    PS_CP_RING,       // keys and values travel around
    PS_CP_ALL_TO_ALL, // heads are divided while attention runs (Ulysses)
    PS_CP_ALL_GATHER, // every rank gathers all keys and values at once
    PS_CP_METHODS
} ps_cp_method;

// How tokens reach their experts.
typedef enum ps_dispatch {
    PS_DISPATCH_ALL_TO_ALL, // one copy a chosen expert
    PS_DISPATCH_DEDUP,      // one copy a rank and node that holds chosen experts (DeepEP)
    PS_DISPATCHES
} ps_dispatch;

// What "selective" recomputes in every block; bits.
typedef enum ps_recompute_part {
    PS_RECOMPUTE_CORE_ATTENTION = 1,
    PS_RECOMPUTE_NORM = 2,
    PS_RECOMPUTE_ACTIVATION = 4, // of the FFN
    PS_RECOMPUTE_MLA_UP = 8,     // up-projections of latent attention
    PS_RECOMPUTE_MOE = 16,       // the whole expert FFN, its communication too
    PS_RECOMPUTE_ATTENTION = 32, // the whole attention
    PS_RECOMPUTE_FFN = 64,       // the whole dense FFN
    PS_RECOMPUTE_OPS = 128       // all but core attention and every other matrix product (PyTorch, by operation)
} ps_recompute_part;
enum { PS_RECOMPUTE_PARTS = 8 };

typedef struct ps_calibration ps_calibration; // calibration.h

typedef struct ps_job {
    int64_t global_batch_size; // sequences; required
    int64_t seq_length;        // tokens; required
    ps_int_set micro_batch_size;
    ps_int_set tp;
    ps_int_set pp;
    ps_int_set vp;
    ps_int_set dp;
    ps_int_set cp;
    ps_int_set ep;
    ps_int_set etp;
    ps_int_set schedule;  // ps_schedule_kind values
    ps_int_set recompute; // ps_recompute values
    ps_precision precision;
    bool precision_given; // on the command line or in the job file: then it is not replaced
    ps_optimizer optimizer;
    int32_t zero;            // 0..3
    int32_t gradient_bytes;  // of one element: 4 or 2
    int32_t optimizer_bytes; // of one moment: 4 or 2
    bool flash_attention;
    bool repeat_kv;     // keys and values are copied for every query head before attention
    bool fused_kernels; // norms, rotary positions and activations in one kernel each; else operation by operation
    bool sequence_parallel;
    bool overlap_grad_sync;
    bool overlap_tp;
    bool overlap_p2p; // hops between stages beside ops; else an op ends when what it computed has been sent
    bool overlap_ep;  // expert all-to-all behind the other micro-batch's compute
    bool fused_loss;  // cross-entropy in one kernel
    bool cuda_graphs;
    bool head_parallel_moe; // experts are divided by heads of the latent instead of by expert (LatentMoE)
    ps_cp_method cp_method;
    ps_dispatch dispatch;
    int32_t recompute_parts; // bits of ps_recompute_part
    double expert_capacity;  // tokens an expert takes, by the mean; 0: all that come
    double expert_imbalance; // tokens of the busiest expert parallel rank by the mean; 1: balanced
    int64_t lora_rank;       // above 0: weights are frozen, adapters of this rank are trained
    int64_t packed_length; // tokens of the documents packed into one sequence, which see only themselves; 0: not packed
    bool optimizer_barrier;
    bool extrapolate;                  // measurements beyond their sizes
    const ps_calibration *calibration; // NULL: shipped constants
    bool offload_optimizer;            // its state lives in host memory and is stepped there
    int64_t offload_activations_ppm;   // of what a layer holds, what waits in host memory, in millionths
    int64_t memory_reserve_bytes;      // context and communicators; per device
    int64_t memory_framework_bytes;    // allocated beside the model: workspaces, small buffers
    int64_t memory_fragmentation_ppm;  // what the framework's allocator reserves beyond what is allocated, by that
    int64_t memory_limit_bytes;        // 0: the device's usable memory
    int64_t op_overhead_ns;            // added to every op
    int64_t p2p_wait_ns;               // added to every op that sends, where ops wait for their sends
    int64_t jitter_ppm;                // rank the best plans by their p95 when times vary by this share; 0: by time
    int32_t jitter_samples;            // runs of each; of no account without jitter
    int32_t effort;                    // cuts tried a layout and more: counted, at least 1
    int32_t threads;                   // 0: all cores
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
const char *ps_cp_method_name(ps_cp_method method); // "ring", "all-to-all"
const char *ps_dispatch_name(ps_dispatch dispatch); // "all-to-all", "dedup"
const char *ps_recompute_part_name(int32_t bit);    // 0 to PS_RECOMPUTE_PARTS - 1: "core-attention", "norm", ...

#endif
