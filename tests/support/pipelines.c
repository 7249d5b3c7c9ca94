// SPDX-License-Identifier: Apache-2.0
//
// pipelines.c: see pipelines.h.
#include "support/pipelines.h"

#include <math.h>
#include <stdio.h>

#include "support/cmocka_all.h"

static ps_pipeline *empty_pipeline(ps_arena *arena, int32_t devices, int32_t stages, int32_t microbatches)
{
    ps_pipeline *pipeline = ps_new(arena, ps_pipeline, 1);
    *pipeline = (ps_pipeline){.num_stages = stages,
                              .num_devices = devices,
                              .num_microbatches = microbatches,
                              .stage = ps_new(arena, ps_stage, stages),
                              .forward_hop = ps_new(arena, ps_hop, stages),
                              .backward_hop = ps_new(arena, ps_hop, stages),
                              .device = ps_new(arena, ps_device, devices)};
    for (int32_t s = 0; s < stages; s++)
        pipeline->stage[s].device = s % devices;
    for (int32_t d = 0; d < devices; d++)
        pipeline->device[d].memory_limit = INT64_MAX;
    ps_pipeline_assign_lanes(arena, pipeline);
    return pipeline;
}

ps_pipeline *looped_stages(ps_arena *arena, int32_t devices, int32_t stages, int32_t microbatches, costs cost)
{
    ps_pipeline *pipeline = empty_pipeline(arena, devices, stages, microbatches);
    int64_t whole = cost.backward_ns > 0 ? cost.backward_ns : cost.backward_input_ns + cost.backward_weight_ns;
    for (int32_t s = 0; s < stages; s++) {
        ps_stage *stage = &pipeline->stage[s];
        stage->duration_ns[PS_OP_FORWARD] = cost.forward_ns;
        stage->duration_ns[PS_OP_BACKWARD] = whole;
        stage->duration_ns[PS_OP_BACKWARD_INPUT] = cost.backward_input_ns;
        stage->duration_ns[PS_OP_BACKWARD_WEIGHT] = cost.backward_weight_ns;
        stage->held_after_forward = cost.held_after_forward;
        stage->held_after_backward_input = cost.held_after_backward_input;
        stage->duration_ns[PS_OP_RECOMPUTE] = cost.recompute_ns;
        stage->added_by_recompute = cost.added_by_recompute;
    }
    for (int32_t s = 0; s + 1 < stages; s++) {
        ps_hop *hops[] = {&pipeline->forward_hop[s], &pipeline->backward_hop[s]};
        for (int i = 0; i < 2; i++) {
            hops[i]->latency_ns = cost.hop_latency_ns;
            hops[i]->occupy_ns = cost.hop_occupy_ns;
        }
    }
    return pipeline;
}

ps_pipeline *equal_stages(ps_arena *arena, int32_t devices, int32_t microbatches, costs cost)
{
    return looped_stages(arena, devices, devices, microbatches, cost);
}

ps_pipeline *random_stages(ps_arena *arena, ps_rng *rng, int32_t devices, int32_t stages, int32_t microbatches)
{
    ps_pipeline *pipeline = empty_pipeline(arena, devices, stages, microbatches);
    for (int32_t s = 0; s < stages; s++) {
        ps_stage *stage = &pipeline->stage[s];
        for (int kind = 0; kind <= PS_OP_BACKWARD_WEIGHT; kind++)
            stage->duration_ns[kind] = ps_rng_range(rng, 0, 9);
        stage->held_after_forward = ps_rng_range(rng, 0, 9);
        stage->held_after_backward_input = ps_rng_range(rng, 0, 9);
        stage->transient = ps_rng_range(rng, 0, 9);
    }
    for (int32_t s = 0; s + 1 < stages; s++) {
        ps_hop *hops[] = {&pipeline->forward_hop[s], &pipeline->backward_hop[s]};
        for (int i = 0; i < 2; i++) {
            hops[i]->latency_ns = ps_rng_range(rng, 0, 4);
            hops[i]->occupy_ns = ps_rng_range(rng, 0, 12);
        }
    }
    for (int32_t d = 0; d < devices; d++)
        pipeline->device[d].static_memory = ps_rng_range(rng, 0, 20);
    return pipeline;
}

