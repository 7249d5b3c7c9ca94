// SPDX-License-Identifier: Apache-2.0
//
// model_hf_attention.c: heads, latents, biases, windows and dropout of a config.json's blocks.
#include <string.h>

#include "model/model_hf.h"

static const char *const dropout_keys[] = {"attention_dropout",
                                           "attn_pdrop",
                                           "resid_pdrop",
                                           "hidden_dropout",
                                           "hidden_dropout_prob",
                                           "attention_probs_dropout_prob",
                                           "dropout",
                                           "dropout_rate",
                                           "resid_dropout",
                                           NULL};

static ps_code get_bias(hf_reader *reader, hf_bias rule, const char *key, bool *out, ps_status *status)
{
    *out = rule == HF_BIAS_ALWAYS;
    return rule == HF_BIAS_BY_KEY ? hf_switch(reader, key, out, status) : PS_OK;
}

// Any rate above 0 keeps masks.
static ps_code read_dropout(hf_reader *reader, ps_status *status)
{
    bool given = false;
    for (const char *const *key = dropout_keys; *key; key++) {
        double rate = 0;
        PS_TRY(ps_json_get_double(reader->root, *key, PS_OPTIONAL, 0, 1, &rate, status));
        given = given || hf_given(reader, *key);
        reader->common.dropout = reader->common.dropout || rate > 0;
    }
    if (!given)
        reader->common.dropout = reader->type->default_dropout > 0;
    return PS_OK;
}

// What is called head_dim, d_kv or attention_head_dim.
static ps_code read_head_size(hf_reader *reader, ps_status *status)
{
    static const char *const names[] = {"head_dim", "d_kv", "attention_head_dim", "kv_channels", NULL};
    ps_block *block = &reader->common;
    int64_t divided = block->hidden_size / block->attention_heads;
    int64_t usual = reader->type->default_head_dim;

    block->head_dim = divided;
    if (usual > 0 || hf_given_any(reader, names))
        return hf_count(reader, names, usual > 0 ? usual : divided, &block->head_dim, status);
    if (block->kv_lora_rank > 0 || (divided > 0 && block->hidden_size % block->attention_heads == 0))
        return PS_OK;
    ps_json_fail(hf_place(reader, hf_key(reader, hf_heads)), "heads-divide", status,
                 "%lld attention heads do not divide the hidden size %lld", (long long)block->attention_heads,
                 (long long)block->hidden_size);
    return ps_fail_hint(status, "change %s, or give head_dim where heads are of another size",
                        hf_key(reader, hf_heads));
}

// null asks for one key-value head per attention head; only an absent key takes the type's default.
static ps_code read_kv_heads(hf_reader *reader, ps_status *status)
{
    const char *key = hf_key(reader, hf_kv_heads);
    ps_block *block = &reader->common;

    block->kv_heads = block->attention_heads;
    if (reader->type->same_heads || ps_json_is(ps_json_member(reader->root, key), PS_JSON_NULL))
        return PS_OK;
    int64_t usual = reader->type->default_kv_heads;
    return hf_count_of(reader, key, usual > 0 ? usual : block->attention_heads, &block->kv_heads, status);
}

// DeepSeek-V2 (2024), section 2.1.
static ps_code read_latents(hf_reader *reader, ps_status *status)
{
    ps_block *block = &reader->common;

    PS_TRY(hf_optional(reader, "kv_lora_rank", &block->kv_lora_rank, status));
    if (block->kv_lora_rank == 0)
        return PS_OK;
    PS_TRY(hf_optional(reader, "q_lora_rank", &block->q_lora_rank, status));
    PS_TRY(hf_count_of(reader, "qk_nope_head_dim", -1, &block->head_dim, status));
    PS_TRY(hf_count_of(reader, "qk_rope_head_dim", -1, &block->rope_head_dim, status));
    PS_TRY(hf_count_of(reader, "v_head_dim", -1, &block->value_head_dim, status));
    block->kv_heads = block->attention_heads;
    block->qkv_bias = false;
    block->qk_norm = false;
    return PS_OK;
}

