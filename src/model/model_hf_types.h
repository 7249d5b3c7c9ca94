// SPDX-License-Identifier: Apache-2.0
//
// model_hf_types.h: what differs between the Hugging Face model types that we read, as one table, and the keys that
// would change the architecture in ways we do not model.
#ifndef PS_MODEL_MODEL_HF_TYPES_H
#define PS_MODEL_MODEL_HF_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/model.h"

typedef enum hf_bias { HF_BIAS_NEVER, HF_BIAS_ALWAYS, HF_BIAS_BY_KEY } hf_bias;

// Keys are those of config.json. Defaults are those of the configuration classes of transformers; -1: none, the key
// must be there.
typedef struct hf_type {
    const char *model_type;
    const char *format; // of ps_model
    const char *hidden_key;
    const char *layers_key;
    const char *heads_key;
    const char *ffn_key;       // of a dense FFN
    const char *positions_key; // longest sequence
    const char *experts_key;   // NULL: no experts
    const char *expert_ffn_key;
    int64_t default_ffn;      // 0: four times hidden
    int64_t default_kv_heads; // 0: as many as attention heads
    int64_t default_head_dim; // 0: hidden / attention heads
    int64_t default_window;   // when sliding_window is absent; null means none
    int64_t default_experts;
    int64_t default_experts_per_token;
    bool learned_positions;
    bool gated_ffn;
    bool qk_norm;
    bool some_dense;       // mlp_only_layers and decoder_sparse_step
    bool window_by_switch; // use_sliding_window and max_window_layers
    bool tied;             // unless tie_word_embeddings says otherwise
    hf_bias qkv_bias;      // BY_KEY: attention_bias
    hf_bias output_bias;   // BY_KEY: attention_bias
    hf_bias ffn_bias;      // BY_KEY: mlp_bias
    ps_norm_kind norm;
    const char *const *dropout_keys; // of the blocks; ends with NULL
    double default_dropout;
} hf_type;

const hf_type *hf_type_named(const char *model_type); // NULL: not supported
// All supported names, in the order of the table.
const char *const *hf_type_names(ps_arena *arena, int32_t *count);

// A key that changes what is trained. It matters when it is neither null, false, 0, nor empty.
typedef struct hf_foreign_key {
    const char *key;
    bool refused; // else a warning
    const char *meaning;
} hf_foreign_key;

extern const hf_foreign_key hf_foreign_keys[];
extern const int32_t hf_num_foreign_keys;

#endif
