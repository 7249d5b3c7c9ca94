// SPDX-License-Identifier: Apache-2.0
//
// model_json.c: the native format, pipesched/model/v1: layers with their times, their architecture, or both.
#include "model/model_json.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "model/model_formats.h"
#include "model/model_params.h"
#include "pipesched/limits.h"

enum { LONGEST_NAME = 200 };

static const char *const top_keys[] = {"format",       "name",  "layers",      "max_seq_length",
                                       "measurements", "edges", "constraints", NULL};

// Of a layer; check_layer_keys() adds those of its architecture.
static const char *const layer_keys[] = {"name",
                                         "kind",
                                         "repeat",
                                         "parameters",
                                         "expert_parameters",
                                         "active_parameters",
                                         "forward_ms",
                                         "backward_input_ms",
                                         "backward_weight_ms",
                                         "held_after_forward_bytes",
                                         "held_after_backward_input_bytes",
                                         "transient_bytes",
                                         "output_bytes"};
enum { LAYER_KEYS = sizeof layer_keys / sizeof layer_keys[0] };

// Names are printed in tables and drawings: not empty, not endless, no control characters.
static ps_code get_name(ps_json object, const char *key, ps_need need, const char **out, ps_status *status)
{
    PS_TRY(ps_json_get_string(object, key, need, out, status));
    ps_json at = ps_json_member(object, key);
    if (!ps_json_is(at, PS_JSON_STRING))
        return PS_OK;
    const char *name = *out;
    size_t size = strlen(name);
    bool clean = size > 0 && size <= LONGEST_NAME;
    for (size_t index = 0; clean && index < size; index++)
        clean = (unsigned char)name[index] >= 0x20 && name[index] != 0x7f;
    if (!clean)
        return ps_json_fail(at, "bad-name", status, "expected 1 to %d bytes without control characters",
                            (int)LONGEST_NAME);
    return PS_OK;
}

static ps_code check_layer_keys(ps_json entry, ps_status *status)
{
    enum { MOST_KEYS = 128 };
    const char *names[MOST_KEYS];
    int32_t count = 0;
    assert(LAYER_KEYS + ps_arch_num_keys() < MOST_KEYS);
    while (count < LAYER_KEYS) {
        names[count] = layer_keys[count];
        count++;
    }
    for (int32_t key = 0; key < ps_arch_num_keys(); key++)
        names[count++] = ps_arch_key_name(key);
    names[count] = NULL;
    return ps_json_check_keys(entry, names, status);
}

static ps_code read_times(ps_json entry, ps_layer *layer, ps_status *status)
{
    const struct {
        const char *key;
        int64_t *out;
    } times[] = {{"forward_ms", &layer->forward_ns},
                 {"backward_input_ms", &layer->backward_input_ns},
                 {"backward_weight_ms", &layer->backward_weight_ns}};
    const char *given = NULL;
    const char *missing = NULL;
    for (int32_t index = 0; index < 3; index++) {
        PS_TRY(ps_json_get_ms(entry, times[index].key, PS_OPTIONAL, PS_MAX_LAYER_NS, times[index].out, status));
        if (*times[index].out == PS_NOT_GIVEN)
            missing = missing ? missing : times[index].key;
        else
            given = given ? given : times[index].key;
    }
    if (given && missing) {
        ps_json_fail(entry, "missing-key", status, "\"%s\" is given but \"%s\" is not", given, missing);
        return ps_fail_hint(status, "give all three times; 0 is fine, also for a backward that is measured as a whole");
    }
    return PS_OK;
}

static ps_code read_sizes(ps_json entry, ps_layer *layer, ps_status *status)
{
    PS_TRY(ps_json_get_bytes(entry, "held_after_forward_bytes", PS_OPTIONAL, &layer->held_after_forward_bytes, status));
    PS_TRY(ps_json_get_bytes(entry, "held_after_backward_input_bytes", PS_OPTIONAL,
                             &layer->held_after_backward_input_bytes, status));
    PS_TRY(ps_json_get_bytes(entry, "transient_bytes", PS_OPTIONAL, &layer->transient_bytes, status));
    return ps_json_get_bytes(entry, "output_bytes", PS_OPTIONAL, &layer->output_bytes, status);
}

