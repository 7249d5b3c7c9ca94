// SPDX-License-Identifier: Apache-2.0
//
// model_graph.c: "edges" and "constraints" of a native model. Models are chains so far: edges may say so, or are
// refused with the edge that does not fit.
#include <stdlib.h>
#include <string.h>

#include "model/model_json.h"
#include "pipesched/limits.h"

// The rule that a chain is all we can cut, at a place.
static ps_code refuse_dag(ps_json at, ps_status *status)
{
    ps_json_fail_place(at, status);
    return ps_fail_hint(status, "only chains can be planned: order the layers so that each feeds the next, and merge "
                                "branches into one layer");
}

static ps_code read_edge(ps_json edge, const ps_layer_names *names, int32_t *from, int32_t *to, ps_status *status)
{
    PS_TRY(ps_json_expect(edge, PS_JSON_ARRAY, status));
    if (ps_json_count(edge) != 2)
        return ps_json_fail(edge, "bad-edge", status, "expected [\"from\", \"to\"]");
    ps_layer_range range;
    PS_TRY(ps_layer_names_read(names, ps_json_first(edge), &range, status));
    *from = range.last; // a repeated entry ends in its last layer
    PS_TRY(ps_layer_names_read(names, ps_json_next(ps_json_first(edge)), &range, status));
    *to = range.first;
    return PS_OK;
}

ps_code ps_edges_check(ps_arena *arena, ps_json list, const ps_layer_names *names, const ps_model *model,
                       ps_status *status)
{
    if (!list.node || ps_json_is(list, PS_JSON_NULL))
        return PS_OK;
    PS_TRY(ps_json_expect(list, PS_JSON_ARRAY, status));

    enum { ABSENT, IMPLIED, WRITTEN }; // of the edge from layer n to n + 1; repeated entries are chains in themselves
    char *edge = ps_new(arena, char, model->num_layers);
    for (int32_t index = 0; index < names->num_entries; index++)
        memset(edge + names->entry[index].first, IMPLIED, (size_t)names->entry[index].repeat - 1);

    for (ps_json at = ps_json_first(list); at.node; at = ps_json_next(at)) {
        int32_t from = 0;
        int32_t to = 0;
        PS_TRY(read_edge(at, names, &from, &to, status));
        if (to != from + 1) {
            const char *what = to > from ? "skips layers" : "goes back";
            ps_fail(status, PS_ILLEGAL, "dag-unsupported",
                    "the edge from \"%.64s\" to \"%.64s\" %s, so the model branches", model->layer[from].name,
                    model->layer[to].name, what);
            return refuse_dag(at, status);
        }
        if (edge[from] == WRITTEN)
            return ps_json_fail(at, "duplicate-edge", status, "this edge is given twice");
        edge[from] = WRITTEN;
    }
    for (int32_t layer = 0; layer + 1 < model->num_layers; layer++) {
        if (edge[layer] == ABSENT) {
            ps_fail(status, PS_ILLEGAL, "dag-unsupported", "no edge joins \"%.64s\" to \"%.64s\"",
                    model->layer[layer].name, model->layer[layer + 1].name);
            return refuse_dag(list, status);
        }
    }
    return PS_OK;
}

static ps_code read_colocate(ps_arena *arena, ps_json constraint, const ps_layer_names *names, ps_model *model,
                             ps_status *status)
{
    static const char *const keys[] = {"colocate", NULL};
    PS_TRY(ps_json_check_keys(constraint, keys, status));
    ps_json list = ps_json_member(constraint, "colocate");
    PS_TRY(ps_json_expect(list, PS_JSON_ARRAY, status));
    int32_t first = INT32_MAX;
    int32_t last = 0;
    for (ps_json at = ps_json_first(list); at.node; at = ps_json_next(at)) {
        ps_layer_range range;
        PS_TRY(ps_layer_names_read(names, at, &range, status));
        first = range.first < first ? range.first : first;
        last = range.last > last ? range.last : last;
    }
    if (last <= first)
        return ps_json_fail(list, "bad-constraint", status, "expected the names of at least two layers");
    if (!model->keep_with_next)
        model->keep_with_next = ps_new(arena, bool, model->num_layers);
    // Stages are contiguous, so all between come along.
    for (int32_t layer = first; layer < last; layer++)
        model->keep_with_next[layer] = true;
    return PS_OK;
}

