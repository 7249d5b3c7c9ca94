// SPDX-License-Identifier: Apache-2.0
//
// model_arch.c: the architecture keys of a native layer, as one table: which kinds have a key, and which need it.
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "model/model_json.h"
#include "model/model_params.h"
#include "pipesched/limits.h"

enum { EMBEDDING = 1, DECODER = 2, MOE = 4, NORM = 8, HEAD = 16, BLOCKS = DECODER | MOE, ALL = 31 };

static const struct arch_kind {
    unsigned bit;
    ps_layer_class class_;
} kinds[] = {
    {EMBEDDING, PS_LAYER_EMBEDDING}, {DECODER, PS_LAYER_DECODER}, {MOE, PS_LAYER_DECODER},
    {NORM, PS_LAYER_NORM},           {HEAD, PS_LAYER_HEAD},
};
const char *const ps_arch_kind_names[] = {"embedding", "decoder", "moe-decoder", "norm", "head"};
const int32_t ps_arch_num_kinds = sizeof kinds / sizeof kinds[0];

typedef enum arch_type { COUNT, SWITCH, NORM_KIND, LAYER_NAME } arch_type;

static const struct arch_key {
    const char *key;
    arch_type type;
    unsigned kinds;    // that may have it
    unsigned required; // that must
    size_t offset;     // in ps_block
    int64_t max;       // of a count; the least is 1
} keys[] = {
    {"hidden_size", COUNT, ALL, ALL, offsetof(ps_block, hidden_size), PS_MAX_DIMENSION},
    {"vocab_size", COUNT, EMBEDDING | HEAD, EMBEDDING | HEAD, offsetof(ps_block, vocab_size), PS_MAX_DIMENSION},
    {"learned_positions", COUNT, EMBEDDING, 0, offsetof(ps_block, learned_positions), PS_MAX_SEQUENCE},
    {"attention_heads", COUNT, BLOCKS, BLOCKS, offsetof(ps_block, attention_heads), PS_MAX_DIMENSION},
    {"kv_heads", COUNT, BLOCKS, 0, offsetof(ps_block, kv_heads), PS_MAX_DIMENSION},
    {"head_dim", COUNT, BLOCKS, 0, offsetof(ps_block, head_dim), PS_MAX_DIMENSION},
    {"ffn_size", COUNT, DECODER, DECODER, offsetof(ps_block, ffn_size), PS_MAX_DIMENSION},
    {"experts", COUNT, MOE, MOE, offsetof(ps_block, experts), PS_MAX_DIMENSION},
    {"experts_per_token", COUNT, MOE, MOE, offsetof(ps_block, experts_per_token), PS_MAX_DIMENSION},
    {"expert_ffn_size", COUNT, MOE, MOE, offsetof(ps_block, expert_ffn_size), PS_MAX_DIMENSION},
    {"sliding_window", COUNT, BLOCKS, 0, offsetof(ps_block, sliding_window), PS_MAX_SEQUENCE},
    {"gated", SWITCH, BLOCKS, 0, offsetof(ps_block, gated_ffn), 0},
    {"qkv_bias", SWITCH, BLOCKS, 0, offsetof(ps_block, qkv_bias), 0},
    {"output_bias", SWITCH, BLOCKS, 0, offsetof(ps_block, output_bias), 0},
    {"ffn_bias", SWITCH, BLOCKS, 0, offsetof(ps_block, ffn_bias), 0},
    {"qk_norm", SWITCH, BLOCKS, 0, offsetof(ps_block, qk_norm), 0},
    {"dropout", SWITCH, EMBEDDING | BLOCKS, 0, offsetof(ps_block, dropout), 0},
    {"norm", NORM_KIND, BLOCKS | NORM, 0, offsetof(ps_block, norm), 0},
    {"tied_with", LAYER_NAME, HEAD, 0, 0, 0},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

const char *const ps_arch_key_names[] = {
    "hidden_size", "vocab_size",  "learned_positions", "attention_heads", "kv_heads",       "head_dim",
    "ffn_size",    "experts",     "experts_per_token", "expert_ffn_size", "sliding_window", "gated",
    "qkv_bias",    "output_bias", "ffn_bias",          "qk_norm",         "dropout",        "norm",
    "tied_with",   NULL};

bool ps_arch_given(ps_json entry)
{
    for (int32_t key = 0; key < KEYS; key++)
        if (ps_json_member(entry, keys[key].key).node)
            return true;
    return false;
}

static ps_code read_norm(ps_json entry, ps_norm_kind *out, ps_status *status)
{
    const char *name = "rms";
    PS_TRY(ps_json_get_string(entry, "norm", PS_OPTIONAL, &name, status));
    *out = strcmp(name, "layer") == 0 ? PS_NORM_LAYER : PS_NORM_RMS;
    if (*out == PS_NORM_RMS && strcmp(name, "rms") != 0)
        return ps_json_fail(ps_json_member(entry, "norm"), "bad-value", status,
                            "expected \"rms\" or \"layer\", got \"%.64s\"", name);
    return PS_OK;
}

static ps_code read_key(ps_json entry, const struct arch_key *key, unsigned kind, ps_block *block, ps_status *status)
{
    void *field = (char *)block + key->offset;
    ps_need need = key->required & kind ? PS_REQUIRED : PS_OPTIONAL;
    switch (key->type) {
    case COUNT: return ps_json_get_int(entry, key->key, need, 1, key->max, field, status);
    case SWITCH: return ps_json_get_bool(entry, key->key, need, field, status);
    case NORM_KIND: return read_norm(entry, field, status);
    case LAYER_NAME: break; // resolved once all layers are known
    }
    return PS_OK;
}

static ps_code find_kind(ps_json entry, const char *name, int32_t *out, ps_status *status)
{
    for (int32_t kind = 0; kind < ps_arch_num_kinds; kind++) {
        if (strcmp(ps_arch_kind_names[kind], name) == 0) {
            *out = kind;
            return PS_OK;
        }
    }
    const char *nearest = ps_text_nearest(name, ps_arch_kind_names, ps_arch_num_kinds);
    ps_json at = ps_json_member(entry, "kind");
    ps_json_fail(at.node ? at : entry, "unknown-kind", status,
                 "a layer of kind \"%.64s\" has no known architecture and gives no times", name);
    if (nearest)
        return ps_fail_hint(status, "did you mean \"%s\"?", nearest);
    return ps_fail_hint(status, "give forward_ms, backward_input_ms and backward_weight_ms, or one of the kinds "
                                "embedding, decoder, moe-decoder, norm, head");
}

ps_code ps_arch_read(ps_arena *arena, ps_json entry, ps_layer *layer, ps_status *status)
{
    int32_t kind = 0;
    PS_TRY(find_kind(entry, layer->kind, &kind, status));
    unsigned bit = kinds[kind].bit;
    ps_block *block = ps_new(arena, ps_block, 1);
    block->gated_ffn = (bit & BLOCKS) != 0;
    for (int32_t key = 0; key < KEYS; key++) {
        ps_json member = ps_json_member(entry, keys[key].key);
        if (member.node && !(keys[key].kinds & bit))
            return ps_json_fail(member, "key-not-applicable", status, "a layer of kind \"%s\" has no \"%s\"",
                                ps_arch_kind_names[kind], keys[key].key);
        if (keys[key].kinds & bit)
            PS_TRY(read_key(entry, &keys[key], bit, block, status));
    }
    if (bit & BLOCKS) {
        if (block->kv_heads == 0)
            block->kv_heads = block->attention_heads;
        if (block->head_dim == 0 && block->hidden_size % block->attention_heads != 0)
            return ps_json_fail(entry, "head-dim", status,
                                "%lld attention heads do not divide the hidden size %lld, so head_dim must be given",
                                (long long)block->attention_heads, (long long)block->hidden_size);
        if (block->head_dim == 0)
            block->head_dim = block->hidden_size / block->attention_heads;
    }
    layer->class_ = kinds[kind].class_;
    return ps_layer_set_block(layer, block, status) == PS_OK ? PS_OK : ps_json_fail_place(entry, status);
}
