// SPDX-License-Identifier: Apache-2.0
//
// model_hf_ffn.c: dense FFNs and experts of a config.json, and which blocks have which.
#include <string.h>

#include "base/number.h"
#include "model/model_hf.h"

// Widths of the FFN that every token passes beside the routed experts.
static ps_code read_shared(hf_reader *reader, ps_status *status)
{
    int64_t shared = 0;
    int64_t width = reader->expert_ffn;

    PS_TRY(hf_optional(reader, "n_shared_experts", &shared, status));
    PS_TRY(hf_optional(reader, "moe_shared_expert_intermediate_size", &width, status));
    reader->shared_ffn = ps_multiply_saturating(shared, width);
    PS_TRY(hf_optional(reader, "shared_expert_intermediate_size", &reader->shared_ffn, status));
    if (reader->shared_ffn > PS_MAX_DIMENSION)
        return ps_json_fail(hf_place(reader, "n_shared_experts"), "out-of-range", status,
                            "the shared experts together are wider than %lld", (long long)PS_MAX_DIMENSION);
    if (shared > 0 && reader->experts == 0)
        return ps_json_fail(hf_place(reader, "n_shared_experts"), "unsupported-key", status,
                            "shared experts need routed experts, and none are given");
    return PS_OK;
}

static ps_code read_experts(hf_reader *reader, ps_status *status)
{
    const hf_type *type = reader->type;
    const char *method = "";

    if (type->default_experts > 0)
        PS_TRY(hf_count(reader, hf_experts, type->default_experts, &reader->experts, status));
    else
        PS_TRY(hf_optional(reader, hf_key(reader, hf_experts), &reader->experts, status));
    if (reader->experts > 0) {
        int64_t usual = type->default_experts_per_token > 0 ? type->default_experts_per_token : -1;
        PS_TRY(hf_count(reader, hf_experts_per_token, usual, &reader->experts_per_token, status));
        if (hf_given_any(reader, hf_expert_ffn) || !hf_given_any(reader, hf_ffn))
            PS_TRY(hf_count(reader, hf_expert_ffn, -1, &reader->expert_ffn, status));
        else
            PS_TRY(hf_count(reader, hf_ffn, -1, &reader->expert_ffn, status));
        PS_TRY(hf_optional(reader, "moe_latent_size", &reader->common.expert_latent_size, status));
    }
    // A bias that balances the load, of each expert (DeepSeek-V3, section 2.1.2).
    PS_TRY(ps_json_get_string(reader->root, "topk_method", PS_OPTIONAL, &method, status));
    reader->common.router_bias = type->router_bias || strcmp(method, "noaux_tc") == 0;
    reader->common.shared_gate = type->shared_gate;
    return read_shared(reader, status);
}

ps_code hf_read_ffn(hf_reader *reader, ps_status *status)
{
    const char *key = hf_given(reader, "intermediate_size_mlp") ? "intermediate_size_mlp" : hf_key(reader, hf_ffn);

    PS_TRY(read_experts(reader, status));
    if (reader->type->four_times && !hf_given(reader, key)) {
        reader->dense_ffn = 4 * reader->common.hidden_size;
        return PS_OK;
    }
    return ps_json_get_int(reader->root, key, PS_OPTIONAL, 1, PS_MAX_DIMENSION, &reader->dense_ffn, status);
}

// An element of an array: a whole number in [0, below).
static ps_code get_index(ps_json element, int32_t below, int32_t *out, ps_status *status)
{
    PS_TRY(ps_json_expect(element, PS_JSON_NUMBER, status));
    double number = ps_json_number(element);
    if (!(number >= 0 && number < below) || number != (double)(int32_t)number)
        return ps_json_fail(element, "out-of-range", status, "expected a block from 0 to %d", (int)below - 1);
    *out = (int32_t)number;
    return PS_OK;
}

// Every `step`-th block has experts, at the end of each run.
static ps_code mark_by_step(hf_reader *reader, const char *key, ps_status *status)
{
    int32_t step = 1;
    PS_TRY(ps_json_get_int32(reader->root, key, PS_OPTIONAL, 1, PS_MAX_LAYERS, &step, status));
    for (int32_t block = 0; block < reader->num_blocks; block++)
        if ((block + 1) % step != 0)
            reader->feed[block] = HF_FEED_DENSE;
    return PS_OK;
}

// The blocks of a list have experts, or have none.
static ps_code mark_by_list(hf_reader *reader, const char *key, hf_feed feed, ps_status *status)
{
    if (!hf_given(reader, key))
        return PS_OK;
    ps_json listed = ps_json_member(reader->root, key);
    PS_TRY(ps_json_expect(listed, PS_JSON_ARRAY, status));
    for (ps_json element = ps_json_first(listed); element.node; element = ps_json_next(element)) {
        int32_t block = 0;
        PS_TRY(get_index(element, reader->num_blocks, &block, status));
        reader->feed[block] = (char)feed;
    }
    return PS_OK;
}

// One period has experts once, at the offset; and the first blocks may have none.
static ps_code mark_by_period(hf_reader *reader, ps_status *status)
{
    int32_t period = 1;
    int32_t offset = 0;
    int32_t frequency = 1;
    int32_t first = 0;
    PS_TRY(ps_json_get_int32(reader->root, "expert_layer_period", PS_OPTIONAL, 1, PS_MAX_LAYERS, &period, status));
    PS_TRY(ps_json_get_int32(reader->root, "expert_layer_offset", PS_OPTIONAL, 0, PS_MAX_LAYERS, &offset, status));
    if (!ps_json_is(ps_json_member(reader->root, "moe_layer_freq"), PS_JSON_ARRAY))
        PS_TRY(ps_json_get_int32(reader->root, "moe_layer_freq", PS_OPTIONAL, 1, PS_MAX_LAYERS, &frequency, status));
    PS_TRY(ps_json_get_int32(reader->root, "first_k_dense_replace", PS_OPTIONAL, 0, PS_MAX_LAYERS, &first, status));
    for (int32_t block = 0; block < reader->num_blocks; block++)
        if (block % period != offset % period || block % frequency != 0 || block < first)
            reader->feed[block] = HF_FEED_DENSE;
    return PS_OK;
}

static ps_code check_widths(hf_reader *reader, ps_status *status)
{
    for (int32_t block = 0; block < reader->num_blocks; block++)
        if (reader->feed[block] == HF_FEED_DENSE && reader->dense_ffn == 0)
            return ps_json_fail(reader->root, "missing-key", status, "block %d is dense, so \"%s\" must be given",
                                (int)block, hf_key(reader, hf_ffn));
    return PS_OK;
}

ps_code hf_read_feeds(hf_reader *reader, ps_status *status)
{
    if (reader->experts > 0 && !reader->feeds_known) {
        for (int32_t block = 0; block < reader->num_blocks; block++)
            if (reader->feed[block] == HF_FEED_DENSE)
                reader->feed[block] = HF_FEED_EXPERTS;
        PS_TRY(mark_by_step(reader, "decoder_sparse_step", status));
        PS_TRY(mark_by_step(reader, "interleave_moe_layer_step", status));
        PS_TRY(mark_by_period(reader, status));
        PS_TRY(mark_by_list(reader, "mlp_only_layers", HF_FEED_DENSE, status));
        PS_TRY(mark_by_list(reader, "moe_layers", HF_FEED_EXPERTS, status));
    }
    return check_widths(reader, status);
}