void place_for(ps_arena *arena, ps_pipeline *pipeline, ps_schedule_kind kind)
{
    ps_schedule_shape shape = {.num_devices = pipeline->num_devices, .num_stages = pipeline->num_stages};
    const ps_schedule_family *family = ps_schedule_family_at(kind);
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        ps_stage *stage = &pipeline->stage[s];
        stage->device = ps_schedule_device(family->placement, shape, s);
        stage->duration_ns[PS_OP_RECOMPUTE] = family->recomputes ? (7 * s + 3) % 10 : 0;
        stage->added_by_recompute = family->recomputes ? (5 * s + 2) % 10 : 0;
    }
    for (int32_t s = 0; s + 1 < pipeline->num_stages; s++)
        if (pipeline->stage[s].device == pipeline->stage[s + 1].device)
            pipeline->forward_hop[s] = pipeline->backward_hop[s] = (ps_hop){0};
    ps_schedule_set_routes(arena, ps_schedule_family_at(kind)->placement, pipeline);
    ps_pipeline_assign_lanes(arena, pipeline);
}

ps_pipeline *v_stages(ps_arena *arena, int32_t devices, int32_t microbatches, costs cost)
{
    ps_pipeline *pipeline = looped_stages(arena, devices, 2 * devices, microbatches, cost);
    place_for(arena, pipeline, PS_SCHEDULE_ZB_V);
    return pipeline;
}

ps_pipeline *dual_stages(ps_arena *arena, int32_t devices, int32_t microbatches, costs cost)
{
    ps_pipeline *pipeline = looped_stages(arena, devices, 2 * devices, microbatches, cost);
    place_for(arena, pipeline, PS_SCHEDULE_DUALPIPE);
    return pipeline;
}

static ps_route random_route(ps_arena *arena, ps_rng *rng, int32_t stages)
{
    int32_t *stage = ps_new(arena, int32_t, stages);
    for (int32_t i = 0; i < stages; i++) {
        int32_t j = (int32_t)ps_rng_range(rng, 0, i);
        stage[i] = stage[j];
        stage[j] = i;
    }
    ps_route route = {.num_stops = (int32_t)ps_rng_range(rng, 1, stages),
                      .stage = stage,
                      .forward_hop = ps_new(arena, ps_hop, stages),
                      .backward_hop = ps_new(arena, ps_hop, stages)};
    for (int32_t stop = 0; stop + 1 < route.num_stops; stop++) {
        ps_hop *hops[] = {&route.forward_hop[stop], &route.backward_hop[stop]};
        for (int i = 0; i < 2; i++)
            *hops[i] = (ps_hop){.latency_ns = ps_rng_range(rng, 0, 4), .occupy_ns = ps_rng_range(rng, 0, 12)};
    }
    return route;
}

static void drop_hops_within_devices(ps_pipeline *pipeline)
{
    for (int32_t r = 0; r < pipeline->num_routes; r++) {
        const ps_route *route = &pipeline->route[r];
        for (int32_t stop = 0; stop + 1 < route->num_stops; stop++)
            if (pipeline->stage[route->stage[stop]].device == pipeline->stage[route->stage[stop + 1]].device)
                route->forward_hop[stop] = route->backward_hop[stop] = (ps_hop){0};
    }
}

// The ops of one device, in the order of micro-batches.
static int32_t list_ops(const ps_pipeline *pipeline, int32_t device, bool split, ps_op *op)
{
    int32_t count = 0;
    for (int32_t microbatch = 0; microbatch < pipeline->num_microbatches; microbatch++) {
        const ps_route *route = &pipeline->route[pipeline->route_of[microbatch]];
        for (int32_t step = 0; step < 2 * route->num_stops; step++) {
            bool forward = step < route->num_stops;
            int32_t stage = route->stage[forward ? step : 2 * route->num_stops - 1 - step];
            if (pipeline->stage[stage].device != device)
                continue;
            if (!forward && pipeline->stage[stage].duration_ns[PS_OP_RECOMPUTE] > 0)
                op[count++] = (ps_op){microbatch, (uint16_t)stage, PS_OP_RECOMPUTE};
            int kind = forward ? PS_OP_FORWARD : split ? PS_OP_BACKWARD_INPUT : PS_OP_BACKWARD;
            op[count++] = (ps_op){microbatch, (uint16_t)stage, (uint8_t)kind};
            if (kind == PS_OP_BACKWARD_INPUT)
                op[count++] = (ps_op){microbatch, (uint16_t)stage, PS_OP_BACKWARD_WEIGHT};
        }
    }
    return count;
}

