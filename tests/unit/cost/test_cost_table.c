// SPDX-License-Identifier: Apache-2.0
#include "unit/cost/fixtures.h"

static void given_times_are_used_to_the_nanosecond(void **state)
{
    ps_model model = timed_model(*state, 5, INT64_C(123456789012), 987654321, 3);
    ps_group group = {.name = "any", .nodes = 1, .gpus_per_node = 8, .nvlink_domain_nodes = 1, .gpu = {.name = "any"}};
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    assert_int_equal(table.layer[4].forward_ns, INT64_C(123456789012));
    assert_int_equal(table.prefix[5].forward_ns, 5 * INT64_C(123456789012));
    assert_int_equal(table.prefix[5].backward_input_ns, 5 * INT64_C(987654321));
    assert_int_equal(table.prefix[5].backward_weight_ns, 15);
    assert_int_equal(table.num_measured, 5);
    assert_string_equal(table.accuracy, "times given");
}

static void figures_that_a_timed_layer_leaves_out_are_zero(void **state)
{
    ps_model model = timed_model(*state, 1, 10, PS_NOT_GIVEN, PS_NOT_GIVEN);
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    model.layer[0].parameters = 1000;
    ps_layer_cost cost = cost_of(*state, &model, &group, &job, &layout).layer[0];
    assert_int_equal(cost.backward_input_ns, 0);
    assert_int_equal(cost.held_after_forward_bytes, 0);
    assert_int_equal(cost.output_bytes, 0);
    assert_int_equal(cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes, 18000);
}

static void given_times_hold_for_one_gpu_and_one_microbatch(void **state)
{
    ps_model model = timed_model(*state, 3, 10, 10, 10);
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout tp = plain_layout();
    ps_layout size = plain_layout();
    ps_status status;
    tp.tp = 2;
    size.micro_batch_size = 2;
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &tp, &status), "times-with-tp");
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &size, &status), "times-with-micro-batch");
    assert_int_equal(status.code, PS_ILLEGAL);
}

// Times and architecture together: the times where they hold, a prediction elsewhere.
static void architecture_predicts_where_given_times_do_not_hold(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    int64_t predicted = cost_of(*state, &model, &group, &job, &layout).layer[1].held_after_backward_input_bytes;
    model.layer[1].forward_ns = 42;
    model.layer[1].held_after_forward_bytes = 43;
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    assert_int_equal(table.layer[1].forward_ns, 42);
    assert_int_equal(table.layer[1].held_after_forward_bytes, 43);
    assert_int_equal(table.layer[1].held_after_backward_input_bytes, predicted);
    assert_int_equal(table.num_measured, 1);
    layout.tp = 2;
    table = cost_of(*state, &model, &group, &job, &layout);
    assert_true(table.layer[1].forward_ns > 1000 && table.layer[1].held_after_forward_bytes > 1000);
    assert_int_equal(table.num_measured, 0);
}

// Recompute starts from the output of the layer before; where that is unknown or no smaller, nothing is gained.
static void timed_layers_recompute_from_their_input(void **state)
{
    ps_model model = timed_model(*state, 3, 10, 20, 30);
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    layout.recompute = PS_RECOMPUTE_FULL;
    for (int32_t i = 0; i < 3; i++)
        model.layer[i].held_after_forward_bytes = 1000;
    model.layer[0].output_bytes = 100;
    model.layer[1].output_bytes = 1000;
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    static const int64_t recompute[] = {0, 10, 0};
    static const int64_t held[] = {1000, 100, 1000};
    static const int64_t transient[] = {0, 1000, 0};
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(table.layer[i].recompute_ns, recompute[i]);
        assert_int_equal(table.layer[i].held_after_forward_bytes, held[i]);
        assert_int_equal(table.layer[i].transient_bytes, transient[i]);
    }
}

