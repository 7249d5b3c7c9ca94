// SPDX-License-Identifier: Apache-2.0
#include "unit/model/models.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

// A small llama with room for more keys in front.
#define LLAMA(more)                                                                                                    \
    "{" more "\"model_type\": \"llama\", \"vocab_size\": 1000, \"hidden_size\": 64, \"intermediate_size\": 128, "      \
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, "                               \
    "\"tie_word_embeddings\": false}"

// The counts that the models' publishers give.
static void built_in_models_have_their_published_parameter_counts(void **state)
{
    static const struct {
        const char *name;
        int64_t parameters;
        int64_t active;
        int32_t layers;
    } published[] = {
        {"gpt2", 124439808, 124439808, 15},
        {"llama-3.1-8b", 8030261248, 8030261248, 35},
        {"llama-3.1-70b", 70553706496, 70553706496, 83},
        {"llama-3.1-405b", 405853388800, 405853388800, 129},
        {"mixtral-8x7b", 46702792704, 12879925248, 35},
        {"deepseek-v3", 671026419200, 37552297472, 64},
        {"qwen3-235b-a22b", 235093634560, 22190763520, 97},
        {"gpt-oss-20b", 20914757184, 4187440704, 27},
    };
    for (size_t row = 0; row < sizeof published / sizeof published[0]; row++) {
        ps_model model = model_at(*state, published[row].name);
        assert_int_equal(model.parameters, published[row].parameters);
        assert_int_equal(model.active_parameters, published[row].active);
        assert_int_equal(model.num_layers, published[row].layers);
        assert_int_equal(model.num_warnings, 0);
        assert_string_equal(model.name, published[row].name);
    }
}

// Sizes that their publishers state, from configurations that differ from the built-in ones in kind.
static void other_published_counts_hold(void **state)
{
    static const struct {
        const char *config;
        int64_t parameters;
    } published[] = {
        // gpt2-xl
        {"{\"model_type\": \"gpt2\", \"n_embd\": 1600, \"n_layer\": 48, \"n_head\": 25, \"n_positions\": 1024, "
         "\"vocab_size\": 50257}",
         1557611200},
        // Qwen2.5-0.5B: tied, biases on query, key and value
        {"{\"model_type\": \"qwen2\", \"hidden_size\": 896, \"intermediate_size\": 4864, \"num_attention_heads\": 14, "
         "\"num_hidden_layers\": 24, \"num_key_value_heads\": 2, \"tie_word_embeddings\": true, \"vocab_size\": "
         "151936}",
         494032768},
        // Qwen3-0.6B: heads wider than hidden size / heads, norms on query and key
        {"{\"model_type\": \"qwen3\", \"hidden_size\": 1024, \"intermediate_size\": 3072, \"num_attention_heads\": 16, "
         "\"head_dim\": 128, \"num_hidden_layers\": 28, \"num_key_value_heads\": 8, \"tie_word_embeddings\": true, "
         "\"vocab_size\": 151936}",
         596049920},
    };
    for (size_t row = 0; row < sizeof published / sizeof published[0]; row++)
        assert_int_equal(model_of(*state, published[row].config).parameters, published[row].parameters);
}

static void check_published(const published_model *row, void *arena)
{
    ps_model model = model_of(arena, row->config);
    if (model.parameters != row->parameters)
        fail_msg("%s has %lld parameters, not %lld", row->name, (long long)model.parameters,
                 (long long)row->parameters);
}

static void every_family_has_its_published_counts(void **state)
{
    each_published_model(PS_TESTS_DIR "/data/published-models.tsv", check_published, *state);
}