ps_pipeline *random_routes(ps_arena *arena, ps_rng *rng, ps_schedule *schedule)
{
    int32_t devices = (int32_t)ps_rng_range(rng, 1, 4);
    int32_t stages = devices * (int32_t)ps_rng_range(rng, 1, 3);
    int32_t microbatches = (int32_t)ps_rng_range(rng, 1, 8);
    ps_pipeline *pipeline = random_stages(arena, rng, devices, stages, microbatches);
    pipeline->num_routes = (int32_t)ps_rng_range(rng, 1, microbatches);
    pipeline->route = ps_new(arena, ps_route, pipeline->num_routes);
    pipeline->route_of = ps_new(arena, int32_t, microbatches);
    for (int32_t r = 0; r < pipeline->num_routes; r++)
        pipeline->route[r] = random_route(arena, rng, stages);
    for (int32_t microbatch = 0; microbatch < microbatches; microbatch++)
        pipeline->route_of[microbatch] = (int32_t)ps_rng_range(rng, 0, pipeline->num_routes - 1);
    for (int32_t s = 0; s < stages; s++) {
        bool recomputes = ps_rng_range(rng, 0, 2) == 0;
        pipeline->stage[s].duration_ns[PS_OP_RECOMPUTE] = recomputes ? ps_rng_range(rng, 1, 9) : 0;
        pipeline->stage[s].added_by_recompute = recomputes ? ps_rng_range(rng, 0, 9) : 0;
    }
    drop_hops_within_devices(pipeline);
    ps_pipeline_assign_lanes(arena, pipeline);
    bool split = ps_rng_range(rng, 0, 1);
    *schedule = (ps_schedule){.num_devices = devices,
                              .first = ps_new(arena, int32_t, devices + 1),
                              .op = ps_new(arena, ps_op, 4 * (int64_t)stages * microbatches + 2)};
    for (int32_t device = 0; device < devices; device++)
        schedule->first[device + 1] =
            schedule->first[device] + list_ops(pipeline, device, split, schedule->op + schedule->first[device]);
    ps_status status = {0};
    assert_ok(ps_pipeline_validate(pipeline, &status), &status);
    return pipeline;
}

ps_schedule_bound bound_with_routes(ps_arena *arena, const ps_pipeline *pipeline, bool fused)
{
    ps_schedule_bound bound;
    if (pipeline->num_routes > 0)
        ps_schedule_bound_routed(arena, pipeline, fused, &bound);
    else
        ps_schedule_bound_compute(pipeline, fused, &bound);
    return bound;
}

ps_schedule schedule_for(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule_kind kind)
{
    ps_schedule schedule = {0};
    ps_status status = {0};
    assert_ok(ps_pipeline_validate(pipeline, &status), &status);
    assert_ok(ps_schedule_generate(arena, kind, pipeline, &schedule, &status), &status);
    return schedule;
}

ps_timeline simulate(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule)
{
    ps_timeline timeline = {0};
    ps_status status = {0};
    assert_ok(ps_simulate(arena, pipeline, schedule, &timeline, &status), &status);
    return timeline;
}

ps_timeline run(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule_kind kind)
{
    ps_schedule schedule = schedule_for(arena, pipeline, kind);
    return simulate(arena, pipeline, &schedule);
}

ps_schedule_shape random_shape(ps_rng *rng, ps_schedule_kind kind)
{
    const ps_schedule_family *family = ps_schedule_family_at(kind);
    ps_schedule_shape shape = {0};
    ps_status status;
    do {
        int32_t most = family->placement != PS_PLACEMENT_LOOP ? 2 : family->virtual_stages ? 4 : 1;
        int32_t chunks = (int32_t)ps_rng_range(rng, most > 1 ? 2 : 1, most);
        shape.num_devices = (int32_t)ps_rng_range(rng, 1, 6);
        shape.num_stages = shape.num_devices * chunks;
        shape.num_microbatches = (int32_t)ps_rng_range(rng, 1, 15);
        status = (ps_status){0};
    } while (family->legal(shape, &status) != PS_OK);
    return shape;
}

void assert_near(double value, double want, double tolerance)
{
    if (!(fabs(value - want) <= tolerance))
        fail_msg("%.17g is not within %g of %.17g", value, tolerance, want);
}

ps_schedule schedule_from_cells(ps_arena *arena, const char *const *cells, int32_t devices)
{
    int64_t room = 1;
    for (int32_t d = 0; d < devices; d++)
        room += (int64_t)strlen(cells[d]);
    ps_schedule schedule = {
        .num_devices = devices, .first = ps_new(arena, int32_t, devices + 1), .op = ps_new(arena, ps_op, room)};
    int32_t count = 0;
    for (int32_t d = 0; d < devices; d++) {
        const char *at = cells[d];
        char cell[32];
        int used = 0;
        while (sscanf(at, "%31s%n", cell, &used) == 1) {
            if (!ps_op_parse(cell, &schedule.op[count]))
                fail_msg("not a cell: %s", cell);
            count++;
            at += used;
        }
        schedule.first[d + 1] = count;
    }
    return schedule;
}
