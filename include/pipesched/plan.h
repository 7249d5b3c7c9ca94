// SPDX-License-Identifier: Apache-2.0
//
// plan.h: everything a launch and a check need, self-contained: what was asked, what was decided, what is predicted,
// how far from the best possible it is, and why other choices lost.
//
// The fields follow pipesched/plan/v1 (INTERFACE, docs/schema/plan-v1.json) one for one. Strings and arrays live in the
// plan's arena. Times are int64 nanoseconds; the JSON prints exact milliseconds.
#ifndef PIPESCHED_PLAN_H
#define PIPESCHED_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipesched/arena.h"
#include "pipesched/calibration.h"
#include "pipesched/cluster.h"
#include "pipesched/control.h"
#include "pipesched/job.h"
#include "pipesched/layout.h"
#include "pipesched/model.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"
#include "pipesched/step.h"
#include "pipesched/timeline.h"

// The calibration that scaled the predictions.
typedef struct ps_plan_calibration {
    const char *source; // NULL: none
    const char *sha256;
    const char *framework;
    int32_t runs;
    double error;
    double leave_one_out; // below 0: too few runs
    double factor[PS_FACTORS];
} ps_plan_calibration;

typedef struct ps_plan_inputs {
    const char *model_name;
    const char *model_sha256;
    int32_t model_layers;
    int64_t model_parameters;
    int64_t model_experts; // the greatest number that divides the routed experts of each layer with some; 0: none has
    double model_flops_per_sequence; // forward and backward, causal
    const char *cluster_name;
    const char *cluster_sha256;
    int32_t cluster_nodes;
    int32_t gpus_per_node;
    int32_t domain_nodes;    // nodes that one fast fabric joins
    double usd_per_gpu_hour; // 0: no price
    double usd_per_kwh;      // 0: no price, or covered by that of the hour
    double gpu_watts;        // drawn by one GPU at work; 0: not known
    ps_plan_calibration calibration;
    ps_job job; // every resolved option
} ps_plan_inputs;

// Why nothing fits, or what would have to change.
typedef struct ps_reason {
    const char *rule;
    const char *message;
    int64_t have; // in the unit of the rule: bytes, layers, GPUs
    int64_t need;
    const char *dominant; // the largest term of need; NULL: none
    const char *hint;     // nearest change that fits; NULL: none
} ps_reason;

typedef struct ps_plan_stage {
    int32_t stage; // virtual stage, in the order a micro-batch visits them
    int32_t pp_rank;
    int32_t chunk;
    int32_t num_ranges; // layer_ids: inclusive ranges
    int32_t *first_layer;
    int32_t *last_layer;
    int32_t num_layers;
    const char **layer_name; // [num_layers]
    int32_t tp, dp, cp, ep;
    ps_recompute recompute;
    int64_t parameters; // of the whole stage, each owned weight once: they sum to the model's (on each way of dualpipe)
    int64_t forward_ns;
    int64_t backward_input_ns;
    int64_t backward_weight_ns;
    int64_t recompute_ns;
    int64_t op_overhead_ns;  // added to every op
    int64_t send_ns[2];      // added to F, and to B or I: not in the file, but of the hops (ps_plan_set_sends)
    int64_t grad_sync_ns;    // its gradients among the replicas: of all micro-batches, with ZeRO-2 of each
    int64_t tied_sync_ns;    // of weights that it shares with stages of other ranks; 0: none
    int32_t tied_to;         // the first stage that has them; 0 where there are none
    int64_t param_gather_ns; // its stepped parameters among the replicas
    int32_t sync_buckets;    // parts in which both travel beside ops
    int64_t held_after_forward_bytes;
    int64_t added_by_recompute_bytes; // from the start of R to the end of B; 0 unless the schedule has R
    int64_t held_after_backward_input_bytes;
    int64_t transient_bytes;
    int64_t output_bytes;
    int64_t parameter_bytes; // static memory of the stage on one rank
    int64_t gradient_bytes;
    int64_t optimizer_bytes;
    // What the stage needs with one micro-batch alone in it, at most: static + held after F + added
    // by R + held after I + transient.
    int64_t single_microbatch_bytes;
    int32_t launch_count; // most micro-batches between the start of F and the end of B or I
} ps_plan_stage;

