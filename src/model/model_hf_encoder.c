// SPDX-License-Identifier: Apache-2.0
//
// model_hf_encoder.c: encoders, alone (BERT, ViT) or in front of a decoder (T5): a chain all the same.
#include <string.h>

#include "base/number.h"
#include "model/model_hf.h"
#include "model/model_params.h"

// BERT as transformers builds it without a task: its blocks, and a dense layer on the first token.
ps_code hf_build_bert(hf_reader *reader, ps_status *status)
{
    hf_make_room(reader, (int64_t)reader->num_blocks + 2);
    PS_TRY(hf_add_embedding(reader, status));
    PS_TRY(hf_add_blocks(reader, status));
    ps_block pooler = {.hidden_size = reader->common.hidden_size, .vocab_size = reader->common.hidden_size};
    return hf_add(reader, ps_layer_named("pooler", "pooler", PS_LAYER_CLASSIFIER, "classifier"), &pooler, status);
}

// Rows and columns of patches.
static ps_code read_patches(hf_reader *reader, ps_block *out, ps_status *status)
{
    int64_t image = 0;
    int64_t patch = 0;
    int64_t channels = 0;

    PS_TRY(hf_count_of(reader, "image_size", 224, &image, status));
    PS_TRY(hf_count_of(reader, "patch_size", 16, &patch, status));
    PS_TRY(hf_count_of(reader, "num_channels", 3, &channels, status));
    int64_t side = image / patch;
    int64_t inputs = ps_multiply_saturating(ps_multiply_saturating(patch, patch), channels);
    int64_t tokens = ps_multiply_saturating(side, side);
    if (side < 1 || inputs > PS_MAX_DIMENSION || tokens > PS_MAX_DIMENSION)
        return ps_json_fail(reader->root, "patch-size", status,
                            "patches of %lld x %lld do not fit an image of %lld x %lld", (long long)patch,
                            (long long)patch, (long long)image, (long long)image);
    *out = (ps_block){.hidden_size = reader->common.hidden_size,
                      .patch_inputs = inputs,
                      .sequence = tokens + 1,
                      .learned_positions = tokens + 1,
                      .output_bias = true,
                      .extra_parameters = reader->common.hidden_size};
    return PS_OK;
}

// Dosovitskiy et al. 2021: patches and a class token, which the classifier reads.
ps_code hf_build_vit(hf_reader *reader, ps_status *status)
{
    ps_block patches = {0};
    int64_t classes = 0;
    ps_json labels = ps_json_member(reader->root, "id2label");

    PS_TRY(read_patches(reader, &patches, status));
    reader->common.sequence = patches.sequence;
    bool bias = true;
    PS_TRY(hf_switch(reader, "qkv_bias", &bias, status));
    reader->common.qkv_bias = bias;
    classes = ps_json_is(labels, PS_JSON_OBJECT) ? ps_json_count(labels) : 2;
    PS_TRY(hf_count_of(reader, "num_labels", classes, &classes, status));

    hf_make_room(reader, (int64_t)reader->num_blocks + 3);
    PS_TRY(hf_add(reader, ps_layer_named("patches", "patches", PS_LAYER_PATCHES, "patches"), &patches, status));
    PS_TRY(hf_add_blocks(reader, status));
    ps_block norm = {.hidden_size = reader->common.hidden_size, .norm = PS_NORM_LAYER, .sequence = patches.sequence};
    PS_TRY(hf_add(reader, ps_layer_named("final_norm", "final_norm", PS_LAYER_NORM, "norm"), &norm, status));
    ps_block head = {.hidden_size = reader->common.hidden_size, .vocab_size = classes};
    return hf_add(reader, ps_layer_named("head", "head", PS_LAYER_CLASSIFIER, "classifier"), &head, status);
}

