// SPDX-License-Identifier: Apache-2.0
//
// rebalance.c: first-improvement descent over boundaries. Moving load d from a device of load a to one of load b lowers
// the sum of squared loads exactly when b + d < a, so integers decide, and every move lowers (sum of squared device
// loads, sum of squared stage loads): it ends.
#include "plan/rebalance.h"

#include "base/number.h"
#include "plan/pipeline_build.h"

typedef struct cut_loads {
    const ps_layout *layout;
    int64_t *stage;  // load of each stage
    int64_t *device; // and of each device
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

// The layer next to a boundary may cross it unless that empties a stage, breaks a pin, or cuts what stays together.
static bool may_cross(const ps_model *model, const int32_t *first_layer, int32_t boundary, bool down)
{
    int32_t layer = down ? first_layer[boundary] : first_layer[boundary] - 1;
    int32_t new_first = down ? layer + 1 : layer;
    if (model->pinned_stage && model->pinned_stage[layer] != PS_PIN_NONE)
        return false;
    if (down ? new_first >= first_layer[boundary + 1] : new_first <= first_layer[boundary - 1])
        return false;
    return !(model->keep_with_next && model->keep_with_next[new_first - 1]);
}

static bool try_move(const ps_plan_context *context, const ps_candidate *candidate, cut_loads *loads,
                     int32_t *first_layer, int32_t move)
{
    int32_t boundary = move / 2 + 1;
    bool down = move % 2 == 0; // from stage `boundary` to the one before it
    int32_t from = down ? boundary : boundary - 1;
    int32_t to = down ? boundary - 1 : boundary;
    int32_t layer = down ? first_layer[boundary] : first_layer[boundary] - 1;
    int64_t load = ps_layer_work_ns(&candidate->table->layer[layer]);

    if (!may_cross(context->model, first_layer, boundary, down) || !evens_out(loads, from, to, load))
        return false;
    loads->stage[from] -= load;
    loads->stage[to] += load;
    loads->device[ps_layout_device(loads->layout, from)] -= load;
    loads->device[ps_layout_device(loads->layout, to)] += load;
    first_layer[boundary] += down ? 1 : -1;
    return true;
}

void ps_cut_rebalance(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                      int32_t *first_layer)
{
    ps_layout folded = ps_layout_folded(&candidate->layout);
    const ps_layout *layout = &folded;
    int32_t stages = layout->pp * layout->vp;
    cut_loads loads = {.layout = layout};

    loads.stage = ps_new(arena, int64_t, stages);
    loads.device = ps_new(arena, int64_t, layout->pp);
    for (int32_t stage = 0; stage < stages; stage++) {
        for (int32_t layer = first_layer[stage]; layer < first_layer[stage + 1]; layer++) {
            loads.stage[stage] += ps_layer_work_ns(&candidate->table->layer[layer]);
            loads.device[ps_layout_device(layout, stage)] += ps_layer_work_ns(&candidate->table->layer[layer]);
        }
    }
    int64_t budget = 4 * ps_multiply_saturating(stages, candidate->table->num_layers);
    bool moved = true;
    while (moved && budget > 0) {
        moved = false;
        for (int32_t move = 0; move < 2 * (stages - 1) && budget > 0; move++, budget--)
            moved |= try_move(context, candidate, &loads, first_layer, move);
    }
}
