// SPDX-License-Identifier: Apache-2.0
//
// model.c: finding a model by name, recognising its format, and what every format's result must satisfy.
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "io/builtin.h"
#include "io/file.h"
#include "io/json_read.h"
#include "model/model_formats.h"
#include "pipesched/limits.h"
#include "pipesched/model.h"

static const ps_model_format *const formats[] = {&ps_model_format_json, &ps_model_format_hf};
enum { FORMATS = sizeof formats / sizeof formats[0] };

// What to call a model whose file does not say: the file's name without its ending, or that of the folder around a
// "config.json".
static const char *name_from_source(ps_arena *arena, const char *source)
{
    if (strcmp(source, "-") == 0)
        return "stdin";
    const char *end = source + strlen(source);
    const char *base = strrchr(source, '/');
    base = base ? base + 1 : source;
    if (strcmp(base, "config.json") == 0 && base - source > 1) {
        end = base - 1;
        base = end;
        while (base > source && base[-1] != '/')
            base--;
        if (base == end || *base == '.')
            return "config";
    } else if (end - base > 5 && strcmp(end - 5, ".json") == 0) {
        end -= 5;
    }
    return ps_text_copy_n(arena, base, end - base);
}

static ps_code unknown_format(ps_json root, ps_status *status)
{
    ps_json format = ps_json_member(root, "format");
    if (ps_json_is(format, PS_JSON_STRING) && strncmp(ps_json_text(format), "pipesched/", 10) == 0) {
        ps_json_fail(format, "wrong-format", status, "expected a model, got \"%.64s\"", ps_json_text(format));
        return ps_fail_hint(status, "the order of arguments is MODEL CLUSTER");
    }
    ps_json_fail(root, "unknown-format", status, "this is no model: neither \"format\" nor \"model_type\" is given");
    return ps_fail_hint(status, "a model is a pipesched/model/v1 file or a Hugging Face config.json");
}

// Totals, within their limits. The sum of a million layers of PS_MAX_PARAMETERS would overflow, hence saturating.
static ps_code finish_model(ps_json root, ps_model *model, ps_status *status)
{
    model->parameters = 0;
    model->active_parameters = 0;
    for (int32_t layer = 0; layer < model->num_layers; layer++) {
        model->parameters = ps_add_saturating(model->parameters, model->layer[layer].parameters);
        model->active_parameters = ps_add_saturating(model->active_parameters, model->layer[layer].active_parameters);
    }
    if (model->parameters > PS_MAX_PARAMETERS)
        return ps_json_fail(root, "too-many-parameters", status, "the layers together have more than %lld parameters",
                            (long long)PS_MAX_PARAMETERS);
    return PS_OK;
}

ps_code ps_model_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_model *out,
                       ps_status *status)
{
    ps_json root;
    PS_TRY(ps_json_parse(arena, source, text, size, &root, status));
    PS_TRY(ps_json_expect(root, PS_JSON_OBJECT, status));

    *out = (ps_model){.name = name_from_source(arena, source), .source = ps_text_copy(arena, source)};
    ps_sha256(text, size, out->sha256);
    for (int32_t format = 0; format < FORMATS; format++) {
        if (formats[format]->sniff(root)) {
            PS_TRY(formats[format]->load(arena, root, out, status));
            return finish_model(root, out, status);
        }
    }
    return unknown_format(root, status);
}

static ps_code no_such_model(ps_arena *arena, const char *name, ps_status *status)
{
    int32_t count;
    const char *const *names = ps_builtin_names(arena, PS_BUILTIN_MODEL, &count);
    const char *nearest = ps_text_nearest(name, names, count);

    ps_fail(status, PS_IO, "file-missing", "there is no such file, and no built-in model of this name");
    ps_fail_at(status, name, 0, 0, NULL);
    if (nearest)
        return ps_fail_hint(status, "did you mean \"%s\"?", nearest);

    ps_text list = {.arena = arena};
    for (int32_t index = 0; index < count; index++)
        ps_text_addf(&list, "%s%s", index > 0 ? ", " : "", names[index]);
    return ps_fail_hint(status, "built-in models: %s", list.data);
}

ps_code ps_model_load(ps_arena *arena, const char *name, ps_model *out, ps_status *status)
{
    bool may_be_builtin = strcmp(name, "-") != 0 && !strchr(name, '/');
    if (may_be_builtin && !ps_file_exists(name)) {
        const ps_builtin *builtin = ps_builtin_find(PS_BUILTIN_MODEL, name);
        if (!builtin)
            return no_such_model(arena, name, status);
        PS_TRY(ps_model_parse(arena, builtin->path, builtin->data, builtin->size, out, status));
        out->source = builtin->name;
        return PS_OK;
    }
    ps_file_bytes bytes;
    PS_TRY(ps_file_read(arena, name, PS_MAX_FILE_BYTES, &bytes, status));
    return ps_model_parse(arena, name, bytes.data, bytes.size, out, status);
}

int64_t ps_model_experts(const ps_model *model)
{
    int64_t common = 0;
    for (int32_t layer = 0; layer < model->num_layers; layer++) {
        int64_t a = model->layer[layer].block ? model->layer[layer].block->experts : 0;
        for (int64_t b = common; b != 0;) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        common = a;
    }
    return common;
}
