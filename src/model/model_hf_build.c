// SPDX-License-Identifier: Apache-2.0
//
// model_hf_build.c: layers from what was read of a config.json.
#include <string.h>

#include "model/model_hf.h"
#include "model/model_params.h"

void hf_make_room(hf_reader *reader, int64_t layers)
{
    reader->room = layers;
    reader->model->layer = ps_new(reader->arena, ps_layer, layers);
}

// The key behind a rule that an architecture broke; a default may be at fault.
static ps_code place_fault(const hf_reader *reader, ps_status *status)
{
    const char *key = NULL;
    if (strcmp(status->rule, "heads-divide") == 0)
        key = hf_key(reader, hf_kv_heads);
    else if (strcmp(status->rule, "experts-per-token") == 0)
        key = hf_key(reader, hf_experts_per_token);
    ps_json at = key ? ps_json_member(reader->root, key) : reader->root;
    return ps_json_fail_place(at.node ? at : reader->root, status);
}

// Blocks share their architecture: one that an earlier layer has is not made again.
static const ps_block *shared_block(hf_reader *reader, const ps_block *figures, ps_layer_class class_)
{
    enum { LOOK_BACK = 12 };
    const ps_model *model = reader->model;
    for (int32_t back = 1; back <= LOOK_BACK && back <= model->num_layers; back++) {
        const ps_layer *layer = &model->layer[model->num_layers - back];
        // Bytes between members may differ; then one is made that need not be.
        // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c)
        if (layer->class_ == class_ && memcmp(layer->block, figures, sizeof *figures) == 0)
            return layer->block;
    }
    ps_block *block = ps_new(reader->arena, ps_block, 1);
    memcpy(block, figures, sizeof *block);
    return block;
}

ps_code hf_add(hf_reader *reader, ps_layer layer, const ps_block *figures, ps_status *status)
{
    ps_model *model = reader->model;
    if (model->num_layers >= reader->room)
        return ps_json_fail(reader->root, "too-many-layers", status, "at most %d layers", (int)PS_MAX_LAYERS);
    if (ps_layer_set_block(&layer, shared_block(reader, figures, layer.class_), status) != PS_OK)
        return place_fault(reader, status);
    model->layer[model->num_layers++] = layer;
    return PS_OK;
}

ps_code hf_add_embedding(hf_reader *reader, ps_status *status)
{
    const hf_type *type = reader->type;
    ps_block block = {.hidden_size = reader->common.hidden_size, .norm = type->norm};

    PS_TRY(hf_count_of(reader, "vocab_size", type->default_vocab > 0 ? type->default_vocab : -1, &reader->vocabulary,
                       status));
    block.vocab_size = reader->vocabulary;
    block.extra_parameters = reader->embedding_extra;
    if (type->learned_positions) {
        PS_TRY(hf_count(reader, hf_positions, -1, &block.learned_positions, status));
        block.learned_positions += type->extra_positions;
        block.dropout = reader->common.dropout;
        double rate = 0;
        PS_TRY(ps_json_get_double(reader->root, "embd_pdrop", PS_OPTIONAL, 0, 1, &rate, status));
        if (hf_given(reader, "embd_pdrop"))
            block.dropout = rate > 0;
    }
    return hf_add(reader, ps_layer_named("embedding", "embedding", PS_LAYER_EMBEDDING, "embedding"), &block, status);
}

static void add_mix(const hf_reader *reader, hf_mix mix, ps_block *block)
{
    const ps_block *mixer = &reader->mixer;
    if (mix == HF_MIX_WINDOW)
        block->sliding_window = reader->window;
    if (mix == HF_MIX_ATTENTION || mix == HF_MIX_WINDOW)
        return;
    block->attention_heads = 0;
    block->kv_heads = 0;
    block->head_dim = 0;
    block->q_lora_rank = 0;
    block->kv_lora_rank = 0;
    block->rope_head_dim = 0;
    block->value_head_dim = 0;
    block->qkv_bias = false;
    block->output_bias = false;
    block->qk_norm = false;
    block->attention_gate = false;
    block->attention_sinks = false;
    if (mix == HF_MIX_NONE)
        return;
    block->mixer = mixer->mixer;
    block->state_size = mixer->state_size;
    block->inner_size = mixer->inner_size;
    block->mamba_heads = mixer->mamba_heads;
    block->state_groups = mixer->state_groups;
    block->conv_size = mixer->conv_size;
    block->time_step_rank = mixer->time_step_rank;
    block->conv_bias = mixer->conv_bias;
    block->mixer_bias = mixer->mixer_bias;
    block->extra_parameters += mixer->extra_parameters;
}

