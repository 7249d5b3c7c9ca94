// SPDX-License-Identifier: Apache-2.0
#include "pipesched/cost.h"

#include "unit/cost/fixtures.h"

static const double gib = 1024.0 * 1024 * 1024;

static ps_layer_cost gpt_layer(ps_arena *arena, int32_t tp, bool sequence_parallel, bool flash, ps_recompute recompute)
{
    ps_block block = gpt_block(6144, 64, 51200, 2048);
    ps_model model = transformer(arena, &block, 1, false);
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    job.sequence_parallel = sequence_parallel;
    job.flash_attention = flash;
    layout.tp = tp;
    layout.micro_batch_size = 4;
    layout.recompute = recompute;
    return cost_of(arena, &model, &group, &job, &layout).layer[1];
}

// Korthikanti et al. 2022, equations 1 to 5; sbh of the 22B model with micro-batches of 4.
static void gpt_layer_holds_what_korthikanti_counts(void **state)
{
    double sbh = 2048.0 * 4 * 6144;
    double scores = 5.0 * 64 * 2048 / 6144;

    assert_near((double)gpt_layer(*state, 1, false, false, PS_RECOMPUTE_NONE).held_after_forward_bytes,
                sbh * (34 + scores), 1e-12);
    assert_near((double)gpt_layer(*state, 8, false, false, PS_RECOMPUTE_NONE).held_after_forward_bytes,
                sbh * (10 + (24 + scores) / 8), 1e-12);
    assert_near((double)gpt_layer(*state, 8, true, false, PS_RECOMPUTE_NONE).held_after_forward_bytes,
                sbh * (34 + scores) / 8, 1e-12);
    double log_sum_exp = 4.0 * 2048 * 4 * 64;
    assert_near((double)gpt_layer(*state, 8, true, true, PS_RECOMPUTE_NONE).held_after_forward_bytes,
                (34 * sbh + log_sum_exp) / 8, 1e-12);
    assert_int_equal(gpt_layer(*state, 1, false, false, PS_RECOMPUTE_FULL).held_after_forward_bytes, 2 * sbh);
    assert_int_equal(gpt_layer(*state, 8, true, false, PS_RECOMPUTE_FULL).held_after_forward_bytes, 2 * sbh / 8);
}

// Between the two gradients: 32sbh (Qi et al. 2024), recompute or not, so it can exceed what the forward left.
static void gpt_layer_holds_32_sbh_until_its_weight_gradient(void **state)
{
    double sbh = 2048.0 * 4 * 6144;
    ps_layer_cost none = gpt_layer(*state, 1, false, false, PS_RECOMPUTE_NONE);
    ps_layer_cost full = gpt_layer(*state, 1, false, false, PS_RECOMPUTE_FULL);
    assert_int_equal(none.held_after_backward_input_bytes, 32 * sbh);
    assert_int_equal(full.held_after_backward_input_bytes, 32 * sbh);
    assert_true(full.transient_bytes == none.transient_bytes + none.held_after_forward_bytes);
}

// Delaying W saves a Llama layer nothing: all it saved for B it needs for W too, but for the scores' log-sum-exp.
static void llama_layer_frees_almost_nothing_before_its_weight_gradient(void **state)
{
    ps_block block = llama3_70b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    ps_layer_cost cost = cost_of(*state, &model, &group, &job, &layout).layer[1];
    assert_int_equal(cost.held_after_forward_bytes - cost.held_after_backward_input_bytes, 4 * 4096 * 64);
}

