// SPDX-License-Identifier: Apache-2.0
//
// pipeline.h: all that ordering and timing need, and nothing of models, GPUs or clusters.
//
// A ps_pipeline holds stages on devices, micro-batches, the hops between stages and the memory an op holds. A test
// writes one by hand, a paper's table drops in as bare numbers, the planner builds one from a cut and a cost table.
// Times are int64 nanoseconds. Memory is int64 bytes, or the user's own unit when every figure is bare.
#ifndef PIPESCHED_PIPELINE_H
#define PIPESCHED_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

// The letters are PyTorch's, so that a schedule reads the same here and in a torch.distributed.pipelining CSV.
typedef enum ps_op_kind {
    PS_OP_FORWARD,         // F
    PS_OP_BACKWARD,        // B: both gradients in one op; the stage before waits for the whole of it
    PS_OP_BACKWARD_INPUT,  // I: gradient of the stage's input; the stage before waits for this
    PS_OP_BACKWARD_WEIGHT, // W: gradient of the weights; only the optimizer waits for it
    PS_OP_KINDS
} ps_op_kind;

typedef struct ps_stage {
    int32_t device;                    // device that runs it
    int64_t duration_ns[PS_OP_KINDS];  // of one micro-batch; B is usually I + W
    int64_t held_after_forward;        // memory one micro-batch holds from the start of F to the end of I or B
    int64_t held_after_backward_input; // memory it holds from the end of I to the end of W; may exceed the former
    int64_t transient;                 // extra while any one op of the stage runs
} ps_stage;

// A transfer starts when its op ends, behind earlier ones of its lane, and overlaps compute: it occupies the lane for
// occupy_ns and the data arrive latency_ns after that.
typedef struct ps_hop {
    int64_t occupy_ns;
    int64_t latency_ns;
    int32_t lane; // index below num_lanes; PS_NO_LANE between two stages of one device: nothing is sent
} ps_hop;

enum { PS_NO_LANE = -1 };

typedef struct ps_device {
    int64_t static_memory; // parameters, gradients, optimizer state, reserve
    int64_t memory_limit;  // INT64_MAX: none
} ps_device;

// The way of a micro-batch: its F's visit the stops in order, its I's or B's in reverse. Stages may be left out or come
// in any order, each once at most. Routes may share hops, as they may share stages.
typedef struct ps_route {
    int32_t num_stops;
    const int32_t *stage; // [num_stops]; NULL: 0, 1, 2 ...
    ps_hop *forward_hop;  // [num_stops - 1], from stop i to i + 1
    ps_hop *backward_hop; // [num_stops - 1], from stop i + 1 to i
} ps_route;

typedef struct ps_pipeline {
    int32_t num_stages;
    int32_t num_devices;
    int32_t num_microbatches;
    int32_t num_lanes;
    ps_stage *stage;      // [num_stages], in the order a micro-batch visits them
    ps_hop *forward_hop;  // [num_stages - 1], from stage s to s + 1; with routes theirs count instead
    ps_hop *backward_hop; // [num_stages - 1], from stage s + 1 to s; likewise
    ps_device *device;    // [num_devices]
    int32_t num_routes;   // 0: every micro-batch visits all stages in order, and the two below are not read
    ps_route *route;      // [num_routes]
    int32_t *route_of;    // [num_microbatches]
} ps_pipeline;

// A pipeline without routes is one of a single route: walks over all routes need not tell the two apart.
static inline int32_t ps_pipeline_num_routes(const ps_pipeline *pipeline)
{
    return pipeline->num_routes > 0 ? pipeline->num_routes : 1;
}

static inline ps_route ps_pipeline_route(const ps_pipeline *pipeline, int32_t route)
{
    if (pipeline->num_routes > 0)
        return pipeline->route[route];
    return (ps_route){.num_stops = pipeline->num_stages,
                      .forward_hop = pipeline->forward_hop,
                      .backward_hop = pipeline->backward_hop};
}

static inline int32_t ps_route_stage(const ps_route *route, int32_t stop)
{
    return route->stage ? route->stage[stop] : stop;
}

// How many (stage, micro-batch) pairs run: stages * micro-batches where there are no routes.
int64_t ps_pipeline_num_cells(const ps_pipeline *pipeline);

// Give every hop the lane of its (source device, destination device) pair and set num_lanes. O(hops * log hops).
void ps_pipeline_assign_lanes(ps_arena *arena, ps_pipeline *pipeline);

// Refuse shapes, negative figures and sums beyond limits.h, so that nothing downstream can overflow. Rules:
// pipeline-shape, pipeline-route, stage-device, negative-time, negative-memory, too-many-ops (shows the product),
// time-overflow, memory-overflow.
ps_code ps_pipeline_validate(const ps_pipeline *pipeline, ps_status *status);

#endif
