// SPDX-License-Identifier: Apache-2.0
//
// model_hf.c: a Hugging Face config.json as layers: embedding, blocks, final norm, head.
//
// A config.json carries many keys that do not matter here, so unknown keys are fine; keys that change the architecture
// in ways we do not model are refused by name. What is left out takes transformers' default for the type, and is said.
#include "model/model_hf.h"

#include <string.h>

#include "model/model_formats.h"

static ps_code refuse_type(hf_reader *reader, ps_json at, const char *name, ps_status *status)
{
    int32_t count;
    const char *const *names = hf_type_names(reader->arena, &count);
    const char *nearest = ps_text_nearest(name, names, count);
    ps_text hint = {.arena = reader->arena};
    if (nearest)
        ps_text_addf(&hint, "did you mean \"%s\"? ", nearest);
    ps_text_addf(&hint, "another type is read by its keys when sizes of a decoder are among them; known: ");
    for (int32_t index = 0; index < count; index++)
        ps_text_addf(&hint, "%s%s", index > 0 ? ", " : "", names[index]);
    ps_json_fail(at, "unknown-model-type", status, "models of type \"%.64s\" are not known", name);
    return ps_fail_hint(status, "%s", hint.data);
}

// A type without a row is read by its keys when they suffice for a decoder.
static bool keys_suffice(const hf_reader *reader)
{
    bool encoder = ps_json_bool(ps_json_member(reader->root, "is_encoder_decoder"));
    return !encoder && hf_given_any(reader, hf_hidden) && hf_given_any(reader, hf_layers) &&
           hf_given_any(reader, hf_heads) && hf_given(reader, "vocab_size") &&
           (hf_given_any(reader, hf_ffn) || hf_given_any(reader, hf_expert_ffn));
}

static ps_code find_type(hf_reader *reader, ps_status *status)
{
    const char *outer = NULL;
    const char *inner = NULL;
    PS_TRY(ps_json_get_string(reader->outer, "model_type", PS_REQUIRED, &outer, status));
    PS_TRY(ps_json_get_string(reader->root, "model_type", PS_OPTIONAL, &inner, status));
    reader->type = inner ? hf_type_named(inner) : NULL;
    if (!reader->type)
        reader->type = hf_type_named(outer);
    reader->known = reader->type != NULL;
    if (reader->known) {
        reader->model->format = reader->type->format;
        return PS_OK;
    }
    const char *name = inner ? inner : outer;
    if (!keys_suffice(reader))
        return refuse_type(reader, ps_json_member(reader->outer, "model_type"), name, status);
    reader->type = &hf_unknown_type;
    reader->model->format = ps_text_format(reader->arena, "huggingface/%.64s", name);
    hf_warn(reader, ps_text_format(reader->arena,
                                   "type \"%.64s\" is not known and read by its keys: a decoder with RMS norms before "
                                   "its parts, a gated FFN, and biases only where a key gives them",
                                   name));
    return PS_OK;
}

// An encoder in front of the decoder is only where a type says so.
static ps_code check_encoder(hf_reader *reader, ps_status *status)
{
    ps_json given = ps_json_member(reader->root, "is_encoder_decoder");
    if (!ps_json_bool(given) || reader->type->build == hf_build_t5)
        return PS_OK;
    return ps_json_fail(given, "unsupported-key", status,
                        "\"is_encoder_decoder\" asks for an encoder beside the decoder, which is not supported for %s",
                        reader->type->model_type);
}

static ps_code read_keys(hf_reader *reader, ps_status *status)
{
    // At most five more layers stand around the blocks.
    PS_TRY(ps_json_get_int32(reader->root, hf_key(reader, hf_layers), PS_REQUIRED, 1, PS_MAX_LAYERS - 5,
                             &reader->num_blocks, status));
    PS_TRY(ps_json_get_int(reader->root, hf_key(reader, hf_positions), PS_OPTIONAL, 1, PS_MAX_SEQUENCE,
                           &reader->model->max_seq_length, status));
    reader->mix = ps_new(reader->arena, char, reader->num_blocks);
    reader->feed = ps_new(reader->arena, char, reader->num_blocks);
    PS_TRY(hf_read_attention(reader, status));
    if (!reader->type->no_attention)
        PS_TRY(hf_read_ffn(reader, status));
    PS_TRY(hf_read_windows(reader, status));
    PS_TRY(hf_read_mixes(reader, status));
    if (reader->type->habits)
        PS_TRY(reader->type->habits(reader, status));
    return hf_read_feeds(reader, status);
}

static bool sniff_hf(ps_json root)
{
    return ps_json_member(root, "model_type").node || ps_json_member(root, "architectures").node;
}

static ps_code load_hf(ps_arena *arena, ps_json root, ps_model *model, ps_status *status)
{
    static const char *const nested[] = {"text_config", "llm_config", "language_config"};
    hf_reader reader = {.arena = arena, .outer = root, .root = root, .model = model, .assumed.arena = arena};
    for (size_t index = 0; index < sizeof nested / sizeof nested[0]; index++) {
        ps_json inner = ps_json_member(root, nested[index]);
        if (ps_json_is(inner, PS_JSON_OBJECT))
            reader.root = inner;
    }
    PS_TRY(find_type(&reader, status));
    PS_TRY(hf_check_foreign(&reader, status));
    PS_TRY(check_encoder(&reader, status));
    PS_TRY(read_keys(&reader, status));
    PS_TRY(reader.type->build ? reader.type->build(&reader, status) : hf_build_decoder(&reader, status));
    if (reader.assumed.size > 0)
        hf_warn(&reader, ps_text_format(arena, "not in the file, so assumed: %s", reader.assumed.data));
    return PS_OK;
}

const ps_model_format ps_model_format_hf = {.name = "Hugging Face config.json", .sniff = sniff_hf, .load = load_hf};
