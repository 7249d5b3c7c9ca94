// SPDX-License-Identifier: Apache-2.0
//
// pipeline.c: what a ps_pipeline must satisfy before anything orders or times it, and the lanes of its hops.
#include <inttypes.h>
#include <stdlib.h>

#include "base/number.h"
#include "base/text.h"
#include "pipesched/limits.h"
#include "pipesched/pipeline.h"
#include "sim/leg.h"

static ps_code check_shape(const ps_pipeline *pipeline, ps_status *status)
{
    const struct {
        const char *what;
        int32_t value;
        int32_t max;
    } counts[] = {
        {"stages", pipeline->num_stages, PS_MAX_STAGES},
        {"devices", pipeline->num_devices, PS_MAX_DEVICES},
        {"micro-batches", pipeline->num_microbatches, PS_MAX_MICROBATCHES},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].value < 1 || counts[i].value > counts[i].max)
            return ps_fail(status, PS_BAD_INPUT, "pipeline-shape", "a pipeline has 1 to %d %s, got %d",
                           (int)counts[i].max, counts[i].what, (int)counts[i].value);
    return PS_OK;
}

static ps_code check_stages(const ps_pipeline *pipeline, ps_status *status)
{
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        const ps_stage *stage = &pipeline->stage[s];
        if (stage->device < 0 || stage->device >= pipeline->num_devices)
            return ps_fail(status, PS_BAD_INPUT, "stage-device", "stage %d is on device %d, devices are 0 to %d",
                           (int)s, (int)stage->device, (int)pipeline->num_devices - 1);
        for (int kind = 0; kind < PS_OP_KINDS; kind++)
            if (stage->duration_ns[kind] < 0)
                return ps_fail(status, PS_BAD_INPUT, "negative-time", "an op of stage %d takes %" PRId64 " ns", (int)s,
                               stage->duration_ns[kind]);
        if (stage->held_after_forward < 0 || stage->held_after_backward_input < 0 || stage->transient < 0)
            return ps_fail(status, PS_BAD_INPUT, "negative-memory",
                           "stage %d holds %" PRId64 " after F, %" PRId64 " after I and %" PRId64 " while it runs",
                           (int)s, stage->held_after_forward, stage->held_after_backward_input, stage->transient);
    }
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        if (pipeline->device[d].static_memory < 0 || pipeline->device[d].memory_limit < 0)
            return ps_fail(status, PS_BAD_INPUT, "negative-memory",
                           "device %d has static memory %" PRId64 " and a limit of %" PRId64, (int)d,
                           pipeline->device[d].static_memory, pipeline->device[d].memory_limit);
    return PS_OK;
}

static ps_code check_hop(const ps_pipeline *pipeline, const ps_hop *hop, int32_t from, int32_t to, ps_status *status)
{
    if (hop->occupy_ns < 0 || hop->latency_ns < 0)
        return ps_fail(status, PS_BAD_INPUT, "negative-time",
                       "the hop from stage %d to %d occupies %" PRId64 " ns and has %" PRId64 " ns latency", (int)from,
                       (int)to, hop->occupy_ns, hop->latency_ns);
    bool same_device = pipeline->stage[from].device == pipeline->stage[to].device;
    bool in_range = hop->lane >= 0 && hop->lane < pipeline->num_lanes;
    if (same_device ? hop->lane == PS_NO_LANE : in_range)
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "pipeline-shape", "the hop from stage %d to %d, %s, has lane %d of %d",
                   (int)from, (int)to, same_device ? "both on one device" : "on different devices", (int)hop->lane,
                   (int)pipeline->num_lanes);
}

static ps_code check_hops(const ps_pipeline *pipeline, ps_status *status)
{
    for (int32_t r = 0; r < ps_pipeline_num_routes(pipeline); r++) {
        ps_route route = ps_pipeline_route(pipeline, r);
        for (int32_t stop = 0; stop + 1 < route.num_stops; stop++) {
            int32_t from = ps_route_stage(&route, stop);
            int32_t to = ps_route_stage(&route, stop + 1);
            PS_TRY(check_hop(pipeline, &route.forward_hop[stop], from, to, status));
            PS_TRY(check_hop(pipeline, &route.backward_hop[stop], to, from, status));
        }
    }
    return PS_OK;
}

