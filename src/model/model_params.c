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

// Scale alone, also where a LayerNorm stands elsewhere.
static int64_t latent_attention_parameters(const ps_block *block)
{
    int64_t h = block->hidden_size;
    int64_t query = times(block->attention_heads, plus(block->head_dim, block->rope_head_dim));
    int64_t value = times(block->attention_heads, block->value_head_dim);
    int64_t key_value = plus(times(block->attention_heads, block->head_dim), value);
    int64_t count = block->q_lora_rank == 0
                        ? times(h, query)
                        : plus(times(block->q_lora_rank, plus(h, 1)), times(block->q_lora_rank, query));
    count = plus(count, times(h, plus(block->kv_lora_rank, block->rope_head_dim)));
    count = plus(count, times(block->kv_lora_rank, plus(key_value, 1)));
    return plus(count, times(value, h));
}

// Query, key and value, output projection: h q + 2 h k + q h, with q = heads * head_dim and k = kv_heads * head_dim.
static int64_t grouped_attention_parameters(const ps_block *block)
{
    int64_t h = block->hidden_size;
    int64_t q = times(block->attention_heads, block->head_dim);
    int64_t k = times(block->kv_heads, block->head_dim);
    int64_t sides = block->keys_as_values ? 1 : 2;
    int64_t count = plus(times(2, times(h, q)), times(sides, times(h, k)));
    if (block->qkv_bias)
        count = plus(count, plus(q, times(sides, k)));
    if (block->attention_gate)
        count = plus(count, times(h, q));
    return count;
}

static int64_t attention_parameters(const ps_block *block)
{
    if (block->attention_heads == 0)
        return 0;
    int64_t count = block->kv_lora_rank > 0 ? latent_attention_parameters(block) : grouped_attention_parameters(block);
    if (block->cross_sequence > 0)
        count = times(2, count);
    if (block->output_bias)
        count = plus(count, times(block->cross_sequence > 0 ? 2 : 1, block->hidden_size));
    if (block->qk_norm)
        count = plus(count, times(2, block->head_dim));
    if (block->attention_sinks)
        count = plus(count, block->attention_heads);
    return count;
}

// Projection in, convolution, what a head or channel has of its own, norm of the output, projection out. Dao and Gu
// 2024 (Mamba-2), Gu and Dao 2023 (Mamba-1), Yang et al. 2024 (gated delta rule).
static int64_t mixer_parameters(const ps_block *block)
{
    int64_t inner = block->inner_size;
    int64_t heads = block->mamba_heads;
    if (inner == 0)
        return 0;
    int64_t states = times(2, times(block->state_groups, block->state_size));
    int64_t convolved = plus(inner, block->mixer == PS_MIXER_MAMBA1 ? 0 : states);
    int64_t projected = times(2, inner);
    int64_t own = 0;
    switch (block->mixer) {
    case PS_MIXER_MAMBA2: // decay, time step and skip a head
        projected = plus(projected, plus(states, heads));
        own = plus(times(3, heads), inner);
        break;
    case PS_MIXER_MAMBA1: // to time step and states, time step back with its bias, decay, skip
        own = times(inner, plus(plus(times(2, block->time_step_rank), times(3, block->state_size)), 2));
        break;
    case PS_MIXER_DELTA: // decay and time step a value head; a norm as wide as one
        projected = plus(projected, plus(states, times(2, heads)));
        own = plus(times(2, heads), inner / (heads > 0 ? heads : 1));
        break;
    }
    int64_t count = plus(own, times(block->hidden_size, plus(projected, inner)));
    count = plus(count, times(convolved, plus(block->conv_size, block->conv_bias ? 1 : 0)));
    return block->mixer_bias ? plus(count, plus(projected, block->hidden_size)) : count;
}

// Gate and up (or up alone), and down, from and to `outer`.
static int64_t ffn_parameters(const ps_block *block, int64_t outer, int64_t width)
{
    int64_t matrices = block->gated_ffn ? 3 : 2;
    int64_t count = times(matrices, times(outer, width));
    if (block->ffn_bias)
        count = plus(count, plus(times(matrices - 1, width), outer));
    return count;
}

int64_t ps_block_norms(const ps_block *block)
{
    if (block->norms > 0)
        return block->norms;
    if (block->parallel)
        return 1;
    return (block->attention_heads > 0 || block->inner_size > 0) + (block->cross_sequence > 0) +
           (block->experts > 0 || block->ffn_size > 0);
}

