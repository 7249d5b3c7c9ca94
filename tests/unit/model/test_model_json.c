// SPDX-License-Identifier: Apache-2.0
#include "unit/model/models.h"

#include "base/text.h"
#include "io/file.h"
#include "pipesched/limits.h"

#define DATA PS_TESTS_DIR "/data/models/"
#define TIMES "\"forward_ms\": 1, \"backward_input_ms\": 1, \"backward_weight_ms\": 1"
#define MODEL(layers, more) "{\"format\": \"pipesched/model/v1\", \"layers\": [" layers "]" more "}"
#define ABC "{\"name\": \"a\", " TIMES "}, {\"name\": \"b\", " TIMES "}, {\"name\": \"c\", " TIMES "}"

static void times_and_sizes_are_read_exactly(void **state)
{
    ps_model model = model_at(*state, DATA "timed-chain.json");
    assert_string_equal(model.name, "timed-chain");
    assert_string_equal(model.format, "pipesched/model/v1");
    assert_int_equal(model.num_layers, 6);
    const ps_layer *embedding = &model.layer[0];
    assert_int_equal(embedding->class_, PS_LAYER_TIMED);
    assert_null(embedding->block);
    assert_int_equal(embedding->forward_ns, 758900);
    assert_int_equal(embedding->backward_input_ns, 2865400);
    assert_int_equal(embedding->backward_weight_ns, 0);
    assert_int_equal(embedding->output_bytes, 8 << 20);
    assert_int_equal(embedding->held_after_forward_bytes, 12 << 20);
    assert_int_equal(embedding->held_after_backward_input_bytes, 6 << 20);
    assert_int_equal(embedding->transient_bytes, PS_NOT_GIVEN);
    assert_int_equal(model.layer[5].output_bytes, PS_NOT_GIVEN);
    assert_int_equal(model.parameters, 2 * 524288000LL + 3 * 100000000LL);
    assert_int_equal(model.active_parameters, model.parameters);
}

static void repeated_layers_are_numbered_and_share_a_base_name(void **state)
{
    ps_model model = model_at(*state, DATA "timed-chain.json");
    for (int32_t copy = 0; copy < 3; copy++) {
        assert_string_equal(model.layer[1 + copy].name, ps_text_format(*state, "mamba.%d", (int)copy));
        assert_string_equal(model.layer[1 + copy].base_name, "mamba");
        assert_int_equal(model.layer[1 + copy].transient_bytes, 1 << 20);
    }
    assert_string_equal(model.layer[4].name, "reshape");
}

static void layers_that_cost_nothing_are_layers(void **state)
{
    ps_model model = model_at(*state, DATA "timed-chain.json");
    assert_int_equal(model.layer[4].forward_ns, 0);
    assert_int_equal(model.layer[4].parameters, 0);
}

static void constraints_become_pins_and_bonds(void **state)
{
    ps_model model = model_at(*state, DATA "timed-chain.json");
    assert_true(model.keep_with_next[0]);
    assert_false(model.keep_with_next[1]);
    assert_int_equal(model.pinned_stage[0], PS_PIN_NONE);
    assert_int_equal(model.pinned_stage[5], PS_PIN_LAST);
}

static void colocating_distant_layers_keeps_all_between_them(void **state)
{
    ps_model model = model_of(
        *state,
        MODEL(ABC, ", \"constraints\": [{\"colocate\": [\"c\", \"a\"]}, {\"pin\": \"b\", \"stage\": \"first\"}]"));
    assert_true(model.keep_with_next[0] && model.keep_with_next[1]);
    assert_int_equal(model.pinned_stage[1], 0);
}

static void a_model_without_constraints_has_none(void **state)
{
    ps_model model = model_of(*state, MODEL(ABC, ""));
    assert_null(model.pinned_stage);
    assert_null(model.keep_with_next);
}

