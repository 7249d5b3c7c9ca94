// SPDX-License-Identifier: Apache-2.0
//
// model_hf_types.c: the table of Hugging Face model types. A type that differs only in figures is one more row.
//
// Sources: the configuration and modeling files of transformers for each type.
#include <string.h>

#include "model/model_hf.h"

#define TYPE(type) .model_type = (type), .format = "huggingface/" type
#define BIASES(rule) .qkv_bias = (rule), .output_bias = (rule)
// LayerNorms, two FFN matrices, biases: GPT-2's way.
#define GPT_BARE(type) TYPE(type), .norm = PS_NORM_LAYER, .plain_ffn = true, .ffn_bias = HF_BIAS_ALWAYS
#define GPT_LIKE(type) GPT_BARE(type), .same_heads = true, BIASES(HF_BIAS_ALWAYS)
#define QWEN3(type, kv)                                                                                                \
    TYPE(type), .default_kv_heads = (kv), .default_window = 4096, .qk_norm = true, .window_by_switch = true,           \
                BIASES(HF_BIAS_BY_KEY)
#define QWEN_NEXT(type, gate)                                                                                          \
    TYPE(type), .default_head_dim = 256, .qk_norm = true, .attention_gate = true, .shared_gate = (gate),               \
                BIASES(HF_BIAS_BY_KEY)
#define GEMMA(type, count, pattern)                                                                                    \
    TYPE(type), .tied = true, .norms = (count), .window_pattern = (pattern), .default_head_dim = 256,                  \
                BIASES(HF_BIAS_BY_KEY)
#define GEMMA3                                                                                                         \
    .default_vocab = 262208, .default_heads = 8, .default_kv_heads = 4, .default_window = 4096, .qk_norm = true
#define LLAMA4 .default_window = 8192, .window_pattern = 4, .habits = hf_llama4_habits, BIASES(HF_BIAS_BY_KEY)

