// SPDX-License-Identifier: Apache-2.0
//
// rebalance.c: first-improvement descent over boundaries. Moving load d from a device of load a to one of load b lowers
// the sum of squared loads exactly when b + d < a, so integers decide, and every move lowers (sum of squared device
// loads, sum of squared stage loads): it ends.
//
// Where no single move helps, the busiest device may still be able to hand a layer to one that is far from it: all
// stages between pass one on. Such a chain must lower the largest load among the devices whose load it changes, so that
// the sorted list of device loads falls, and that ends too.
#include "plan/rebalance.h"

#include <string.h>

#include "base/number.h"
#include "plan/pipeline_build.h"

typedef struct cut_loads {
    const ps_plan_context *context;
    const ps_cost_table *table;
    const ps_layout *layout;
    int32_t stages;
    int32_t *first_layer;
    int64_t *stage;  // load of each stage
    int64_t *device; // and of each device
    int64_t *after;  // [devices] with the chain at hand
} cut_loads;

static bool evens_out(const cut_loads *loads, int32_t from, int32_t to, int64_t load)
{
    int32_t from_device = ps_layout_device(loads->layout, from);
    int32_t to_device = ps_layout_device(loads->layout, to);
    bool stages = loads->stage[to] + load < loads->stage[from];
    if (from_device == to_device)
        return stages;
    int64_t after = loads->device[to_device] + load;
    return after < loads->device[from_device] || (after == loads->device[from_device] && stages);
}

// The layer next to a boundary may cross it unless it is pinned, or what stays together would be cut.
static bool may_cross(const cut_loads *loads, int32_t boundary, bool down)
{
    const ps_model *model = loads->context->model;
    int32_t layer = down ? loads->first_layer[boundary] : loads->first_layer[boundary] - 1;
    int32_t new_first = down ? layer + 1 : layer;
    if (model->pinned_stage && model->pinned_stage[layer] != PS_PIN_NONE)
        return false;
    return !(model->keep_with_next && model->keep_with_next[new_first - 1]);
}

static bool has_a_layer_to_spare(const cut_loads *loads, int32_t stage)
{
    return loads->first_layer[stage + 1] - loads->first_layer[stage] > 1;
}

static int64_t crossing_load(const cut_loads *loads, int32_t boundary, bool down)
{
    return ps_layer_work_ns(&loads->table->layer[loads->first_layer[boundary] - (down ? 0 : 1)]);
}

// Over a boundary: `down` from its stage to the one before.
static void cross(cut_loads *loads, int32_t boundary, bool down)
{
    int32_t from = down ? boundary : boundary - 1;
    int32_t to = down ? boundary - 1 : boundary;
    int64_t load = crossing_load(loads, boundary, down);
    loads->stage[from] -= load;
    loads->stage[to] += load;
    loads->device[ps_layout_device(loads->layout, from)] -= load;
    loads->device[ps_layout_device(loads->layout, to)] += load;
    loads->first_layer[boundary] += down ? 1 : -1;
}

static bool try_move(cut_loads *loads, int32_t move)
{
    int32_t boundary = move / 2 + 1;
    bool down = move % 2 == 0;
    int32_t from = down ? boundary : boundary - 1;
    int32_t to = down ? boundary - 1 : boundary;

    if (!has_a_layer_to_spare(loads, from) || !may_cross(loads, boundary, down) ||
        !evens_out(loads, from, to, crossing_load(loads, boundary, down)))
        return false;
    cross(loads, boundary, down);
    return true;
}

// One layer over every boundary between two stages, the first stage's to the second in the end.
static bool try_chain(cut_loads *loads, int32_t from, int32_t to)
{
    bool down = to < from;
    int32_t low = down ? to + 1 : from + 1; // boundaries low .. high
    int32_t high = down ? from : to;
    int32_t devices = loads->layout->pp;
    if (!has_a_layer_to_spare(loads, from))
        return false;
    memcpy(loads->after, loads->device, (size_t)devices * sizeof *loads->after);
    for (int32_t boundary = low; boundary <= high; boundary++) {
        if (!may_cross(loads, boundary, down))
            return false;
        int64_t load = crossing_load(loads, boundary, down);
        loads->after[ps_layout_device(loads->layout, down ? boundary : boundary - 1)] -= load;
        loads->after[ps_layout_device(loads->layout, down ? boundary - 1 : boundary)] += load;
    }
    int64_t before_most = 0;
    int64_t after_most = 0;
    for (int32_t device = 0; device < devices; device++) {
        if (loads->after[device] == loads->device[device])
            continue;
        before_most = loads->device[device] > before_most ? loads->device[device] : before_most;
        after_most = loads->after[device] > after_most ? loads->after[device] : after_most;
    }
    if (after_most >= before_most)
        return false;
    for (int32_t boundary = low; boundary <= high; boundary++)
        cross(loads, boundary, down);
    return true;
}

// From a stage of a busiest device to any other, the nearest first.
static bool try_chains(cut_loads *loads, int64_t *budget)
{
    int64_t most = 0;
    for (int32_t device = 0; device < loads->layout->pp; device++)
        most = loads->device[device] > most ? loads->device[device] : most;
    for (int32_t from = 0; from < loads->stages; from++) {
        if (loads->device[ps_layout_device(loads->layout, from)] < most)
            continue;
        for (int32_t away = 2; away < loads->stages; away++) {
            *budget -= 2 * (int64_t)away;
            if (*budget <= 0)
                return false;
            if ((from >= away && try_chain(loads, from, from - away)) ||
                (from + away < loads->stages && try_chain(loads, from, from + away)))
                return true;
        }
    }
    return false;
}

static void sum_loads(cut_loads *loads)
{
    for (int32_t stage = 0; stage < loads->stages; stage++) {
        for (int32_t layer = loads->first_layer[stage]; layer < loads->first_layer[stage + 1]; layer++) {
            loads->stage[stage] += ps_layer_work_ns(&loads->table->layer[layer]);
            loads->device[ps_layout_device(loads->layout, stage)] += ps_layer_work_ns(&loads->table->layer[layer]);
        }
    }
}

void ps_cut_rebalance(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                      int32_t *first_layer)
{
    ps_layout folded = ps_layout_folded(&candidate->layout);
    int32_t stages = folded.pp * folded.vp;
    cut_loads loads = {.context = context,
                       .table = candidate->table,
                       .layout = &folded,
                       .stages = stages,
                       .stage = ps_new(arena, int64_t, stages),
                       .device = ps_new(arena, int64_t, folded.pp),
                       .after = ps_new(arena, int64_t, folded.pp)};
    loads.first_layer = first_layer;
    sum_loads(&loads);
    int64_t budget = 4 * ps_multiply_saturating(stages, candidate->table->num_layers);
    int64_t chains = budget; // what chains may cost, in boundaries
    bool moved = true;
    while (moved && budget > 0) {
        moved = false;
        for (int32_t move = 0; move < 2 * (stages - 1) && budget > 0; move++, budget--)
            moved |= try_move(&loads, move);
        if (!moved)
            moved = try_chains(&loads, &chains);
    }
}
