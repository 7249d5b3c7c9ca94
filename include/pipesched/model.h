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
    PS_LAYER_DECODER,   // attention or a mixer, and dense or expert FFN, either absent or not; an encoder's block too
    PS_LAYER_NORM,      // final norm
    PS_LAYER_HEAD,      // output projection and cross-entropy loss
    PS_LAYER_MAMBA,     // a mixer alone
    PS_LAYER_MTP,       // multi-token prediction: projection of two hidden states, a decoder block, the shared head
    PS_LAYER_PATCHES,   // patch embedding of an image, with its class token and learned positions
    PS_LAYER_CLASSIFIER // head on one token a sequence
} ps_layer_class;

typedef enum ps_norm_kind { PS_NORM_RMS, PS_NORM_LAYER } ps_norm_kind;

// What mixes tokens through a state. Costs are those of Mamba-2 in every case; parameters are each one's own.
typedef enum ps_mixer_kind {
    PS_MIXER_MAMBA2,
    PS_MIXER_MAMBA1, // time steps of rank `time_step_rank`, a state for every channel
    PS_MIXER_DELTA   // gated delta rule: groups are key heads, heads are value heads
} ps_mixer_kind;

// Architecture of a layer; figures that do not apply are 0.
typedef struct ps_block {
    int64_t hidden_size;
    int64_t vocab_size;        // embedding and head, unpadded; classes of a classifier
    int64_t learned_positions; // rows of a learned position embedding
    int64_t sequence;       // tokens of its own, whatever the job's sequence: an encoder's or an image's; 0: the job's
    int64_t cross_sequence; // tokens of an encoder's output that cross-attention reads; 0: no cross-attention

    // Attention
    int64_t attention_heads; // 0: the block has no attention
    int64_t kv_heads;
    int64_t head_dim;       // not always hidden_size / attention_heads; of latent attention the part without position
    int64_t sliding_window; // tokens; 0: full attention
    int64_t q_lora_rank;    // latent attention (MLA): queries through a bottleneck of this width; 0: projected directly
    int64_t kv_lora_rank;   // latent attention: keys and values through this width; 0: no latent attention
    int64_t rope_head_dim;  // latent attention: the part of a query or key head with position
    int64_t value_head_dim; // latent attention: size of a value head
    bool bidirectional;     // no causal mask
    bool qkv_bias;
    bool output_bias;
    bool qk_norm;
    bool attention_gate;  // the output is gated by a projection of the input, as wide as the queries
    bool attention_sinks; // one learned logit a head
    bool keys_as_values;  // no projection of values: they are the keys'

    // Feed-forward
    int64_t ffn_size; // dense FFN; 0: none
    int64_t experts;  // 0: dense
    int64_t experts_per_token;
    int64_t expert_ffn_size;
    int64_t shared_ffn_size;    // all shared experts together; 0: none
    int64_t expert_latent_size; // width on which routed experts work; 0: hidden_size
    bool gated_ffn;             // three FFN matrices instead of two
    bool ffn_bias;
    bool router_bias;
    bool shared_gate; // the shared experts' output is weighted by a projection of the input

    // Mixer (Mamba-2 and its kin) in place of attention; none where inner_size is 0
    ps_mixer_kind mixer;
    int64_t state_size;     // of the state space, a head
    int64_t inner_size;     // channels of the mixer
    int64_t mamba_heads;    // inner_size / head size
    int64_t state_groups;   // heads of a group share their input and output matrices of the state
    int64_t conv_size;      // taps of the causal convolution
    int64_t time_step_rank; // Mamba-1
    bool conv_bias;
    bool mixer_bias; // of the projections in and out

    int64_t patch_inputs;     // numbers in a patch: channels * patch size^2
    int64_t linear_maps;      // plain hidden x hidden matrices that stand in for attention or FFN
    int64_t extra_parameters; // of small parts without a field of their own; every rank holds them

    bool dropout;  // trains with dropout masks
    bool parallel; // attention and FFN read the same norm
    int64_t norms; // a block's; 0: one before each of attention and FFN that it has
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

// The greatest number that divides the routed experts of every layer that has some: what expert parallelism can divide;
// 0: no layer has any.
int64_t ps_model_experts(const ps_model *model);

// `name` is a file, "-", or (without a slash and no file) a built-in model. The format is recognised from the content.
ps_code ps_model_load(ps_arena *arena, const char *name, ps_model *out, ps_status *status);
// The same from bytes in memory; `source` is the name in errors.
ps_code ps_model_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_model *out,
                       ps_status *status);

#endif