// Parameters of a layer without architecture are what the file says; with one they follow from it, and a second figure
// would only disagree.
static ps_code read_parameters(ps_json entry, ps_layer *layer, ps_status *status)
{
    static const char *const counts[] = {"parameters", "expert_parameters", "active_parameters"};
    if (layer->block) {
        for (int32_t index = 0; index < 3; index++) {
            ps_json member = ps_json_member(entry, counts[index]);
            if (member.node)
                return ps_json_fail(member, "key-not-applicable", status,
                                    "\"%s\" follows from the architecture of this layer; leave it out", counts[index]);
        }
        return PS_OK;
    }
    PS_TRY(ps_json_get_int(entry, "parameters", PS_OPTIONAL, 0, PS_MAX_PARAMETERS, &layer->parameters, status));
    layer->active_parameters = layer->parameters;
    PS_TRY(ps_json_get_int(entry, "expert_parameters", PS_OPTIONAL, 0, layer->parameters, &layer->expert_parameters,
                           status));
    return ps_json_get_int(entry, "active_parameters", PS_OPTIONAL, 0, layer->parameters, &layer->active_parameters,
                           status);
}

static ps_code read_layer(ps_arena *arena, ps_json entry, ps_layer *layer, int32_t *repeat, ps_status *status)
{
    PS_TRY(ps_json_expect(entry, PS_JSON_OBJECT, status));
    PS_TRY(check_layer_keys(entry, status));
    const char *name = NULL;
    const char *kind = "layer";
    PS_TRY(get_name(entry, "name", PS_REQUIRED, &name, status));
    PS_TRY(get_name(entry, "kind", PS_OPTIONAL, &kind, status));
    PS_TRY(ps_json_get_int32(entry, "repeat", PS_OPTIONAL, 1, PS_MAX_LAYERS, repeat, status));

    *layer = ps_layer_named(name, name, PS_LAYER_TIMED, kind);
    PS_TRY(read_times(entry, layer, status));
    PS_TRY(read_sizes(entry, layer, status));
    if (ps_arch_given(entry))
        PS_TRY(ps_arch_read(arena, entry, layer, status));
    return read_parameters(entry, layer, status);
}

typedef struct layer_list {
    int32_t num_entries;
    ps_layer_entry *entry;
    ps_layer *pattern; // [num_entries]
} layer_list;

static ps_code read_layers(ps_arena *arena, ps_json list, layer_list *out, ps_model *model, ps_status *status)
{
    PS_TRY(ps_json_expect(list, PS_JSON_ARRAY, status));
    int64_t count = ps_json_count(list);
    if (count < 1)
        return ps_json_fail(list, "no-layers", status, "a model has at least one layer");
    out->entry = ps_new(arena, ps_layer_entry, count);
    out->pattern = ps_new(arena, ps_layer, count);
    int64_t total = 0;
    for (ps_json at = ps_json_first(list); at.node; at = ps_json_next(at)) {
        int32_t repeat = 1;
        PS_TRY(read_layer(arena, at, &out->pattern[out->num_entries], &repeat, status));
        out->entry[out->num_entries++] = (ps_layer_entry){.at = at, .first = (int32_t)total, .repeat = repeat};
        total += repeat;
        if (total > PS_MAX_LAYERS)
            return ps_json_fail(at, "too-many-layers", status, "at most %d layers, this entry makes it %lld",
                                (int)PS_MAX_LAYERS, (long long)total);
    }

    model->num_layers = (int32_t)total;
    model->layer = ps_new(arena, ps_layer, total);
    for (int32_t index = 0; index < out->num_entries; index++) {
        for (int32_t copy = 0; copy < out->entry[index].repeat; copy++) {
            ps_layer *layer = &model->layer[out->entry[index].first + copy];
            *layer = out->pattern[index];
            if (out->entry[index].repeat > 1)
                layer->name = ps_text_format(arena, "%s.%d", layer->base_name, (int)copy);
        }
    }
    return PS_OK;
}

