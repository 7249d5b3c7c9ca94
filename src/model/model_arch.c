// SPDX-License-Identifier: Apache-2.0
//
// model_arch.c: the architecture keys of a native layer, as one table: which kinds have a key, and which need it.
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "model/model_json.h"
#include "model/model_params.h"
#include "pipesched/limits.h"

enum {
    EMBEDDING = 1 << 0,
    DECODER = 1 << 1,
    MOE_DECODER = 1 << 2,
    NORM = 1 << 3,
    HEAD = 1 << 4,
    ATTENTION = 1 << 5,
    FFN = 1 << 6,
    MOE = 1 << 7,
    MAMBA = 1 << 8,
    MTP = 1 << 9,
    PATCHES = 1 << 10,
    CLASSIFIER = 1 << 11,
    ALL = (1 << 12) - 1,
    BLOCKS = DECODER | MOE_DECODER | ATTENTION | FFN | MOE | MAMBA | MTP,
    ATTENDS = DECODER | MOE_DECODER | ATTENTION | MTP, // must have heads
    DENSE = DECODER | FFN,                             // must have an FFN; Mamba and MTP may
    SPARSE = MOE_DECODER | MOE,                        // must have experts; Mamba and MTP may
    EITHER = MAMBA | MTP,
    VOCABULARY = EMBEDDING | HEAD | MTP | CLASSIFIER,
    MOST_NORMS = 64,
    TOKENS = BLOCKS | EMBEDDING | NORM | PATCHES // may have a sequence of their own
};

static const struct arch_kind {
    unsigned bit;
    ps_layer_class class_;
} kinds[] = {
    {EMBEDDING, PS_LAYER_EMBEDDING}, {DECODER, PS_LAYER_DECODER},
    {MOE_DECODER, PS_LAYER_DECODER}, {NORM, PS_LAYER_NORM},
    {HEAD, PS_LAYER_HEAD},           {ATTENTION, PS_LAYER_DECODER},
    {FFN, PS_LAYER_DECODER},         {MOE, PS_LAYER_DECODER},
    {MAMBA, PS_LAYER_MAMBA},         {MTP, PS_LAYER_MTP},
    {PATCHES, PS_LAYER_PATCHES},     {CLASSIFIER, PS_LAYER_CLASSIFIER},
};
const char *const ps_arch_kind_names[] = {"embedding", "decoder", "moe-decoder", "norm", "head",    "attention",
                                          "ffn",       "moe",     "mamba",       "mtp",  "patches", "classifier"};
const int32_t ps_arch_num_kinds = sizeof kinds / sizeof kinds[0];

typedef enum arch_type { COUNT, SWITCH, NORM_KIND, MIXER_KIND, LAYER_NAME } arch_type;

#define DIMENSION(key, may, must)                                                                                      \
    {                                                                                                                  \
#key, COUNT, may, must, offsetof(ps_block, key), PS_MAX_DIMENSION                                              \
    }
#define LENGTH(key, may, must)                                                                                         \
    {                                                                                                                  \
#key, COUNT, may, must, offsetof(ps_block, key), PS_MAX_SEQUENCE                                               \
    }
#define FLAG(key, may)                                                                                                 \
    {                                                                                                                  \
#key, SWITCH, may, 0, offsetof(ps_block, key), 0                                                               \
    }

