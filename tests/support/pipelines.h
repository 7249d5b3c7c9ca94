// SPDX-License-Identifier: Apache-2.0
//
// pipelines.h: small pipelines and schedules for tests.
#ifndef PS_TESTS_PIPELINES_H
#define PS_TESTS_PIPELINES_H

#include "base/rng.h"
#include "pipesched/schedule.h"
#include "pipesched/timeline.h"

// Of one stage and micro-batch. The whole backward takes both halves unless backward_ns is given.
typedef struct costs {
    int64_t forward_ns;
    int64_t backward_ns;
    int64_t backward_input_ns;
    int64_t backward_weight_ns;
    int64_t hop_latency_ns;
    int64_t hop_occupy_ns;
    int64_t held_after_forward;
    int64_t held_after_backward_input;
    int64_t recompute_ns;
    int64_t added_by_recompute;
} costs;

// One stage a device, all alike; or several in the loop placement.
ps_pipeline *equal_stages(ps_arena *arena, int32_t devices, int32_t microbatches, costs cost);
ps_pipeline *looped_stages(ps_arena *arena, int32_t devices, int32_t stages, int32_t microbatches, costs cost);

// Loop placement, every time up to 9, hops with latency and occupancy, every held size up to 9.
ps_pipeline *random_stages(ps_arena *arena, ps_rng *rng, int32_t devices, int32_t stages, int32_t microbatches);

// Move the stages of a pipeline to where a family wants them; nothing is sent within a device. Where the family has R,
// every stage gets some time and memory for it.
void place_for(ps_arena *arena, ps_pipeline *pipeline, ps_schedule_kind kind);

// Two stages a device in a V, all alike.
ps_pipeline *v_stages(ps_arena *arena, int32_t devices, int32_t microbatches, costs cost);

// The same for both ways of dualpipe.
ps_pipeline *dual_stages(ps_arena *arena, int32_t devices, int32_t microbatches, costs cost);

// With or without routes.
ps_schedule_bound bound_with_routes(ps_arena *arena, const ps_pipeline *pipeline, bool fused);

// Some of the stages in some order for every micro-batch, with hops of their own, and an order of the ops: one
// micro-batch after the other, with whole and split backwards, and R where a stage has it.
ps_pipeline *random_routes(ps_arena *arena, ps_rng *rng, ps_schedule *schedule);

// The schedule of a family, its timeline, and their check; a refusal fails the test.
ps_schedule schedule_for(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule_kind kind);
ps_timeline simulate(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule);
ps_timeline run(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule_kind kind);

// A shape that the family is legal on, drawn at random; at most 6 devices.
ps_schedule_shape random_shape(ps_rng *rng, ps_schedule_kind kind);

// |value - want| <= tolerance.
void assert_near(double value, double want, double tolerance);

// A schedule written as cells, one string a device: "0F0 0B0".
ps_schedule schedule_from_cells(ps_arena *arena, const char *const *cells, int32_t devices);

#endif