static void state_takes_the_bytes_of_its_recipe(void **state)
{
    (void)state;
    static const struct {
        int32_t zero;
        int32_t gradient_bytes;
        int32_t optimizer_bytes;
        ps_precision precision;
        double of_one;
        double of_eight; // replicas
    } rows[] = {
        {0, 4, 4, PS_PRECISION_BF16, 18, 18},           {1, 4, 4, PS_PRECISION_BF16, 18, 6 + 12.0 / 8},
        {1, 2, 4, PS_PRECISION_BF16, 16, 4 + 12.0 / 8}, {1, 4, 2, PS_PRECISION_BF16, 14, 6 + 8.0 / 8},
        {2, 4, 4, PS_PRECISION_BF16, 18, 2 + 16.0 / 8}, {3, 4, 4, PS_PRECISION_BF16, 18, 18.0 / 8},
        {0, 4, 4, PS_PRECISION_FP32, 16, 16},           {3, 4, 4, PS_PRECISION_FP32, 16, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ps_job job = plain_job(2048);
        ps_layout layout = plain_layout();
        layout.zero = rows[i].zero;
        job.gradient_bytes = rows[i].gradient_bytes;
        job.optimizer_bytes = rows[i].optimizer_bytes;
        job.precision = rows[i].precision;
        ps_state_bytes one = ps_cost_state_bytes(&job, &layout);
        layout.dp = 8;
        ps_state_bytes eight = ps_cost_state_bytes(&job, &layout);
        assert_near(one.parameters + one.gradients + one.optimizer, rows[i].of_one, 1e-12);
        assert_near(eight.parameters + eight.gradients + eight.optimizer, rows[i].of_eight, 1e-12);
        assert_near(ps_cost_least_state_bytes(&job), rows[i].of_one, 1e-12);
    }
}

// Qwen3-235B cannot train on 32 H100: 18 B a parameter is 4.23e12 bytes, the GPUs have 2.72e12.
static void least_state_refuses_a_hopeless_job(void **state)
{
    (void)state;
    ps_job job = plain_job(4096);
    double need = ps_cost_least_state_bytes(&job) * 235e9;
    assert_near(need, 4.23e12, 1e-12);
    assert_true(need > 32 * 79.1 * gib);
}

static int64_t state_bytes(const ps_layer_cost *cost)
{
    return cost->parameter_bytes + cost->gradient_bytes + cost->optimizer_bytes;
}

// Layers first up to last, as the first stage of 1F1B over two ranks keeps them: two micro-batches in flight.
static double first_stage_bytes(const ps_cost_table *table, int32_t layers, int32_t in_flight)
{
    double bytes = 0;
    int64_t transient = 0;
    for (int32_t i = 0; i < layers; i++) {
        const ps_layer_cost *cost = &table->layer[i];
        bytes += (double)state_bytes(cost) + (double)in_flight * (double)cost->held_after_forward_bytes;
        transient = cost->transient_bytes > transient ? cost->transient_bytes : transient;
    }
    return bytes + (double)transient;
}

// Llama-3-70B with tp 8, pp 2, sequences of 4096: 4.41e9 parameters a GPU on the first stage take 73.9 GiB of
// replicated state and 30.8 GiB under ZeRO-1 with 8 replicas; activations are 10.5 GiB.
static void llama3_70b_on_two_stages_fits_only_with_sharded_state(void **state)
{
    ps_block block = llama3_70b_block();
    ps_model model = transformer(*state, &block, 80, false);
    ps_group group = h100_group(16);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    layout.tp = 8;
    layout.pp = 2;
    layout.dp = 8;
    ps_cost_table sharded = cost_of(*state, &model, &group, &job, &layout);
    layout.zero = 0;
    ps_cost_table whole = cost_of(*state, &model, &group, &job, &layout);

    assert_near((double)sharded.prefix[41].parameters, 4.41e9, 0.005);
    assert_near((double)state_bytes(&whole.prefix[41]) / gib, 73.9, 0.002);
    assert_near((double)state_bytes(&sharded.prefix[41]) / gib, 30.8, 0.002);
    assert_near(2 * (double)whole.prefix[41].held_after_forward_bytes / gib, 10.5, 0.02);
    assert_true(first_stage_bytes(&whole, 41, 2) > 79.1 * gib);
    assert_true(first_stage_bytes(&sharded, 41, 2) < 79.1 * gib);
}

// Megatron-LM pull request 482: a Llama-2-7B-like model on 8 H800, activations of 660 MiB a layer as given input.
// First of two stages, 4 replicas: 3.43e9 parameters at 9 B and two micro-batches of 16 layers; 49.8 GiB measured.
static void given_activations_reproduce_a_measured_stage(void **state)
{
    ps_model model = timed_model(*state, 17, 1000, 1000, 1000);
    ps_group group = h100_group(1);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    int64_t block = 4 * INT64_C(4096) * 4096 + 3 * INT64_C(4096) * 10880 + 2 * 4096;

    model.layer[0].parameters = INT64_C(50432) * 4096;
    for (int32_t i = 1; i < 17; i++) {
        model.layer[i].parameters = block;
        model.layer[i].held_after_forward_bytes = INT64_C(660) << 20;
    }
    assert_near((double)(model.layer[0].parameters + 32 * block), 6642245632.0, 0.002); // published, with biases
    layout.pp = 2;
    layout.dp = 4;
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    assert_near(first_stage_bytes(&table, 17, 2) / gib, 49.8, 0.02);
}

static void tied_head_is_a_copy_of_the_embedding(void **state)
{
    ps_block block = llama3_8b_block(); // with the vocabulary of Qwen3-4B
    block.hidden_size = 2560;
    block.vocab_size = 151936;
    ps_model model = transformer(*state, &block, 1, true);
    ps_group group = h100_group(1);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    assert_int_equal(table.layer[0].parameters, 151936 * 2560); // 389 million
    assert_int_equal(table.layer[0].copy_parameters, 0);
    assert_int_equal(table.layer[3].parameters, 0);
    assert_int_equal(table.layer[3].copy_parameters, 151936 * 2560);
    assert_int_equal(table.prefix[4].copy_parameters, 151936 * 2560);
}

static void vocabulary_is_padded_to_128_rows_a_rank(void **state)
{
    ps_block block = gpt_block(768, 12, 50257, 1024);
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(1024);
    ps_layout layout = plain_layout();
    assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[3].parameters, 50304 * 768);
    layout.tp = 4;
    assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[3].parameters, 50688 / 4 * 768);
    // Learned positions stand on every rank.
    assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[0].parameters, (50688 / 4 + 1024) * 768);
}