// h 512: attention 2 h q + 2 h k, two RMS norms 2 h, gated FFN 3 h f, experts E 3 h f + router h E, LayerNorms 4 h.
static void parameters_follow_from_the_architecture(void **state)
{
    ps_model model = model_at(*state, DATA "architecture.json");
    assert_int_equal(model.num_layers, 10);
    assert_int_equal(model.max_seq_length, 4096);
    assert_int_equal(model.layer[0].parameters, 32000 * 512);
    assert_int_equal(model.layer[1].parameters, 2 * 512 * 512 + 2 * 512 * 128 + 2 * 512 + 3 * 512 * 1536);
    int64_t experts = 16 * 3 * 512 * 256;
    int64_t shell = 2 * 512 * 768 + 2 * 512 * 192 + 2 * 96 + 2 * 512 + 512 * 16;
    assert_int_equal(model.layer[3].parameters, shell + experts);
    assert_int_equal(model.layer[3].expert_parameters, experts);
    assert_int_equal(model.layer[3].active_parameters, shell + experts / 8);
    assert_int_equal(model.layer[3].block->sliding_window, 1024);
    assert_int_equal(model.layer[7].parameters, 4 * 512 * 512 + 4 * 512 + 4 * 512 + 2 * 512 * 2048 + 2048 + 512);
    assert_int_equal(model.layer[8].parameters, 512);
    assert_int_equal(model.layer[9].parameters, 0);
    assert_int_equal(model.layer[9].shared_parameters, 32000 * 512);
    assert_int_equal(model.layer[9].shared_with, 0);
}

// Each count written out from the formulas of docs/formats/model.md.
static void every_kind_of_layer_counts_its_parameters(void **state)
{
    ps_model model = model_at(*state, DATA "every-kind.json");
    assert_int_equal(model.layer[0].parameters, (588 + 64) * 128 + 128);
    assert_int_equal(model.layer[1].parameters, 4 * 128 * 128 + 4 * 128 + 2 * 128 * 512 + 512 + 128 + 4 * 128);
    int64_t latent = 512 * 96 + 96 + 96 * 8 * 80 + 512 * 48 + 32 + 32 * 8 * 128 + 8 * 64 * 512;
    int64_t shell = latent + 2 * 512 + 512 * 16 + 16 + 2 * 512 * 256 + 3 * 512 * 128 + 512;
    assert_int_equal(model.layer[4].parameters, shell + 16 * 3 * 256 * 128);
    assert_int_equal(model.layer[4].active_parameters, shell + 2 * 3 * 256 * 128);
    assert_int_equal(model.layer[5].parameters, 3 * 512 * 512 + 2 * 512 * 128 + 2 * 64 + 8 + 512);
    assert_int_equal(model.layer[6].parameters, 2 * 512 * 1024 + 512);
    assert_int_equal(model.layer[7].parameters, 8 * 3 * 512 * 256 + 512 * 8 + 512);
    int64_t projected = 2 * 1024 + 2 * 64 + 16;
    assert_int_equal(model.layer[8].parameters,
                     512 * projected + projected + (1024 + 128) * 5 + 3 * 16 + 1024 + 1024 * 512 + 512 + 512);
    assert_int_equal(model.layer[10].parameters,
                     2 * 512 * 1024 + 1024 * 4 + 1024 * (2 * 32 + 3 * 16 + 2) + 1024 * 512 + 3 * 512 * 1024 + 2 * 512);
    int64_t delta = 512 * (2 * 256 + 2 * 4 * 32 + 2 * 8) + (256 + 256) * 4 + 2 * 8 + 32 + 256 * 512;
    assert_int_equal(model.layer[11].active_parameters, delta + 512 * 8 + 2 * 3 * 512 * 64 + 2 * 512);
    assert_int_equal(model.layer[12].parameters, 4 * 512 * 512 + 3 * 512 * 1024 + 512 + 7);
    assert_int_equal(model.layer[13].parameters, 2 * 512 * 512 + 3 * 512 + 4 * 512 * 512 + 3 * 512 * 1024 + 2 * 512);
    assert_int_equal(model.layer[13].shared_parameters, 32000 * 512);
    assert_int_equal(model.layer[15].parameters, 0);
}

