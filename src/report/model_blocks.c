// SPDX-License-Identifier: Apache-2.0
//
// model_blocks.c: what one block is, in words, and how many of each a model has.
#include "report/model_blocks.h"

#include <string.h>

#include "base/text.h"
#include "report/table.h"

enum { MOST_BLOCKS = 64 }; // listed; a searched model may have as many as layers

typedef struct block_run {
    const ps_layer *first;
    const char *words;
    int32_t layers;
} block_run;

static void add(ps_text *text, const char *separator, const char *words)
{
    ps_text_addf(text, "%s%s", text->size > 0 ? separator : "", words);
}

static void add_count(ps_text *text, const char *separator, const char *before, int64_t count, const char *after)
{
    ps_text_addf(text, "%s%s%lld%s", text->size > 0 ? separator : "", before, (long long)count, after);
}

static void add_attention(ps_text *text, const ps_block *block)
{
    if (block->attention_heads == 0)
        return;
    if (block->kv_lora_rank > 0) {
        ps_text_addf(text, "latent attention: %lld heads of %lld + %lld, values %lld, key-value rank %lld",
                     (long long)block->attention_heads, (long long)block->head_dim, (long long)block->rope_head_dim,
                     (long long)block->value_head_dim, (long long)block->kv_lora_rank);
        if (block->q_lora_rank > 0)
            add_count(text, ", ", "query rank ", block->q_lora_rank, "");
    } else {
        ps_text_addf(text, "%lld heads of %lld", (long long)block->attention_heads, (long long)block->head_dim);
        if (block->kv_heads != block->attention_heads)
            add_count(text, ", ", "", block->kv_heads, block->kv_heads == 1 ? " key-value head" : " key-value heads");
    }
    if (block->sliding_window > 0)
        add_count(text, ", ", "window ", block->sliding_window, "");
    if (block->bidirectional)
        add(text, ", ", "no causal mask");
    if (block->qk_norm)
        add(text, ", ", "query and key norms");
    if (block->attention_gate)
        add(text, ", ", "gated");
    if (block->attention_sinks)
        add(text, ", ", "sinks");
    if (block->cross_sequence > 0)
        add_count(text, ", ", "cross-attention to ", block->cross_sequence, " tokens");
}

static void add_mixer(ps_text *text, const ps_block *block)
{
    static const char *const names[] = {"Mamba-2", "Mamba-1", "gated delta rule"};
    if (block->inner_size == 0)
        return;
    ps_text_addf(text, "%s: %lld channels, state %lld", names[block->mixer], (long long)block->inner_size,
                 (long long)block->state_size);
    if (block->mamba_heads > 0)
        ps_text_addf(text, ", %lld heads in %lld groups", (long long)block->mamba_heads,
                     (long long)block->state_groups);
}

static void add_ffn(ps_text *text, const ps_block *block)
{
    if (block->linear_maps > 0)
        add_count(text, "; ", "", block->linear_maps, block->linear_maps == 1 ? " linear map" : " linear maps");
    if (block->experts > 0) {
        add_count(text, "; ", "", block->experts, " experts of ");
        ps_text_addf(text, "%lld, %lld a token", (long long)block->expert_ffn_size,
                     (long long)block->experts_per_token);
        if (block->shared_ffn_size > 0)
            add_count(text, ", ", "shared ", block->shared_ffn_size, "");
        if (block->expert_latent_size > 0)
            add_count(text, ", ", "latent ", block->expert_latent_size, "");
    } else if (block->ffn_size > 0) {
        add_count(text, "; ", block->gated_ffn ? "gated FFN " : "FFN ", block->ffn_size, "");
    }
    if (block->parallel)
        add(text, "; ", "both from one input");
}

const char *ps_block_words(ps_arena *arena, const ps_layer *layer)
{
    const ps_block *block = layer->block;
    ps_text text = {.arena = arena};

    if (!block)
        return "";
    add_attention(&text, block);
    add_mixer(&text, block);
    add_ffn(&text, block);
    if (layer->class_ == PS_LAYER_PATCHES)
        add_count(&text, "; ", "patches of ", block->patch_inputs, " numbers");
    if (block->vocab_size > 0)
        add_count(&text, "; ", layer->class_ == PS_LAYER_CLASSIFIER ? "classes " : "vocabulary ", block->vocab_size,
                  "");
    if (block->learned_positions > 0)
        add_count(&text, "; ", "", block->learned_positions, " learned positions");
    if (block->sequence > 0)
        add_count(&text, "; ", "", block->sequence, " tokens of its own");
    return text.size > 0 ? text.data : "";
}

// Layers that are told apart by kind or words, in order of their first. Compares blocks by pointer before words.
static int32_t find_runs(ps_arena *arena, const ps_model *model, block_run *run)
{
    int32_t count = 0;
    for (int32_t index = 0; index < model->num_layers; index++) {
        const ps_layer *layer = &model->layer[index];
        int32_t at = 0;
        if (!layer->block || layer->class_ == PS_LAYER_NORM)
            continue;
        while (at < count && run[at].first->block != layer->block)
            at++;
        const char *words = at < count ? run[at].words : ps_block_words(arena, layer);
        for (at = 0; at < count; at++)
            if (strcmp(run[at].first->kind, layer->kind) == 0 && strcmp(run[at].words, words) == 0)
                break;
        if (at == MOST_BLOCKS)
            continue;
        if (at == count)
            run[count++] = (block_run){.first = layer, .words = words};
        run[at].layers++;
    }
    return count;
}

void ps_model_blocks_json(ps_json_writer *json, ps_arena *arena, const ps_model *model)
{
    block_run run[MOST_BLOCKS];
    int32_t count = find_runs(arena, model, run);
    if (count == 0)
        return;
    ps_json_array(json, "blocks");
    for (int32_t at = 0; at < count; at++) {
        ps_json_object_inline(json, NULL);
        ps_json_put_string(json, "kind", run[at].first->kind);
        ps_json_put_string(json, "first", run[at].first->name);
        ps_json_put_int(json, "layers", run[at].layers);
        ps_json_put_string(json, "architecture", run[at].words);
        ps_json_close(json);
    }
    ps_json_close(json);
}

void ps_model_blocks_text(FILE *file, ps_arena *arena, const ps_model *model)
{
    block_run run[MOST_BLOCKS];
    int32_t count = find_runs(arena, model, run);
    ps_table table;
    if (count == 0)
        return;
    ps_table_begin(&table, arena, "lrl");
    ps_table_put(&table, "from");
    ps_table_put(&table, "layers");
    ps_table_put(&table, "architecture");
    for (int32_t at = 0; at < count; at++) {
        ps_table_put(&table, "%s", run[at].first->name);
        ps_table_put(&table, "%d", (int)run[at].layers);
        ps_table_put(&table, "%s", run[at].words);
    }
    fputc('\n', file);
    ps_table_print(file, &table, 2);
}
