// SPDX-License-Identifier: Apache-2.0
//
// weights.c: what tensor and expert parallelism divide, and what every rank has whole.
#include "cost/weights.h"

// Scale, and shift for a LayerNorm, of one norm over `width`.
static double norm_parameters(const ps_block *block, double width)
{
    return width * (block->norm == PS_NORM_LAYER ? 2 : 1);
}

static double block_norms(const ps_block *block)
{
    if (block->norms > 0)
        return (double)block->norms;
    int32_t sublayers = (block->attention_heads > 0 || block->inner_size > 0) + (block->cross_sequence > 0) +
                        (block->experts > 0 || block->ffn_size > 0);
    return block->parallel ? 1 : sublayers;
}

// Down-projections to the latents and their norms.
static double latent_down_parameters(const ps_block *block)
{
    double hidden = (double)block->hidden_size;
    double query = (double)block->q_lora_rank;
    double key_value = (double)block->kv_lora_rank;

    if (key_value <= 0)
        return 0;
    return hidden * (query + key_value + (double)block->rope_head_dim) + norm_parameters(block, query) +
           norm_parameters(block, key_value);
}

// Norms, router, latents, gates and biases behind row-parallel matrices stand on every tensor parallel rank.
static double replicated_parameters(const ps_block *block, ps_layer_class class_)
{
    double hidden = (double)block->hidden_size;
    double count = block_norms(block) * norm_parameters(block, hidden) + latent_down_parameters(block);

    count += (double)block->extra_parameters;
    if (block->qk_norm)
        count += 2 * (double)block->head_dim;
    if (block->output_bias)
        count += hidden;
    if (block->ffn_bias && block->experts == 0)
        count += hidden;
    if (block->shared_gate)
        count += hidden;
    if (class_ == PS_LAYER_MTP)
        count += 3 * norm_parameters(block, hidden);
    double experts = (double)block->experts;
    return count + experts * (hidden + (block->router_bias ? 1 : 0)) +
           2 * hidden * (double)block->expert_latent_size * (experts > 0 ? 1 : 0);
}

// The projections of keys and values, of which every rank has at least one head's.
static double key_value_parameters(const ps_block *block, double key)
{
    double rows = (double)block->hidden_size + (block->qkv_bias ? 1 : 0);
    double attentions = 1 + (block->cross_sequence > 0 ? 1 : 0);

    if (block->attention_heads == 0 || block->kv_lora_rank > 0)
        return 0;
    return attentions * (block->keys_as_values ? 1 : 2) * rows * key;
}

static double block_parameters(const ps_rank_view *view, const ps_layer *layer)
{
    const ps_block *block = layer->block;
    double count = (double)(layer->parameters - layer->expert_parameters);
    double replicated = replicated_parameters(block, layer->class_);
    double key_whole = key_value_parameters(block, (double)block->kv_heads * (double)block->head_dim);
    double sharded = count - replicated - key_whole;

    if (sharded < 0) // the user's own count, too small for this architecture: share it all
        return count / view->tp;
    return sharded / view->tp + key_value_parameters(block, ps_rank_block_of(view, block).key) + replicated;
}

static double dense_parameters(const ps_rank_view *view, const ps_layer *layer)
{
    const ps_block *block = layer->block;

    if (!block || layer->parameters == 0 || (layer->shared_with >= 0 && layer->class_ != PS_LAYER_MTP))
        return (double)layer->parameters;
    double rows = ps_rank_block_of(view, block).vocabulary;
    switch (layer->class_) {
    case PS_LAYER_DECODER:
    case PS_LAYER_MAMBA:
    case PS_LAYER_MTP: return block_parameters(view, layer);
    case PS_LAYER_EMBEDDING:
        return (rows + (double)block->learned_positions) * (double)block->hidden_size + (double)block->extra_parameters;
    case PS_LAYER_HEAD: return rows * (double)block->hidden_size + (double)block->extra_parameters;
    case PS_LAYER_NORM:
    case PS_LAYER_PATCHES:
    case PS_LAYER_CLASSIFIER:
    case PS_LAYER_TIMED: break;
    }
    return (double)layer->parameters;
}

static double copied_parameters(const ps_rank_view *view, const ps_layer *layer)
{
    if (layer->shared_with < 0)
        return 0;
    if (layer->block && layer->block->vocab_size > 0)
        return ps_rank_block_of(view, layer->block).vocabulary * (double)layer->block->hidden_size;
    return (double)layer->shared_parameters;
}

// Elements of the adapters of a block's dense matrices: rank * (in + out) each, the wide side divided.
static double adapter_parameters(const ps_rank_view *view, const ps_layer *layer)
{
    const ps_block *block = layer->block;
    double rank = (double)view->job->lora_rank;

    if (!block || (layer->class_ != PS_LAYER_DECODER && layer->class_ != PS_LAYER_MTP))
        return 0;
    ps_rank_block r = ps_rank_block_of(view, block);
    double width = block->experts > 0 ? r.shared_ffn : r.ffn;
    double sides = 0;
    if (block->attention_heads > 0)
        sides += 2 * r.hidden + 2 * r.query + 2 * r.key;
    if (width > 0)
        sides += 2 * r.hidden + (r.ffn_inner + 1) * width;
    return rank * sides;
}

ps_rank_weights ps_rank_weights_of(const ps_rank_view *view, const ps_layer *layer)
{
    double dense = dense_parameters(view, layer);
    double expert = layer->block ? (double)layer->expert_parameters / (view->ep * view->etp) : 0;
    double copy = copied_parameters(view, layer);

    if (view->job->lora_rank > 0)
        return (ps_rank_weights){.dense = adapter_parameters(view, layer), .frozen = dense + expert, .copy = copy};
    return (ps_rank_weights){.dense = dense, .expert = expert, .copy = copy};
}