// A kind of link that hops use: latency + bytes / bytes_per_s.
typedef struct ps_plan_link {
    const char *name;
    int64_t latency_ns;
    double bytes_per_s;
} ps_plan_link;

typedef struct ps_plan_hop {
    int32_t from_stage;
    int32_t to_stage;
    int64_t bytes; // output_bytes of the lower stage, in both directions
    int64_t latency_ns;
    int64_t transfer_ns; // lane occupied: bytes / bandwidth
    const char *link;    // name in the plan's links; "none" between stages of one device
} ps_plan_hop;

typedef struct ps_plan_memory {
    int64_t parameters;
    int64_t gradients;
    int64_t optimizer;
    int64_t activations_peak;
    int64_t transient;
    int64_t framework;     // allocated beside the model
    int64_t fragmentation; // reserved by the allocator beyond these six
    int64_t reserve;
    int64_t total_peak; // the sum of the eight
    int64_t capacity;
    int64_t headroom; // capacity - total_peak
} ps_plan_memory;

typedef struct ps_plan_device {
    int32_t pp_rank;
    int32_t num_stages;
    int32_t *stage;
    const char *gpu;
    ps_plan_memory memory;
    int64_t grad_sync_ns;
    int64_t grad_sync_exposed_ns; // after its last op
    int64_t grad_sync_hidden_ns;  // beside its ops: grad_sync - exposed
    int64_t optimizer_ns;
    int64_t param_gather_ns;
    int64_t param_gather_exposed_ns; // by how much the next step's first forward has to wait for it
    int64_t done_ns;      // end of its last op + exposed sync + optimizer + exposed gather: if it waited for nobody
    int64_t validated_ns; // when it knows that the step holds: at the barrier, or afterwards
    int64_t busy_ns;
    int64_t idle_ns;
    ps_idle idle;
    int32_t in_flight_peak;
} ps_plan_device;

typedef struct ps_plan_rank {
    int32_t rank, dp, pp, tp, cp, ep;
    int32_t node;
    int32_t gpu;
} ps_plan_rank;

typedef struct ps_plan_gpu {
    const char *name;
    int64_t memory_usable_bytes;
    double peak_flops; // in the job's precision
} ps_plan_gpu;

typedef struct ps_plan_prediction {
    int64_t iteration_ns; // pipeline + grad_sync_exposed + optimizer + param_gather_exposed; see ps_step_timeline
    int64_t pipeline_ns;  // makespan; the span without an optimizer barrier
    int64_t grad_sync_exposed_ns;
    int64_t optimizer_ns; // the barrier's all-reduce too
    int64_t param_gather_exposed_ns;
    int64_t barrier_ns;        // of that; 0 without an optimizer barrier
    int64_t validation_hop_ns; // the state of the gradients from a rank to the one before; 0 with a barrier
    int64_t makespan_ns;
    int64_t span_ns;
    double bubble;
    double span_bubble;
    double tokens_per_s;
    double model_tflops_per_gpu; // causal attention, no recompute
    double mfu;
    double usd_per_iteration; // GPU hours and energy, each where it has a price; 0: neither has
    double kwh_per_iteration; // ranks * gpu_watts * iteration; 0: power not known
    const char *accuracy;
} ps_plan_prediction;

typedef struct ps_plan_bounds {
    int64_t iteration_ns; // no enumerated layout can be faster
    double gap;           // (prediction.iteration - bound) / bound
    bool proved;          // gap is 0
    const char *limited_by;
    const char *method;
} ps_plan_bounds;

typedef struct ps_plan_count {
    const char *rule;
    int64_t count;
} ps_plan_count;

typedef struct ps_plan_alternative {
    ps_layout layout;
    int64_t iteration_ns;
    double loses;       // iteration / best - 1
    int64_t peak_bytes; // largest total_peak of a device
} ps_plan_alternative;