// Qwen3-4B: 388,956,160 parameters of vocabulary times hidden size, owned once and used twice.
static void a_tied_head_owns_nothing_and_shares_the_embedding(void **state)
{
    ps_model model = model_of(
        *state,
        "{\"model_type\": \"qwen3\", \"hidden_size\": 2560, \"intermediate_size\": 9728, "
        "\"num_attention_heads\": 32, \"head_dim\": 128, \"num_hidden_layers\": 36, \"num_key_value_heads\": 8, "
        "\"tie_word_embeddings\": true, \"vocab_size\": 151936}");
    const ps_layer *head = &model.layer[model.num_layers - 1];
    assert_int_equal(model.layer[0].parameters, 388956160);
    assert_int_equal(head->parameters, 0);
    assert_int_equal(head->active_parameters, 0);
    assert_int_equal(head->shared_parameters, 388956160);
    assert_int_equal(head->shared_with, 0);
    assert_int_equal(model.parameters, 4022468096);
}

static void embedding_blocks_norm_and_head_are_layers_of_their_own(void **state)
{
    ps_model model = model_at(*state, "llama-3.1-8b");
    assert_string_equal(model.format, "huggingface/llama");
    assert_int_equal(model.max_seq_length, 131072);
    assert_int_equal(strlen(model.sha256), 64);
    assert_string_equal(model.layer[0].name, "embedding");
    assert_int_equal(model.layer[0].class_, PS_LAYER_EMBEDDING);
    assert_int_equal(model.layer[0].parameters, 525336576);
    assert_string_equal(model.layer[1].name, "block.0");
    assert_string_equal(model.layer[32].name, "block.31");
    assert_string_equal(model.layer[32].base_name, "block");
    assert_string_equal(model.layer[32].kind, "decoder");
    assert_int_equal(model.layer[32].parameters, 218112000);
    assert_int_equal(model.layer[33].class_, PS_LAYER_NORM);
    assert_int_equal(model.layer[33].parameters, 4096);
    assert_int_equal(model.layer[34].class_, PS_LAYER_HEAD);
    assert_int_equal(model.layer[34].parameters, 525336576);
    assert_int_equal(model.layer[34].shared_with, -1);
    assert_int_equal(model.layer[34].forward_ns, PS_NOT_GIVEN);
}

static void experts_are_counted_apart(void **state)
{
    ps_model model = model_at(*state, "mixtral-8x7b");
    const ps_layer *block = &model.layer[1];
    assert_string_equal(block->kind, "moe-decoder");
    assert_int_equal(block->parameters, 1451270144);
    assert_int_equal(block->expert_parameters, INT64_C(8) * 3 * 4096 * 14336);
    assert_int_equal(block->parameters - block->active_parameters, INT64_C(6) * 3 * 4096 * 14336);
}

static void gpt2_learns_positions_has_biases_and_drops_out(void **state)
{
    ps_model model = model_at(*state, "gpt2");
    assert_int_equal(model.layer[0].parameters, (50257 + 1024) * 768);
    const ps_block *block = model.layer[1].block;
    assert_true(block->dropout && block->qkv_bias && block->output_bias && block->ffn_bias);
    assert_false(block->gated_ffn);
    assert_int_equal(block->norm, PS_NORM_LAYER);
    assert_int_equal(block->ffn_size, 3072);
}

static void dropout_is_off_when_every_rate_is_zero(void **state)
{
    ps_model model = model_of(*state, "{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 1, \"n_head\": 4, "
                                      "\"n_positions\": 16, \"vocab_size\": 100, \"attn_pdrop\": 0, "
                                      "\"resid_pdrop\": 0.0, \"embd_pdrop\": 0}");
    assert_false(model.layer[1].block->dropout);
    assert_true(model_of(*state, LLAMA("\"attention_dropout\": 0.1, ")).layer[1].block->dropout);
}

static void attention_bias_adds_to_all_four_projections_of_llama(void **state)
{
    int64_t plain = model_of(*state, LLAMA("")).parameters;
    int64_t biased = model_of(*state, LLAMA("\"attention_bias\": true, \"mlp_bias\": true, ")).parameters;
    // query 64, key and value 32 each, output 64; gate and up 128 each, down 64
    assert_int_equal(biased - plain, 2 * (64 + 2 * 32 + 64 + 2 * 128 + 64));
}

