// SPDX-License-Identifier: Apache-2.0
//
// model_hf.h: the parts of the loader of Hugging Face's config.json.
//
// One reader walks one file. What a key says is read wherever the key is there, under any of the names that families
// use for it; a type's row of the table (model_hf_types.c) adds what its code does without a key, and the defaults of
// its configuration class. A family that differs in more than figures has a hook there.
#ifndef PS_MODEL_MODEL_HF_H
#define PS_MODEL_MODEL_HF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "io/json_read.h"
#include "pipesched/limits.h"
#include "pipesched/model.h"

typedef enum hf_bias { HF_BIAS_NEVER, HF_BIAS_ALWAYS, HF_BIAS_BY_KEY } hf_bias;

// What mixes the tokens of a block, and what follows.
typedef enum hf_mix { HF_MIX_ATTENTION, HF_MIX_WINDOW, HF_MIX_MAMBA, HF_MIX_LINEAR, HF_MIX_NONE } hf_mix;
typedef enum hf_feed { HF_FEED_DENSE, HF_FEED_EXPERTS, HF_FEED_NONE } hf_feed;

typedef struct hf_type hf_type;

enum { HF_MOST_WARNINGS = 32 };

typedef struct hf_reader {
    ps_arena *arena;
    ps_json outer; // the file
    ps_json root;  // what describes the language model: the file, or its text_config
    const hf_type *type;
    bool known; // the type has a row of its own
    ps_text assumed;
    ps_model *model;
    int64_t room; // in model->layer

    ps_block common; // what all blocks have: sizes, attention, norms
    ps_block mixer;  // of blocks that have one
    int64_t window;
    int64_t dense_ffn; // 0: not given
    int64_t experts;   // 0: none
    int64_t experts_per_token;
    int64_t expert_ffn;
    int64_t shared_ffn;
    int64_t vocabulary;
    int64_t embedding_extra; // parameters beside the matrix
    int64_t head_extra;
    int32_t num_blocks;
    char *mix;          // [num_blocks] hf_mix
    char *feed;         // [num_blocks] hf_feed
    bool feeds_known;   // a pattern gave them
    ps_json next_block; // nemotron-nas: the next entry of block_configs
} hf_reader;

struct hf_type {
    const char *model_type;
    const char *format;       // of ps_model
    int64_t default_vocab;    // 0: must be given
    int64_t default_heads;    // 0: must be given
    int64_t default_kv_heads; // 0: as many as attention heads
    int64_t default_head_dim; // 0: hidden / attention heads
    int64_t default_window;   // when sliding_window is absent; null means none
    int64_t default_experts;
    int64_t default_experts_per_token;
    int64_t extra_positions; // rows of the position embedding beyond the longest sequence
    int64_t norms;           // of a block; 0: one before each part
    int32_t window_pattern;  // every n-th block has full attention; 0: none has
    bool learned_positions;
    bool plain_ffn;  // two matrices
    bool four_times; // the FFN is four times as wide as hidden unless given
    bool same_heads; // no key gives key-value heads
    bool parallel;
    bool qk_norm;
    bool sinks;
    bool router_bias;
    bool attention_gate;
    bool shared_gate;
    bool window_by_switch; // use_sliding_window and max_window_layers
    bool tied;             // unless tie_word_embeddings says otherwise
    bool bidirectional;
    bool no_attention;
    hf_bias qkv_bias;    // BY_KEY: attention_bias
    hf_bias output_bias; // BY_KEY: attention_bias
    hf_bias ffn_bias;    // BY_KEY: mlp_bias
    ps_norm_kind norm;
    double default_dropout;
    ps_code (*habits)(hf_reader *, ps_status *);                           // after all keys are read; NULL: none
    ps_code (*shape)(hf_reader *, int32_t index, ps_block *, ps_status *); // of one block; NULL: none
    ps_code (*build)(hf_reader *, ps_status *);                            // NULL: hf_build_decoder
};

const hf_type *hf_type_named(const char *model_type); // NULL: not in the table
const char *const *hf_type_names(ps_arena *arena, int32_t *count);
extern const hf_type hf_unknown_type;