ps_code hf_read_attention(hf_reader *reader, ps_status *status)
{
    const hf_type *type = reader->type;
    ps_block *block = &reader->common;

    PS_TRY(hf_count(reader, hf_hidden, -1, &block->hidden_size, status));
    block->norm = type->norm;
    block->norms = type->norms;
    block->gated_ffn = !type->plain_ffn;
    block->parallel = type->parallel;
    PS_TRY(get_bias(reader, type->ffn_bias, "mlp_bias", &block->ffn_bias, status));
    PS_TRY(read_dropout(reader, status));
    if (type->no_attention)
        return PS_OK;
    PS_TRY(hf_count(reader, hf_heads, type->default_heads > 0 ? type->default_heads : -1, &block->attention_heads,
                    status));
    PS_TRY(read_kv_heads(reader, status));
    PS_TRY(hf_optional(reader, "kv_lora_rank", &block->kv_lora_rank, status));
    PS_TRY(read_head_size(reader, status));
    PS_TRY(get_bias(reader, type->qkv_bias, "attention_bias", &block->qkv_bias, status));
    PS_TRY(get_bias(reader, type->output_bias, "attention_bias", &block->output_bias, status));
    block->qk_norm = type->qk_norm;
    if (!reader->known)
        PS_TRY(hf_switch(reader, "use_qk_norm", &block->qk_norm, status));
    block->attention_sinks = type->sinks;
    block->attention_gate = type->attention_gate;
    PS_TRY(hf_switch(reader, "attn_output_gate", &block->attention_gate, status));
    block->bidirectional = type->bidirectional;
    return read_latents(reader, status);
}

// layer_types names what mixes the tokens of every block, and overrides the other switches.
static ps_code read_layer_types(hf_reader *reader, ps_json listed, ps_status *status)
{
    static const struct {
        const char *name;
        hf_mix mix;
    } mixes[] = {{"full_attention", HF_MIX_ATTENTION},
                 {"attention", HF_MIX_ATTENTION},
                 {"sliding_attention", HF_MIX_WINDOW},
                 {"chunked_attention", HF_MIX_WINDOW},
                 {"local", HF_MIX_WINDOW},
                 {"global", HF_MIX_ATTENTION},
                 {"linear_attention", HF_MIX_LINEAR},
                 {"mamba", HF_MIX_MAMBA},
                 {"moe", HF_MIX_NONE},
                 {"mlp", HF_MIX_NONE}};
    PS_TRY(ps_json_expect(listed, PS_JSON_ARRAY, status));
    if (ps_json_count(listed) != reader->num_blocks)
        return ps_json_fail(listed, "layer-types", status, "expected one entry for each of the %d blocks, got %lld",
                            (int)reader->num_blocks, (long long)ps_json_count(listed));
    int32_t block = 0;
    for (ps_json element = ps_json_first(listed); element.node; element = ps_json_next(element), block++) {
        const char *kind = ps_json_text(element);
        size_t row = 0;
        while (row < sizeof mixes / sizeof mixes[0] && strcmp(mixes[row].name, kind) != 0)
            row++;
        if (row == sizeof mixes / sizeof mixes[0])
            return ps_json_fail(element, "unsupported-key", status,
                                "expected \"full_attention\", \"sliding_attention\" or another kind that is known");
        reader->mix[block] = (char)mixes[row].mix;
        if (mixes[row].mix == HF_MIX_WINDOW && reader->window == 0)
            return ps_json_fail(element, "missing-key", status, "sliding attention needs \"sliding_window\"");
    }
    return PS_OK;
}

static ps_code read_window_size(hf_reader *reader, bool in_use, ps_status *status)
{
    static const char *const names[] = {"sliding_window", "attention_chunk_size", "window_size", NULL};
    const char *key = hf_key(reader, names);

    if (!in_use)
        return PS_OK;
    if (!ps_json_member(reader->root, key).node && reader->type->default_window > 0) {
        reader->window = reader->type->default_window;
        hf_assume_count(reader, "sliding_window", reader->window);
    }
    return ps_json_get_int(reader->root, key, PS_OPTIONAL, 1, PS_MAX_SEQUENCE, &reader->window, status);
}

ps_code hf_read_windows(hf_reader *reader, ps_status *status)
{
    const hf_type *type = reader->type;
    const char *list = hf_given(reader, "layers_block_type") ? "layers_block_type" : "layer_types";
    bool listed = hf_given(reader, list);
    bool in_use = !type->window_by_switch;
    int64_t pattern = type->window_pattern;
    int32_t full = 28; // transformers' default for max_window_layers

    if (type->no_attention || type->learned_positions)
        return PS_OK;
    PS_TRY(hf_switch(reader, "use_sliding_window", &in_use, status));
    PS_TRY(read_window_size(reader, in_use || listed, status));
    if (listed)
        return read_layer_types(reader, ps_json_member(reader->root, list), status);
    if (reader->window == 0)
        return PS_OK;
    PS_TRY(hf_optional(reader, "sliding_window_pattern", &pattern, status));
    PS_TRY(ps_json_get_int32(reader->root, "max_window_layers", PS_OPTIONAL, 0, PS_MAX_LAYERS, &full, status));
    for (int32_t block = 0; block < reader->num_blocks; block++) {
        bool slides = pattern == 0 || (block + 1) % pattern != 0;
        if (slides && (!type->window_by_switch || block >= full))
            reader->mix[block] = HF_MIX_WINDOW;
    }
    return PS_OK;
}
