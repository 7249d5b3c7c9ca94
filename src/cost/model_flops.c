// SPDX-License-Identifier: Apache-2.0
//
// model_flops.c: 6 FLOP a token and matrix element, and those of attention and scans.
#include "cost/model_flops.h"

#include "cost/constants.h"
#include "cost/part.h"

static double attention_elements(const ps_block *b)
{
    double hidden = (double)b->hidden_size;
    double heads = (double)b->attention_heads;
    double query = heads * (double)b->head_dim;
    double key = (double)b->kv_heads * (double)b->head_dim;

    if (b->attention_heads == 0)
        return 0;
    if (b->kv_lora_rank == 0)
        return 2 * hidden * (query + key) + (b->attention_gate ? hidden * query : 0);
    double wide = query + heads * (double)b->rope_head_dim;
    double value = heads * (double)b->value_head_dim;
    double from = b->q_lora_rank > 0 ? (double)b->q_lora_rank : hidden;
    return (b->q_lora_rank > 0 ? hidden * from : 0) + from * wide +
           hidden * (double)(b->kv_lora_rank + b->rope_head_dim) + (double)b->kv_lora_rank * (query + value) +
           value * hidden;
}

static double ffn_elements(const ps_block *b)
{
    double hidden = (double)b->hidden_size;
    double matrices = b->gated_ffn ? 3 : 2;

    if (b->experts == 0)
        return matrices * hidden * (double)b->ffn_size;
    double latent = (double)b->expert_latent_size;
    return matrices * (latent > 0 ? latent : hidden) * (double)b->expert_ffn_size * (double)b->experts_per_token +
           2 * hidden * latent + hidden * (double)b->experts + matrices * hidden * (double)b->shared_ffn_size;
}

static double mamba_elements(const ps_block *b)
{
    double inner = (double)b->inner_size;
    double projected = 2 * inner + 2 * (double)(b->state_groups * b->state_size) + (double)b->mamba_heads;
    return (double)b->hidden_size * (projected + inner);
}

// Training of the projections and the scan.
static double mixer_flops(const ps_block *b, double sequence)
{
    if (b->inner_size == 0)
        return 0;
    return 6 * sequence * mamba_elements(b) +
           3 * PS_COST_SCAN_FLOPS * sequence * (double)b->inner_size * (double)b->state_size;
}

// FLOP of the scores and values of one sequence's forward.
static double core_flops(const ps_block *b, double sequence)
{
    double keys = b->bidirectional ? sequence : ps_causal_keys(sequence, (double)b->sliding_window);
    double heads = (double)b->attention_heads;
    double query = heads * (double)(b->head_dim + (b->kv_lora_rank > 0 ? b->rope_head_dim : 0));
    double value = heads * (double)(b->kv_lora_rank > 0 ? b->value_head_dim : b->head_dim);

    return 2 * sequence * (query + value) * (keys + (double)b->cross_sequence);
}

// Queries and outputs of cross-attention are the block's tokens, keys and values the encoder's.
static double cross_flops(const ps_block *b, double sequence)
{
    double hidden = (double)b->hidden_size;
    double head = (double)b->head_dim;

    if (b->cross_sequence == 0)
        return 0;
    return 2 * hidden * head *
           (2 * sequence * (double)b->attention_heads + 2 * (double)b->cross_sequence * (double)b->kv_heads);
}

double ps_layer_model_flops(const ps_layer *layer, int64_t seq_length)
{
    const ps_block *b = layer->block;

    if (!b) // times only: 6 FLOP a parameter and token (Kaplan et al. 2020)
        return 6 * (double)layer->active_parameters * (double)seq_length;
    double sequence = b->sequence > 0 ? (double)b->sequence : (double)seq_length;
    double hidden = (double)b->hidden_size;
    double vocabulary = hidden * (double)b->vocab_size;
    double elements = attention_elements(b) + ffn_elements(b) + (double)b->linear_maps * hidden * hidden;
    double decoder =
        6 * sequence * elements + 3 * (core_flops(b, sequence) + cross_flops(b, sequence)) + mixer_flops(b, sequence);

    switch (layer->class_) {
    case PS_LAYER_HEAD: return 6 * sequence * vocabulary;
    case PS_LAYER_CLASSIFIER: return 6 * vocabulary;
    case PS_LAYER_PATCHES: return 4 * sequence * hidden * (double)b->patch_inputs; // no gradient of the image
    case PS_LAYER_DECODER:
    case PS_LAYER_MAMBA: return decoder;
    case PS_LAYER_MTP: return decoder + 6 * sequence * (2 * hidden * hidden + vocabulary);
    case PS_LAYER_EMBEDDING:
    case PS_LAYER_NORM:
    case PS_LAYER_TIMED: break;
    }
    return 0;
}
