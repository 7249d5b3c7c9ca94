// SPDX-License-Identifier: Apache-2.0
//
// timeline.h: what happens when, once a schedule runs on a pipeline.
//
// A device runs its ops in order, without preemption. F waits for the F of the stage before on the micro-batch's route,
// I and B for the I or B of the stage after and for their own F, W for its own I. A transfer starts when its op ends,
// in the source's program order on its lane. So the timeline is a longest path: linear to compute and monotone in every
// duration.
#ifndef PIPESCHED_TIMELINE_H
#define PIPESCHED_TIMELINE_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"

// Idle time between the first start and the last end of the whole pipeline, by when it falls: before the first I or B
// anywhere starts, after the last F anywhere ends, or between. (An interval is split at the two instants.)
typedef struct ps_idle {
    int64_t warmup_ns;
    int64_t steady_ns;
    int64_t cooldown_ns;
} ps_idle;

typedef struct ps_device_timeline {
    int64_t first_start_ns;
    int64_t last_end_ns;
    int64_t busy_ns;
    int64_t idle_ns; // makespan - busy; the sum of the three classes
    ps_idle idle;
    int64_t peak_activation; // most held by micro-batches, transients left out
    int64_t peak_transient;  // the largest transient of its stages
    int64_t peak_memory;     // static + the largest sum of held and running transient
    int32_t in_flight_peak;  // most (stage, micro-batch) pairs between F and the end of I or B
} ps_device_timeline;

typedef struct ps_timeline {
    int32_t num_devices;
    int64_t makespan_ns;        // first start anywhere to last end anywhere
    int64_t span_ns;            // largest own first start to own last end
    int64_t busy_ns;            // all devices
    ps_device_timeline *device; // [num_devices]
    int64_t *start_ns;          // [ops], index as in ps_schedule
    int64_t *end_ns;            // [ops]
} ps_timeline;

// PS_ILLEGAL with rule deadlock (the message names the cycle of ops that wait for each other), incomplete-schedule,
// duplicate-op, unknown-op, off-route or wrong-device; PS_INFEASIBLE is never returned: compare peak_memory with the
// limits (ps_timeline_fits). The pipeline must have passed ps_pipeline_validate(). O(ops), about 12 ns an op.
ps_code ps_simulate(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule, ps_timeline *out,
                    ps_status *status);

// PS_INFEASIBLE with rule memory: the first device over its limit, with need and have.
ps_code ps_timeline_fits(const ps_pipeline *pipeline, const ps_timeline *timeline, ps_status *status);

double ps_timeline_bubble(const ps_timeline *timeline); // idle device time / all device time, 0 when nothing ran
// The same against the span: 1 - busy / (devices * span) as zero-bubble papers print it for equal stages.
double ps_timeline_span_bubble(const ps_timeline *timeline);

#endif
