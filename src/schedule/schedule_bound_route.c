// SPDX-License-Identifier: Apache-2.0
//
// schedule_bound_route.c: lower bounds for pipelines whose micro-batches take different routes.
//
// Notation as in schedule_bound.c, with head and down along a route: head(r, i) and down(r, i) of stop i of route r,
// and n_r micro-batches on it. Each route alone. The ops of one route's micro-batches, at the times they have, are an
// order of a pipeline without
//   routes, on the same devices, within the same limits. So each of its bounds holds here.
// Load. Device d runs the ops of all its stops, none before its least head.
// Chain. When the last b on d ends, all its F's, R's and b's are done, of every route. That b still travels down one of
// the
//   routes, where one W is left: at least the least down and W of d's stops.
// Start-up. Before its first b d can run nothing but F's and R's of theirs, as many as memory allows at once. Its first
// b does not start
//   before one micro-batch can have come there, through all of its route and back, nor sooner after d's first op than
//   the least round trip from one of its stops.
// Occupancy (Little's law). As in schedule_bound_memory.c, over all stops of d.
// Link. As in schedule_bound.c, over all hops of a lane.
// Routes may start on different devices, so chain and link bound the makespan only. Sums stay below 2^63 once
// ps_pipeline_validate() has passed.
#include "base/number.h"
#include "schedule/schedule_bound.h"

typedef struct device_sums {
    int64_t head;         // least of its stops; INT64_MAX: it has none
    int64_t forward;      // of all its micro-batches and stops
    int64_t recompute;    // likewise
    int64_t gradient;     // likewise
    int64_t weight;       // likewise
    int64_t tail;         // least from the end of a b to the end of its route
    int64_t first_b;      // least time at which a b can start
    int64_t round_trip;   // least from the start of an F to the start of its b
    int64_t longest_fill; // F and R of one stop
    int64_t least_held;
    int64_t least_transient;
    double occupancy; // memory * ns
} device_sums;

typedef struct lane_sums {
    int64_t occupy;
    int64_t before; // least before and after any one transfer
    int64_t after;
} lane_sums;

typedef struct route_walk {
    const ps_bound_problem *p;
    ps_route route;
    int64_t microbatches;
    int64_t up; // of the route
    int64_t single;
    device_sums *device;
    lane_sums *lane;
} route_walk;

static void keep_least(int64_t *least, int64_t value)
{
    *least = value < *least ? value : *least;
}

static void keep_most(int64_t *most, int64_t value)
{
    *most = value > *most ? value : *most;
}

// `head`: start of F at this stop; `back`: start of b, both of a micro-batch that waits for nothing.
static void add_stop(route_walk *w, int32_t stop, int64_t head, int64_t back)
{
    int32_t s = ps_route_stage(&w->route, stop);
    const ps_stage *stage = &w->p->pipeline->stage[s];
    int64_t forward = ps_bound_forward(w->p, s);
    int64_t recompute = ps_bound_recompute(w->p, s);
    int64_t gradient = ps_bound_gradient(w->p, s);
    int64_t weight = ps_bound_weight(w->p, s);
    device_sums *sum = &w->device[stage->device];
    keep_least(&sum->head, head);
    keep_least(&sum->tail, w->single - back - gradient);
    keep_least(&sum->first_b, back);
    keep_least(&sum->round_trip, back - head);
    keep_least(&sum->least_held, stage->held_after_forward);
    keep_least(&sum->least_transient, stage->transient);
    keep_most(&sum->longest_fill, forward + recompute);
    sum->forward += w->microbatches * forward;
    sum->recompute += w->microbatches * recompute;
    sum->gradient += w->microbatches * gradient;
    sum->weight += w->microbatches * weight;
    sum->occupancy +=
        (double)w->microbatches * ((double)stage->held_after_forward * (double)(back - head + gradient) +
                                   (w->p->fused ? 0 : (double)stage->held_after_backward_input * (double)weight));
}

static void add_hop(route_walk *w, const ps_hop *hop, int64_t sent)
{
    if (hop->lane == PS_NO_LANE)
        return;
    lane_sums *sum = &w->lane[hop->lane];
    sum->occupy += w->microbatches * hop->occupy_ns;
    keep_least(&sum->before, sent);
    keep_least(&sum->after, w->single - sent - hop->occupy_ns);
}

// Up, then back down: the way of one micro-batch that waits for nothing, starting at 0.
static void walk_route(route_walk *w)
{
    const ps_route *route = &w->route;
    int32_t last = route->num_stops - 1;
    w->up = 0;
    int64_t down = 0;
    for (int32_t stop = 0; stop <= last; stop++) {
        int32_t s = ps_route_stage(route, stop);
        w->up += ps_bound_forward(w->p, s) + (stop < last ? ps_bound_hop(&route->forward_hop[stop]) : 0);
        down += ps_bound_gradient(w->p, s) + (stop < last ? ps_bound_hop(&route->backward_hop[stop]) : 0);
    }
    w->single = w->up + down + ps_bound_weight(w->p, ps_route_stage(route, 0));
    int64_t head = w->up;
    int64_t back = head;
    for (int32_t stop = last; stop >= 0; stop--) {
        int32_t s = ps_route_stage(route, stop);
        if (stop < last)
            add_hop(w, &route->forward_hop[stop], head - ps_bound_hop(&route->forward_hop[stop]));
        head -= ps_bound_forward(w->p, s) + (stop < last ? ps_bound_hop(&route->forward_hop[stop]) : 0);
        add_stop(w, stop, head, back);
        back += ps_bound_gradient(w->p, s);
        if (stop == 0)
            break;
        add_hop(w, &route->backward_hop[stop - 1], back);
        back += ps_bound_hop(&route->backward_hop[stop - 1]);
    }
}

