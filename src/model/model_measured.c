// SPDX-License-Identifier: Apache-2.0
//
// model_measured.c: "measurements", times of layer types under stated conditions.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/model_json.h"
#include "pipesched/limits.h"

static const char *const set_keys[] = {"gpu",        "precision", "tp", "cp", "ep", "micro_batch_size",
                                       "seq_length", "layers",    NULL};
static const char *const time_keys[] = {"forward_ms", "backward_input_ms", "backward_weight_ms", NULL};

static int compare_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

// Base names of the model, each once, ascending; measurements are keyed by them.
typedef struct base_names {
    const char **name;
    bool *measured; // by some set
    int32_t count;
} base_names;

static base_names collect_base_names(ps_arena *arena, const ps_model *model)
{
    base_names names = {.name = ps_new(arena, const char *, model->num_layers),
                        .measured = ps_new(arena, bool, model->num_layers)};
    for (int32_t layer = 0; layer < model->num_layers; layer++)
        names.name[layer] = model->layer[layer].base_name;
    qsort(names.name, (size_t)model->num_layers, sizeof names.name[0], compare_text);
    for (int32_t layer = 0; layer < model->num_layers; layer++)
        if (layer == 0 || strcmp(names.name[layer], names.name[names.count - 1]) != 0)
            names.name[names.count++] = names.name[layer];
    return names;
}

static const char **find_base_name(const base_names *names, const char *name)
{
    return bsearch(&name, names->name, (size_t)names->count, sizeof names->name[0], compare_text);
}

static ps_code read_precision(ps_json set, ps_precision *out, ps_status *status)
{
    const char *name = NULL;
    PS_TRY(ps_json_get_string(set, "precision", PS_REQUIRED, &name, status));
    int precision = ps_precision_named(name);
    if (precision < 0)
        return ps_json_fail(ps_json_member(set, "precision"), "bad-value", status,
                            "expected bf16, fp16, fp32, fp8, mxfp8 or nvfp4, got \"%.64s\"", name);
    *out = (ps_precision)precision;
    return PS_OK;
}

static ps_code find_known(ps_json at, const base_names *names, const char **known, ps_status *status)
{
    const char *key = ps_json_key(at);
    const char **found = find_base_name(names, key);
    if (!found) {
        ps_json_fail(at, "unknown-layer", status, "no layer entry is named \"%.64s\"", key);
        const char *nearest = ps_text_nearest(key, names->name, names->count);
        return nearest ? ps_fail_hint(status, "did you mean \"%s\"?", nearest) : status->code;
    }
    names->measured[found - names->name] = true;
    *known = *found;
    return PS_OK;
}

// `names` NULL: of whatever model.
static ps_code read_measured_layers(ps_arena *arena, ps_json layers, const base_names *names, ps_measurement *out,
                                    ps_status *status)
{
    PS_TRY(ps_json_expect(layers, PS_JSON_OBJECT, status));
    out->layer = ps_new(arena, ps_measured_layer, ps_json_count(layers));
    for (ps_json at = ps_json_first(layers); at.node; at = ps_json_next(at)) {
        const char *name = ps_json_key(at);
        if (names)
            PS_TRY(find_known(at, names, &name, status));
        PS_TRY(ps_json_expect(at, PS_JSON_OBJECT, status));
        PS_TRY(ps_json_check_keys(at, time_keys, status));
        ps_measured_layer *layer = &out->layer[out->num_layers++];
        layer->base_name = name;
        PS_TRY(ps_json_get_ms(at, "forward_ms", PS_REQUIRED, PS_MAX_LAYER_NS, &layer->forward_ns, status));
        PS_TRY(
            ps_json_get_ms(at, "backward_input_ms", PS_REQUIRED, PS_MAX_LAYER_NS, &layer->backward_input_ns, status));
        PS_TRY(
            ps_json_get_ms(at, "backward_weight_ms", PS_REQUIRED, PS_MAX_LAYER_NS, &layer->backward_weight_ns, status));
    }
    return PS_OK;
}