// In passes over blocks of stages, so that the marks fit on the stack.
static ps_code check_visits(const ps_pipeline *pipeline, int32_t index, ps_status *status)
{
    enum { BLOCK = 4096 };
    const ps_route *route = &pipeline->route[index];
    for (int32_t first = 0; first < pipeline->num_stages; first += BLOCK) {
        bool visited[BLOCK] = {false};
        for (int32_t stop = 0; stop < route->num_stops; stop++) {
            int32_t within = ps_route_stage(route, stop) - first;
            if (within < 0 || within >= BLOCK)
                continue;
            if (visited[within])
                return ps_fail(status, PS_BAD_INPUT, "pipeline-route", "route %d visits stage %d twice", (int)index,
                               (int)(first + within));
            visited[within] = true;
        }
    }
    return PS_OK;
}

static ps_code check_routes(const ps_pipeline *pipeline, ps_status *status)
{
    int32_t routes = pipeline->num_routes;
    if (routes < 0 || routes > pipeline->num_microbatches)
        return ps_fail(status, PS_BAD_INPUT, "pipeline-route", "%d micro-batches have at most as many routes, got %d",
                       (int)pipeline->num_microbatches, (int)routes);
    for (int32_t r = 0; r < routes; r++) {
        const ps_route *route = &pipeline->route[r];
        if (route->num_stops < 1 || route->num_stops > pipeline->num_stages)
            return ps_fail(status, PS_BAD_INPUT, "pipeline-route",
                           "route %d has %d stops, of %d stages at most one each", (int)r, (int)route->num_stops,
                           (int)pipeline->num_stages);
        for (int32_t stop = 0; stop < route->num_stops; stop++) {
            int32_t stage = ps_route_stage(route, stop);
            if (stage < 0 || stage >= pipeline->num_stages)
                return ps_fail(status, PS_BAD_INPUT, "pipeline-route",
                               "stop %d of route %d is stage %d, stages are 0 to %d", (int)stop, (int)r, (int)stage,
                               (int)pipeline->num_stages - 1);
        }
        PS_TRY(check_visits(pipeline, r, status));
    }
    for (int32_t microbatch = 0; routes > 0 && microbatch < pipeline->num_microbatches; microbatch++)
        if (pipeline->route_of[microbatch] < 0 || pipeline->route_of[microbatch] >= routes)
            return ps_fail(status, PS_BAD_INPUT, "pipeline-route", "micro-batch %d takes route %d, routes are 0 to %d",
                           (int)microbatch, (int)pipeline->route_of[microbatch], (int)routes - 1);
    return PS_OK;
}

int64_t ps_pipeline_num_cells(const ps_pipeline *pipeline)
{
    if (pipeline->num_routes == 0)
        return (int64_t)pipeline->num_stages * pipeline->num_microbatches;
    int64_t cells = 0;
    for (int32_t microbatch = 0; microbatch < pipeline->num_microbatches; microbatch++)
        cells += pipeline->route[pipeline->route_of[microbatch]].num_stops;
    return cells;
}

// A split schedule has three ops a stage and micro-batch, a fused one two.
static ps_code check_ops(const ps_pipeline *pipeline, ps_status *status)
{
    int64_t ops = 3 * (int64_t)pipeline->num_stages * pipeline->num_microbatches;
    if (ops <= PS_MAX_OPS)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "too-many-ops",
            "%d stages * %d micro-batches * 3 ops (F, I, W) = %" PRId64 " ops, limit %" PRId64,
            (int)pipeline->num_stages, (int)pipeline->num_microbatches, ops, PS_MAX_OPS);
    return ps_fail_hint(status, "use at most %" PRId64 " micro-batches with these stages",
                        PS_MAX_OPS / (3 * (int64_t)pipeline->num_stages));
}

// Every start, end and bound is a sum of distinct ops and transfers, so it stays below their total.
static ps_code check_total_time(const ps_pipeline *pipeline, ps_status *status)
{
    int64_t total = ps_longest_hops(pipeline);
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        for (int kind = 0; kind < PS_OP_KINDS; kind++)
            total = ps_add_saturating(total, pipeline->stage[s].duration_ns[kind]);
    if (ps_multiply_saturating(total, pipeline->num_microbatches) <= PS_MAX_TIME_NS)
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "time-overflow",
                   "all ops and hops of %d micro-batches take more than %" PRId64 " ns together",
                   (int)pipeline->num_microbatches, PS_MAX_TIME_NS);
}