typedef struct ps_plan_search {
    int64_t candidates; // enumerated, legal in form
    int64_t pruned;     // bound no better than the incumbent
    int64_t evaluated;  // partitioned, scheduled and simulated
    int32_t num_infeasible;
    ps_plan_count *infeasible; // counted reasons, by rule name
    const char *engine;        // of the partitioner for the winner
    int32_t effort;
    int32_t num_alternatives; // at most ten, best first
    ps_plan_alternative *alternative;
    bool limit_hit; // --time-limit or interrupt cut it short
} ps_plan_search;

typedef struct ps_plan_launchable {
    const char *target;  // "megatron"
    const char *verdict; // "ok", or the id of the rule that forbids it
} ps_plan_launchable;

typedef struct ps_plan_diagnostic {
    const char *level; // "warning" or "note"
    const char *code;
    const char *message;
} ps_plan_diagnostic;

// An op that runs, or a transfer that an op starts. Only a plan that was read has them: a planner's are made from its
// ps_timeline when they are written. Ops that end the step are among them.
typedef struct ps_plan_event {
    bool is_transfer;
    bool ends_step;     // a ps_step_op instead of an op: `step`, whose device and times are pp_rank and those here
    int32_t pp_rank;    // ops only
    ps_op op;           // ops only
    ps_step_op step;    // ends_step only
    int32_t from_stage; // transfers only
    int32_t to_stage;
    int32_t microbatch;
    int64_t start_ns;
    int64_t end_ns; // of a transfer: when the data have arrived
} ps_plan_event;

typedef struct ps_plan {
    const char *tool_version;
    ps_plan_inputs inputs;
    bool feasible;
    int32_t num_reasons; // when infeasible: everything below diagnostics is empty but search
    ps_reason *reason;
    ps_layout layout;
    int32_t num_stages;
    ps_plan_stage *stage;
    int32_t num_links;
    ps_plan_link *link;
    int32_t num_hops;
    ps_plan_hop *hop; // both directions
    int32_t num_devices;
    ps_plan_device *device;
    int32_t num_gpus;
    ps_plan_gpu *gpu;
    const char *rank_order; // "tp-cp-ep-dp-pp"
    int32_t ranks_per_node;
    int64_t num_ranks;
    ps_plan_rank *rank; // NULL above PS_PLAN_MAX_RANK_MAP ranks
    ps_schedule schedule;
    ps_plan_prediction prediction;
    ps_plan_bounds bounds;
    ps_plan_search search;
    int32_t num_launchable;
    ps_plan_launchable *launchable;
    int32_t num_diagnostics;
    ps_plan_diagnostic *diagnostic;
    bool has_timeline; // the plan lists when each op and transfer runs
    int32_t num_events;
    ps_plan_event *event; // in the order of the file
} ps_plan;

enum { PS_PLAN_MAX_RANK_MAP = 4096 };

// The best plan for a job. PS_OK with plan->feasible false when nothing fits: the plan then carries the reasons. Every
// feasible plan has passed ps_check_plan(). PS_TIME_LIMIT when the control stopped the search: with the
// status left empty `out` holds the best so far, with rule time-limit nothing was found yet.
ps_code ps_plan_search_best(ps_arena *arena, const ps_model *model, const ps_cluster *cluster, const ps_job *job,
                            const ps_control *control, ps_plan *out, ps_status *status);

// pipesched/plan/v1. `timeline` adds the cells' starts and ends; with NULL those that the plan has are written. The
// stream's errors come back as PS_IO.
ps_code ps_plan_write_json(const ps_plan *plan, const ps_timeline *timeline, FILE *file, ps_status *status);
// Unknown keys become diagnostics (warnings) of the plan; a newer major version is refused. Shapes and ranges are
// checked here, truth by ps_check_plan().
ps_code ps_plan_read_json(ps_arena *arena, const char *source, const char *text, int64_t size, ps_plan *out,
                          ps_status *status);

// The pipeline that a plan describes, for replay and drawing.
// Set `send_ns` of all stages from the hops, where these do not overlap ops.
void ps_plan_set_sends(ps_plan *plan);
ps_code ps_plan_pipeline(ps_arena *arena, const ps_plan *plan, ps_pipeline *out, ps_status *status);
// The end of its step, validated against that pipeline.
ps_code ps_plan_step(ps_arena *arena, const ps_plan *plan, const ps_pipeline *pipeline, ps_step *out,
                     ps_status *status);

#endif