bool ps_measurement_same_conditions(const ps_measurement *a, const ps_measurement *b)
{
    return strcmp(a->gpu, b->gpu) == 0 && a->precision == b->precision && a->tp == b->tp && a->cp == b->cp &&
           a->ep == b->ep && a->micro_batch_size == b->micro_batch_size && a->seq_length == b->seq_length;
}

static ps_code read_set(ps_arena *arena, ps_json set, const base_names *names, ps_measurement *out, ps_status *status)
{
    PS_TRY(ps_json_expect(set, PS_JSON_OBJECT, status));
    PS_TRY(ps_json_check_keys(set, set_keys, status));
    *out = (ps_measurement){.tp = 1, .cp = 1, .ep = 1};
    PS_TRY(ps_json_get_string(set, "gpu", PS_REQUIRED, &out->gpu, status));
    PS_TRY(read_precision(set, &out->precision, status));
    PS_TRY(ps_json_get_int32(set, "tp", PS_OPTIONAL, 1, (int32_t)PS_MAX_GPUS, &out->tp, status));
    PS_TRY(ps_json_get_int32(set, "cp", PS_OPTIONAL, 1, (int32_t)PS_MAX_GPUS, &out->cp, status));
    PS_TRY(ps_json_get_int32(set, "ep", PS_OPTIONAL, 1, (int32_t)PS_MAX_GPUS, &out->ep, status));
    PS_TRY(ps_json_get_int(set, "micro_batch_size", PS_REQUIRED, 1, PS_MAX_BATCH, &out->micro_batch_size, status));
    PS_TRY(ps_json_get_int(set, "seq_length", PS_REQUIRED, 1, PS_MAX_SEQUENCE, &out->seq_length, status));
    ps_json layers = ps_json_member(set, "layers");
    if (!layers.node)
        return ps_json_fail(set, "missing-key", status, "\"layers\" is missing");
    return read_measured_layers(arena, layers, names, out, status);
}

enum { MAX_SETS = 4096 }; // compared with each other for duplicates, so bounded

static ps_code read_sets(ps_arena *arena, ps_json list, const base_names *names, ps_measurement **out, int32_t *count,
                         ps_status *status)
{
    PS_TRY(ps_json_expect(list, PS_JSON_ARRAY, status));
    if (ps_json_count(list) > MAX_SETS)
        return ps_json_fail(list, "too-many-measurements", status, "at most %d sets, got %lld", (int)MAX_SETS,
                            (long long)ps_json_count(list));
    ps_measurement *sets = ps_new(arena, ps_measurement, ps_json_count(list));
    *count = 0;
    *out = sets;
    for (ps_json set = ps_json_first(list); set.node; set = ps_json_next(set)) {
        PS_TRY(read_set(arena, set, names, &sets[*count], status));
        for (int32_t earlier = 0; earlier < *count; earlier++)
            if (ps_measurement_same_conditions(&sets[earlier], &sets[*count]))
                return ps_json_fail(set, "duplicate-measurement", status, "set %d has the same conditions",
                                    (int)earlier);
        ++*count;
    }
    return PS_OK;
}

ps_code ps_measurements_read(ps_arena *arena, ps_json list, ps_model *model, bool *measured, ps_status *status)
{
    if (!list.node || ps_json_is(list, PS_JSON_NULL))
        return PS_OK;
    base_names names = collect_base_names(arena, model);
    PS_TRY(read_sets(arena, list, &names, &model->measurement, &model->num_measurements, status));
    for (int32_t layer = 0; layer < model->num_layers; layer++)
        measured[layer] = names.measured[find_base_name(&names, model->layer[layer].base_name) - names.name];
    return PS_OK;
}

ps_code ps_measurements_read_any(ps_arena *arena, ps_json list, ps_measurement **out, int32_t *count, ps_status *status)
{
    return read_sets(arena, list, NULL, out, count, status);
}
