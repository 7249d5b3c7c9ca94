// SPDX-License-Identifier: Apache-2.0
//
// order_search.h: the best order of ops that can be found for any pipeline, with a bound on how good any could be.
//
// Stages may be uneven and placed anyhow; memory limits hold per device. Seeds are the named families and a list
// scheduler under many policies; a counted local search then moves ops inside the devices' orders. Every number is an
// integer, so one input has one result; `effort` buys more steps, nothing else.
#ifndef PIPESCHED_ORDER_SEARCH_H
#define PIPESCHED_ORDER_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/control.h"
#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"
#include "pipesched/timeline.h"

typedef enum ps_order_objective {
    PS_ORDER_MAKESPAN, // first start anywhere to last end anywhere: what an optimizer barrier sees
    PS_ORDER_SPAN      // the longest own first start to own last end
} ps_order_objective;

typedef enum ps_order_backward {
    PS_ORDER_SPLIT, // I and W
    PS_ORDER_FUSED, // B
    PS_ORDER_EITHER // whichever comes out better; split when equal
} ps_order_backward;

typedef struct ps_order_options {
    ps_order_objective objective;
    ps_order_backward backward;
    int32_t effort;            // 1 is the default; the work grows in proportion
    const ps_control *control; // NULL: never stopped
    const ps_schedule *start;  // an order that fits, which the result is no worse than; NULL: none
} ps_order_options;

typedef struct ps_order_result {
    ps_schedule schedule;
    ps_timeline timeline;
    bool fused;
    int64_t value_ns; // makespan or span
    int64_t bound_ns; // no order of either kind allowed is below it
    const char *bound_by;
    bool proved;                     // the two are equal
    const ps_schedule_family *named; // best named family that is legal and fits, NULL: none
    int64_t named_ns;                // its value
    int64_t seed_ns;                 // value before the local search
    bool limit_hit;                  // control ended it early
    int64_t visits;                  // ops timed or placed
} ps_order_result;

enum { PS_ORDER_MAX_OPS = 1 << 22 };

// PS_ILLEGAL with rule too-many-ops-to-search beyond PS_ORDER_MAX_OPS. The pipeline must have passed
// ps_pipeline_validate(). PS_INFEASIBLE with rule "memory" when a device's limit is below what one micro-batch by
// itself needs, with the least limit that works.
ps_code ps_order_search(ps_arena *arena, const ps_pipeline *pipeline, const ps_order_options *options,
                        ps_order_result *out, ps_status *status);

// One memory limit of a curve.
typedef struct ps_order_rung {
    int64_t memory_limit;
    bool fits; // else nothing does, and the rest is 0
    bool fused;
    bool carried; // the order of the rung before is as good as what was found here
    int64_t makespan_ns;
    int64_t span_ns;
    double bubble; // of the objective's measure
    int64_t bound_ns;
    const char *bound_by;
    bool proved;
} ps_order_rung;

// Time against memory: the search at each of `count` rising limits, which hold for every device alike. Each starts from
// the order before, so that the value never rises; once it is what no memory can better, nothing is searched any more.
// Fills memory_limit on. PS_TIME_LIMIT or PS_STOPPED from the control: `*done` rungs were filled.
ps_code ps_order_curve(ps_arena *arena, const ps_pipeline *pipeline, const ps_order_options *options, int32_t count,
                       const int64_t *limit, ps_order_rung *rung, int32_t *done, ps_status *status);

#endif