static void add_feed(const hf_reader *reader, hf_feed feed, ps_block *block)
{
    if (feed == HF_FEED_DENSE)
        block->ffn_size = reader->dense_ffn;
    if (feed != HF_FEED_EXPERTS) {
        block->router_bias = false;
        block->shared_gate = false;
        block->expert_latent_size = 0;
        return;
    }
    block->experts = reader->experts;
    block->experts_per_token = reader->experts_per_token;
    block->expert_ffn_size = reader->expert_ffn;
    block->shared_ffn_size = reader->shared_ffn;
    block->shared_gate = block->shared_gate && reader->shared_ffn > 0;
}

static ps_layer named_block(const hf_reader *reader, const ps_block *block, const char *name)
{
    bool mixer = block->inner_size > 0;
    bool alone = mixer && block->experts == 0 && block->ffn_size == 0;
    bool dense = reader->experts > 0 && block->experts == 0 && !mixer && !reader->feeds_known;
    const char *kind = block->experts > 0            ? "moe-decoder"
                       : mixer                       ? "mamba"
                       : block->attention_heads == 0 ? "ffn"
                                                     : "decoder";
    if (mixer && block->experts > 0)
        kind = "moe-mamba";
    else if (block->experts > 0 && block->attention_heads == 0)
        kind = "moe";
    else if (block->attention_heads > 0 && block->ffn_size == 0 && block->experts == 0)
        kind = "attention";
    // Measurements are keyed by the base name, so the kinds of a mixed model need one each.
    const char *base = dense ? "dense_block" : reader->feeds_known || mixer ? kind : "block";
    return ps_layer_named(name, base, alone ? PS_LAYER_MAMBA : PS_LAYER_DECODER, kind);
}

ps_code hf_add_blocks(hf_reader *reader, ps_status *status)
{
    for (int32_t index = 0; index < reader->num_blocks; index++) {
        ps_block block;
        memcpy(&block, &reader->common, sizeof block); // with its padding, since blocks are compared by bytes
        add_mix(reader, (hf_mix)reader->mix[index], &block);
        add_feed(reader, (hf_feed)reader->feed[index], &block);
        if (reader->type->shape)
            PS_TRY(reader->type->shape(reader, index, &block, status));
        const char *name = ps_text_format(reader->arena, "block.%d", (int)index);
        PS_TRY(hf_add(reader, named_block(reader, &block, name), &block, status));
    }
    return PS_OK;
}

ps_code hf_add_norm(hf_reader *reader, const char *name, ps_status *status)
{
    ps_block block = {.hidden_size = reader->common.hidden_size, .norm = reader->common.norm};
    return hf_add(reader, ps_layer_named(name, name, PS_LAYER_NORM, "norm"), &block, status);
}

ps_code hf_add_head(hf_reader *reader, ps_status *status)
{
    ps_model *model = reader->model;
    ps_block block = {.hidden_size = reader->common.hidden_size,
                      .norm = reader->type->norm,
                      .vocab_size = reader->vocabulary,
                      .extra_parameters = reader->head_extra};
    bool tied = reader->type->tied;
    ps_json given = ps_json_member(reader->root, "tie_word_embeddings");
    bool outside = !given.node && ps_json_member(reader->outer, "tie_word_embeddings").node;
    PS_TRY(ps_json_get_bool(outside ? reader->outer : reader->root, "tie_word_embeddings", PS_OPTIONAL, &tied, status));
    if (!outside && !hf_given(reader, "tie_word_embeddings"))
        hf_assume(reader, "tie_word_embeddings", tied ? "true" : "false");
    PS_TRY(hf_add(reader, ps_layer_named("head", "head", PS_LAYER_HEAD, "head"), &block, status));
    if (tied)
        ps_layer_tie(&model->layer[model->num_layers - 1], 0);
    return PS_OK;
}

ps_code hf_build_decoder(hf_reader *reader, ps_status *status)
{
    hf_make_room(reader, (int64_t)reader->num_blocks + 3);
    PS_TRY(hf_add_embedding(reader, status));
    PS_TRY(hf_add_blocks(reader, status));
    PS_TRY(hf_add_norm(reader, "final_norm", status));
    return hf_add_head(reader, status);
}