// A layer has times, measurements or an architecture.
static ps_code check_known(ps_arena *arena, const layer_list *list, const bool *measured, ps_status *status)
{
    for (int32_t index = 0; index < list->num_entries; index++) {
        ps_layer *layer = &list->pattern[index];
        if (layer->block || layer->forward_ns != PS_NOT_GIVEN || measured[list->entry[index].first])
            continue;
        // Says which key is missing, or that the kind is unknown.
        PS_TRY(ps_arch_read(arena, list->entry[index].at, layer, status));
    }
    return PS_OK;
}

static ps_code tie_heads(const layer_list *list, const ps_layer_names *names, ps_model *model, ps_status *status)
{
    for (int32_t index = 0; index < list->num_entries; index++) {
        ps_json at = ps_json_member(list->entry[index].at, "tied_with");
        if (!at.node)
            continue;
        ps_layer_range owner;
        PS_TRY(ps_layer_names_read(names, at, &owner, status));
        ps_layer *head = &model->layer[list->entry[index].first];
        const ps_layer *embedding = &model->layer[owner.first];
        bool same = embedding->class_ == PS_LAYER_EMBEDDING && owner.first == owner.last &&
                    owner.first < head - model->layer && embedding->block->hidden_size == head->block->hidden_size &&
                    embedding->block->vocab_size == head->block->vocab_size;
        if (!same)
            return ps_json_fail(at, "tied-with", status,
                                "\"%.64s\" is not one earlier embedding of the same vocabulary and hidden size",
                                ps_json_text(at));
        for (int32_t copy = 0; copy < list->entry[index].repeat; copy++)
            ps_layer_tie(head + copy, owner.first);
    }
    return PS_OK;
}

static bool sniff_json(ps_json root)
{
    ps_json format = ps_json_member(root, "format");
    if (format.node)
        return strncmp(ps_json_text(format), "pipesched/model/", 16) == 0;
    return ps_json_member(root, "layers").node != NULL;
}

static ps_code check_format(ps_json root, ps_status *status)
{
    const char *format = NULL;
    PS_TRY(ps_json_get_string(root, "format", PS_REQUIRED, &format, status));
    if (strcmp(format, "pipesched/model/v1") == 0)
        return PS_OK;
    ps_json_fail(ps_json_member(root, "format"), "unknown-version", status, "cannot read \"%.64s\"", format);
    return ps_fail_hint(status, "this release reads \"pipesched/model/v1\"");
}

static ps_code load_json(ps_arena *arena, ps_json root, ps_model *model, ps_status *status)
{
    PS_TRY(check_format(root, status));
    PS_TRY(ps_json_check_keys(root, top_keys, status));
    model->format = "pipesched/model/v1";
    PS_TRY(get_name(root, "name", PS_OPTIONAL, &model->name, status));
    PS_TRY(ps_json_get_int(root, "max_seq_length", PS_OPTIONAL, 1, PS_MAX_SEQUENCE, &model->max_seq_length, status));

    ps_json layers = ps_json_member(root, "layers");
    if (!layers.node)
        return ps_json_fail(root, "missing-key", status, "\"layers\" is missing");
    layer_list list = {0};
    PS_TRY(read_layers(arena, layers, &list, model, status));
    ps_layer_names names;
    PS_TRY(ps_layer_names_build(arena, model, list.entry, list.num_entries, &names, status));
    bool *measured = ps_new(arena, bool, model->num_layers);
    PS_TRY(ps_measurements_read(arena, ps_json_member(root, "measurements"), model, measured, status));
    PS_TRY(check_known(arena, &list, measured, status));
    PS_TRY(tie_heads(&list, &names, model, status));
    PS_TRY(ps_edges_check(arena, ps_json_member(root, "edges"), &names, model, status));
    return ps_constraints_read(arena, ps_json_member(root, "constraints"), &names, model, status);
}

const ps_model_format ps_model_format_json = {.name = "pipesched/model/v1", .sniff = sniff_json, .load = load_json};