static const struct arch_key {
    const char *key;
    arch_type type;
    unsigned kinds;    // that may have it
    unsigned required; // that must
    size_t offset;     // in ps_block
    int64_t max;       // of a count; the least is 1
} keys[] = {
    DIMENSION(hidden_size, ALL, ALL),
    DIMENSION(vocab_size, VOCABULARY, VOCABULARY),
    LENGTH(learned_positions, EMBEDDING | PATCHES, 0),
    DIMENSION(patch_inputs, PATCHES, PATCHES),
    LENGTH(sequence, TOKENS, PATCHES),
    LENGTH(cross_sequence, DECODER | MOE_DECODER | EMBEDDING, 0),
    DIMENSION(attention_heads, ATTENDS, ATTENDS),
    DIMENSION(kv_heads, ATTENDS, 0),
    DIMENSION(head_dim, ATTENDS, 0),
    LENGTH(sliding_window, ATTENDS, 0),
    DIMENSION(q_lora_rank, ATTENDS, 0),
    DIMENSION(kv_lora_rank, ATTENDS, 0),
    DIMENSION(rope_head_dim, ATTENDS, 0),
    DIMENSION(value_head_dim, ATTENDS, 0),
    FLAG(bidirectional, ATTENDS),
    FLAG(qkv_bias, ATTENDS),
    FLAG(output_bias, ATTENDS | PATCHES),
    FLAG(qk_norm, ATTENDS),
    FLAG(attention_gate, ATTENDS),
    FLAG(attention_sinks, ATTENDS),
    FLAG(keys_as_values, ATTENDS),
    DIMENSION(ffn_size, DENSE | EITHER, DENSE),
    DIMENSION(experts, SPARSE | EITHER, SPARSE),
    DIMENSION(experts_per_token, SPARSE | EITHER, SPARSE),
    DIMENSION(expert_ffn_size, SPARSE | EITHER, SPARSE),
    DIMENSION(shared_ffn_size, SPARSE | EITHER, 0),
    DIMENSION(expert_latent_size, SPARSE | EITHER, 0),
    FLAG(router_bias, SPARSE | EITHER),
    FLAG(shared_gate, SPARSE | EITHER),
    {"gated", SWITCH, BLOCKS & ~ATTENTION, 0, offsetof(ps_block, gated_ffn), 0},
    FLAG(ffn_bias, BLOCKS & ~ATTENTION),
    {"mixer", MIXER_KIND, MAMBA, 0, offsetof(ps_block, mixer), 0},
    DIMENSION(state_size, MAMBA, MAMBA),
    DIMENSION(inner_size, MAMBA, 0),
    DIMENSION(mamba_heads, MAMBA, 0),
    DIMENSION(state_groups, MAMBA, 0),
    DIMENSION(conv_size, MAMBA, 0),
    DIMENSION(time_step_rank, MAMBA, 0),
    FLAG(conv_bias, MAMBA),
    FLAG(mixer_bias, MAMBA),
    FLAG(parallel, DECODER | MOE_DECODER),
    {"norms", COUNT, BLOCKS, 0, offsetof(ps_block, norms), MOST_NORMS},
    DIMENSION(extra_parameters, ALL & ~NORM, 0),
    FLAG(dropout, EMBEDDING | BLOCKS),
    {"norm", NORM_KIND, BLOCKS | NORM, 0, offsetof(ps_block, norm), 0},
    {"tied_with", LAYER_NAME, HEAD | EMBEDDING | MTP, 0, 0, 0},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

int32_t ps_arch_num_keys(void)
{
    return KEYS;
}

const char *ps_arch_key_name(int32_t key)
{
    return keys[key].key;
}

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

static ps_code read_mixer(ps_json entry, ps_mixer_kind *out, ps_status *status)
{
    static const char *const names[] = {"mamba2", "mamba1", "delta"};
    const char *name = names[0];
    PS_TRY(ps_json_get_string(entry, "mixer", PS_OPTIONAL, &name, status));
    for (int32_t kind = 0; kind < 3; kind++) {
        if (strcmp(names[kind], name) == 0) {
            *out = (ps_mixer_kind)kind;
            return PS_OK;
        }
    }
    return ps_json_fail(ps_json_member(entry, "mixer"), "bad-value", status,
                        "expected \"mamba2\", \"mamba1\" or \"delta\", got \"%.64s\"", name);
}

static ps_code read_key(ps_json entry, const struct arch_key *key, unsigned kind, ps_block *block, ps_status *status)
{
    void *field = (char *)block + key->offset;
    ps_need need = key->required & kind ? PS_REQUIRED : PS_OPTIONAL;
    switch (key->type) {
    case COUNT: return ps_json_get_int(entry, key->key, need, 1, key->max, field, status);
    case SWITCH: return ps_json_get_bool(entry, key->key, need, field, status);
    case NORM_KIND: return read_norm(entry, field, status);
    case MIXER_KIND: return read_mixer(entry, field, status);
    case LAYER_NAME: break; // resolved once all layers are known
    }
    return PS_OK;
}

static ps_code find_kind(ps_arena *arena, ps_json entry, const char *name, int32_t *out, ps_status *status)
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
    ps_text list = {.arena = arena};
    for (int32_t kind = 0; kind < ps_arch_num_kinds; kind++)
        ps_text_addf(&list, "%s%s", kind > 0 ? ", " : "", ps_arch_kind_names[kind]);
    return ps_fail_hint(status, "give forward_ms, backward_input_ms and backward_weight_ms, or one of the kinds %s",
                        list.data);
}