// F's of a device, and R's of theirs, that memory lets run before its first b, in time.
static int64_t fitting_fill(const ps_device *device, const device_sums *sum)
{
    int64_t all = sum->forward + sum->recompute;
    if (device->memory_limit == INT64_MAX || sum->least_held == 0)
        return all;
    int64_t room = device->memory_limit - device->static_memory - sum->least_transient;
    int64_t fit = room < sum->least_held ? 1 : room / sum->least_held;
    int64_t time = ps_multiply_saturating(fit, sum->longest_fill);
    return time < all ? time : all;
}

// The product is beyond 63 bits, so it is a double, taken down by more than rounding can have lifted it.
static int64_t occupancy_bound(const ps_device *device, const device_sums *sum)
{
    int64_t room = device->memory_limit - device->static_memory - sum->least_transient;
    if (device->memory_limit == INT64_MAX || room < 1)
        return 0;
    room = room < sum->least_held ? sum->least_held : room;
    double ns = sum->occupancy / (double)room * (1 - 1e-9);
    return ns < (double)(INT64_MAX / 4) ? (int64_t)ns : 0;
}

static void bound_device(const ps_bound_problem *p, int32_t index, const device_sums *sum, ps_schedule_bound *out)
{
    const ps_device *device = &p->pipeline->device[index];
    int64_t before_last = sum->forward + sum->recompute + sum->gradient; // done when the last b ends
    int64_t work = before_last + sum->weight;
    int64_t fit = fitting_fill(device, sum);
    int64_t start = sum->first_b - sum->head - fit;
    int64_t own_start = sum->round_trip - fit;
    int64_t occupied = occupancy_bound(device, sum);
    const char *by = fit < sum->forward + sum->recompute ? "memory" : "start-up";

    ps_bound_improve(&out->span_ns, &out->span_by, work, "load");
    ps_bound_improve(&out->span_ns, &out->span_by, work + (own_start > 0 ? own_start : 0), by);
    ps_bound_improve(&out->span_ns, &out->span_by, occupied, "memory");
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, sum->head + work, "load");
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, sum->head + before_last + sum->tail, "chain");
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, sum->head + occupied, "memory");
    if (start <= 0)
        return;
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, sum->head + work + start, by);
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, sum->head + before_last + start + sum->tail, by);
}

// The pipeline of one route's micro-batches; `stage` has room for its stops.
static void bound_alone(const route_walk *w, ps_stage *stage, ps_schedule_bound *out)
{
    ps_pipeline alone = *w->p->pipeline;
    ps_schedule_bound bound;
    for (int32_t stop = 0; stop < w->route.num_stops; stop++)
        stage[stop] = w->p->pipeline->stage[ps_route_stage(&w->route, stop)];
    alone.num_routes = 0;
    alone.num_stages = w->route.num_stops;
    alone.num_microbatches = (int32_t)w->microbatches;
    alone.stage = stage;
    alone.forward_hop = w->route.forward_hop;
    alone.backward_hop = w->route.backward_hop;
    ps_schedule_bound_compute(&alone, w->p->fused, &bound);
    ps_bound_improve(&out->makespan_ns, &out->makespan_by, bound.makespan_ns, bound.makespan_by);
    ps_bound_improve(&out->span_ns, &out->span_by, bound.span_ns, bound.span_by);
}

void ps_schedule_bound_routed(ps_arena *arena, const ps_pipeline *pipeline, bool fused, ps_schedule_bound *out)
{
    ps_bound_problem p = {.pipeline = pipeline, .fused = fused};
    route_walk walk = {.p = &p,
                       .device = ps_new_raw(arena, device_sums, pipeline->num_devices),
                       .lane = ps_new_raw(arena, lane_sums, pipeline->num_lanes + 1)};
    int64_t *microbatches = ps_new(arena, int64_t, pipeline->num_routes);
    ps_stage *stage = ps_new_raw(arena, ps_stage, pipeline->num_stages);

    *out = (ps_schedule_bound){.makespan_ns = -1, .span_ns = -1};
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        walk.device[d] = (device_sums){.head = INT64_MAX,
                                       .tail = INT64_MAX,
                                       .first_b = INT64_MAX,
                                       .round_trip = INT64_MAX,
                                       .least_held = INT64_MAX,
                                       .least_transient = INT64_MAX};
    for (int32_t lane = 0; lane < pipeline->num_lanes; lane++)
        walk.lane[lane] = (lane_sums){.before = INT64_MAX, .after = INT64_MAX};
    for (int32_t microbatch = 0; microbatch < pipeline->num_microbatches; microbatch++)
        microbatches[pipeline->route_of[microbatch]]++;
    for (int32_t r = 0; r < pipeline->num_routes; r++) {
        walk.route = pipeline->route[r];
        walk.microbatches = microbatches[r];
        if (walk.microbatches == 0)
            continue;
        walk_route(&walk);
        bound_alone(&walk, stage, out);
    }
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        if (walk.device[d].head < INT64_MAX)
            bound_device(&p, d, &walk.device[d], out);
    for (int32_t lane = 0; lane < pipeline->num_lanes; lane++)
        if (walk.lane[lane].occupy > 0)
            ps_bound_improve(&out->makespan_ns, &out->makespan_by,
                             walk.lane[lane].before + walk.lane[lane].occupy + walk.lane[lane].after, "link");
}
