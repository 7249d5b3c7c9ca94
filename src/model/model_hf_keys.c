// SPDX-License-Identifier: Apache-2.0
//
// model_hf_keys.c: getters that say what they assume, and the names that families have for the same thing.
#include <string.h>

#include "model/model_hf.h"

const char *const hf_hidden[] = {"hidden_size", "n_embd", "n_embed", "d_model", NULL};
const char *const hf_layers[] = {"num_hidden_layers", "n_layer", "n_layers", "num_layers", NULL};
const char *const hf_heads[] = {"num_attention_heads", "n_head", "n_heads", "num_heads", NULL};
const char *const hf_kv_heads[] = {"num_key_value_heads", "num_kv_heads", "n_head_kv", NULL};
const char *const hf_ffn[] = {"intermediate_size", "ffn_dim", "n_inner", "d_ff", "ffn_hidden_size", NULL};
const char *const hf_positions[] = {"max_position_embeddings", "n_positions", "seq_length", "max_seq_len", NULL};
const char *const hf_experts[] = {"num_local_experts", "num_experts", "n_routed_experts", NULL};
const char *const hf_experts_per_token[] = {"num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_topk",
                                            NULL};
const char *const hf_expert_ffn[] = {"moe_intermediate_size", "expert_ffn_size", NULL};
const char *const hf_state_size[] = {"state_size", "ssm_state_size", "mamba_d_state", NULL};

bool hf_given(const hf_reader *reader, const char *key)
{
    ps_json member = ps_json_member(reader->root, key);
    return member.node && !ps_json_is(member, PS_JSON_NULL);
}

ps_json hf_place(const hf_reader *reader, const char *key)
{
    ps_json member = ps_json_member(reader->root, key);
    return member.node ? member : reader->root;
}

const char *hf_key(const hf_reader *reader, const char *const *names)
{
    for (const char *const *name = names; *name; name++)
        if (hf_given(reader, *name))
            return *name;
    for (const char *const *name = names; *name; name++)
        if (ps_json_member(reader->root, *name).node)
            return *name;
    return names[0];
}

bool hf_given_any(const hf_reader *reader, const char *const *names)
{
    return hf_given(reader, hf_key(reader, names));
}

void hf_assume(hf_reader *reader, const char *key, const char *value)
{
    ps_text_addf(&reader->assumed, "%s%s %s", reader->assumed.size > 0 ? ", " : "", key, value);
}

void hf_assume_count(hf_reader *reader, const char *key, int64_t value)
{
    hf_assume(reader, key, ps_text_format(reader->arena, "%lld", (long long)value));
}

ps_code hf_count_of(hf_reader *reader, const char *key, int64_t fallback, int64_t *out, ps_status *status)
{
    ps_need need = fallback < 0 ? PS_REQUIRED : PS_OPTIONAL;
    *out = fallback;
    PS_TRY(ps_json_get_int(reader->root, key, need, 1, PS_MAX_DIMENSION, out, status));
    if (need == PS_OPTIONAL && !hf_given(reader, key))
        hf_assume_count(reader, key, fallback);
    return PS_OK;
}

ps_code hf_count(hf_reader *reader, const char *const *names, int64_t fallback, int64_t *out, ps_status *status)
{
    return hf_count_of(reader, hf_key(reader, names), fallback, out, status);
}

ps_code hf_optional(hf_reader *reader, const char *key, int64_t *out, ps_status *status)
{
    return ps_json_get_int(reader->root, key, PS_OPTIONAL, 0, PS_MAX_DIMENSION, out, status);
}

ps_code hf_switch(hf_reader *reader, const char *key, bool *out, ps_status *status)
{
    return ps_json_get_bool(reader->root, key, PS_OPTIONAL, out, status);
}

void hf_warn(hf_reader *reader, const char *sentence)
{
    ps_model *model = reader->model;
    if (!model->warning)
        model->warning = ps_new(reader->arena, const char *, HF_MOST_WARNINGS);
    if (model->num_warnings < HF_MOST_WARNINGS)
        model->warning[model->num_warnings++] = sentence;
}

// A key that changes what is trained. It matters when it is neither null, false, 0, nor empty.
static const struct foreign_key {
    const char *key;
    bool refused; // else a warning
    const char *meaning;
} foreign_keys[] = {
    {"add_cross_attention", true, "cross attention"},
    {"pruned_heads", true, "attention heads that are left out"},
    {"audio_config", false, "an audio encoder is not planned"},
    {"vision_config", false, "the image encoder is not planned, the language model alone"},
    {"num_nextn_predict_layers", false, "multi-token prediction is not in the model that transformers builds"},
    {"num_mtp_layers", false, "multi-token prediction is not in the model that transformers builds"},
    {"mtp_num_hidden_layers", false, "multi-token prediction is not in the model that transformers builds"},
    {"index_topk", false, "the indexer of sparse attention is not counted, and attention costs as if it were full"},
    {"quantization_config", false, "a quantised checkpoint; training is planned in the job's precision"},
};

static bool matters(ps_json value)
{
    switch (ps_json_type_of(value)) {
    case PS_JSON_NULL: return false;
    case PS_JSON_BOOL: return ps_json_bool(value);
    case PS_JSON_NUMBER: return ps_json_number(value) != 0;
    case PS_JSON_STRING: return ps_json_text(value)[0] != '\0';
    case PS_JSON_ARRAY:
    case PS_JSON_OBJECT: return ps_json_count(value) > 0;
    }
    return true;
}

ps_code hf_check_foreign(hf_reader *reader, ps_status *status)
{
    for (size_t row = 0; row < sizeof foreign_keys / sizeof foreign_keys[0]; row++) {
        const struct foreign_key *foreign = &foreign_keys[row];
        ps_json value = ps_json_member(reader->root, foreign->key);
        if (!value.node)
            value = ps_json_member(reader->outer, foreign->key);
        if (!value.node || !matters(value))
            continue;
        if (foreign->refused)
            return ps_json_fail(value, "unsupported-key", status, "\"%s\" asks for %s, which is not supported for %s",
                                foreign->key, foreign->meaning, reader->type->model_type);
        hf_warn(reader, ps_text_format(reader->arena, "%s is ignored: %s", foreign->key, foreign->meaning));
    }
    return PS_OK;
}