static void ranks_together_hold_the_model_and_what_they_replicate(void **state)
{
    ps_block block = llama3_70b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(2);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[1].parameters, model.layer[1].parameters);
    layout.tp = 8;
    int64_t norms = 2 * 8192;
    assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[1].parameters,
                     (model.layer[1].parameters - norms) / 8 + norms);
    layout.tp = 16; // 8 KV heads: one on each rank, twice in all
    int64_t kv = INT64_C(2) * 8192 * 8 * 128;
    assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[1].parameters,
                     (model.layer[1].parameters - norms - kv) / 16 + kv / 8 + norms);
}

static void more_tensor_parallelism_never_needs_more_memory(void **state)
{
    ps_block blocks[] = {llama3_70b_block(), mixtral_block(), gpt_block(4096, 32, 50304, 2048)};
    ps_group group = h100_group(4);

    for (int32_t i = 0; i < 3; i++) {
        ps_model model = transformer(*state, &blocks[i], 1, false);
        double before = 1e30;
        for (int32_t tp = 1; tp <= 32; tp *= 2) {
            ps_job job = plain_job(4096);
            ps_layout layout = plain_layout();
            layout.tp = tp;
            ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
            double bytes = (double)state_bytes(&table.prefix[4]) + (double)table.prefix[4].held_after_forward_bytes;
            assert_true(bytes < before);
            before = bytes;
        }
    }
}

// GPipe keeps the logits of every micro-batch; the rest of the loss is there only while it runs.
static void head_holds_logits_and_needs_three_times_as_much_for_the_loss(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(8192);
    ps_layout layout = plain_layout();
    ps_layer_cost head = cost_of(*state, &model, &group, &job, &layout).layer[3];
    int64_t logits = INT64_C(2) * 8192 * 128256;
    assert_int_equal(head.held_after_forward_bytes, logits + 2 * 8192 * 4096);
    assert_int_equal(head.transient_bytes, 3 * logits);
    assert_int_equal(head.output_bytes, 0);
}

// What a stage sends is its last layer's output, a part of it from each tensor parallel rank: 64 MiB for [4, 2048,
// 4096] in bf16.
static void output_is_one_activation_tensor(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    layout.micro_batch_size = 4;
    assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[1].output_bytes, 64 << 20);
    layout.tp = 2;
    assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[0].output_bytes, 32 << 20);
    job.sequence_parallel = false;
    assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[0].output_bytes, 32 << 20);
}

static void zero3_gathers_two_layers_at_a_time(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(8192);
    ps_layout layout = plain_layout();
    layout.dp = 8;
    ps_layer_cost zero1 = cost_of(*state, &model, &group, &job, &layout).layer[1];
    layout.zero = 3;
    ps_layer_cost zero3 = cost_of(*state, &model, &group, &job, &layout).layer[1];
    assert_int_equal(zero3.transient_bytes - zero1.transient_bytes, 4 * zero1.parameters);
    assert_int_equal(zero3.parameter_bytes, zero1.parameter_bytes / 8);
    assert_int_equal(zero3.gradient_bytes, zero1.gradient_bytes / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(gpt_layer_holds_what_korthikanti_counts),
        test_in_arena(gpt_layer_holds_32_sbh_until_its_weight_gradient),
        test_in_arena(llama_layer_frees_almost_nothing_before_its_weight_gradient),
        test_in_arena(state_takes_the_bytes_of_its_recipe),
        test_in_arena(least_state_refuses_a_hopeless_job),
        test_in_arena(llama3_70b_on_two_stages_fits_only_with_sharded_state),
        test_in_arena(given_activations_reproduce_a_measured_stage),
        test_in_arena(tied_head_is_a_copy_of_the_embedding),
        test_in_arena(vocabulary_is_padded_to_128_rows_a_rank),
        test_in_arena(ranks_together_hold_the_model_and_what_they_replicate),
        test_in_arena(more_tensor_parallelism_never_needs_more_memory),
        test_in_arena(head_holds_logits_and_needs_three_times_as_much_for_the_loss),
        test_in_arena(output_is_one_activation_tensor),
        test_in_arena(zero3_gathers_two_layers_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
