// SPDX-License-Identifier: Apache-2.0
//
// check_layers.c: every layer of the model is placed exactly once, in order along the chain of stages; with two ways
// through the stages exactly once on each.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "check/check_parts.h"

typedef struct named_layer {
    const char *name;
    int32_t stage;
    int32_t index;
} named_layer;

static int compare_names(const void *a, const void *b)
{
    const named_layer *x = a;
    const named_layer *y = b;
    int order = strcmp(x->name, y->name);
    if (order != 0)
        return order;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void check_names(ps_check *check, int32_t begin, int32_t end)
{
    const ps_plan *plan = check->plan;
    int64_t count = 0;
    for (int32_t stage = begin; stage < end; stage++)
        count += plan->stage[stage].num_layers;
    named_layer *all = ps_new_raw(check->arena, named_layer, count);
    named_layer *next = all;
    for (int32_t stage = begin; stage < end; stage++)
        for (int32_t index = 0; index < plan->stage[stage].num_layers; index++)
            *next++ = (named_layer){plan->stage[stage].layer_name[index], stage, index};
    if (count > 0)
        qsort(all, (size_t)count, sizeof *all, compare_names);
    for (int64_t index = 1; index < count; index++) {
        const named_layer *layer = &all[index];
        if (strcmp(layer[-1].name, layer->name) == 0)
            ps_check_find(check, "layer-name-twice", PS_AT_2("/stages/#/layers/#", layer->stage, layer->index),
                          "layer \"%.80s\" is also on stage %" PRId32, layer->name, layer[-1].stage);
    }
}

// Follows the chain: `next` is the first layer that no range so far holds.
static void check_range(ps_check *check, ps_place place, int64_t first, int64_t last, int64_t *next)
{
    if (first > *next)
        ps_check_find(check, "layer-missing", place,
                      "layers %" PRId64 " to %" PRId64 " are on no stage before this range", *next, first - 1);
    if (first < *next)
        ps_check_find(check, "layer-twice", place, "layers %" PRId64 " to %" PRId64 " are placed by an earlier range",
                      first, last < *next ? last : *next - 1);
    if (last >= *next)
        *next = last + 1;
}

// The stages begin .. end - 1 of one way.
static void check_way(ps_check *check, int32_t begin, int32_t end)
{
    const ps_plan *plan = check->plan;
    int64_t layers = plan->inputs.model_layers;
    int64_t next = 0;
    int64_t parameters = 0;
    for (int32_t index = begin; index < end; index++) {
        const ps_plan_stage *stage = &plan->stage[index];
        int64_t held = 0;
        if (stage->num_ranges == 0)
            ps_check_find(check, "stage-empty", PS_AT_1("/stages/#/layer_ids", index), "the stage has no layers");
        for (int32_t range = 0; range < stage->num_ranges; range++) {
            int64_t first = stage->first_layer[range];
            int64_t last = stage->last_layer[range];
            check_range(check, PS_AT_2("/stages/#/layer_ids/#", index, range), first, last, &next);
            held += last - first + 1;
        }
        ps_check_equal(check, "layer-names", PS_AT_1("/stages/#/layers", index), stage->num_layers, held);
        parameters = ps_add_saturating(parameters, stage->parameters);
    }
    if (next < layers)
        ps_check_find(check, "layer-missing", PS_AT("/stages"),
                      "layers %" PRId64 " to %" PRId64 " of the model are on no stage", next, layers - 1);
    if (next > layers)
        ps_check_find(check, "layer-unknown", PS_AT("/stages"),
                      "the model has %" PRId64 " layers, the stages go up to %" PRId64, layers, next - 1);
    ps_check_equal(check, "parameter-sum", PS_AT("/inputs/model/parameters"), plan->inputs.model_parameters,
                   parameters);
    check_names(check, begin, end);
}

void ps_check_layers(ps_check *check)
{
    int32_t stages = ps_check_way_stages(check->plan);
    for (int32_t begin = 0; begin + stages <= check->plan->num_stages; begin += stages)
        check_way(check, begin, begin + stages);
}