// Router, latents, shared experts and their gate: what of a mixture every token uses.
static int64_t mixture_shell(const ps_block *block)
{
    int64_t h = block->hidden_size;
    int64_t count = times(block->experts, plus(h, block->router_bias ? 1 : 0));
    count = plus(count, times(2, times(h, block->expert_latent_size)));
    if (block->shared_ffn_size > 0)
        count = plus(count, ffn_parameters(block, h, block->shared_ffn_size));
    return block->shared_gate ? plus(count, h) : count;
}

static void count_block(const ps_block *block, ps_layer *layer)
{
    int64_t h = block->hidden_size;
    int64_t shell = plus(attention_parameters(block), mixer_parameters(block));
    shell = plus(shell, times(ps_block_norms(block), norm_parameters(block)));
    shell = plus(shell, plus(block->extra_parameters, times(block->linear_maps, times(h, h))));
    if (layer->class_ == PS_LAYER_MTP) // projection of two states, their norms, and one before the shared head
        shell = plus(shell, plus(times(2, times(h, h)), times(3, norm_parameters(block))));
    layer->expert_parameters = 0;
    layer->active_parameters = shell;
    if (block->experts > 0) {
        int64_t outer = block->expert_latent_size > 0 ? block->expert_latent_size : h;
        int64_t expert = ffn_parameters(block, outer, block->expert_ffn_size);
        shell = plus(shell, mixture_shell(block));
        layer->expert_parameters = times(block->experts, expert);
        layer->active_parameters = plus(shell, times(block->experts_per_token, expert));
    } else if (block->ffn_size > 0) {
        shell = plus(shell, ffn_parameters(block, h, block->ffn_size));
        layer->active_parameters = shell;
    }
    layer->parameters = plus(shell, layer->expert_parameters);
}

static void count_parameters(const ps_block *block, ps_layer *layer)
{
    int64_t h = block->hidden_size;
    switch (layer->class_) {
    case PS_LAYER_DECODER:
    case PS_LAYER_MAMBA:
    case PS_LAYER_MTP: count_block(block, layer); return;
    case PS_LAYER_EMBEDDING: layer->parameters = times(plus(block->vocab_size, block->learned_positions), h); break;
    case PS_LAYER_NORM: layer->parameters = norm_parameters(block); break;
    case PS_LAYER_HEAD: layer->parameters = times(block->vocab_size, h); break;
    case PS_LAYER_PATCHES:
        layer->parameters = times(plus(block->patch_inputs, block->learned_positions), h);
        if (block->output_bias)
            layer->parameters = plus(layer->parameters, h);
        break;
    case PS_LAYER_CLASSIFIER: layer->parameters = times(block->vocab_size, plus(h, 1)); break;
    case PS_LAYER_TIMED: break;
    }
    layer->parameters = plus(layer->parameters, block->extra_parameters);
    layer->active_parameters = layer->parameters;
}

static ps_code check_mixer(const ps_block *block, ps_status *status)
{
    if (block->inner_size == 0 || block->mixer == PS_MIXER_MAMBA1)
        return PS_OK;
    if (block->mamba_heads == 0 || block->inner_size % block->mamba_heads != 0)
        return ps_fail(status, PS_BAD_INPUT, "mamba-heads", "%lld heads do not divide the %lld channels of the mixer",
                       (long long)block->mamba_heads, (long long)block->inner_size);
    if (block->state_groups == 0 || block->mamba_heads % block->state_groups != 0)
        return ps_fail(status, PS_BAD_INPUT, "mamba-groups", "%lld groups do not divide the %lld heads of the mixer",
                       (long long)block->state_groups, (long long)block->mamba_heads);
    return PS_OK;
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
    if (block->shared_gate && block->shared_ffn_size == 0)
        return ps_fail(status, PS_BAD_INPUT, "shared-gate", "a gate of shared experts needs shared experts");
    if (block->kv_lora_rank == 0 && (block->q_lora_rank > 0 || block->rope_head_dim > 0 || block->value_head_dim > 0)) {
        ps_fail(status, PS_BAD_INPUT, "latent-attention",
                "ranks and head sizes of latent attention are given, but not the rank of its keys and values");
        return ps_fail_hint(status, "give kv_lora_rank, or leave q_lora_rank, rope_head_dim and value_head_dim out");
    }
    if (block->kv_lora_rank > 0 && block->cross_sequence > 0)
        return ps_fail(status, PS_BAD_INPUT, "latent-attention", "cross-attention with latents is not supported");
    return check_mixer(block, status);
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
    const ps_block *block = head->block;
    int64_t matrix = times(block->vocab_size, block->hidden_size);
    head->shared_parameters = matrix;
    head->shared_with = embedding;
    if (head->class_ == PS_LAYER_MTP) // its head was never counted among its own
        return;
    head->parameters = block->extra_parameters;
    head->active_parameters = block->extra_parameters;
}