// The same model, said in two formats.
static void native_and_hugging_face_agree(void **state)
{
    ps_model native = model_of(
        *state,
        MODEL("{\"name\": \"embedding\", \"kind\": \"embedding\", \"hidden_size\": 4096, \"vocab_size\": 128256}, "
              "{\"name\": \"block\", \"kind\": \"decoder\", \"repeat\": 32, \"hidden_size\": 4096, "
              "\"attention_heads\": 32, \"kv_heads\": 8, \"ffn_size\": 14336}, "
              "{\"name\": \"final_norm\", \"kind\": \"norm\", \"hidden_size\": 4096}, "
              "{\"name\": \"head\", \"kind\": \"head\", \"hidden_size\": 4096, \"vocab_size\": 128256}",
              ""));
    ps_model llama = model_at(*state, "llama-3.1-8b");
    assert_int_equal(native.num_layers, llama.num_layers);
    for (int32_t layer = 0; layer < llama.num_layers; layer++) {
        assert_string_equal(native.layer[layer].name, llama.layer[layer].name);
        assert_int_equal(native.layer[layer].parameters, llama.layer[layer].parameters);
        assert_memory_equal(native.layer[layer].block, llama.layer[layer].block, sizeof(ps_block));
    }
}

static void a_layer_may_give_both_architecture_and_times(void **state)
{
    ps_model model = model_of(*state, MODEL("{\"name\": \"head\", \"kind\": \"head\", \"hidden_size\": 64, "
                                            "\"vocab_size\": 100, " TIMES "}",
                                            ""));
    assert_int_equal(model.layer[0].class_, PS_LAYER_HEAD);
    assert_int_equal(model.layer[0].forward_ns, 1000000);
    assert_int_equal(model.layer[0].parameters, 6400);
}

static void measurements_stand_in_for_times(void **state)
{
    ps_model model = model_at(*state, DATA "measured.json");
    assert_int_equal(model.num_measurements, 2);
    assert_int_equal(model.layer[0].class_, PS_LAYER_TIMED);
    assert_int_equal(model.layer[0].forward_ns, PS_NOT_GIVEN);
    const ps_measurement *second = &model.measurement[1];
    assert_string_equal(second->gpu, "A100-SXM4-80GB");
    assert_int_equal(second->precision, PS_PRECISION_BF16);
    assert_int_equal(second->tp, 2);
    assert_int_equal(second->cp, 1);
    assert_int_equal(second->seq_length, 4096);
    assert_int_equal(second->num_layers, 2);
    assert_string_equal(second->layer[0].base_name, "mixer");
    assert_int_equal(second->layer[0].backward_input_ns, 1100000);
}

static void edges_that_spell_out_the_chain_are_accepted_in_any_order(void **state)
{
    ps_model model = model_of(*state, MODEL(ABC, ", \"edges\": [[\"b\", \"c\"], [\"a\", \"b\"]]"));
    assert_int_equal(model.num_layers, 3);
}

static void a_branching_model_is_refused_with_the_edge_that_branches(void **state)
{
    ps_model model;
    ps_status status = {0};
    ps_code code = parse_text(*state, MODEL(ABC, ", \"edges\": [[\"a\", \"b\"], [\"a\", \"c\"], [\"b\", \"c\"]]"),
                              &model, &status);
    assert_int_equal(code, PS_ILLEGAL);
    assert_string_equal(status.rule, "dag-unsupported");
    assert_string_equal(status.pointer, "/edges/1");
    assert_string_equal(status.message, "the edge from \"a\" to \"c\" skips layers, so the model branches");
}

static void a_misspelt_name_is_answered_with_the_nearest(void **state)
{
    ps_model model;
    ps_status status = {0};
    parse_text(*state,
               MODEL(ABC ", {\"name\": \"block\", \"repeat\": 9, " TIMES "}",
                     ", \"constraints\": [{\"pin\": \"blcok.3\", \"stage\": 0}]"),
               &model, &status);
    assert_string_equal(status.rule, "unknown-layer");
    assert_string_equal(status.hint, "did you mean \"block.3\"?");
    assert_string_equal(status.pointer, "/constraints/0/pin");
}

static void a_million_layers_are_read_and_one_more_is_refused(void **state)
{
    ps_model model = model_of(*state, MODEL("{\"name\": \"a\", \"repeat\": 1000000, " TIMES "}", ""));
    assert_int_equal(model.num_layers, PS_MAX_LAYERS);
    assert_string_equal(model.layer[999999].name, "a.999999");

    ps_status status = {0};
    parse_text(*state, MODEL("{\"name\": \"a\", \"repeat\": 1000000, " TIMES "}, {\"name\": \"b\", " TIMES "}", ""),
               &model, &status);
    assert_string_equal(status.rule, "too-many-layers");
    assert_string_equal(status.pointer, "/layers/1");
}

