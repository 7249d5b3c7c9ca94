// SPDX-License-Identifier: Apache-2.0
//
// model_hf_types.c: the table of Hugging Face model types. A type that differs only in figures is one more row.
//
// Sources: the configuration and modeling files of transformers 4.51 for each type.
#include "model/model_hf_types.h"

#include <string.h>

static const char *const attention_dropout[] = {"attention_dropout", NULL};
static const char *const gpt2_dropout[] = {"attn_pdrop", "resid_pdrop", NULL};

// Keys and habits that llama and its descendants share.
#define LLAMA_LIKE(type)                                                                                               \
    .model_type = (type), .format = "huggingface/" type, .hidden_key = "hidden_size",                                  \
    .layers_key = "num_hidden_layers", .heads_key = "num_attention_heads", .ffn_key = "intermediate_size",             \
    .positions_key = "max_position_embeddings", .default_ffn = -1, .gated_ffn = true, .norm = PS_NORM_RMS,             \
    .dropout_keys = attention_dropout

static const hf_type types[] = {
    {LLAMA_LIKE("llama"), .qkv_bias = HF_BIAS_BY_KEY, .output_bias = HF_BIAS_BY_KEY, .ffn_bias = HF_BIAS_BY_KEY},
    {LLAMA_LIKE("mistral"), .default_kv_heads = 8, .default_window = 4096},
    {LLAMA_LIKE("qwen2"), .default_kv_heads = 32, .default_window = 4096, .qkv_bias = HF_BIAS_ALWAYS,
     .window_by_switch = true},
    {LLAMA_LIKE("qwen3"), .default_kv_heads = 32, .default_head_dim = 128, .default_window = 4096, .qk_norm = true,
     .qkv_bias = HF_BIAS_BY_KEY, .output_bias = HF_BIAS_BY_KEY, .window_by_switch = true},
    {LLAMA_LIKE("mixtral"), .experts_key = "num_local_experts", .expert_ffn_key = "intermediate_size",
     .default_kv_heads = 8, .default_experts = 8, .default_experts_per_token = 2},
    {LLAMA_LIKE("qwen3_moe"), .experts_key = "num_experts", .expert_ffn_key = "moe_intermediate_size",
     .default_kv_heads = 4, .default_window = 4096, .default_experts = 128, .default_experts_per_token = 8,
     .qk_norm = true, .qkv_bias = HF_BIAS_BY_KEY, .output_bias = HF_BIAS_BY_KEY, .some_dense = true,
     .window_by_switch = true},
    {.model_type = "gpt2",
     .format = "huggingface/gpt2",
     .hidden_key = "n_embd",
     .layers_key = "n_layer",
     .heads_key = "n_head",
     .ffn_key = "n_inner",
     .positions_key = "n_positions",
     .learned_positions = true,
     .tied = true,
     .qkv_bias = HF_BIAS_ALWAYS,
     .output_bias = HF_BIAS_ALWAYS,
     .ffn_bias = HF_BIAS_ALWAYS,
     .norm = PS_NORM_LAYER,
     .dropout_keys = gpt2_dropout,
     .default_dropout = 0.1},
};
enum { TYPES = sizeof types / sizeof types[0] };

const hf_type *hf_type_named(const char *model_type)
{
    for (int32_t row = 0; row < TYPES; row++)
        if (strcmp(types[row].model_type, model_type) == 0)
            return &types[row];
    return NULL;
}

const char *const *hf_type_names(ps_arena *arena, int32_t *count)
{
    const char **names = ps_new(arena, const char *, TYPES);
    for (int32_t row = 0; row < TYPES; row++)
        names[row] = types[row].model_type;
    *count = TYPES;
    return names;
}

const hf_foreign_key hf_foreign_keys[] = {
    {"text_config", true, "a model within a model"},
    {"vision_config", true, "an image encoder"},
    {"audio_config", true, "an audio encoder"},
    {"is_encoder_decoder", true, "an encoder beside the decoder"},
    {"add_cross_attention", true, "cross attention"},
    {"pruned_heads", true, "attention heads that are left out"},
    {"block_configs", true, "blocks that differ one by one"},
    {"q_lora_rank", true, "latent attention"},
    {"kv_lora_rank", true, "latent attention"},
    {"attn_output_gate", true, "a gate on attention's output"},
    {"n_shared_experts", true, "shared experts"},
    {"shared_expert_intermediate_size", true, "shared experts"},
    {"first_k_dense_replace", true, "dense blocks before the experts"},
    {"num_nextn_predict_layers", true, "multi-token prediction layers"},
    {"num_mtp_layers", true, "multi-token prediction layers"},
    {"mtp_num_hidden_layers", true, "multi-token prediction layers"},
    {"quantization_config", false, "a quantised checkpoint; training is planned in the job's precision"},
};
const int32_t hf_num_foreign_keys = sizeof hf_foreign_keys / sizeof hf_foreign_keys[0];
