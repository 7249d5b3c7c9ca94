// SPDX-License-Identifier: Apache-2.0
//
// model_hf_mixer.c: Mamba and linear attention of a config.json, and which blocks have them.
#include <string.h>

#include "base/number.h"
#include "model/model_hf.h"

// "auto", or a count.
static ps_code read_time_rank(hf_reader *reader, const char *key, ps_status *status)
{
    ps_block *mixer = &reader->mixer;
    mixer->time_step_rank = (reader->common.hidden_size + 15) / 16;
    if (ps_json_is(ps_json_member(reader->root, key), PS_JSON_STRING))
        return PS_OK;
    return hf_optional(reader, key, &mixer->time_step_rank, status);
}

static ps_code read_inner(hf_reader *reader, const char *expand_key, int64_t *out, ps_status *status)
{
    int64_t expand = 2;
    PS_TRY(hf_optional(reader, expand_key, &expand, status));
    *out = ps_multiply_saturating(expand, reader->common.hidden_size);
    if (reader->type->no_attention)
        PS_TRY(hf_optional(reader, "intermediate_size", out, status));
    if (*out < 1 || *out > PS_MAX_DIMENSION)
        return ps_json_fail(hf_place(reader, expand_key), "out-of-range", status, "the mixer would have %lld channels",
                            (long long)*out);
    return PS_OK;
}

static ps_code read_common_mixer(hf_reader *reader, ps_status *status)
{
    static const char *const taps[] = {"conv_kernel", "mamba_d_conv", NULL};
    static const char *const conv_bias[] = {"use_conv_bias", "mamba_conv_bias", NULL};
    static const char *const bias[] = {"mamba_proj_bias", "use_bias", NULL};
    ps_block *mixer = &reader->mixer;

    mixer->conv_bias = true;
    PS_TRY(hf_count(reader, taps, 4, &mixer->conv_size, status));
    PS_TRY(hf_switch(reader, hf_key(reader, conv_bias), &mixer->conv_bias, status));
    return hf_switch(reader, hf_key(reader, bias), &mixer->mixer_bias, status);
}

// Gu and Dao 2023. Jamba norms time steps and states.
static ps_code read_mamba1(hf_reader *reader, ps_status *status)
{
    bool jamba = hf_given(reader, "mamba_d_state") || hf_given(reader, "mamba_dt_rank");
    ps_block *mixer = &reader->mixer;

    mixer->mixer = PS_MIXER_MAMBA1;
    mixer->state_groups = 1;
    PS_TRY(hf_count(reader, hf_state_size, 16, &mixer->state_size, status));
    PS_TRY(read_inner(reader, jamba ? "mamba_expand" : "expand", &mixer->inner_size, status));
    PS_TRY(read_time_rank(reader, jamba ? "mamba_dt_rank" : "time_step_rank", status));
    if (jamba)
        mixer->extra_parameters = mixer->time_step_rank + 2 * mixer->state_size;
    hf_warn(reader, "Mamba-1 is costed as Mamba-2 of the same channels and state; its parameters are exact");
    return read_common_mixer(reader, status);
}

// Dao and Gu 2024.
static ps_code read_mamba2(hf_reader *reader, ps_status *status)
{
    static const char *const heads[] = {"mamba_num_heads", "mamba_n_heads", "num_heads", NULL};
    static const char *const sizes[] = {"mamba_head_dim", "mamba_d_head", "head_dim", NULL};
    static const char *const groups[] = {"n_groups", "mamba_n_groups", NULL};
    ps_block *mixer = &reader->mixer;
    int64_t size = 0;

    PS_TRY(hf_count(reader, hf_state_size, 128, &mixer->state_size, status));
    PS_TRY(hf_count(reader, groups, 8, &mixer->state_groups, status));
    PS_TRY(hf_count(reader, heads, -1, &mixer->mamba_heads, status));
    PS_TRY(hf_count(reader, sizes, 64, &size, status));
    mixer->inner_size = ps_multiply_saturating(mixer->mamba_heads, size);
    if (mixer->inner_size > PS_MAX_DIMENSION)
        return ps_json_fail(hf_place(reader, hf_key(reader, heads)), "out-of-range", status,
                            "the mixer would have %lld channels", (long long)mixer->inner_size);
    return read_common_mixer(reader, status);
}