static void a_missing_file_suggests_the_nearest_built_in(void **state)
{
    ps_model model;
    ps_status status = {0};
    assert_int_equal(ps_model_load(*state, "llama-3.1-7b", &model, &status), PS_IO);
    assert_string_equal(status.rule, "file-missing");
    assert_string_equal(status.source, "llama-3.1-7b");
    assert_non_null(strstr(status.hint, "llama-3.1-"));

    status = (ps_status){0};
    assert_int_equal(ps_model_load(*state, "quokka", &model, &status), PS_IO);
    assert_non_null(strstr(status.hint, "gpt2, llama-3.1-405b"));

    status = (ps_status){0};
    assert_int_equal(ps_model_load(*state, "./llama-3.1-8b", &model, &status), PS_IO);
    assert_string_equal(status.rule, "file-missing");
}

static void a_model_is_named_after_its_file_or_folder(void **state)
{
    static const char *const cases[][2] = {{"runs/vgg.json", "vgg"},
                                           {"Llama-3.1-8B/config.json", "Llama-3.1-8B"},
                                           {"/data/Llama-3.1-8B/config.json", "Llama-3.1-8B"},
                                           {"config.json", "config"},
                                           {"../config.json", "config"},
                                           {"-", "stdin"}};
    const char *text = MODEL(ABC, "");
    for (size_t index = 0; index < sizeof cases / sizeof cases[0]; index++) {
        ps_model model;
        ps_status status = {0};
        assert_ok(ps_model_parse(*state, cases[index][0], text, (int64_t)strlen(text), &model, &status), &status);
        assert_string_equal(model.name, cases[index][1]);
        assert_string_equal(model.source, cases[index][0]);
    }
}

static void a_flood_of_measurements_is_refused(void **state)
{
    ps_text text = {.arena = *state};
    ps_text_addf(&text, "{\"format\": \"pipesched/model/v1\", \"layers\": [{\"name\": \"a\", " TIMES
                        "}], \"measurements\": [{}");
    for (int32_t set = 0; set < 4096; set++)
        ps_text_addf(&text, ", {}");
    ps_text_addf(&text, "]}");
    ps_model model;
    ps_status status = {0};
    assert_int_equal(parse_text(*state, text.data, &model, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "too-many-measurements");
}

static void the_manual_shows_a_valid_model(void **state)
{
    ps_file_bytes page;
    ps_status status = {0};
    assert_ok(ps_file_read(*state, PS_TESTS_DIR "/../docs/formats/model.md", 1 << 20, &page, &status), &status);
    const char *start = strstr(page.data, "```json\n");
    assert_non_null(start);
    start += strlen("```json\n");
    const char *end = strstr(start, "```");
    assert_non_null(end);
    ps_model model;
    assert_ok(ps_model_parse(*state, "model.md", start, end - start, &model, &status), &status);
    assert_int_equal(model.num_layers, 17);
    assert_int_equal(model.num_measurements, 1);
    assert_int_equal(model.pinned_stage[16], PS_PIN_LAST);
    assert_true(model.keep_with_next[15]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(times_and_sizes_are_read_exactly),
        test_in_arena(repeated_layers_are_numbered_and_share_a_base_name),
        test_in_arena(layers_that_cost_nothing_are_layers),
        test_in_arena(constraints_become_pins_and_bonds),
        test_in_arena(colocating_distant_layers_keeps_all_between_them),
        test_in_arena(a_model_without_constraints_has_none),
        test_in_arena(parameters_follow_from_the_architecture),
        test_in_arena(every_kind_of_layer_counts_its_parameters),
        test_in_arena(native_and_hugging_face_agree),
        test_in_arena(a_layer_may_give_both_architecture_and_times),
        test_in_arena(measurements_stand_in_for_times),
        test_in_arena(edges_that_spell_out_the_chain_are_accepted_in_any_order),
        test_in_arena(a_branching_model_is_refused_with_the_edge_that_branches),
        test_in_arena(a_misspelt_name_is_answered_with_the_nearest),
        test_in_arena(a_million_layers_are_read_and_one_more_is_refused),
        test_in_arena(a_missing_file_suggests_the_nearest_built_in),
        test_in_arena(a_flood_of_measurements_is_refused),
        test_in_arena(the_manual_shows_a_valid_model),
        test_in_arena(a_model_is_named_after_its_file_or_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
