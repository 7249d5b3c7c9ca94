// SPDX-License-Identifier: Apache-2.0
//
// schedule_table.c: the families by kind and by name. A new family is one new file and one new row. The last row is zb,
// which is no family but what a layout may name beside one.
#include <assert.h>
#include <string.h>

#include "pipesched/layout.h"
#include "schedule/family.h"

static ps_code zb_legal(ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(ps_family_counts(shape, status));
    if (shape.num_stages % shape.num_devices == 0)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "zb-stages",
            "zb puts equally many stages on every device: %d stages are not a multiple of %d devices",
            (int)shape.num_stages, (int)shape.num_devices);
    return ps_fail_hint(status, "use %d stages", (int)((shape.num_stages / shape.num_devices + 1) * shape.num_devices));
}

static ps_code zb_generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    (void)arena;
    (void)pipeline;
    (void)out;
    ps_fail(status, PS_ILLEGAL, "zb-is-searched", "zb has no order of its own: it is searched for");
    return ps_fail_hint(status, "name a schedule such as zb-h1, or search for an order");
}

static const ps_family ZB = {.family = {.kind = PS_SCHEDULE_ZB,
                                        .name = "zb",
                                        .summary = "the best order of F, I and W that a search finds within memory",
                                        .splits_backward = true,
                                        .virtual_stages = true,
                                        .needs_choices = true,
                                        .legal = zb_legal,
                                        .generate = zb_generate}};

static const ps_family *const FAMILIES[PS_SCHEDULE_KINDS + 1] = {
    [PS_SCHEDULE_GPIPE] = &ps_family_gpipe,
    [PS_SCHEDULE_1F1B] = &ps_family_1f1b,
    [PS_SCHEDULE_INTERLEAVED] = &ps_family_interleaved,
    [PS_SCHEDULE_ZB_H1] = &ps_family_zb_h1,
    [PS_SCHEDULE_ZB_H2] = &ps_family_zb_h2,
    [PS_SCHEDULE_LOOPED_BFS] = &ps_family_looped_bfs,
    [PS_SCHEDULE_INTERLEAVED_ZB] = &ps_family_interleaved_zb,
    [PS_SCHEDULE_ZB_V] = &ps_family_zb_v,
    [PS_SCHEDULE_V_HALF] = &ps_family_v_half,
    [PS_SCHEDULE_V_MIN] = &ps_family_v_min,
    [PS_SCHEDULE_DUALPIPEV] = &ps_family_dualpipev,
    [PS_SCHEDULE_H_1F1B] = &ps_family_h_1f1b,
    [PS_SCHEDULE_DUALPIPE] = &ps_family_dualpipe,
    [PS_SCHEDULE_GPIPE_RECOMPUTE] = &ps_family_gpipe_recompute,
    [PS_SCHEDULE_ZB] = &ZB,
};

const ps_family *ps_family_at(ps_schedule_kind kind)
{
    assert((unsigned)kind <= PS_SCHEDULE_ZB);
    return FAMILIES[kind];
}

const ps_schedule_family *ps_schedule_family_at(ps_schedule_kind kind)
{
    return &ps_family_at(kind)->family;
}

const ps_schedule_family *ps_schedule_family_named(const char *name)
{
    for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++)
        if (strcmp(FAMILIES[kind]->family.name, name) == 0)
            return &FAMILIES[kind]->family;
    return NULL;
}

int32_t ps_schedule_device(ps_placement placement, ps_schedule_shape shape, int32_t stage)
{
    int32_t within = stage % shape.num_devices;
    bool back = placement != PS_PLACEMENT_LOOP && stage / shape.num_devices % 2 == 1;
    return back ? shape.num_devices - 1 - within : within;
}

int32_t ps_schedule_stage(ps_placement placement, ps_schedule_shape shape, int32_t device, int32_t chunk)
{
    bool back = placement != PS_PLACEMENT_LOOP && chunk % 2 == 1;
    return chunk * shape.num_devices + (back ? shape.num_devices - 1 - device : device);
}

void ps_schedule_set_routes(ps_arena *arena, ps_placement placement, ps_pipeline *pipeline)
{
    pipeline->num_routes = 0;
    if (placement != PS_PLACEMENT_DUAL)
        return;
    int32_t half = pipeline->num_stages / 2;
    bool hops = pipeline->forward_hop && pipeline->backward_hop; // an order needs none
    int32_t *stage = ps_new_raw(arena, int32_t, pipeline->num_stages);
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        stage[s] = s;
    pipeline->num_routes = 2;
    pipeline->route = ps_new_raw(arena, ps_route, 2);
    pipeline->route_of = ps_new_raw(arena, int32_t, pipeline->num_microbatches);
    for (int32_t r = 0; r < 2; r++)
        pipeline->route[r] = (ps_route){.num_stops = half,
                                        .stage = stage + r * half,
                                        .forward_hop = hops ? pipeline->forward_hop + r * half : NULL,
                                        .backward_hop = hops ? pipeline->backward_hop + r * half : NULL};
    for (int32_t microbatch = 0; microbatch < pipeline->num_microbatches; microbatch++)
        pipeline->route_of[microbatch] = microbatch >= pipeline->num_microbatches / 2;
}

ps_code ps_schedule_generate(ps_arena *arena, ps_schedule_kind kind, const ps_pipeline *pipeline, ps_schedule *out,
                             ps_status *status)
{
    return ps_family_at(kind)->family.generate(arena, pipeline, out, status);
}

ps_code ps_schedule_generate_shaped(ps_arena *arena, ps_schedule_kind kind, const ps_pipeline *pipeline,
                                    ps_schedule_shape shape, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, ps_family_at(kind), pipeline, shape, out, status);
}

ps_placement ps_layout_placement(const ps_layout *layout)
{
    return layout->schedule == PS_SCHEDULE_ZB ? layout->placement : ps_family_at(layout->schedule)->family.placement;
}
