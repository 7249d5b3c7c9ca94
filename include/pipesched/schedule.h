// SPDX-License-Identifier: Apache-2.0
//
// schedule.h: the order of ops on every device, and the named families that make one.
#ifndef PIPESCHED_SCHEDULE_H
#define PIPESCHED_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/pipeline.h"
#include "pipesched/status.h"

typedef struct ps_op {
    int32_t microbatch;
    uint16_t stage;
    uint8_t kind; // ps_op_kind
} ps_op;

// Every device's ops in the order it runs them; device d owns op[first[d]] up to op[first[d + 1]].
typedef struct ps_schedule {
    int32_t num_devices;
    int32_t *first; // [num_devices + 1]
    ps_op *op;      // [first[num_devices]]
} ps_schedule;

typedef enum ps_schedule_kind {
    PS_SCHEDULE_GPIPE,
    PS_SCHEDULE_1F1B,
    PS_SCHEDULE_INTERLEAVED,
    PS_SCHEDULE_ZB_H1,
    PS_SCHEDULE_ZB_H2,
    PS_SCHEDULE_LOOPED_BFS,
    PS_SCHEDULE_INTERLEAVED_ZB,
    PS_SCHEDULE_ZB_V,
    PS_SCHEDULE_V_HALF,
    PS_SCHEDULE_V_MIN,
    PS_SCHEDULE_DUALPIPEV,
    PS_SCHEDULE_H_1F1B,
    PS_SCHEDULE_DUALPIPE,
    PS_SCHEDULE_GPIPE_RECOMPUTE,
    PS_SCHEDULE_KINDS
} ps_schedule_kind;

// Which device runs a stage, when a family puts several on each. With one stage a device the two are the same.
typedef enum ps_placement {
    PS_PLACEMENT_LOOP, // device s mod p: 0 1 2 3 0 1 2 3
    PS_PLACEMENT_V,    // there and back again: 0 1 2 3 3 2 1 0; nothing is sent at the turn
    PS_PLACEMENT_DUAL  // both ways: 0 1 2 3 and 3 2 1 0; half of the micro-batches take only the first half of the
                       // stages, the others only the second, which are the same layers once more
} ps_placement;

// What a family needs to know of a pipeline to be legal on it, and what it lets the user choose.
typedef struct ps_schedule_shape {
    int32_t num_devices;
    int32_t num_stages; // devices * virtual stages a device; with PS_PLACEMENT_DUAL those of both ways
    int32_t num_microbatches;
    int32_t group_size;          // interleaved: micro-batches of a group; 0: as many as devices
    const int32_t *launch_count; // h-1f1b: [num_devices] forwards before the first backward; NULL: those of 1f1b
} ps_schedule_shape;

// One row of the family table (schedule/schedule_table.c): a new family is one new file and one new row.
typedef struct ps_schedule_family {
    ps_schedule_kind kind;
    const char *name;       // as the user writes it: "1f1b"
    const char *summary;    // one line for --help
    bool splits_backward;   // uses I and W instead of B
    bool recomputes;        // has R before every B
    bool virtual_stages;    // may put more than one stage on a device
    bool needs_choices;     // is nothing of its own without the user's choices, so no automatic search tries it
    ps_placement placement; // of the stages it orders; with PS_PLACEMENT_V and PS_PLACEMENT_DUAL two a device
    // PS_ILLEGAL with the family's own rule, the values and the nearest legal ones.
    ps_code (*legal)(ps_schedule_shape shape, ps_status *status);
    // Reads only shape, stage -> device and routes; times do not matter to a named family. O(ops).
    ps_code (*generate)(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status);
} ps_schedule_family;

const ps_schedule_family *ps_schedule_family_at(ps_schedule_kind kind);
const ps_schedule_family *ps_schedule_family_named(const char *name); // NULL: none of that name

// Device of a stage in a placement; the stage is that device's chunk number stage / devices.
int32_t ps_schedule_device(ps_placement placement, ps_schedule_shape shape, int32_t stage);
// The reverse: chunk number `chunk` of a device.
int32_t ps_schedule_stage(ps_placement placement, ps_schedule_shape shape, int32_t device, int32_t chunk);

// The routes of a pipeline whose stages follow the placement: none but for PS_PLACEMENT_DUAL, where micro-batches from
// 0 on take stages 0 to p - 1 and those from m / 2 on the others, over the pipeline's own hops. Before lanes are
// assigned.
void ps_schedule_set_routes(ps_arena *arena, ps_placement placement, ps_pipeline *pipeline);

// Legal, then generated. Sum of ops is below PS_MAX_OPS once ps_pipeline_validate() has passed.
ps_code ps_schedule_generate(ps_arena *arena, ps_schedule_kind kind, const ps_pipeline *pipeline, ps_schedule *out,
                             ps_status *status);
// The same with the choices that `shape` holds; its counts are those of the pipeline.
ps_code ps_schedule_generate_shaped(ps_arena *arena, ps_schedule_kind kind, const ps_pipeline *pipeline,
                                    ps_schedule_shape shape, ps_schedule *out, ps_status *status);

// What one stage has in flight at the worst moments: `full` micro-batches between F and I or B, and `weight` between I
// and W at the same time. Memory of a stage is the largest full * held_after_forward + weight *
// held_after_backward_input over its points; points that another dominates are left out. Where the family recomputes,
// `weight` counts those between R and B instead, each of which takes added_by_recompute.
typedef struct ps_depth {
    int32_t full;
    int32_t weight;
} ps_depth;

typedef struct ps_depth_list {
    int32_t num_stages;
    int32_t *first; // [num_stages + 1] into point
    ps_depth *point;
} ps_depth_list;

// Exact depths per stage of the schedule that `kind` generates for this shape in its own placement. O(ops).
ps_code ps_schedule_depths(ps_arena *arena, ps_schedule_kind kind, ps_schedule_shape shape, ps_depth_list *out,
                           ps_status *status);

// Lower bounds on any order of this pipeline's ops on these stages and devices that stays within the memory limits;
// derivations: schedule_bound.c, schedule_bound_memory.c. `fused`: the backward is one op B. Stages whose R takes time
// have one for every micro-batch in each of these orders.
typedef struct ps_schedule_bound {
    int64_t makespan_ns;
    int64_t span_ns;
    const char *makespan_by; // "load", "chain", "start-up", "single micro-batch", "link" or "memory"
    const char *span_by;
} ps_schedule_bound;
void ps_schedule_bound_compute(const ps_pipeline *pipeline, bool fused, ps_schedule_bound *out);
// The same for a pipeline with routes, which the former does not take; derivations: schedule_bound_route.c.
void ps_schedule_bound_routed(ps_arena *arena, const ps_pipeline *pipeline, bool fused, ps_schedule_bound *out);

// A cell as PyTorch writes it: "0F12". Writes at most 32 bytes.
int32_t ps_op_format(ps_op op, char text[32]);
// The reverse; false when the text is no cell. Strict: no blanks, no sign, no leading zeros but "0", nothing after.
bool ps_op_parse(const char *text, ps_op *out);
char ps_op_letter(ps_op_kind kind);

#endif
