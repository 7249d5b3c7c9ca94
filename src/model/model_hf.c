// SPDX-License-Identifier: Apache-2.0
//
// model_hf.c: a Hugging Face config.json as layers: embedding, blocks, final norm, head.
//
// A config.json carries many keys that do not matter here, so unknown keys are fine; keys that change the architecture
// in ways we do not model are refused by name. What is left out takes transformers' default for the type, and is said.
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "model/model_formats.h"
#include "model/model_hf_types.h"
#include "model/model_params.h"
#include "pipesched/limits.h"

typedef struct hf_reader {
    ps_arena *arena;
    ps_json root;
    const hf_type *type;
    ps_text assumed;  // "num_key_value_heads 8, head_dim 128"
    ps_block decoder; // what all blocks have in common
    int64_t ffn_size; // of dense blocks; 0: not given
    int64_t window;   // of blocks that have one; 0: none do
    int64_t experts;
    int64_t experts_per_token;
    int64_t expert_ffn_size;
    int32_t num_blocks;
    bool *dense;    // [num_blocks] where an expert model has a plain FFN; NULL: nowhere
    bool *windowed; // [num_blocks] where attention slides; NULL: everywhere if `window` is given
} hf_reader;

static bool is_given(ps_json root, const char *key)
{
    ps_json member = ps_json_member(root, key);
    return member.node && !ps_json_is(member, PS_JSON_NULL);
}

static void assume(hf_reader *reader, const char *key, const char *value)
{
    ps_text_addf(&reader->assumed, "%s%s %s", reader->assumed.size > 0 ? ", " : "", key, value);
}

static void assume_count(hf_reader *reader, const char *key, int64_t value)
{
    assume(reader, key, ps_text_format(reader->arena, "%lld", (long long)value));
}

// A count that takes `fallback`, and says so, when left out; a negative fallback makes the key required.
static ps_code get_count(hf_reader *reader, const char *key, int64_t fallback, int64_t *out, ps_status *status)
{
    ps_need need = fallback < 0 ? PS_REQUIRED : PS_OPTIONAL;
    *out = fallback;
    PS_TRY(ps_json_get_int(reader->root, key, need, 1, PS_MAX_DIMENSION, out, status));
    if (need == PS_OPTIONAL && !is_given(reader->root, key))
        assume_count(reader, key, fallback);
    return PS_OK;
}

static bool matters(ps_json value)
{
    switch (ps_json_type_of(value)) {
    case PS_JSON_NULL: return false;
    case PS_JSON_BOOL: return ps_json_bool(value);
    case PS_JSON_NUMBER: return ps_json_number(value) != 0;
    case PS_JSON_STRING: return ps_json_text(value)[0] != '\0';
    case PS_JSON_ARRAY:
    case PS_JSON_OBJECT: return ps_json_count(value) > 0;
    }
    return true;
}

static void warn(hf_reader *reader, ps_model *model, const char *sentence)
{
    // One for each foreign key and one for assumptions at most.
    if (!model->warning)
        model->warning = ps_new(reader->arena, const char *, hf_num_foreign_keys + 1);
    model->warning[model->num_warnings++] = sentence;
}

static ps_code check_foreign_keys(hf_reader *reader, ps_model *model, ps_status *status)
{
    for (int32_t row = 0; row < hf_num_foreign_keys; row++) {
        const hf_foreign_key *foreign = &hf_foreign_keys[row];
        ps_json value = ps_json_member(reader->root, foreign->key);
        if (!value.node || !matters(value))
            continue;
        if (foreign->refused)
            return ps_json_fail(value, "unsupported-key", status, "\"%s\" asks for %s, which is not supported for %s",
                                foreign->key, foreign->meaning, reader->type->model_type);
        warn(reader, model, ps_text_format(reader->arena, "%s is ignored: %s", foreign->key, foreign->meaning));
    }
    return PS_OK;
}

static ps_code find_type(hf_reader *reader, ps_status *status)
{
    const char *name = NULL;
    PS_TRY(ps_json_get_string(reader->root, "model_type", PS_REQUIRED, &name, status));
    reader->type = hf_type_named(name);
    if (reader->type)
        return PS_OK;

    int32_t count;
    const char *const *names = hf_type_names(reader->arena, &count);
    const char *nearest = ps_text_nearest(name, names, count);
    ps_text hint = {.arena = reader->arena};
    if (nearest)
        ps_text_addf(&hint, "did you mean \"%s\"? ", nearest);
    ps_text_addf(&hint, "supported: ");
    for (int32_t index = 0; index < count; index++)
        ps_text_addf(&hint, "%s%s", index > 0 ? ", " : "", names[index]);
    ps_json_fail(ps_json_member(reader->root, "model_type"), "unknown-model-type", status,
                 "models of type \"%.64s\" are not supported", name);
    return ps_fail_hint(status, "%s", hint.data);
}