// What follows from other figures where a file leaves it out.
static ps_code fill_attention(ps_json entry, ps_block *block, ps_status *status)
{
    if (block->kv_heads == 0)
        block->kv_heads = block->attention_heads;
    if (block->head_dim == 0 && block->hidden_size % block->attention_heads != 0)
        return ps_json_fail(entry, "head-dim", status,
                            "%lld attention heads do not divide the hidden size %lld, so head_dim must be given",
                            (long long)block->attention_heads, (long long)block->hidden_size);
    if (block->head_dim == 0)
        block->head_dim = block->hidden_size / block->attention_heads;
    if (block->kv_lora_rank > 0 && block->value_head_dim == 0)
        block->value_head_dim = block->head_dim;
    return PS_OK;
}

static ps_code fill_mixer(ps_json entry, ps_block *block, ps_status *status)
{
    if (block->inner_size == 0)
        block->inner_size = 2 * block->hidden_size;
    if (block->state_groups == 0)
        block->state_groups = 1;
    if (block->conv_size == 0)
        block->conv_size = 4;
    bool first = block->mixer == PS_MIXER_MAMBA1;
    if (!first && block->mamba_heads == 0)
        return ps_json_fail(entry, "missing-key", status, "\"mamba_heads\" is missing");
    if (first && block->time_step_rank == 0)
        block->time_step_rank = (block->hidden_size + 15) / 16;
    return PS_OK;
}

// Kinds that may have either FFN have one, or none, but experts whole.
static ps_code check_ffn(ps_json entry, const ps_block *block, ps_status *status)
{
    bool any = block->experts > 0 || block->experts_per_token > 0 || block->expert_ffn_size > 0;
    bool all = block->experts > 0 && block->experts_per_token > 0 && block->expert_ffn_size > 0;
    if (any && !all)
        return ps_json_fail(entry, "missing-key", status,
                            "experts need \"experts\", \"experts_per_token\" and \"expert_ffn_size\"");
    if (any && block->ffn_size > 0)
        return ps_json_fail(entry, "two-ffns", status,
                            "a layer has a dense FFN or experts, not both; an FFN beside "
                            "the experts is \"shared_ffn_size\"");
    return PS_OK;
}

ps_code ps_arch_read(ps_arena *arena, ps_json entry, ps_layer *layer, ps_status *status)
{
    int32_t kind = 0;
    PS_TRY(find_kind(arena, entry, layer->kind, &kind, status));
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
    if (bit & ATTENDS)
        PS_TRY(fill_attention(entry, block, status));
    if (bit & MAMBA)
        PS_TRY(fill_mixer(entry, block, status));
    if (bit & EITHER)
        PS_TRY(check_ffn(entry, block, status));
    layer->class_ = kinds[kind].class_;
    return ps_layer_set_block(layer, block, status) == PS_OK ? PS_OK : ps_json_fail_place(entry, status);
}