static void dense_blocks_of_an_expert_model_have_a_name_of_their_own(void **state)
{
    ps_model model = model_of(
        *state,
        "{\"model_type\": \"qwen3_moe\", \"vocab_size\": 1000, \"hidden_size\": 64, \"intermediate_size\": 128, "
        "\"num_hidden_layers\": 4, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 8, "
        "\"num_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, "
        "\"decoder_sparse_step\": 2, \"mlp_only_layers\": [3], \"tie_word_embeddings\": false}");
    static const char *const base_names[] = {"dense_block", "block", "dense_block", "dense_block"};
    for (int32_t block = 0; block < 4; block++)
        assert_string_equal(model.layer[block + 1].base_name, base_names[block]);
    assert_string_equal(model.layer[4].name, "block.3");
    assert_int_equal(model.layer[1].expert_parameters, 0);
    assert_int_equal(model.layer[2].expert_parameters, 8 * 3 * 64 * 32);
    assert_int_equal(model.num_warnings, 0);
}

static void sliding_windows_follow_layer_types(void **state)
{
    ps_model model = model_of(
        *state, LLAMA("\"sliding_window\": 512, \"layer_types\": [\"full_attention\", \"sliding_attention\"], "));
    assert_int_equal(model.layer[1].block->sliding_window, 0);
    assert_int_equal(model.layer[2].block->sliding_window, 512);
}

static void qwen_slides_only_when_switched_on_and_only_late_blocks(void **state)
{
#define QWEN(switch)                                                                                                   \
    "{\"model_type\": \"qwen2\", \"vocab_size\": 1000, \"hidden_size\": 64, \"intermediate_size\": 128, "              \
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"sliding_window\": 512, "      \
    "\"max_window_layers\": 1, \"use_sliding_window\": " switch ", \"tie_word_embeddings\": false}"
    ps_model off = model_of(*state, QWEN("false"));
    ps_model on = model_of(*state, QWEN("true"));
    assert_int_equal(off.layer[2].block->sliding_window, 0);
    assert_int_equal(on.layer[1].block->sliding_window, 0);
    assert_int_equal(on.layer[2].block->sliding_window, 512);
}

static void what_is_left_out_is_assumed_and_said(void **state)
{
    ps_model model = model_of(*state, "{\"model_type\": \"qwen3\", \"vocab_size\": 1000, \"hidden_size\": 64, "
                                      "\"intermediate_size\": 128, \"num_hidden_layers\": 2, "
                                      "\"num_attention_heads\": 32}");
    assert_int_equal(model.num_warnings, 1);
    assert_string_equal(model.warning[0],
                        "not in the file, so assumed: num_key_value_heads 32, head_dim 128, tie_word_embeddings false");
    assert_int_equal(model.layer[1].block->head_dim, 128);
}

static void null_key_value_heads_mean_one_for_each_attention_head(void **state)
{
    ps_model model = model_of(*state, "{\"model_type\": \"mistral\", \"vocab_size\": 1000, \"hidden_size\": 64, "
                                      "\"intermediate_size\": 128, \"num_hidden_layers\": 2, "
                                      "\"num_attention_heads\": 16, \"num_key_value_heads\": null, "
                                      "\"sliding_window\": null, \"tie_word_embeddings\": false}");
    assert_int_equal(model.layer[1].block->kv_heads, 16);
    assert_int_equal(model.layer[1].block->sliding_window, 0);
    assert_int_equal(model.num_warnings, 0);
}

static void a_quantised_checkpoint_is_read_with_a_warning(void **state)
{
    ps_model model = model_of(*state, LLAMA("\"quantization_config\": {\"quant_method\": \"fp8\"}, "));
    assert_int_equal(model.num_warnings, 1);
    assert_non_null(strstr(model.warning[0], "quantization_config"));
}