// Gated delta rule (Yang et al. 2024), as Qwen3-Next has it.
static ps_code read_delta(hf_reader *reader, ps_status *status)
{
    ps_block *mixer = &reader->mixer;
    int64_t size = 0;

    mixer->mixer = PS_MIXER_DELTA;
    PS_TRY(hf_count_of(reader, "linear_num_key_heads", -1, &mixer->state_groups, status));
    PS_TRY(hf_count_of(reader, "linear_key_head_dim", -1, &mixer->state_size, status));
    PS_TRY(hf_count_of(reader, "linear_num_value_heads", -1, &mixer->mamba_heads, status));
    PS_TRY(hf_count_of(reader, "linear_value_head_dim", -1, &size, status));
    PS_TRY(hf_count_of(reader, "linear_conv_kernel_dim", 4, &mixer->conv_size, status));
    mixer->inner_size = ps_multiply_saturating(mixer->mamba_heads, size);
    if (mixer->inner_size > PS_MAX_DIMENSION)
        return ps_json_fail(hf_place(reader, "linear_num_value_heads"), "out-of-range", status,
                            "the mixer would have %lld channels", (long long)mixer->inner_size);
    return PS_OK;
}

// Nemotron-H: a letter a block, each with one part alone.
static ps_code read_pattern(hf_reader *reader, ps_status *status)
{
    ps_json at = ps_json_member(reader->root, "hybrid_override_pattern");
    PS_TRY(ps_json_expect(at, PS_JSON_STRING, status));
    const char *pattern = ps_json_text(at);
    if (strlen(pattern) != (size_t)reader->num_blocks)
        return ps_json_fail(at, "layer-types", status, "expected one letter for each of the %d blocks, got %zu",
                            (int)reader->num_blocks, strlen(pattern));
    for (int32_t block = 0; block < reader->num_blocks; block++) {
        hf_mix mix = HF_MIX_NONE;
        hf_feed feed = HF_FEED_NONE;
        switch (pattern[block]) {
        case 'M': mix = HF_MIX_MAMBA; break;
        case '*': mix = HF_MIX_ATTENTION; break;
        case '-': feed = HF_FEED_DENSE; break;
        case 'E': feed = HF_FEED_EXPERTS; break;
        default:
            return ps_json_fail(at, "layer-types", status, "expected M, *, - or E for block %d, got '%c'", (int)block,
                                pattern[block] >= ' ' && pattern[block] < 0x7f ? pattern[block] : '?');
        }
        if (feed == HF_FEED_EXPERTS && reader->experts == 0)
            return ps_json_fail(at, "missing-key", status,
                                "block %d has experts, so \"n_routed_experts\" must be given", (int)block);
        reader->mix[block] = (char)mix;
        reader->feed[block] = (char)feed;
    }
    reader->feeds_known = true;
    return PS_OK;
}

// Attention once a period, at the offset (Jamba), or at the end of each (Qwen3-Next).
static ps_code read_periods(hf_reader *reader, ps_status *status)
{
    int32_t period = 0;
    int32_t offset = 0;
    int32_t interval = 0;
    PS_TRY(ps_json_get_int32(reader->root, "attn_layer_period", PS_OPTIONAL, 1, PS_MAX_LAYERS, &period, status));
    PS_TRY(ps_json_get_int32(reader->root, "attn_layer_offset", PS_OPTIONAL, 0, PS_MAX_LAYERS, &offset, status));
    PS_TRY(
        ps_json_get_int32(reader->root, "full_attention_interval", PS_OPTIONAL, 1, PS_MAX_LAYERS, &interval, status));
    bool linear = interval > 0 && hf_given(reader, "linear_num_key_heads") && !hf_given(reader, "layer_types");
    for (int32_t block = 0; block < reader->num_blocks; block++) {
        if (period > 0 && block % period != offset % period)
            reader->mix[block] = HF_MIX_MAMBA;
        else if (linear && (block + 1) % interval != 0)
            reader->mix[block] = HF_MIX_LINEAR;
        else if (reader->type->no_attention) {
            reader->mix[block] = HF_MIX_MAMBA;
            reader->feed[block] = HF_FEED_NONE;
        }
    }
    return PS_OK;
}

ps_code hf_read_mixes(hf_reader *reader, ps_status *status)
{
    static const char *const heads[] = {"mamba_num_heads", "mamba_n_heads", "num_heads", NULL};
    bool mamba = false;
    bool linear = false;

    PS_TRY(read_periods(reader, status));
    if (hf_given(reader, "hybrid_override_pattern"))
        PS_TRY(read_pattern(reader, status));
    for (int32_t block = 0; block < reader->num_blocks; block++) {
        mamba = mamba || reader->mix[block] == HF_MIX_MAMBA;
        linear = linear || reader->mix[block] == HF_MIX_LINEAR;
    }
    if (mamba && linear)
        return ps_json_fail(reader->root, "layer-types", status, "blocks with Mamba and with linear attention at once");
    if (mamba)
        return hf_given_any(reader, heads) ? read_mamba2(reader, status) : read_mamba1(reader, status);
    return linear ? read_delta(reader, status) : PS_OK;
}