// `count` blocks; the first holds the biases of relative positions that all of a stack use.
static ps_code add_stack(hf_reader *reader, const char *base, int32_t count, const ps_block *figures, int64_t biases,
                         ps_status *status)
{
    for (int32_t index = 0; index < count; index++) {
        ps_block block;
        memcpy(&block, figures, sizeof block);
        block.extra_parameters = index == 0 ? biases : 0;
        const char *name = ps_text_format(reader->arena, "%s.%d", base, (int)index);
        const char *kind = block.bidirectional ? "encoder" : "decoder";
        PS_TRY(hf_add(reader, ps_layer_named(name, base, PS_LAYER_DECODER, kind), &block, status));
    }
    return PS_OK;
}

// Both stacks embed with one matrix; the encoder's output travels along the decoder's blocks.
static ps_code add_decoder_embedding(hf_reader *reader, int64_t encoded, ps_status *status)
{
    ps_model *model = reader->model;
    ps_block block = {.hidden_size = reader->common.hidden_size,
                      .vocab_size = reader->vocabulary,
                      .cross_sequence = encoded,
                      .norm = reader->type->norm};
    PS_TRY(hf_add(reader, ps_layer_named("decoder_embedding", "decoder_embedding", PS_LAYER_EMBEDDING, "embedding"),
                  &block, status));
    ps_layer_tie(&model->layer[model->num_layers - 1], 0);
    return PS_OK;
}

// Raffel et al. 2020.
ps_code hf_build_t5(hf_reader *reader, ps_status *status)
{
    int32_t decoder_blocks = reader->num_blocks;
    int64_t encoded = 0;
    int64_t buckets = 0;
    const char *projection = "relu";
    ps_model *model = reader->model;

    PS_TRY(ps_json_get_int32(reader->root, "num_decoder_layers", PS_OPTIONAL, 1, PS_MAX_LAYERS - 5, &decoder_blocks,
                             status));
    PS_TRY(ps_json_get_string(reader->root, "feed_forward_proj", PS_OPTIONAL, &projection, status));
    PS_TRY(hf_count_of(reader, "relative_attention_num_buckets", 32, &buckets, status));
    PS_TRY(hf_count_of(reader, "n_positions", 512, &encoded, status));
    if (reader->num_blocks > PS_MAX_LAYERS - 5 - decoder_blocks)
        return ps_json_fail(hf_place(reader, "num_decoder_layers"), "too-many-layers", status, "at most %d layers",
                            (int)PS_MAX_LAYERS);
    hf_assume(reader, "tokens of the encoder's sequence,", ps_text_format(reader->arena, "%lld", (long long)encoded));
    int64_t biases = ps_multiply_saturating(buckets, reader->common.attention_heads);
    reader->common.ffn_size = reader->dense_ffn;
    reader->common.gated_ffn = strncmp(projection, "gated", 5) == 0;

    hf_make_room(reader, (int64_t)reader->num_blocks + decoder_blocks + 5);
    PS_TRY(hf_add_embedding(reader, status));
    ps_block *first = ps_new(reader->arena, ps_block, 1);
    memcpy(first, model->layer[0].block, sizeof *first);
    first->sequence = encoded;
    model->layer[0].block = first;

    ps_block encoder;
    memcpy(&encoder, &reader->common, sizeof encoder);
    encoder.sequence = encoded;
    encoder.bidirectional = true;
    PS_TRY(add_stack(reader, "encoder", reader->num_blocks, &encoder, biases, status));
    ps_block norm = {.hidden_size = encoder.hidden_size, .sequence = encoded};
    PS_TRY(hf_add(reader, ps_layer_named("encoder_norm", "encoder_norm", PS_LAYER_NORM, "norm"), &norm, status));
    PS_TRY(add_decoder_embedding(reader, encoded, status));
    reader->common.cross_sequence = encoded;
    PS_TRY(add_stack(reader, "block", decoder_blocks, &reader->common, biases, status));
    PS_TRY(hf_add_norm(reader, "final_norm", status));
    return hf_add_head(reader, status);
}
