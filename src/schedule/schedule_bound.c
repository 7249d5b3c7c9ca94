// SPDX-License-Identifier: Apache-2.0
//
// schedule_bound.c: lower bounds on the time of any order of a pipeline's ops on its stages and devices.
//
// Notation: f, b, w are the times of F, of the gradient op that the stage before waits for (B if fused, else I) and of
// W (0 if fused); a hop costs occupancy plus latency at least; m micro-batches. The first op of any order is F of stage
// 0, at time 0, on device(0).
//   head(s) = sum of f and forward hops before stage s: no op of stage s starts earlier.
//   down(s) = sum of b and backward hops from the end of b at stage s to the end of b at stage 0.
// Load. All work of device d takes m (f + b + w) over its stages, and none starts before head of its first stage.
//   Without the head this holds for d's own span.
// Chain. When the last b of stage s ends, its device d has run every F of its stages (those before s are needed by that
//   b, those after s by the b's of stages after s) and every b of its stages from s on, for all micro-batches, none of
//   it before head. That last b still travels down to stage 0, where one W is left.
// Single micro-batch. Its F's, hops and b's are in sequence, and a W ends at stage 0.
// Link. A lane carries m times the occupancy of its hops, one after another. Before the first transfer a micro-batch
//   has come as far as one of these hops; after the last the rest of its way remains.
// The last three end on device(0), which started at time 0, so they bound the span as well as the makespan. The first
// two are the work bounds of flow-shop scheduling. What memory limits add is in schedule_bound_memory.c. Sums stay
// below 2^63 once ps_pipeline_validate() has passed.
#include "schedule/schedule_bound.h"

#include <assert.h>

// Load and chain of devices first .. first + PS_BOUND_BLOCK - 1. O(stages).
static void bound_devices(const ps_bound_problem *p, int32_t first, ps_schedule_bound *out)
{
    int64_t head[PS_BOUND_BLOCK];
    int64_t work[PS_BOUND_BLOCK] = {0};     // a micro-batch, all its ops
    int64_t required[PS_BOUND_BLOCK] = {0}; // a micro-batch, what the chain through the stage at hand needs
    const ps_pipeline *pipeline = p->pipeline;
    int64_t microbatches = pipeline->num_microbatches;
    int64_t reach = 0;

    for (int32_t i = 0; i < PS_BOUND_BLOCK; i++)
        head[i] = -1;
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        int32_t i = pipeline->stage[s].device - first;
        if (i >= 0 && i < PS_BOUND_BLOCK) {
            if (head[i] < 0)
                head[i] = reach;
            work[i] += ps_bound_forward(p, s) + ps_bound_gradient(p, s) + ps_bound_weight(p, s);
            required[i] += ps_bound_forward(p, s);
        }
        reach += ps_bound_forward(p, s) + (s + 1 < pipeline->num_stages ? ps_bound_hop(&pipeline->forward_hop[s]) : 0);
    }
    for (int32_t i = 0; i < PS_BOUND_BLOCK; i++) {
        ps_bound_improve(&out->span_ns, &out->span_by, microbatches * work[i], "load");
        if (head[i] >= 0)
            ps_bound_improve(&out->makespan_ns, &out->makespan_by, head[i] + microbatches * work[i], "load");
    }

    int64_t down = p->single - p->up - ps_bound_weight(p, 0);
    for (int32_t s = pipeline->num_stages - 1; s >= 0; s--) {
        down -= ps_bound_gradient(p, s);
        int32_t i = pipeline->stage[s].device - first;
        if (i >= 0 && i < PS_BOUND_BLOCK) {
            required[i] += ps_bound_gradient(p, s);
            ps_bound_improve_both(out, head[i] + microbatches * required[i] + down + ps_bound_weight(p, 0), "chain");
        }
        down -= s > 0 ? ps_bound_hop(&pipeline->backward_hop[s - 1]) : 0;
    }
}

// Least time before and after any one transfer, and the work, of each lane of a block.
typedef struct lane_sums {
    int64_t occupy[PS_BOUND_BLOCK];
    int64_t before[PS_BOUND_BLOCK];
    int64_t after[PS_BOUND_BLOCK];
} lane_sums;

static void add_hop(const ps_bound_problem *p, lane_sums *sums, int32_t first, const ps_hop *hop, int64_t sent)
{
    if (hop->lane < first || hop->lane >= first + PS_BOUND_BLOCK)
        return;
    int32_t i = hop->lane - first;
    int64_t after = p->single - sent - hop->occupy_ns;
    sums->occupy[i] += hop->occupy_ns;
    sums->before[i] = sent < sums->before[i] ? sent : sums->before[i];
    sums->after[i] = after < sums->after[i] ? after : sums->after[i];
}

static void bound_lanes(const ps_bound_problem *p, int32_t first, ps_schedule_bound *out)
{
    const ps_pipeline *pipeline = p->pipeline;
    lane_sums sums = {.occupy = {0}};
    int64_t reach = 0;

    for (int32_t i = 0; i < PS_BOUND_BLOCK; i++)
        sums.before[i] = sums.after[i] = p->single;
    for (int32_t s = 0; s + 1 < pipeline->num_stages; s++) {
        reach += ps_bound_forward(p, s);
        add_hop(p, &sums, first, &pipeline->forward_hop[s], reach);
        reach += ps_bound_hop(&pipeline->forward_hop[s]);
    }
    reach = p->up;
    for (int32_t s = pipeline->num_stages - 1; s > 0; s--) {
        reach += ps_bound_gradient(p, s);
        add_hop(p, &sums, first, &pipeline->backward_hop[s - 1], reach);
        reach += ps_bound_hop(&pipeline->backward_hop[s - 1]);
    }
    for (int32_t i = 0; i < PS_BOUND_BLOCK; i++)
        if (sums.occupy[i] > 0)
            ps_bound_improve_both(out, sums.before[i] + pipeline->num_microbatches * sums.occupy[i] + sums.after[i],
                                  "link");
}

void ps_schedule_bound_compute(const ps_pipeline *pipeline, bool fused, ps_schedule_bound *out)
{
    assert(pipeline->num_routes == 0); // ps_schedule_bound_routed() is for those
    ps_bound_problem p = {.pipeline = pipeline, .fused = fused};
    int32_t last = pipeline->num_stages - 1;
    for (int32_t s = 0; s <= last; s++)
        p.up += ps_bound_forward(&p, s) + (s < last ? ps_bound_hop(&pipeline->forward_hop[s]) : 0);
    p.single = p.up + ps_bound_weight(&p, 0);
    for (int32_t s = 0; s <= last; s++)
        p.single += ps_bound_gradient(&p, s) + (s < last ? ps_bound_hop(&pipeline->backward_hop[s]) : 0);

    *out = (ps_schedule_bound){.makespan_ns = -1, .span_ns = -1};
    for (int32_t first = 0; first < pipeline->num_devices; first += PS_BOUND_BLOCK)
        bound_devices(&p, first, out);
    ps_bound_improve_both(out, p.single, "single micro-batch");
    for (int32_t first = 0; first < pipeline->num_lanes; first += PS_BOUND_BLOCK)
        bound_lanes(&p, first, out);
    ps_bound_memory(&p, out);
    ps_bound_visits(&p, out);
}