static void an_unknown_model_type_lists_the_supported_ones(void **state)
{
    ps_model model;
    ps_status status = {0};
    assert_int_equal(parse_text(*state, "{\"model_type\": \"mixtrel\"}", &model, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "unknown-model-type");
    assert_string_equal(status.pointer, "/model_type");
    assert_non_null(strstr(status.hint, "did you mean \"mixtral\"?"));
    assert_non_null(strstr(status.hint, "known: llama, mistral, "));
}

// A type without a row, whose keys suffice.
static void an_unknown_type_is_read_by_its_keys_and_says_so(void **state)
{
    ps_model model =
        model_of(*state, "{\"model_type\": \"newcomer\", \"vocab_size\": 1000, \"hidden_size\": 64, "
                         "\"intermediate_size\": 128, \"num_hidden_layers\": 3, \"num_attention_heads\": 8, "
                         "\"num_key_value_heads\": 4, \"n_routed_experts\": 8, \"num_experts_per_tok\": 2, "
                         "\"moe_intermediate_size\": 32, \"n_shared_experts\": 1, \"first_k_dense_replace\": 1, "
                         "\"kv_lora_rank\": 16, \"qk_nope_head_dim\": 8, \"qk_rope_head_dim\": 4, \"v_head_dim\": 8, "
                         "\"tie_word_embeddings\": false}");
    assert_string_equal(model.format, "huggingface/newcomer");
    assert_non_null(strstr(model.warning[0], "\"newcomer\" is not known"));
    assert_int_equal(model.layer[1].block->kv_lora_rank, 16);
    assert_int_equal(model.layer[1].block->experts, 0);
    assert_int_equal(model.layer[2].block->shared_ffn_size, 32);
}

// Each letter of the pattern is a block with one part.
static void a_hybrid_pattern_gives_every_block_its_part(void **state)
{
    ps_model model =
        model_of(*state, "{\"model_type\": \"nemotron_h\", \"vocab_size\": 1000, \"hidden_size\": 64, "
                         "\"intermediate_size\": 128, \"num_hidden_layers\": 4, \"num_attention_heads\": 8, "
                         "\"num_key_value_heads\": 4, \"head_dim\": 8, \"hybrid_override_pattern\": \"M-*E\", "
                         "\"mamba_num_heads\": 4, \"mamba_head_dim\": 16, \"n_groups\": 2, \"ssm_state_size\": 8, "
                         "\"conv_kernel\": 4, \"use_conv_bias\": true, \"n_routed_experts\": 8, "
                         "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, \"tie_word_embeddings\": false}");
    assert_int_equal(model.layer[1].class_, PS_LAYER_MAMBA);
    assert_int_equal(model.layer[1].parameters, 64 * (2 * 64 + 2 * 16 + 4) + (64 + 32) * 5 + 3 * 4 + 64 + 64 * 64 + 64);
    assert_int_equal(model.layer[2].parameters, 2 * 64 * 128 + 64);
    assert_int_equal(model.layer[3].parameters, 2 * 64 * 64 + 2 * 64 * 32 + 64);
    assert_int_equal(model.layer[4].parameters, 8 * 2 * 64 * 32 + 64 * 8 + 8 + 64);
    assert_string_equal(model.layer[4].kind, "moe");
}

// Attention or FFN may be missing, or be one plain matrix.
static void blocks_that_a_search_left_in_part_differ_one_by_one(void **state)
{
    ps_model model = model_of(
        *state,
        "{\"model_type\": \"nemotron-nas\", \"vocab_size\": 1000, \"hidden_size\": 768, \"num_hidden_layers\": 4, "
        "\"num_attention_heads\": 8, \"num_key_value_heads\": null, \"tie_word_embeddings\": false, "
        "\"block_configs\": [{\"attention\": {\"n_heads_in_group\": 4}, \"ffn\": {\"ffn_mult\": 1.0}}, "
        "{\"attention\": {\"no_op\": true}, \"ffn\": {\"ffn_mult\": 0.1}}, "
        "{\"attention\": {\"replace_with_linear\": true}, \"ffn\": {\"no_op\": true}}, "
        "{\"attention\": {\"no_op\": true}, \"ffn\": {\"no_op\": true}}]}");
    assert_int_equal(model.layer[1].parameters, 2 * 768 * 768 + 2 * 768 * 192 + 3 * 768 * 512 + 2 * 768);
    assert_int_equal(model.layer[2].parameters, 3 * 768 * 256 + 768);
    assert_int_equal(model.layer[3].parameters, 768 * 768 + 768);
    assert_int_equal(model.layer[4].parameters, 0);
}

// Encoder, its norm, and a decoder that reads it, in one chain with one matrix of embeddings.
static void an_encoder_and_a_decoder_are_one_chain(void **state)
{
    ps_model model = model_of(
        *state, "{\"model_type\": \"t5\", \"d_model\": 512, \"d_kv\": 64, \"d_ff\": 2048, \"num_heads\": 8, "
                "\"num_layers\": 6, \"vocab_size\": 32128, \"n_positions\": 512, \"is_encoder_decoder\": true}");
    assert_int_equal(model.parameters, 60506624); // t5-small
    assert_int_equal(model.num_layers, 17);
    assert_true(model.layer[1].block->bidirectional);
    assert_int_equal(model.layer[1].block->sequence, 512);
    assert_int_equal(model.layer[9].block->cross_sequence, 512);
    assert_int_equal(model.layer[8].shared_with, 0);
    assert_int_equal(model.layer[8].parameters, 0);
    assert_int_equal(model.layer[8].shared_parameters, 32128 * 512);
}

static void a_nested_text_model_is_read_with_its_types_defaults(void **state)
{
    ps_model model = model_of(*state, "{\"model_type\": \"gemma3\", \"text_config\": {\"model_type\": \"gemma3_text\", "
                                      "\"hidden_size\": 2560, \"intermediate_size\": 10240, \"num_hidden_layers\": 34, "
                                      "\"sliding_window\": 1024}, \"vision_config\": {\"hidden_size\": 1152}}");
    assert_string_equal(model.format, "huggingface/gemma3_text");
    assert_int_equal(model.layer[1].block->head_dim, 256);
    assert_int_equal(model.layer[1].block->sliding_window, 1024);
    assert_int_equal(model.layer[6].block->sliding_window, 0);
    assert_int_equal(model.layer[0].parameters, INT64_C(262208) * 2560);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(built_in_models_have_their_published_parameter_counts),
        test_in_arena(other_published_counts_hold),
        test_in_arena(every_family_has_its_published_counts),
        test_in_arena(a_tied_head_owns_nothing_and_shares_the_embedding),
        test_in_arena(embedding_blocks_norm_and_head_are_layers_of_their_own),
        test_in_arena(experts_are_counted_apart),
        test_in_arena(gpt2_learns_positions_has_biases_and_drops_out),
        test_in_arena(dropout_is_off_when_every_rate_is_zero),
        test_in_arena(attention_bias_adds_to_all_four_projections_of_llama),
        test_in_arena(dense_blocks_of_an_expert_model_have_a_name_of_their_own),
        test_in_arena(sliding_windows_follow_layer_types),
        test_in_arena(qwen_slides_only_when_switched_on_and_only_late_blocks),
        test_in_arena(what_is_left_out_is_assumed_and_said),
        test_in_arena(null_key_value_heads_mean_one_for_each_attention_head),
        test_in_arena(a_quantised_checkpoint_is_read_with_a_warning),
        test_in_arena(an_unknown_model_type_lists_the_supported_ones),
        test_in_arena(an_unknown_type_is_read_by_its_keys_and_says_so),
        test_in_arena(a_hybrid_pattern_gives_every_block_its_part),
        test_in_arena(blocks_that_a_search_left_in_part_differ_one_by_one),
        test_in_arena(an_encoder_and_a_decoder_are_one_chain),
        test_in_arena(a_nested_text_model_is_read_with_its_types_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