static ps_code get_bias(hf_reader *reader, hf_bias rule, const char *key, bool *out, ps_status *status)
{
    *out = rule == HF_BIAS_ALWAYS;
    return rule == HF_BIAS_BY_KEY ? ps_json_get_bool(reader->root, key, PS_OPTIONAL, out, status) : PS_OK;
}

// Any rate above 0 keeps masks.
static ps_code get_dropout(hf_reader *reader, const char *key, bool *out, ps_status *status)
{
    double rate = reader->type->default_dropout;
    PS_TRY(ps_json_get_double(reader->root, key, PS_OPTIONAL, 0, 1, &rate, status));
    *out = *out || rate > 0;
    return PS_OK;
}

static ps_code read_attention(hf_reader *reader, ps_status *status)
{
    const hf_type *type = reader->type;
    ps_block *block = &reader->decoder;
    PS_TRY(get_count(reader, type->hidden_key, -1, &block->hidden_size, status));
    PS_TRY(get_count(reader, type->heads_key, -1, &block->attention_heads, status));

    // gpt2 knows neither key: its heads are all alike.
    block->kv_heads = block->attention_heads;
    block->head_dim = block->hidden_size / block->attention_heads;
    if (!type->learned_positions) {
        // null asks for one key-value head per attention head; only an absent key takes the type's default.
        if (!ps_json_is(ps_json_member(reader->root, "num_key_value_heads"), PS_JSON_NULL))
            PS_TRY(get_count(reader, "num_key_value_heads",
                             type->default_kv_heads > 0 ? type->default_kv_heads : block->attention_heads,
                             &block->kv_heads, status));
        if (type->default_head_dim > 0)
            PS_TRY(get_count(reader, "head_dim", type->default_head_dim, &block->head_dim, status));
        else
            PS_TRY(
                ps_json_get_int(reader->root, "head_dim", PS_OPTIONAL, 1, PS_MAX_DIMENSION, &block->head_dim, status));
    }
    if (block->head_dim == 0 || (!is_given(reader->root, "head_dim") && type->default_head_dim == 0 &&
                                 block->hidden_size % block->attention_heads != 0)) {
        ps_json_fail(ps_json_member(reader->root, type->heads_key), "heads-divide", status,
                     "%lld attention heads do not divide the hidden size %lld", (long long)block->attention_heads,
                     (long long)block->hidden_size);
        return ps_fail_hint(status, "change %s, or give head_dim where heads are of another size", type->heads_key);
    }
    block->norm = type->norm;
    block->gated_ffn = type->gated_ffn;
    block->qk_norm = type->qk_norm;
    PS_TRY(get_bias(reader, type->qkv_bias, "attention_bias", &block->qkv_bias, status));
    PS_TRY(get_bias(reader, type->output_bias, "attention_bias", &block->output_bias, status));
    PS_TRY(get_bias(reader, type->ffn_bias, "mlp_bias", &block->ffn_bias, status));
    for (const char *const *key = type->dropout_keys; *key; key++)
        PS_TRY(get_dropout(reader, *key, &block->dropout, status));
    return PS_OK;
}

static ps_code read_ffn(hf_reader *reader, ps_status *status)
{
    const hf_type *type = reader->type;
    if (type->experts_key) {
        PS_TRY(get_count(reader, type->experts_key, type->default_experts, &reader->experts, status));
        PS_TRY(get_count(reader, "num_experts_per_tok", type->default_experts_per_token, &reader->experts_per_token,
                         status));
        PS_TRY(get_count(reader, type->expert_ffn_key, -1, &reader->expert_ffn_size, status));
        return ps_json_get_int(reader->root, type->ffn_key, PS_OPTIONAL, 1, PS_MAX_DIMENSION, &reader->ffn_size,
                               status);
    }
    if (type->default_ffn < 0)
        return get_count(reader, type->ffn_key, -1, &reader->ffn_size, status);
    reader->ffn_size = 4 * reader->decoder.hidden_size;
    return ps_json_get_int(reader->root, type->ffn_key, PS_OPTIONAL, 1, PS_MAX_DIMENSION, &reader->ffn_size, status);
}

// An element of an array: a whole number in [0, below).
static ps_code get_index(ps_json element, int32_t below, int32_t *out, ps_status *status)
{
    PS_TRY(ps_json_expect(element, PS_JSON_NUMBER, status));
    double number = ps_json_number(element);
    if (!(number >= 0 && number < below) || number != (double)(int32_t)number)
        return ps_json_fail(element, "out-of-range", status, "expected a block from 0 to %d", (int)below - 1);
    *out = (int32_t)number;
    return PS_OK;
}

