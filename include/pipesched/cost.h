// SPDX-License-Identifier: Apache-2.0
//
// cost.h: time and bytes of every layer under one layout, and of what passes between devices.
//
// The model is a roofline with an efficiency per class of work (docs/cost-model.md). Times are computed in double and
// rounded once per layer; everything after is exact integer arithmetic. All figures are of one GPU and one micro-batch,
// tensor parallel communication that is not hidden included.
#ifndef PIPESCHED_COST_H
#define PIPESCHED_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/cluster.h"
#include "pipesched/job.h"
#include "pipesched/layout.h"
#include "pipesched/model.h"
#include "pipesched/status.h"

// Additive over the layers of a stage, except transient_bytes (largest) and output_bytes (last layer's).
typedef struct ps_layer_cost {
    int64_t forward_ns;
    int64_t backward_input_ns; // without recompute
    int64_t backward_weight_ns;
    int64_t recompute_ns; // runs before the backward
    int64_t held_after_forward_bytes;
    int64_t recomputed_bytes; // what recompute brings back and the backward ends; within transient_bytes
    int64_t held_after_backward_input_bytes;
    int64_t transient_bytes;
    int64_t output_bytes;      // sent to the next stage, per rank
    int64_t parameters;        // elements on this rank
    int64_t expert_parameters; // of these, trained ones of routed experts
    int64_t frozen_parameters; // of these, frozen ones
    int64_t parameter_bytes;
    int64_t gradient_bytes;
    int64_t optimizer_bytes;
    int64_t copy_parameters; // elements of a shared weight that is copied here when its owner is elsewhere
} ps_layer_cost;

typedef struct ps_cost_table {
    ps_layout layout; // tp, dp, cp, ep, micro_batch_size, recompute and zero matter
    int32_t num_layers;
    ps_layer_cost *layer;  // [num_layers]
    ps_layer_cost *prefix; // [num_layers + 1] sums of the additive fields
    double model_flops;    // of one sequence, forward and backward, causal attention, no recompute
    int32_t num_measured;  // layers that use given or measured times
    const char *accuracy;  // what to expect: "uncalibrated: ..." or "times given"
} ps_cost_table;

// Times of a layer are those it gives, else measured, else predicted. Rules: precision-unsupported and
// gpu-figure-missing (only where something is predicted), times-with-tp and times-with-micro-batch (layers known only
// by the times they give), tp-heads, tp-ffn and the other rules of ranks over a model (src/cost/layout_rules.c),
// measurement-missing: all PS_ILLEGAL; out-of-range.
// How far off an uncalibrated iteration is to be expected on a GPU type, a share: what `accuracy` says.
double ps_cost_expected_error(const char *gpu);

ps_code ps_cost_table_build(ps_arena *arena, const ps_model *model, const ps_group *group, const ps_job *job,
                            const ps_layout *layout, ps_cost_table *out, ps_status *status);

// Bytes of one parameter element on its rank: parameters, gradients, optimizer state under ZeRO (costmodel, section
// 1.6), and of a whole copy. State that ZeRO shards is divided by the data parallel group.
typedef struct ps_state_bytes {
    double parameters;
    double gradients;
    double optimizer;
} ps_state_bytes;
ps_state_bytes ps_cost_state_bytes(const ps_job *job, const ps_layout *layout);
// Least bytes a parameter takes on all GPUs together, whatever the layout: the bound that refuses a hopeless job.
double ps_cost_least_state_bytes(const ps_job *job);

// How two pipeline ranks of the same replica are joined, the worst over the replicas and tensor ranks.
typedef struct ps_cost_link {
    const char *name;
    int64_t latency_ns;
    double bytes_per_s; // reached
} ps_cost_link;
ps_cost_link ps_cost_pipeline_link(const ps_group *group, const ps_layout *layout, int32_t pp_rank_a,
                                   int32_t pp_rank_b);
ps_cost_link ps_cost_intra_link(const ps_group *group);
ps_cost_link ps_cost_inter_link(const ps_group *group);
// bytes / bytes_per_s, rounded: how long a transfer occupies its lane.
int64_t ps_cost_transfer_ns(ps_cost_link link, int64_t bytes);

// Collectives among `ranks` GPUs that stand `stride` apart in rank order; `bytes` is the full tensor. Hierarchical when
// the group spans fast domains. `ranks` 1 is free.
int64_t ps_cost_all_reduce_ns(const ps_group *group, int64_t ranks, int64_t stride, int64_t bytes);
int64_t ps_cost_reduce_scatter_ns(const ps_group *group, int64_t ranks, int64_t stride, int64_t bytes);

// What happens once an iteration to the layers of one stage, on each of its ranks.
typedef struct ps_iteration_cost {
    int64_t reduce_ns; // gradients among the replicas: of the sum of all micro-batches, with ZeRO-2 of each
    int64_t optimizer_ns;
    int64_t gather_ns; // stepped parameters among the replicas
    int32_t buckets;   // parts in which both travel when they overlap ops; at least 1
} ps_iteration_cost;
ps_iteration_cost ps_cost_iteration(const ps_group *group, const ps_job *job, const ps_layout *layout,
                                    const ps_layer_cost *sum);

// An all-reduce of the gradient of `parameters` elements that the first and the last pipeline rank share.
int64_t ps_cost_tied_ns(const ps_group *group, const ps_job *job, const ps_layout *layout, int64_t parameters);

// All ranks of the job agree on the norm of the gradients and on whether one is infinite: one number is all-reduced.
int64_t ps_cost_barrier_ns(const ps_group *group, const ps_layout *layout);

// Dualpipe: the all-reduce of gradients between pipeline ranks r and pp - 1 - r, which hold the same `parameters`
// elements, of what the reduction among the replicas has left on a rank. Nothing hides it: it needs both to be done.
int64_t ps_cost_pair_sync_ns(const ps_group *group, const ps_job *job, const ps_layout *layout, int32_t pp_rank,
                             int64_t parameters);

// Every term of a layer's cost, for `show --cost` and for tests.
typedef struct ps_cost_term {
    const char *layer;
    const char *quantity; // "forward", "held after forward", ...
    const char *formula;  // "2*T*h*(q+2k)/t / (peak * gemm efficiency)"
    double value;
    const char *unit; // "ms", "bytes", "FLOP"
} ps_cost_term;
typedef struct ps_cost_terms {
    int32_t count;
    ps_cost_term *term;
} ps_cost_terms;
ps_code ps_cost_explain(ps_arena *arena, const ps_model *model, const ps_group *group, const ps_job *job,
                        const ps_layout *layout, int32_t layer, ps_cost_terms *out, ps_status *status);

#endif
