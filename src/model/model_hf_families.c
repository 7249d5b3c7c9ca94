// SPDX-License-Identifier: Apache-2.0
//
// model_hf_families.c: what single families do besides their keys.
#include <string.h>

#include "base/number.h"
#include "model/model_hf.h"

// The two architectures that share one type (Almazrouei et al. 2023).
ps_code hf_falcon_habits(hf_reader *reader, ps_status *status)
{
    ps_block *block = &reader->common;
    bool grouped = false;
    bool one_key = true;
    bool parallel = true;
    bool bias = false;
    int64_t norms = 2;

    PS_TRY(hf_switch(reader, "new_decoder_architecture", &grouped, status));
    PS_TRY(hf_switch(reader, "multi_query", &one_key, status));
    PS_TRY(hf_switch(reader, "parallel_attn", &parallel, status));
    PS_TRY(hf_switch(reader, "bias", &bias, status));
    PS_TRY(hf_optional(reader, "num_ln_in_parallel_attn", &norms, status));
    block->kv_heads = one_key ? 1 : block->attention_heads;
    if (grouped) {
        block->kv_heads = block->attention_heads;
        PS_TRY(hf_optional(reader, hf_key(reader, hf_kv_heads), &block->kv_heads, status));
    }
    block->parallel = grouped || parallel;
    block->norms = grouped ? (norms == 2 ? 2 : 1) : parallel ? 1 : 2;
    block->qkv_bias = bias;
    block->output_bias = bias;
    block->ffn_bias = bias;
    return PS_OK;
}

ps_code hf_neox_habits(hf_reader *reader, ps_status *status)
{
    bool bias = true;
    reader->common.parallel = true;
    PS_TRY(hf_switch(reader, "use_parallel_residual", &reader->common.parallel, status));
    PS_TRY(hf_switch(reader, "attention_bias", &bias, status));
    reader->common.qkv_bias = bias;
    reader->common.output_bias = bias;
    return PS_OK;
}

// Embeddings narrower than the blocks pass a matrix in and one out (350m); the table is then so much smaller.
ps_code hf_opt_habits(hf_reader *reader, ps_status *status)
{
    int64_t hidden = reader->common.hidden_size;
    int64_t width = hidden;
    PS_TRY(hf_optional(reader, "word_embed_proj_dim", &width, status));
    if (width != hidden)
        return ps_json_fail(hf_place(reader, "word_embed_proj_dim"), "unsupported-key", status,
                            "embeddings of another width than the blocks' are not supported");
    return PS_OK;
}

ps_code hf_bloom_habits(hf_reader *reader, ps_status *status)
{
    (void)status;
    reader->embedding_extra = 2 * reader->common.hidden_size; // a LayerNorm behind the embedding
    return PS_OK;
}

ps_code hf_head_bias_habits(hf_reader *reader, ps_status *status)
{
    return hf_count_of(reader, "vocab_size", reader->type->default_vocab > 0 ? reader->type->default_vocab : -1,
                       &reader->head_extra, status);
}

ps_code hf_bert_habits(hf_reader *reader, ps_status *status)
{
    int64_t types = 2;
    PS_TRY(hf_optional(reader, "type_vocab_size", &types, status));
    reader->embedding_extra = (types + 2) * reader->common.hidden_size; // token types, and a LayerNorm
    return PS_OK;
}

// One shared expert as wide as the routed ones; a dense block has a width of its own.
ps_code hf_llama4_habits(hf_reader *reader, ps_status *status)
{
    if (reader->experts == 0)
        return PS_OK;
    reader->shared_ffn = 0;
    PS_TRY(hf_count_of(reader, "intermediate_size", -1, &reader->expert_ffn, status));
    reader->shared_ffn = reader->expert_ffn;
    return PS_OK;
}

// A dense FFN beside the experts, with norms of its own.
ps_code hf_gemma4_habits(hf_reader *reader, ps_status *status)
{
    bool mixture = false;
    PS_TRY(hf_switch(reader, "enable_moe_block", &mixture, status));
    if (!mixture)
        reader->experts = 0;
    if (reader->experts > 0) {
        reader->shared_ffn = reader->dense_ffn;
        reader->common.norms = 7;
        // Scales of the router, of its input's width and one an expert.
        reader->common.extra_parameters = reader->common.hidden_size + reader->experts;
    }
    hf_warn(reader, "the layout of gemma4 follows its keys; its parameters are approximate");
    return PS_OK;
}

