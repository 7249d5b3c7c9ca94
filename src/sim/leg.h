// SPDX-License-Identifier: Apache-2.0
//
// leg.h: where a micro-batch comes from and goes to at a stage: the neighbours on its route, as a table.
#ifndef PS_SIM_LEG_H
#define PS_SIM_LEG_H

#include "pipesched/arena.h"
#include "pipesched/pipeline.h"

enum { PS_NO_STAGE = -1 };

typedef struct ps_leg {
    bool visited;               // false: the route leaves the stage out
    int32_t next;               // PS_NO_STAGE: the last stop
    int32_t previous;           // PS_NO_STAGE: the first stop
    const ps_hop *forward_hop;  // to next; NULL: none
    const ps_hop *backward_hop; // to previous; NULL: none
} ps_leg;

typedef struct ps_leg_table {
    int32_t num_stages;
    const int32_t *route_of; // [micro-batches]; NULL: all take the one route
    ps_leg *leg;             // [routes * stages]
} ps_leg_table;

// O(routes * stages).
ps_leg_table ps_leg_table_of(ps_arena *arena, const ps_pipeline *pipeline);

static inline const ps_leg *ps_leg_at(const ps_leg_table *table, int32_t stage, int32_t microbatch)
{
    int64_t route = table->route_of ? table->route_of[microbatch] : 0;
    return &table->leg[route * table->num_stages + stage];
}

// All hops of one micro-batch, both ways, on the route where they take longest; saturated.
int64_t ps_longest_hops(const ps_pipeline *pipeline);

#endif