static void refusals_name_the_nearest_that_works(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(2);
    ps_job job = plain_job(2048);
    ps_status status;
    ps_layout layout = plain_layout();
    layout.tp = 6; // 32 heads and 8 KV heads: 4 and 8 divide, 4 and 8 are equally near
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &layout, &status), "tp-heads");
    assert_string_equal(status.hint, "use --tp 4");

    block.ffn_size = 14336 / 16 * 10; // 8960 = 256 * 35
    block.attention_heads = 512;
    block.kv_heads = 512;
    ps_model odd = transformer(*state, &block, 1, false);
    layout.tp = 512;
    assert_string_equal(rule_of_refusal(*state, &odd, &group, &job, &layout, &status), "tp-ffn");
    assert_non_null(strstr(status.message, "8960"));
    assert_string_equal(status.hint, "use --tp 256");

    layout = plain_layout();
    layout.cp = 3;
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &layout, &status), "cp-sequence");
    assert_string_equal(status.hint, "use --cp 2, or a --seq-length that is a multiple of 6");
    job.cp_method = PS_CP_ALL_TO_ALL;
    layout.cp = 64;
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &layout, &status), "cp-heads");
    assert_string_equal(status.hint, "use --cp 32 or --cp-method ring");

    ps_block experts = mixtral_block();
    ps_model mixture = transformer(*state, &experts, 1, false);
    layout = plain_layout();
    layout.ep = 3;
    assert_string_equal(rule_of_refusal(*state, &mixture, &group, &job, &layout, &status), "ep-experts");
    assert_string_equal(status.hint, "use --ep 2");
    layout.ep = 2;
    layout.etp = 3;
    assert_string_equal(rule_of_refusal(*state, &mixture, &group, &job, &layout, &status), "etp-ffn");
    assert_string_equal(status.hint, "use --etp 2");
}

static void a_gpu_refuses_formats_it_lacks(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    ps_status status;
    group.gpu.name = "V100-SXM2-32GB";
    group.gpu.peak_flops[PS_PRECISION_BF16].value = 0;
    group.gpu.peak_flops[PS_PRECISION_FP8].value = 0;
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &layout, &status), "precision-unsupported");
    assert_string_equal(status.message, "V100-SXM2-32GB does not compute in bf16; it has fp16, fp32");
    assert_string_equal(status.hint, "use --precision fp16");
    ps_model timed = timed_model(*state, 1, 10, 10, 10); // needs no GPU figures
    assert_int_equal(cost_of(*state, &timed, &group, &job, &layout).layer[0].forward_ns, 10);

    job.precision = PS_PRECISION_FP16;
    group.gpu.memory_bytes_per_s.value = 0;
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &layout, &status), "gpu-figure-missing");
}

static void times_beyond_the_limits_are_refused(void **state)
{
    ps_block block = llama3_70b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = a100_group(1);
    ps_job job = plain_job(INT64_C(1) << 31);
    ps_layout layout = plain_layout();
    ps_status status;
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &layout, &status), "out-of-range");
    assert_non_null(strstr(status.hint, "2147483648 tokens"));
}