ps_code hf_gemma4_shape(hf_reader *reader, int32_t index, ps_block *block, ps_status *status)
{
    if (reader->mix[index] != HF_MIX_ATTENTION)
        return PS_OK;
    PS_TRY(hf_optional(reader, "global_head_dim", &block->head_dim, status));
    PS_TRY(hf_optional(reader, "num_global_key_value_heads", &block->kv_heads, status));
    return hf_switch(reader, "attention_k_eq_v", &block->keys_as_values, status);
}

// Blocks that a search left in part: block_configs has an entry for each (Bercovich et al. 2024).
ps_code hf_nas_habits(hf_reader *reader, ps_status *status)
{
    ps_json list = ps_json_member(reader->root, "block_configs");
    if (!list.node)
        return ps_json_fail(reader->root, "missing-key", status, "\"block_configs\" is missing");
    PS_TRY(ps_json_expect(list, PS_JSON_ARRAY, status));
    if (ps_json_count(list) != reader->num_blocks)
        return ps_json_fail(list, "layer-types", status, "expected one entry for each of the %d blocks, got %lld",
                            (int)reader->num_blocks, (long long)ps_json_count(list));
    reader->next_block = ps_json_first(list);
    memset(reader->feed, HF_FEED_NONE, (size_t)reader->num_blocks);
    return PS_OK;
}

// 2/3 of the multiple of the hidden size, up to the next 256.
static ps_code nas_ffn(const hf_reader *reader, ps_json ffn, ps_block *block, ps_status *status)
{
    double multiple = 0;
    bool linear = false;
    PS_TRY(ps_json_get_bool(ffn, "replace_with_linear", PS_OPTIONAL, &linear, status));
    if (linear) {
        block->linear_maps++;
        return PS_OK;
    }
    PS_TRY(ps_json_get_double(ffn, "ffn_mult", PS_REQUIRED, 0, 1024, &multiple, status));
    int64_t width = (int64_t)(2 * multiple * (double)reader->common.hidden_size / 3);
    block->ffn_size = ps_ceil_div(width, 256) * 256;
    if (block->ffn_size < 1 || block->ffn_size > PS_MAX_DIMENSION)
        return ps_json_fail(ffn, "out-of-range", status, "the FFN would be %lld wide", (long long)block->ffn_size);
    return PS_OK;
}

static ps_code nas_attention(ps_json attention, ps_block *block, ps_status *status)
{
    int64_t group = 1;
    bool linear = false;
    PS_TRY(ps_json_get_bool(attention, "replace_with_linear", PS_OPTIONAL, &linear, status));
    PS_TRY(ps_json_get_int(attention, "n_heads_in_group", linear ? PS_OPTIONAL : PS_REQUIRED, 1, PS_MAX_DIMENSION,
                           &group, status));
    if (!linear) {
        PS_TRY(ps_json_get_int(attention, "window_length", PS_OPTIONAL, 1, PS_MAX_SEQUENCE, &block->sliding_window,
                               status));
        if (block->attention_heads % group != 0)
            return ps_json_fail(attention, "heads-divide", status, "%lld heads a group do not divide %lld heads",
                                (long long)group, (long long)block->attention_heads);
        block->kv_heads = block->attention_heads / group;
        return PS_OK;
    }
    block->attention_heads = 0;
    block->linear_maps++;
    return PS_OK;
}

ps_code hf_nas_shape(hf_reader *reader, int32_t index, ps_block *block, ps_status *status)
{
    (void)index;
    ps_json entry = reader->next_block;
    ps_json attention = ps_json_member(entry, "attention");
    ps_json ffn = ps_json_member(entry, "ffn");
    bool no_attention = false;
    bool no_ffn = false;

    reader->next_block = ps_json_next(entry);
    PS_TRY(ps_json_expect(entry, PS_JSON_OBJECT, status));
    if (!attention.node || !ffn.node)
        return ps_json_fail(entry, "missing-key", status, "\"attention\" and \"ffn\" are needed");
    PS_TRY(ps_json_get_bool(attention, "no_op", PS_OPTIONAL, &no_attention, status));
    PS_TRY(ps_json_get_bool(ffn, "no_op", PS_OPTIONAL, &no_ffn, status));
    if (no_attention)
        block->attention_heads = 0;
    else
        PS_TRY(nas_attention(attention, block, status));
    if (!no_ffn)
        PS_TRY(nas_ffn(reader, ffn, block, status));
    if (block->attention_heads == 0) {
        block->kv_heads = 0;
        block->head_dim = 0;
        block->qkv_bias = false;
        block->output_bias = false;
    }
    block->norms = (no_attention ? 0 : 1) + (no_ffn ? 0 : 1);
    return PS_OK;
}