static ps_code read_stage(ps_json constraint, int32_t *out, ps_status *status)
{
    ps_json stage = ps_json_member(constraint, "stage");
    if (ps_json_is(stage, PS_JSON_STRING)) {
        bool first = strcmp(ps_json_text(stage), "first") == 0;
        if (!first && strcmp(ps_json_text(stage), "last") != 0)
            return ps_json_fail(stage, "bad-value", status,
                                "expected \"first\", \"last\" or a stage's number, got \"%.64s\"", ps_json_text(stage));
        *out = first ? 0 : PS_PIN_LAST;
        return PS_OK;
    }
    return ps_json_get_int32(constraint, "stage", PS_REQUIRED, 0, PS_MAX_STAGES - 1, out, status);
}

static ps_code read_pin(ps_arena *arena, ps_json constraint, const ps_layer_names *names, ps_model *model,
                        ps_status *status)
{
    static const char *const keys[] = {"pin", "stage", NULL};
    PS_TRY(ps_json_check_keys(constraint, keys, status));
    ps_layer_range range;
    int32_t stage = 0;
    PS_TRY(ps_layer_names_read(names, ps_json_member(constraint, "pin"), &range, status));
    PS_TRY(read_stage(constraint, &stage, status));
    if (!model->pinned_stage) {
        model->pinned_stage = ps_new(arena, int32_t, model->num_layers);
        for (int32_t layer = 0; layer < model->num_layers; layer++)
            model->pinned_stage[layer] = PS_PIN_NONE;
    }
    for (int32_t layer = range.first; layer <= range.last; layer++) {
        int32_t *pinned = &model->pinned_stage[layer];
        if (*pinned != PS_PIN_NONE && *pinned != stage)
            return ps_json_fail(constraint, "pin-conflict", status, "\"%.64s\" is pinned to two stages",
                                model->layer[layer].name);
        *pinned = stage;
    }
    return PS_OK;
}

// Stages follow the order of layers, so pins must not decrease, and layers that stay together have one stage. What
// "last" means against a number depends on the count of stages and is left to the partitioner.
static ps_code check_pins(ps_json list, const ps_model *model, ps_status *status)
{
    if (!model->pinned_stage)
        return PS_OK;
    int32_t before = -1; // the last layer pinned to a number
    int32_t group = -1;  // the last pinned layer of the current group of layers that stay together
    for (int32_t layer = 0; layer < model->num_layers; layer++) {
        int32_t stage = model->pinned_stage[layer];
        int32_t other = PS_PIN_NONE;
        if (stage != PS_PIN_NONE && group >= 0 && model->pinned_stage[group] != stage)
            other = group;
        else if (stage >= 0 && before >= 0 && model->pinned_stage[before] > stage)
            other = before;
        if (other != PS_PIN_NONE)
            return ps_json_fail(list, "pin-conflict", status, "the pins of \"%.64s\" and \"%.64s\" cannot both hold",
                                model->layer[other].name, model->layer[layer].name);
        before = stage >= 0 ? layer : before;
        group = stage != PS_PIN_NONE ? layer : group;
        if (!model->keep_with_next || layer + 1 == model->num_layers || !model->keep_with_next[layer])
            group = -1;
    }
    return PS_OK;
}

ps_code ps_constraints_read(ps_arena *arena, ps_json list, const ps_layer_names *names, ps_model *model,
                            ps_status *status)
{
    if (!list.node || ps_json_is(list, PS_JSON_NULL))
        return PS_OK;
    PS_TRY(ps_json_expect(list, PS_JSON_ARRAY, status));
    for (ps_json constraint = ps_json_first(list); constraint.node; constraint = ps_json_next(constraint)) {
        PS_TRY(ps_json_expect(constraint, PS_JSON_OBJECT, status));
        if (ps_json_member(constraint, "colocate").node)
            PS_TRY(read_colocate(arena, constraint, names, model, status));
        else if (ps_json_member(constraint, "pin").node)
            PS_TRY(read_pin(arena, constraint, names, model, status));
        else
            return ps_json_fail(constraint, "bad-constraint", status,
                                "expected \"colocate\", or \"pin\" with \"stage\"");
    }
    return check_pins(list, model, status);
}