// qwen3_moe: a block is dense when mlp_only_layers names it or decoder_sparse_step passes over it.
static ps_code read_dense_blocks(hf_reader *reader, ps_status *status)
{
    if (!reader->type->some_dense)
        return PS_OK;
    int32_t step = 1;
    PS_TRY(ps_json_get_int32(reader->root, "decoder_sparse_step", PS_OPTIONAL, 1, PS_MAX_LAYERS, &step, status));
    reader->dense = ps_new(reader->arena, bool, reader->num_blocks);
    for (int32_t block = 0; block < reader->num_blocks; block++)
        reader->dense[block] = (block + 1) % step != 0;

    ps_json listed = ps_json_member(reader->root, "mlp_only_layers");
    if (is_given(reader->root, "mlp_only_layers"))
        PS_TRY(ps_json_expect(listed, PS_JSON_ARRAY, status));
    for (ps_json element = ps_json_first(listed); element.node; element = ps_json_next(element)) {
        int32_t block = 0;
        PS_TRY(get_index(element, reader->num_blocks, &block, status));
        reader->dense[block] = true;
    }
    for (int32_t block = 0; block < reader->num_blocks; block++)
        if (reader->dense[block] && reader->ffn_size == 0)
            return ps_json_fail(reader->root, "missing-key", status, "block %d is dense, so \"%s\" must be given",
                                (int)block, reader->type->ffn_key);
    return PS_OK;
}

// layer_types names every block's attention and overrides the other switches.
static ps_code read_layer_types(hf_reader *reader, ps_status *status)
{
    ps_json listed = ps_json_member(reader->root, "layer_types");
    PS_TRY(ps_json_expect(listed, PS_JSON_ARRAY, status));
    if (ps_json_count(listed) != reader->num_blocks)
        return ps_json_fail(listed, "layer-types", status, "expected one entry for each of the %d blocks, got %lld",
                            (int)reader->num_blocks, (long long)ps_json_count(listed));
    int32_t block = 0;
    for (ps_json element = ps_json_first(listed); element.node; element = ps_json_next(element), block++) {
        const char *kind = ps_json_text(element);
        reader->windowed[block] = strcmp(kind, "sliding_attention") == 0;
        if (reader->windowed[block] && reader->window == 0)
            return ps_json_fail(element, "missing-key", status, "sliding attention needs \"sliding_window\"");
        if (!reader->windowed[block] && strcmp(kind, "full_attention") != 0)
            return ps_json_fail(element, "unsupported-key", status,
                                "expected \"full_attention\" or \"sliding_attention\"");
    }
    return PS_OK;
}

static ps_code read_windows(hf_reader *reader, ps_status *status)
{
    ps_json window = ps_json_member(reader->root, "sliding_window");
    bool listed = is_given(reader->root, "layer_types");
    bool in_use = !reader->type->window_by_switch;
    PS_TRY(ps_json_get_bool(reader->root, "use_sliding_window", PS_OPTIONAL, &in_use, status));
    if (reader->type->learned_positions || (!in_use && !listed))
        return PS_OK;
    if (!window.node && reader->type->default_window > 0) {
        reader->window = reader->type->default_window;
        assume_count(reader, "sliding_window", reader->window);
    }
    PS_TRY(ps_json_get_int(reader->root, "sliding_window", PS_OPTIONAL, 1, PS_MAX_SEQUENCE, &reader->window, status));

    if (!listed && (!reader->type->window_by_switch || reader->window == 0))
        return PS_OK;
    reader->windowed = ps_new(reader->arena, bool, reader->num_blocks);
    if (listed)
        return read_layer_types(reader, status);
    int32_t full = 28; // transformers' default for max_window_layers
    PS_TRY(ps_json_get_int32(reader->root, "max_window_layers", PS_OPTIONAL, 0, PS_MAX_LAYERS, &full, status));
    for (int32_t block = full; block < reader->num_blocks; block++)
        reader->windowed[block] = true;
    return PS_OK;
}

// The key behind a rule that an architecture broke.
static ps_code place_fault(const hf_reader *reader, ps_status *status)
{
    const char *key = NULL;
    if (strcmp(status->rule, "heads-divide") == 0)
        key = "num_key_value_heads";
    else if (strcmp(status->rule, "experts-per-token") == 0)
        key = "num_experts_per_tok";
    ps_json at = key ? ps_json_member(reader->root, key) : reader->root;
    return ps_json_fail_place(at.node ? at : reader->root, status); // a default may be at fault
}

