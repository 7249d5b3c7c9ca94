// SPDX-License-Identifier: Apache-2.0
//
// leg.c: see leg.h.
#include "sim/leg.h"

#include <stddef.h>

#include "base/number.h"

ps_leg_table ps_leg_table_of(ps_arena *arena, const ps_pipeline *pipeline)
{
    int32_t routes = ps_pipeline_num_routes(pipeline);
    ps_leg_table table = {.num_stages = pipeline->num_stages,
                          .route_of = pipeline->num_routes > 0 ? pipeline->route_of : NULL,
                          .leg = ps_new(arena, ps_leg, (int64_t)routes * pipeline->num_stages)};
    for (int32_t r = 0; r < routes; r++) {
        ps_route route = ps_pipeline_route(pipeline, r);
        ps_leg *legs = table.leg + (int64_t)r * pipeline->num_stages;
        for (int32_t stop = 0; stop < route.num_stops; stop++) {
            bool last = stop + 1 == route.num_stops;
            legs[ps_route_stage(&route, stop)] =
                (ps_leg){.visited = true,
                         .next = last ? PS_NO_STAGE : ps_route_stage(&route, stop + 1),
                         .previous = stop == 0 ? PS_NO_STAGE : ps_route_stage(&route, stop - 1),
                         .forward_hop = last ? NULL : &route.forward_hop[stop],
                         .backward_hop = stop == 0 ? NULL : &route.backward_hop[stop - 1]};
        }
    }
    return table;
}

int64_t ps_longest_hops(const ps_pipeline *pipeline)
{
    int64_t longest = 0;
    for (int32_t r = 0; r < ps_pipeline_num_routes(pipeline); r++) {
        ps_route route = ps_pipeline_route(pipeline, r);
        int64_t total = 0;
        for (int32_t i = 0; i < 2 * (route.num_stops - 1); i++) {
            const ps_hop *hop = i % 2 ? &route.backward_hop[i / 2] : &route.forward_hop[i / 2];
            total = ps_add_saturating(total, ps_add_saturating(hop->occupy_ns, hop->latency_ns));
        }
        longest = total > longest ? total : longest;
    }
    return longest;
}
