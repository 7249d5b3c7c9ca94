// SPDX-License-Identifier: Apache-2.0
//
// model_names.c: a sorted index of layer names.
#include "model/model_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int compare_names(const void *left, const void *right)
{
    const ps_named_range *a = left;
    const ps_named_range *b = right;
    int order = strcmp(a->name, b->name);
    if (order != 0)
        return order;
    return (a->entry > b->entry) - (a->entry < b->entry);
}

ps_code ps_layer_names_build(ps_arena *arena, const ps_model *model, const ps_layer_entry *entry, int32_t num_entries,
                             ps_layer_names *out, ps_status *status)
{
    *out = (ps_layer_names){.num_entries = num_entries, .entry = entry};
    out->range = ps_new(arena, ps_named_range, (int64_t)model->num_layers + num_entries);
    for (int32_t index = 0; index < num_entries; index++) {
        int32_t first = entry[index].first;
        int32_t last = first + entry[index].repeat - 1;
        for (int32_t layer = first; layer <= last; layer++)
            out->range[out->count++] = (ps_named_range){model->layer[layer].name, {layer, layer}, index};
        if (last > first)
            out->range[out->count++] = (ps_named_range){model->layer[first].base_name, {first, last}, index};
    }
    qsort(out->range, (size_t)out->count, sizeof out->range[0], compare_names);

    out->spelling = ps_new(arena, const char *, out->count);
    for (int64_t index = 0; index < out->count; index++) {
        out->spelling[index] = out->range[index].name;
        if (index > 0 && strcmp(out->spelling[index - 1], out->spelling[index]) == 0)
            return ps_json_fail(entry[out->range[index].entry].at, "duplicate-layer", status,
                                "the name \"%.64s\" is taken by an earlier layer", out->spelling[index]);
    }
    return PS_OK;
}

const ps_named_range *ps_layer_names_find(const ps_layer_names *names, const char *name)
{
    int64_t low = 0;
    int64_t high = names->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(names->range[middle].name, name);
        if (order == 0)
            return &names->range[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

ps_code ps_layer_names_read(const ps_layer_names *names, ps_json at, ps_layer_range *out, ps_status *status)
{
    PS_TRY(ps_json_expect(at, PS_JSON_STRING, status));
    const ps_named_range *found = ps_layer_names_find(names, ps_json_text(at));
    if (found) {
        *out = found->layers;
        return PS_OK;
    }
    ps_json_fail(at, "unknown-layer", status, "no layer is named \"%.64s\"", ps_json_text(at));
    const char *nearest = ps_text_nearest(ps_json_text(at), names->spelling, (int32_t)names->count);
    return nearest ? ps_fail_hint(status, "did you mean \"%s\"?", nearest) : status->code;
}