static void prefix_sums_are_exact_and_leave_out_what_does_not_add(void **state)
{
    ps_block block = mixtral_block();
    ps_model model = transformer(*state, &block, 32, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    layout.tp = 8;
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    ps_layer_cost sum = {0};
    for (int32_t i = 0; i < table.num_layers; i++) {
        sum.forward_ns += table.layer[i].forward_ns;
        sum.held_after_backward_input_bytes += table.layer[i].held_after_backward_input_bytes;
        sum.optimizer_bytes += table.layer[i].optimizer_bytes;
        assert_int_equal(table.prefix[i + 1].forward_ns, sum.forward_ns);
        assert_int_equal(table.prefix[i + 1].held_after_backward_input_bytes, sum.held_after_backward_input_bytes);
        assert_int_equal(table.prefix[i + 1].optimizer_bytes, sum.optimizer_bytes);
        assert_int_equal(table.prefix[i + 1].transient_bytes, 0);
    }
}

// Layers that alternate, as sliding and full attention do, each keep their own cost.
static void layers_of_different_kinds_are_not_mixed_up(void **state)
{
    ps_block full = llama3_8b_block();
    ps_block windowed = llama3_8b_block();
    windowed.sliding_window = 512;
    ps_model a = transformer(*state, &full, 20, false);
    ps_model b = transformer(*state, &windowed, 20, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(8192);
    ps_layout layout = plain_layout();
    int64_t of_full = cost_of(*state, &a, &group, &job, &layout).layer[1].forward_ns;
    int64_t of_windowed = cost_of(*state, &b, &group, &job, &layout).layer[1].forward_ns;
    for (int32_t i = 2; i <= 20; i += 2)
        a.layer[i].block = b.layer[i].block;
    ps_cost_table mixed = cost_of(*state, &a, &group, &job, &layout);
    for (int32_t i = 1; i <= 20; i++)
        assert_int_equal(mixed.layer[i].forward_ns, i % 2 == 1 ? of_full : of_windowed);
}

static double sum_of(const ps_cost_terms *terms, const char *quantity)
{
    double sum = 0;
    for (int32_t i = 0; i < terms->count; i++)
        if (strcmp(terms->term[i].quantity, quantity) == 0)
            sum += terms->term[i].value;
    return sum;
}

static void assert_within_one(double sum, int64_t rounded)
{
    double difference = sum - (double)rounded;
    assert_true(difference < 1 && difference > -1);
}

// The terms that are shown add up to the cost that is used, for every layer.
static void explained_terms_sum_to_the_cost(void **state)
{
    ps_block block = mixtral_block();
    ps_model model = transformer(*state, &block, 1, true);
    ps_group group = h100_group(4);
    ps_job job = plain_job(4096);
    ps_layout layout = plain_layout();
    ps_status status = {0};
    layout.tp = 4;
    layout.dp = 8;
    for (int32_t zero = 1; zero <= 3; zero += 2) {
        layout.zero = zero;
        layout.recompute = zero == 3 ? PS_RECOMPUTE_FULL : PS_RECOMPUTE_NONE;
        ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
        for (int32_t i = 0; i < model.num_layers; i++) {
            ps_cost_terms terms;
            ps_layer_cost cost = table.layer[i];
            assert_ok(ps_cost_explain(*state, &model, &group, &job, &layout, i, &terms, &status), &status);
            assert_within_one(sum_of(&terms, "forward") * 1e6, cost.forward_ns);
            assert_within_one(sum_of(&terms, "backward input") * 1e6, cost.backward_input_ns);
            assert_within_one(sum_of(&terms, "backward weight") * 1e6, cost.backward_weight_ns);
            assert_within_one(sum_of(&terms, "recompute") * 1e6, cost.recompute_ns);
            assert_within_one(sum_of(&terms, "held after forward"), cost.held_after_forward_bytes);
            assert_within_one(sum_of(&terms, "held after backward input"), cost.held_after_backward_input_bytes);
            assert_within_one(sum_of(&terms, "transient"), cost.transient_bytes);
            assert_within_one(sum_of(&terms, "output"), cost.output_bytes);
            assert_within_one(sum_of(&terms, "parameter state"), cost.parameter_bytes);
            assert_within_one(sum_of(&terms, "gradient state"), cost.gradient_bytes);
            assert_within_one(sum_of(&terms, "optimizer state"), cost.optimizer_bytes);
            assert_within_one(sum_of(&terms, "copied parameters"), cost.copy_parameters);
            assert_string_equal(terms.term[0].layer, model.layer[i].name);
        }
    }
}

static void explain_refuses_a_layer_that_does_not_exist(void **state)
{
    ps_model model = timed_model(*state, 3, 1, 1, 1);
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    ps_cost_terms terms;
    ps_status status = {0};
    assert_int_equal(ps_cost_explain(*state, &model, &group, &job, &layout, 3, &terms, &status), PS_USAGE);
    assert_string_equal(status.rule, "unknown-layer");
}

static void accuracy_says_what_to_expect_of_a_gpu(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    assert_non_null(strstr(cost_of(*state, &model, &group, &job, &layout).accuracy, "+-10 %"));
    group.gpu.name = "L40S";
    assert_non_null(strstr(cost_of(*state, &model, &group, &job, &layout).accuracy, "+-20 %"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(given_times_are_used_to_the_nanosecond),
        test_in_arena(figures_that_a_timed_layer_leaves_out_are_zero),
        test_in_arena(given_times_hold_for_one_gpu_and_one_microbatch),
        test_in_arena(architecture_predicts_where_given_times_do_not_hold),
        test_in_arena(timed_layers_recompute_from_their_input),
        test_in_arena(refusals_name_the_nearest_that_works),
        test_in_arena(a_gpu_refuses_formats_it_lacks),
        test_in_arena(times_beyond_the_limits_are_refused),
        test_in_arena(prefix_sums_are_exact_and_leave_out_what_does_not_add),
        test_in_arena(layers_of_different_kinds_are_not_mixed_up),
        test_in_arena(explained_terms_sum_to_the_cost),
        test_in_arena(explain_refuses_a_layer_that_does_not_exist),
        test_in_arena(accuracy_says_what_to_expect_of_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