static ps_code check_total_memory(const ps_pipeline *pipeline, ps_status *status)
{
    int64_t held = 0;
    int64_t total = 0;
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        const ps_stage *stage = &pipeline->stage[s];
        held = ps_add_saturating(held, stage->held_after_forward);
        held = ps_add_saturating(held, stage->held_after_backward_input);
        total = ps_add_saturating(total, stage->transient);
    }
    for (int32_t d = 0; d < pipeline->num_devices; d++)
        total = ps_add_saturating(total, pipeline->device[d].static_memory);
    total = ps_add_saturating(total, ps_multiply_saturating(held, pipeline->num_microbatches));
    if (total <= PS_MAX_BYTES)
        return PS_OK;
    char most[32];
    return ps_fail(status, PS_BAD_INPUT, "memory-overflow",
                   "all devices and %d micro-batches hold more than %s together", (int)pipeline->num_microbatches,
                   ps_format_bytes(PS_MAX_BYTES, most));
}

ps_code ps_pipeline_validate(const ps_pipeline *pipeline, ps_status *status)
{
    PS_TRY(check_shape(pipeline, status));
    PS_TRY(check_ops(pipeline, status));
    PS_TRY(check_stages(pipeline, status));
    PS_TRY(check_routes(pipeline, status));
    PS_TRY(check_hops(pipeline, status));
    PS_TRY(check_total_time(pipeline, status));
    return check_total_memory(pipeline, status);
}

static uint64_t lane_key(const ps_pipeline *pipeline, int32_t from, int32_t to)
{
    return (uint64_t)(uint32_t)pipeline->stage[from].device << 32 | (uint32_t)pipeline->stage[to].device;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int32_t find_lane(const uint64_t *key, int32_t num_lanes, uint64_t wanted)
{
    const uint64_t *found = bsearch(&wanted, key, (size_t)num_lanes, sizeof *key, compare_keys);
    return (int32_t)(found - key);
}

// The keys of all hops that send, in ascending order, each once. Returns how many there are.
static int32_t list_lanes(const ps_pipeline *pipeline, uint64_t *key)
{
    size_t count = 0;
    for (int32_t r = 0; r < ps_pipeline_num_routes(pipeline); r++) {
        ps_route route = ps_pipeline_route(pipeline, r);
        for (int32_t stop = 0; stop + 1 < route.num_stops; stop++) {
            int32_t from = ps_route_stage(&route, stop);
            int32_t to = ps_route_stage(&route, stop + 1);
            if (pipeline->stage[from].device == pipeline->stage[to].device)
                continue;
            key[count++] = lane_key(pipeline, from, to);
            key[count++] = lane_key(pipeline, to, from);
        }
    }
    qsort(key, count, sizeof *key, compare_keys);
    int32_t lanes = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || key[i] != key[i - 1])
            key[lanes++] = key[i];
    return lanes;
}

void ps_pipeline_assign_lanes(ps_arena *arena, ps_pipeline *pipeline)
{
    int64_t hops = 0;
    for (int32_t r = 0; r < ps_pipeline_num_routes(pipeline); r++)
        hops += ps_pipeline_route(pipeline, r).num_stops - 1;
    uint64_t *key = ps_new_raw(arena, uint64_t, 2 * hops + 1);
    int32_t lanes = list_lanes(pipeline, key);
    pipeline->num_lanes = lanes;
    for (int32_t r = 0; r < ps_pipeline_num_routes(pipeline); r++) {
        ps_route route = ps_pipeline_route(pipeline, r);
        for (int32_t stop = 0; stop + 1 < route.num_stops; stop++) {
            int32_t from = ps_route_stage(&route, stop);
            int32_t to = ps_route_stage(&route, stop + 1);
            bool sends = pipeline->stage[from].device != pipeline->stage[to].device;
            route.forward_hop[stop].lane = sends ? find_lane(key, lanes, lane_key(pipeline, from, to)) : PS_NO_LANE;
            route.backward_hop[stop].lane = sends ? find_lane(key, lanes, lane_key(pipeline, to, from)) : PS_NO_LANE;
        }
    }
}
