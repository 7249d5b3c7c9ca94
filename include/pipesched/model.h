// SPDX-License-Identifier: Apache-2.0
//
// model.h: layers in topological order.
//
// A model comes from the native format or from a Hugging Face config.json. Embedding, every block, the final norm and
// the head with its loss are layers of their own, since they are not free. A layer either gives its times (for any
// device and one micro-batch) or its architecture, from which src/cost predicts them, or both.
#ifndef PIPESCHED_MODEL_H
#define PIPESCHED_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/precision.h"
#include "pipesched/status.h"

typedef enum ps_layer_class {
    PS_LAYER_TIMED,     // gives times; `kind` is free text
    PS_LAYER_EMBEDDING, // token (and learned position) embedding
    PS_LAYER_DECODER,   // attention and dense or expert FFN, causal
    PS_LAYER_NORM,      // final norm
    PS_LAYER_HEAD       // output projection and cross-entropy loss
} ps_layer_class;

typedef enum ps_norm_kind { PS_NORM_RMS, PS_NORM_LAYER } ps_norm_kind;

// Architecture of a layer; figures that do not apply are 0.
typedef struct ps_block {
    int64_t hidden_size;
    int64_t vocab_size;        // embedding and head, unpadded
    int64_t learned_positions; // rows of a learned position embedding
    int64_t attention_heads;
    int64_t kv_heads;
    int64_t head_dim; // not always hidden_size / attention_heads
    int64_t ffn_size; // dense FFN
    int64_t experts;  // 0: dense
    int64_t experts_per_token;
    int64_t expert_ffn_size;
    int64_t sliding_window; // tokens; 0: full attention
    bool gated_ffn;         // three FFN matrices instead of two
    bool qkv_bias;
    bool output_bias;
    bool ffn_bias;
    bool qk_norm;
    bool dropout; // trains with dropout masks
    ps_norm_kind norm;
} ps_block;

enum { PS_NOT_GIVEN = -1 };

typedef struct ps_layer {
    const char *name;      // unique: "block.17"
    const char *base_name; // before repetition: "block"; measurements are keyed by it
    const char *kind;      // as written, or "embedding", "decoder", "moe-decoder", "norm", "head"
    ps_layer_class class_;
    int64_t parameters;        // owned by this layer: the model's total is their sum
    int64_t expert_parameters; // of these, in routed experts
    int64_t active_parameters; // of these, used by one token
    int64_t shared_parameters; // owned by layer `shared_with` but used here (tied head): a copy when on other devices
    int32_t shared_with;       // -1: none
    const ps_block *block;     // architecture; NULL when only times are given
    // Figures of one micro-batch as the user gives them; PS_NOT_GIVEN where absent.
    int64_t forward_ns;
    int64_t backward_input_ns;
    int64_t backward_weight_ns;
    int64_t held_after_forward_bytes;
    int64_t held_after_backward_input_bytes;
    int64_t transient_bytes;
    int64_t output_bytes; // sent to the next stage when a cut follows
} ps_layer;

// Times of one layer type under the conditions of its set.
typedef struct ps_measured_layer {
    const char *base_name;
    int64_t forward_ns;
    int64_t backward_input_ns;
    int64_t backward_weight_ns;
} ps_measured_layer;

typedef struct ps_measurement {
    const char *gpu; // catalog name
    ps_precision precision;
    int32_t tp;
    int32_t cp;
    int32_t ep;
    int64_t micro_batch_size;
    int64_t seq_length;
    int32_t num_layers;
    ps_measured_layer *layer;
} ps_measurement;

typedef struct ps_model {
    const char *name;
    const char *source; // file name or built-in name as the user gave it
    const char *format; // "pipesched/model/v1", or "huggingface/llama"
    char sha256[65];    // of the file's bytes
    int32_t num_layers;
    ps_layer *layer; // a chain, in order
    int64_t parameters;
    int64_t active_parameters;
    int64_t max_seq_length; // 0: not stated
    int32_t num_measurements;
    ps_measurement *measurement;
    int32_t *pinned_stage; // [num_layers]: PS_PIN_NONE, PS_PIN_LAST or a stage; NULL: no pins
    bool *keep_with_next;  // [num_layers - 1] from colocate; NULL: none
    int32_t num_warnings;
    const char **warning; // what was assumed, one sentence each
} ps_model;

enum { PS_PIN_NONE = -1, PS_PIN_LAST = -2 };

// `name` is a file, "-", or (without a slash and no file) a built-in model. The format is recognised from the content.
ps_code ps_model_load(ps_arena *arena, const char *name, ps_model *out, ps_status *status);
// The same from bytes in memory; `source` is the name in errors.
ps_code ps_model_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_model *out,
                       ps_status *status);

#endif
