// SPDX-License-Identifier: Apache-2.0
//
// model_params.c: how many parameters a layer of a given architecture has.
//
// Every product may be hostile, so counts stick at INT64_MAX and are compared with the limit once, at the end.
#include "model/model_params.h"

#include "base/number.h"
#include "pipesched/limits.h"

static int64_t times(int64_t a, int64_t b)
{
    return ps_multiply_saturating(a, b);
}

static int64_t plus(int64_t a, int64_t b)
{
    return ps_add_saturating(a, b);
}

// Scale, and shift for a LayerNorm.
static int64_t norm_parameters(const ps_block *block)
{
    return block->norm == PS_NORM_LAYER ? times(2, block->hidden_size) : block->hidden_size;
}

// Query, key and value, output projection: h q + 2 h k + q h, with q = heads * head_dim and k = kv_heads * head_dim.
static int64_t attention_parameters(const ps_block *block)
{
    int64_t h = block->hidden_size;
    int64_t q = times(block->attention_heads, block->head_dim);
    int64_t k = times(block->kv_heads, block->head_dim);
    int64_t count = plus(times(2, times(h, q)), times(2, times(h, k)));
    if (block->qkv_bias)
        count = plus(count, plus(q, times(2, k)));
    if (block->output_bias)
        count = plus(count, h);
    if (block->qk_norm)
        count = plus(count, times(2, block->head_dim));
    return count;
}

// Gate and up (or up alone), and down.
static int64_t ffn_parameters(const ps_block *block, int64_t width)
{
    int64_t matrices = block->gated_ffn ? 3 : 2;
    int64_t count = times(matrices, times(block->hidden_size, width));
    if (block->ffn_bias)
        count = plus(count, plus(times(matrices - 1, width), block->hidden_size));
    return count;
}

static void count_decoder(const ps_block *block, ps_layer *layer)
{
    int64_t shell = plus(attention_parameters(block), times(2, norm_parameters(block)));
    if (block->experts == 0) {
        layer->parameters = plus(shell, ffn_parameters(block, block->ffn_size));
        layer->active_parameters = layer->parameters;
        return;
    }
    int64_t router = times(block->hidden_size, block->experts);
    int64_t expert = ffn_parameters(block, block->expert_ffn_size);
    shell = plus(shell, router);
    layer->expert_parameters = times(block->experts, expert);
    layer->parameters = plus(shell, layer->expert_parameters);
    layer->active_parameters = plus(shell, times(block->experts_per_token, expert));
}

static void count_parameters(const ps_block *block, ps_layer *layer)
{
    switch (layer->class_) {
    case PS_LAYER_DECODER: count_decoder(block, layer); return;
    case PS_LAYER_EMBEDDING:
        layer->parameters = times(plus(block->vocab_size, block->learned_positions), block->hidden_size);
        break;
    case PS_LAYER_NORM: layer->parameters = norm_parameters(block); break;
    case PS_LAYER_HEAD: layer->parameters = times(block->vocab_size, block->hidden_size); break;
    case PS_LAYER_MAMBA:
    case PS_LAYER_MTP:
    case PS_LAYER_PATCHES:
    case PS_LAYER_CLASSIFIER:
    case PS_LAYER_TIMED: break;
    }
    layer->active_parameters = layer->parameters;
}

static ps_code check_block(const ps_block *block, ps_status *status)
{
    if (block->kv_heads > block->attention_heads ||
        (block->kv_heads > 0 && block->attention_heads % block->kv_heads != 0)) {
        ps_fail(status, PS_BAD_INPUT, "heads-divide",
                "each key-value head must serve equally many attention heads, got %lld attention heads and %lld "
                "key-value heads",
                (long long)block->attention_heads, (long long)block->kv_heads);
        return ps_fail_hint(status, "the number of key-value heads divides the number of attention heads");
    }
    if (block->experts_per_token > block->experts)
        return ps_fail(status, PS_BAD_INPUT, "experts-per-token", "a token cannot use %lld of %lld experts",
                       (long long)block->experts_per_token, (long long)block->experts);
    return PS_OK;
}

ps_layer ps_layer_named(const char *name, const char *base_name, ps_layer_class class_, const char *kind)
{
    return (ps_layer){.name = name,
                      .base_name = base_name,
                      .kind = kind,
                      .class_ = class_,
                      .shared_with = -1,
                      .forward_ns = PS_NOT_GIVEN,
                      .backward_input_ns = PS_NOT_GIVEN,
                      .backward_weight_ns = PS_NOT_GIVEN,
                      .held_after_forward_bytes = PS_NOT_GIVEN,
                      .held_after_backward_input_bytes = PS_NOT_GIVEN,
                      .transient_bytes = PS_NOT_GIVEN,
                      .output_bytes = PS_NOT_GIVEN};
}

ps_code ps_layer_set_block(ps_layer *layer, const ps_block *block, ps_status *status)
{
    PS_TRY(check_block(block, status));
    layer->block = block;
    count_parameters(block, layer);
    if (layer->parameters > PS_MAX_PARAMETERS)
        return ps_fail(status, PS_BAD_INPUT, "too-many-parameters",
                       "layer \"%.64s\" would have more than %lld parameters", layer->name,
                       (long long)PS_MAX_PARAMETERS);
    return PS_OK;
}

void ps_layer_tie(ps_layer *head, int32_t embedding)
{
    head->shared_parameters = head->parameters;
    head->shared_with = embedding;
    head->parameters = 0;
    head->active_parameters = 0;
}