// model_hf_keys.c: names of keys end with NULL, the first is the one in messages.
extern const char *const hf_hidden[];
extern const char *const hf_layers[];
extern const char *const hf_heads[];
extern const char *const hf_kv_heads[];
extern const char *const hf_ffn[];
extern const char *const hf_positions[];
extern const char *const hf_experts[];
extern const char *const hf_experts_per_token[];
extern const char *const hf_expert_ffn[];
extern const char *const hf_state_size[];
bool hf_given(const hf_reader *reader, const char *key);    // neither absent nor null
ps_json hf_place(const hf_reader *reader, const char *key); // of an error: the key, or what lacks it
const char *hf_key(const hf_reader *reader, const char *const *names);
bool hf_given_any(const hf_reader *reader, const char *const *names);
// A count that takes `fallback`, and says so, when left out; a negative fallback makes the key required.
ps_code hf_count(hf_reader *reader, const char *const *names, int64_t fallback, int64_t *out, ps_status *status);
ps_code hf_count_of(hf_reader *reader, const char *key, int64_t fallback, int64_t *out, ps_status *status);
// The same without a word when left out; 0 may be given.
ps_code hf_optional(hf_reader *reader, const char *key, int64_t *out, ps_status *status);
ps_code hf_switch(hf_reader *reader, const char *key, bool *out, ps_status *status);
void hf_assume(hf_reader *reader, const char *key, const char *value);
void hf_assume_count(hf_reader *reader, const char *key, int64_t value);
void hf_warn(hf_reader *reader, const char *sentence);
// Keys that would change the architecture: rule unsupported-key, or a warning.
ps_code hf_check_foreign(hf_reader *reader, ps_status *status);

// model_hf_attention.c, model_hf_ffn.c, model_hf_mixer.c: fill the reader from the keys.
ps_code hf_read_attention(hf_reader *reader, ps_status *status);
ps_code hf_read_windows(hf_reader *reader, ps_status *status);
ps_code hf_read_ffn(hf_reader *reader, ps_status *status);
ps_code hf_read_feeds(hf_reader *reader, ps_status *status);
ps_code hf_read_mixes(hf_reader *reader, ps_status *status);

// model_hf_build.c: layers from what was read. The figures are copied.
ps_code hf_add(hf_reader *reader, ps_layer layer, const ps_block *figures, ps_status *status);
void hf_make_room(hf_reader *reader, int64_t layers);
ps_code hf_add_embedding(hf_reader *reader, ps_status *status);
ps_code hf_add_blocks(hf_reader *reader, ps_status *status);
ps_code hf_add_norm(hf_reader *reader, const char *name, ps_status *status);
ps_code hf_add_head(hf_reader *reader, ps_status *status); // tied to the first layer, or not
ps_code hf_build_decoder(hf_reader *reader, ps_status *status);

// model_hf_encoder.c
ps_code hf_build_bert(hf_reader *reader, ps_status *status);
ps_code hf_build_t5(hf_reader *reader, ps_status *status);
ps_code hf_build_vit(hf_reader *reader, ps_status *status);

// model_hf_families.c: hooks.
ps_code hf_falcon_habits(hf_reader *reader, ps_status *status);
ps_code hf_neox_habits(hf_reader *reader, ps_status *status);
ps_code hf_opt_habits(hf_reader *reader, ps_status *status);
ps_code hf_bloom_habits(hf_reader *reader, ps_status *status);
ps_code hf_head_bias_habits(hf_reader *reader, ps_status *status); // gptj, phi
ps_code hf_bert_habits(hf_reader *reader, ps_status *status);
ps_code hf_llama4_habits(hf_reader *reader, ps_status *status);
ps_code hf_gemma4_habits(hf_reader *reader, ps_status *status);
ps_code hf_gemma4_shape(hf_reader *reader, int32_t index, ps_block *block, ps_status *status);
ps_code hf_nas_habits(hf_reader *reader, ps_status *status);
ps_code hf_nas_shape(hf_reader *reader, int32_t index, ps_block *block, ps_status *status);

#endif