static const hf_type types[] = {
    {TYPE("llama"), BIASES(HF_BIAS_BY_KEY), .ffn_bias = HF_BIAS_BY_KEY},
    {TYPE("mistral"), .default_kv_heads = 8, .default_window = 4096},
    {TYPE("qwen2"), .default_kv_heads = 32, .default_window = 4096, .qkv_bias = HF_BIAS_ALWAYS,
     .window_by_switch = true},
    {QWEN3("qwen3", 32), .default_head_dim = 128},
    {TYPE("mixtral"), .default_kv_heads = 8, .default_experts = 8, .default_experts_per_token = 2},
    {QWEN3("qwen3_moe", 4), .default_experts = 128, .default_experts_per_token = 8},
    {TYPE("qwen2_moe"), .default_kv_heads = 16, .default_window = 4096, .qkv_bias = HF_BIAS_ALWAYS,
     .window_by_switch = true, .default_experts = 60, .default_experts_per_token = 4, .shared_gate = true},
    {QWEN_NEXT("qwen3_next", true)},
    {QWEN_NEXT("qwen3_5_moe_text", true)},
    {QWEN_NEXT("qwen3_5_moe", true)},
    {QWEN_NEXT("qwen3_5_text", false)},
    {QWEN_NEXT("qwen3_5", false)},
    {QWEN3("qwen3_vl_text", 32), .default_head_dim = 128},
    {QWEN3("qwen3_vl_moe_text", 16), .default_head_dim = 128},
    {GPT_LIKE("gpt2"), .learned_positions = true, .four_times = true, .tied = true, .default_dropout = 0.1},
    {GPT_BARE("gpt_neo"), .same_heads = true, .output_bias = HF_BIAS_ALWAYS, .learned_positions = true,
     .four_times = true, .tied = true},
    {GPT_LIKE("gpt_neox"), .norms = 2, .habits = hf_neox_habits},
    {GPT_BARE("gptj"), .same_heads = true, .parallel = true, .four_times = true, .habits = hf_head_bias_habits},
    {GPT_LIKE("opt"), .learned_positions = true, .extra_positions = 2, .tied = true, .default_dropout = 0.1,
     .habits = hf_opt_habits},
    {GPT_LIKE("bloom"), .four_times = true, .tied = true, .habits = hf_bloom_habits},
    {GPT_LIKE("falcon"), .four_times = true, .tied = true, .habits = hf_falcon_habits},
    {GPT_LIKE("RefinedWebModel"), .four_times = true, .tied = true, .habits = hf_falcon_habits},
    {GPT_LIKE("RefinedWeb"), .four_times = true, .tied = true, .habits = hf_falcon_habits},
    {GPT_BARE("phi"), BIASES(HF_BIAS_ALWAYS), .parallel = true, .habits = hf_head_bias_habits},
    {TYPE("phi3")},
    {GEMMA("gemma", 2, 0)},
    {GEMMA("gemma2", 4, 2), .default_window = 4096},
    {GEMMA("gemma3_text", 4, 6), GEMMA3},
    {GEMMA("gemma3", 4, 6), GEMMA3},
    {GEMMA("gemma4_text", 4, 6), GEMMA3, .habits = hf_gemma4_habits, .shape = hf_gemma4_shape},
    {GEMMA("gemma4", 4, 6), GEMMA3, .habits = hf_gemma4_habits, .shape = hf_gemma4_shape},
    {TYPE("llama4_text"), LLAMA4},
    {TYPE("llama4"), LLAMA4},
    {TYPE("deepseek_v2")},
    {TYPE("deepseek_v3"), .router_bias = true},
    {TYPE("deepseek_v32"), .router_bias = true},
    {TYPE("kimi_k2"), .router_bias = true},
    {TYPE("gpt_oss"), BIASES(HF_BIAS_ALWAYS), .ffn_bias = HF_BIAS_ALWAYS, .router_bias = true, .sinks = true,
     .default_head_dim = 64, .default_kv_heads = 8, .default_window = 128, .window_pattern = 2, .default_experts = 128,
     .default_experts_per_token = 4},
    {TYPE("nemotron"), .norm = PS_NORM_LAYER, .plain_ffn = true, BIASES(HF_BIAS_BY_KEY), .ffn_bias = HF_BIAS_BY_KEY},
    {TYPE("nemotron_h"), .plain_ffn = true, .router_bias = true, BIASES(HF_BIAS_BY_KEY), .ffn_bias = HF_BIAS_BY_KEY},
    {TYPE("nemotron-nas"), BIASES(HF_BIAS_BY_KEY), .habits = hf_nas_habits, .shape = hf_nas_shape},
    {TYPE("jamba"), .default_kv_heads = 8, .default_experts = 16, .default_experts_per_token = 2},
    {TYPE("mamba"), .no_attention = true, .tied = true},
    {TYPE("falcon_mamba"), .no_attention = true, .tied = true},
    {TYPE("mamba2"), .no_attention = true},
    {GPT_LIKE("bert"), .learned_positions = true, .bidirectional = true, .default_dropout = 0.1, .norms = 2,
     .habits = hf_bert_habits, .build = hf_build_bert},
    {GPT_LIKE("roberta"), .learned_positions = true, .bidirectional = true, .default_dropout = 0.1, .norms = 2,
     .habits = hf_bert_habits, .build = hf_build_bert},
    {TYPE("t5"), .plain_ffn = true, .same_heads = true, .tied = true, .default_dropout = 0.1, .build = hf_build_t5},
    {TYPE("mt5"), .plain_ffn = true, .same_heads = true, .default_dropout = 0.1, .build = hf_build_t5},
    {GPT_LIKE("vit"), .bidirectional = true, .build = hf_build_vit},
};
enum { TYPES = sizeof types / sizeof types[0] };

// What most are: RMS norms, a gated FFN, rotary positions, no biases unless a key gives them.
const hf_type hf_unknown_type = {.model_type = "an unknown type",
                                 .format = "huggingface",
                                 BIASES(HF_BIAS_BY_KEY),
                                 .ffn_bias = HF_BIAS_BY_KEY,
                                 .window_by_switch = true};

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
