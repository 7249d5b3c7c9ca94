// SPDX-License-Identifier: Apache-2.0
#include "cost/measurements.h"

#include "unit/cost/fixtures.h"

// Llama-3-8B whose blocks are measured on A100 in bf16 with tp 1, at the given micro-batch sizes of 2048 tokens, as
// 1 ms + 1 us a token forward.
static ps_model measured_model(ps_arena *arena, int32_t count, const int32_t *micro_batch_size)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(arena, &block, 2, false);
    model.num_measurements = count;
    model.measurement = ps_new(arena, ps_measurement, count);
    for (int32_t i = 0; i < count; i++) {
        ps_measured_layer *times = ps_new(arena, ps_measured_layer, 1);
        int64_t forward = 1000000 + 1000 * INT64_C(2048) * micro_batch_size[i];
        *times = (ps_measured_layer){.base_name = "block",
                                     .forward_ns = forward,
                                     .backward_input_ns = forward + 7,
                                     .backward_weight_ns = forward - 7};
        model.measurement[i] = (ps_measurement){.gpu = "A100-SXM4-80GB",
                                                .precision = PS_PRECISION_BF16,
                                                .tp = 1,
                                                .cp = 1,
                                                .ep = 1,
                                                .micro_batch_size = micro_batch_size[i],
                                                .seq_length = 2048,
                                                .num_layers = 1,
                                                .layer = times};
    }
    return model;
}

static ps_layout with_micro_batch(int32_t size)
{
    ps_layout layout = plain_layout();
    layout.micro_batch_size = size;
    return layout;
}

static void an_exact_match_is_used_as_it_is(void **state)
{
    ps_model model = measured_model(*state, 2, (int32_t[]){1, 4});
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = with_micro_batch(4);
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    assert_int_equal(table.layer[1].forward_ns, 1000000 + 4 * 2048000);
    assert_int_equal(table.layer[2].backward_input_ns, 1000007 + 4 * 2048000);
    assert_int_equal(table.layer[2].backward_weight_ns, 999993 + 4 * 2048000);
    assert_int_equal(table.num_measured, 2); // embedding, norm and head are measured nowhere: predicted
    assert_true(table.layer[4].forward_ns > 0);
    assert_true(strstr(table.accuracy, "partly predicted"));
}

static void two_sizes_are_interpolated_in_tokens(void **state)
{
    ps_model model = measured_model(*state, 3, (int32_t[]){8, 1, 4});
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    for (int32_t size = 1; size <= 8; size++) {
        ps_layout layout = with_micro_batch(size);
        assert_int_equal(cost_of(*state, &model, &group, &job, &layout).layer[1].forward_ns, 1000000 + size * 2048000);
    }
}

static void beyond_the_sizes_it_is_refused_unless_the_job_extrapolates(void **state)
{
    ps_model model = measured_model(*state, 2, (int32_t[]){2, 4});
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_status status;
    ps_layout below = with_micro_batch(1);
    ps_layout above = with_micro_batch(6);
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &below, &status), "measurement-missing");
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &above, &status), "measurement-missing");
    assert_non_null(strstr(status.hint, "8192 tokens"));
    job.extrapolate = true;
    assert_int_equal(cost_of(*state, &model, &group, &job, &below).layer[1].forward_ns, 1000000 + 2048000);
    assert_int_equal(cost_of(*state, &model, &group, &job, &above).layer[1].forward_ns, 1000000 + 6 * 2048000);
    model.num_measurements = 1; // one size: in proportion
    assert_int_equal(cost_of(*state, &model, &group, &job, &above).layer[1].forward_ns, 3 * (1000000 + 2 * 2048000));
}

static void other_conditions_do_not_hold(void **state)
{
    ps_model model = measured_model(*state, 1, (int32_t[]){1});
    ps_group a100 = a100_group(1);
    ps_group h100 = h100_group(1);
    ps_job job = plain_job(2048);
    ps_job fp16 = plain_job(2048);
    ps_layout layout = plain_layout();
    ps_layout tp2 = plain_layout();
    ps_status status;
    fp16.precision = PS_PRECISION_FP16;
    tp2.tp = 2;
    assert_string_equal(rule_of_refusal(*state, &model, &h100, &job, &layout, &status), "measurement-missing");
    assert_string_equal(rule_of_refusal(*state, &model, &a100, &fp16, &layout, &status), "measurement-missing");
    assert_string_equal(rule_of_refusal(*state, &model, &a100, &job, &tp2, &status), "measurement-missing");
    assert_non_null(strstr(status.message, "tp 2"));
    job.extrapolate = true; // then the architecture predicts
    assert_int_equal(cost_of(*state, &model, &h100, &job, &layout).num_measured, 0);
}

static void a_layer_known_only_by_measurements_needs_one(void **state)
{
    ps_model model = timed_model(*state, 2, PS_NOT_GIVEN, PS_NOT_GIVEN, PS_NOT_GIVEN);
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    ps_status status;
    job.extrapolate = true;
    assert_string_equal(rule_of_refusal(*state, &model, &group, &job, &layout, &status), "measurement-missing");

    ps_model measured = measured_model(*state, 1, (int32_t[]){1});
    model.num_measurements = 1;
    model.measurement = measured.measurement;
    model.measurement[0].layer[0].base_name = "layer";
    ps_cost_table table = cost_of(*state, &model, &group, &job, &layout);
    assert_int_equal(table.prefix[2].forward_ns, 2 * (1000000 + 2048000));
    assert_string_equal(table.accuracy, "times measured");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(an_exact_match_is_used_as_it_is),
        test_in_arena(two_sizes_are_interpolated_in_tokens),
        test_in_arena(beyond_the_sizes_it_is_refused_unless_the_job_extrapolates),
        test_in_arena(other_conditions_do_not_hold),
        test_in_arena(a_layer_known_only_by_measurements_needs_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