// Blocks share their architecture: at most one of each combination is made.
static ps_code add_blocks(hf_reader *reader, ps_model *model, ps_status *status)
{
    ps_layer made[2][2] = {0};
    for (int32_t index = 0; index < reader->num_blocks; index++) {
        bool experts = reader->experts > 0 && !(reader->dense && reader->dense[index]);
        bool window = reader->window > 0 && (!reader->windowed || reader->windowed[index]);
        ps_layer *pattern = &made[experts][window];
        if (!pattern->block) {
            ps_block *block = ps_new(reader->arena, ps_block, 1);
            *block = reader->decoder;
            block->sliding_window = window ? reader->window : 0;
            block->ffn_size = experts ? 0 : reader->ffn_size;
            block->experts = experts ? reader->experts : 0;
            block->experts_per_token = experts ? reader->experts_per_token : 0;
            block->expert_ffn_size = experts ? reader->expert_ffn_size : 0;
            // Measurements are keyed by the base name, so the two kinds of a mixed model need one each.
            const char *base_name = reader->experts > 0 && !experts ? "dense_block" : "block";
            *pattern = ps_layer_named("block", base_name, PS_LAYER_DECODER, experts ? "moe-decoder" : "decoder");
            if (ps_layer_set_block(pattern, block, status) != PS_OK)
                return place_fault(reader, status);
        }
        ps_layer *layer = &model->layer[model->num_layers++];
        *layer = *pattern;
        layer->name = ps_text_format(reader->arena, "block.%d", (int)index);
    }
    return PS_OK;
}

static ps_code add_single(hf_reader *reader, ps_model *model, ps_layer layer, ps_block figures, ps_status *status)
{
    ps_block *block = ps_new(reader->arena, ps_block, 1);
    *block = figures;
    if (ps_layer_set_block(&layer, block, status) != PS_OK)
        return place_fault(reader, status);
    model->layer[model->num_layers++] = layer;
    return PS_OK;
}

static ps_code add_layers(hf_reader *reader, ps_model *model, ps_status *status)
{
    const hf_type *type = reader->type;
    int64_t vocabulary;
    bool tied = type->tied;
    PS_TRY(get_count(reader, "vocab_size", -1, &vocabulary, status));
    PS_TRY(ps_json_get_bool(reader->root, "tie_word_embeddings", PS_OPTIONAL, &tied, status));
    if (!is_given(reader->root, "tie_word_embeddings"))
        assume(reader, "tie_word_embeddings", tied ? "true" : "false");

    ps_block plain = {.hidden_size = reader->decoder.hidden_size, .norm = type->norm};
    ps_block embedding = plain;
    embedding.vocab_size = vocabulary;
    if (type->learned_positions) {
        PS_TRY(get_count(reader, type->positions_key, -1, &embedding.learned_positions, status));
        PS_TRY(get_dropout(reader, "embd_pdrop", &embedding.dropout, status));
    }
    ps_block head = plain;
    head.vocab_size = vocabulary;

    model->layer = ps_new(reader->arena, ps_layer, (int64_t)reader->num_blocks + 3);
    PS_TRY(add_single(reader, model, ps_layer_named("embedding", "embedding", PS_LAYER_EMBEDDING, "embedding"),
                      embedding, status));
    PS_TRY(add_blocks(reader, model, status));
    PS_TRY(add_single(reader, model, ps_layer_named("final_norm", "final_norm", PS_LAYER_NORM, "norm"), plain, status));
    PS_TRY(add_single(reader, model, ps_layer_named("head", "head", PS_LAYER_HEAD, "head"), head, status));
    if (tied)
        ps_layer_tie(&model->layer[model->num_layers - 1], 0);
    return PS_OK;
}

static bool sniff_hf(ps_json root)
{
    return ps_json_member(root, "model_type").node || ps_json_member(root, "architectures").node;
}

static ps_code load_hf(ps_arena *arena, ps_json root, ps_model *model, ps_status *status)
{
    hf_reader reader = {.arena = arena, .root = root, .assumed.arena = arena};
    PS_TRY(find_type(&reader, status));
    model->format = reader.type->format;
    PS_TRY(check_foreign_keys(&reader, model, status));
    // Three more layers stand around the blocks.
    PS_TRY(ps_json_get_int32(root, reader.type->layers_key, PS_REQUIRED, 1, PS_MAX_LAYERS - 3, &reader.num_blocks,
                             status));
    PS_TRY(ps_json_get_int(root, reader.type->positions_key, PS_OPTIONAL, 1, PS_MAX_SEQUENCE, &model->max_seq_length,
                           status));
    PS_TRY(read_attention(&reader, status));
    PS_TRY(read_ffn(&reader, status));
    PS_TRY(read_dense_blocks(&reader, status));
    PS_TRY(read_windows(&reader, status));
    PS_TRY(add_layers(&reader, model, status));
    if (reader.assumed.size > 0)
        warn(&reader, model, ps_text_format(arena, "not in the file, so assumed: %s", reader.assumed.data));
    return PS_OK;
}

const ps_model_format ps_model_format_hf = {.name = "Hugging Face config.json", .sniff = sniff_hf, .load = load_hf};
