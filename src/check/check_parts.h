// SPDX-License-Identifier: Apache-2.0
//
// check_parts.h: the parts of the checker, one file a subject, in the order in which they run.
#ifndef PS_CHECK_CHECK_PARTS_H
#define PS_CHECK_CHECK_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "check/finding.h"

// Counts, indices and sizes that all other parts rely on. False: nothing else can be looked at.
bool ps_check_shape(ps_check *check);

// No order of these ops on these devices can be as fast as the plan claims.
void ps_check_below_bound(ps_check *check);

void ps_check_layers(ps_check *check);
// The second way's stages are those of the first once more.
void ps_check_ways_agree(ps_check *check);
void ps_check_placement(ps_check *check);
void ps_check_layout(ps_check *check);
// A job's set of values; an empty one allows every value.
// Why experts cannot be divided like this; NULL when they can.
const char *ps_check_expert_misfit(const ps_plan *plan, const ps_layout *layout);
bool ps_check_allows(const ps_int_set *set, int64_t value);
void ps_check_hops(ps_check *check);
void ps_check_ranks(ps_check *check);

// Where a schedule puts its stages: round the devices again and again, or there and back (V). The two ways of dualpipe
// one after the other are there and back.
bool ps_check_is_v(ps_schedule_kind kind);
// The ways through the stages: one through all of them; dualpipe has two, each through half of them, the second for the
// second half of the micro-batches.
int32_t ps_check_ways(const ps_plan *plan);
int32_t ps_check_way_stages(const ps_plan *plan);
bool ps_check_passes(const ps_plan *plan, int64_t stage, int64_t microbatch);
// The stage after or before another on its way; -1: none.
int32_t ps_check_after(const ps_plan *plan, int32_t stage);
int32_t ps_check_before(const ps_plan *plan, int32_t stage);
// Backwards of a schedule are all whole (B) or all split (I and W).
bool ps_check_is_split(ps_schedule_kind kind);
// Backwards are whole, and each has its recompute R as an op before it instead of inside.
bool ps_check_recomputes(ps_schedule_kind kind);
// Operations of one micro-batch on one stage.
int32_t ps_check_kinds(ps_schedule_kind kind);

// Where each op of each stage and micro-batch stands: index into schedule.op, or -1. The slot of a kind is its place
// among the kinds of the schedule: F 0, B or I 1, W or R 2.
typedef struct ps_cell_table {
    int64_t microbatches;
    int64_t stages;
    int32_t *at; // [kinds * stages * microbatches]
} ps_cell_table;
int32_t *ps_cell_slot(const ps_cell_table *table, ps_op op);

// Every cell once, on its device, nothing else. True when so: then the schedule can be ordered and timed.
bool ps_check_cells(ps_check *check, ps_cell_table *table);
// The order that the named family defines.
void ps_check_family(ps_check *check);
// The same for dualpipe and dualpipev.
void ps_check_dual(ps_check *check);

// What the plan's own durations make of its order, per device and altogether.
typedef struct ps_check_device_times {
    int64_t first_start_ns;
    int64_t last_end_ns;
    int64_t busy_ns;
    ps_idle idle;
} ps_check_device_times;

typedef struct ps_check_times {
    int64_t makespan_ns;
    int64_t span_ns;
    int64_t busy_ns;
    int64_t last_end_ns;
    ps_check_device_times *device;
    const int64_t *start_ns; // [ops]
    const int64_t *sent_ns;  // [ops] when the transfer that an op starts has its lane; -1: it sends nothing
} ps_check_times;

// Time that one op of a kind takes on a stage of the plan.
int64_t ps_check_duration(const ps_plan *plan, const ps_plan_stage *stage, ps_op_kind kind);
// The stage whose op of the same direction must come before, or -1: F waits for the stage before, B and I for the one
// after, W for none but its own I, R for none but its own F.
int32_t ps_check_source(const ps_plan *plan, ps_op op);
// Each hop once, by its lower stage; NULL entries where the plan lists none.
typedef struct ps_hop_table {
    const ps_plan_hop **forward;
    const ps_plan_hop **backward;
} ps_hop_table;
ps_hop_table ps_check_hop_table(ps_check *check);

// False when the order deadlocks (reported).
bool ps_check_times_compute(ps_check *check, const ps_cell_table *table, ps_check_times *out);
void ps_check_times_compare(ps_check *check, const ps_check_times *times);
// The plan's own list of starts and ends, if it has one.
void ps_check_timeline(ps_check *check, const ps_cell_table *table, const ps_check_times *times);
// `done[device]` ops of each device could run, and no more can.
void ps_check_deadlock(ps_check *check, const ps_cell_table *table, const int32_t *done);

// What ends the step on each rank.
typedef struct ps_check_rank_step {
    int64_t sync_ns;
    int64_t exposed_ns; // of it, after the last op
    int64_t synced_ns;
    int64_t validated_ns;
    int64_t steps_ns; // the optimizer starts
    int64_t gather_ns;
    int64_t late_ns; // the next step's first forward, because of gathers
    int64_t ready_ns;
} ps_check_rank_step;

typedef struct ps_check_step {
    ps_check_rank_step *rank;
    int32_t *last_gradient;   // [num_stages] place of the last weight gradient
    int64_t *reduce_start_ns; // [ops] of the reduction that an op starts; NULL when nobody asks
    int64_t *reduce_end_ns;
    int64_t *gather_start_ns; // [num_stages]
    int64_t *tied_start_ns;   // [num_stages]
    bool *met;                // [num_stages] scratch
} ps_check_step;

void ps_check_step_compute(ps_check *check, const ps_check_times *times, ps_check_step *out);
// The plan's own list of them, if it has one.
void ps_check_step_timeline(ps_check *check, const ps_cell_table *table, const ps_check_step *step);

void ps_check_memory(ps_check *check);      // what does not depend on the order
void ps_check_activations(ps_check *check); // what does
void ps_check_prediction(ps_check *check, const ps_check_times *times);
void ps_check_bounds(ps_check *check);

void ps_check_search(ps_check *check);       // the account of what was looked at, of any verdict
void ps_check_alternatives(ps_check *check); // the next best layouts
void ps_check_jitter(ps_check *check);       // of a feasible plan
void ps_check_launchable(ps_check *check);

#endif
