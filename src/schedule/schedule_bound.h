// SPDX-License-Identifier: Apache-2.0
//
// schedule_bound.h: what the files of the lower bounds share.
#ifndef PS_SCHEDULE_SCHEDULE_BOUND_H
#define PS_SCHEDULE_SCHEDULE_BOUND_H

#include "pipesched/schedule.h"

// Devices, or lanes, whose sums fit on the stack; more are done in several passes over the stages.
enum { PS_BOUND_BLOCK = 256 };

typedef struct ps_bound_problem {
    const ps_pipeline *pipeline;
    bool fused;
    int64_t up;     // time of one micro-batch from the start of F at stage 0 to the end of F at the last stage
    int64_t single; // and on to the end of b, and W, at stage 0
} ps_bound_problem;

static inline int64_t ps_bound_forward(const ps_bound_problem *p, int32_t stage)
{
    return p->pipeline->stage[stage].duration_ns[PS_OP_FORWARD];
}

static inline int64_t ps_bound_gradient(const ps_bound_problem *p, int32_t stage)
{
    return p->pipeline->stage[stage].duration_ns[p->fused ? PS_OP_BACKWARD : PS_OP_BACKWARD_INPUT];
}

static inline int64_t ps_bound_weight(const ps_bound_problem *p, int32_t stage)
{
    return p->fused ? 0 : p->pipeline->stage[stage].duration_ns[PS_OP_BACKWARD_WEIGHT];
}

static inline int64_t ps_bound_hop(const ps_hop *hop)
{
    return hop->lane == PS_NO_LANE ? 0 : hop->occupy_ns + hop->latency_ns;
}

static inline void ps_bound_improve(int64_t *best, const char **by, int64_t value, const char *name)
{
    if (value > *best) {
        *best = value;
        *by = name;
    }
}

static inline void ps_bound_improve_both(ps_schedule_bound *out, int64_t value, const char *name)
{
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, value, name);
    ps_bound_improve(&out->span_ns, &out->span_by, value, name);
}

// What the way of the first and the last micro-batches, and the limits of memory, add to load and chain.
void ps_bound_memory(const ps_bound_problem *p, ps_schedule_bound *out);

// What more the repeated visits to a device add.
void ps_bound_visits(const ps_bound_problem *p, ps_schedule_bound *out);

#endif
