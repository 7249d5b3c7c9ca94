// SPDX-License-Identifier: Apache-2.0
//
// Profiles of layers, and calibrations without runs: what is written is what a plan reads.
#include <stdio.h>
#include <stdlib.h>

#include "pipesched/calibrate.h"
#include "support/cmocka_all.h"
#include "support/planned.h"

typedef struct bench {
    ps_model model;
    ps_cluster cluster;
    ps_job base;
} bench;

static bench *make_bench(ps_arena *arena)
{
    bench *b = ps_new(arena, bench, 1);
    load(arena, "llama-3.1-8b", "2x8xH100-SXM5-80GB", &b->model, &b->cluster);
    b->base = job_of(OPTIONS("seq-length", "4096"));
    return b;
}

static ps_code parse(ps_arena *arena, const bench *b, const char *text, ps_profile *out, ps_status *status)
{
    ps_profile_conditions conditions = {
        .gpu = b->cluster.group[0].gpu.name, .precision = PS_PRECISION_BF16, .job = &b->base};
    return ps_profile_parse(arena, "profile", text, (int64_t)strlen(text), &b->model, &conditions, out, status);
}

static void a_table_of_layers_is_sorted_into_conditions(void **state)
{
    static const char text[] = "# ours\nlayer,micro-batch-size,forward_ms,backward_input_ms,backward_weight_ms,tp\n"
                               "block,1,2.5,3.25,2,\nhead,1,4,4,4,1\nblock,2,5,6.5,4,1\nblock,1,1.5,2,1,2\n";
    bench *b = make_bench(*state);
    ps_profile profile;
    ps_status status = {0};
    assert_ok(parse(*state, b, text, &profile, &status), &status);
    assert_int_equal(profile.num_measurements, 3);
    const ps_measurement *first = &profile.measurement[0];
    assert_string_equal(first->gpu, "H100-SXM5-80GB");
    assert_int_equal(first->precision, PS_PRECISION_BF16);
    assert_int_equal(first->seq_length, 4096);
    assert_int_equal(first->micro_batch_size, 1);
    assert_int_equal(first->num_layers, 2);
    assert_string_equal(first->layer[0].base_name, "block");
    assert_int_equal(first->layer[0].backward_input_ns, 3250000);
    assert_int_equal(profile.measurement[1].micro_batch_size, 2);
    assert_int_equal(profile.measurement[2].tp, 2);
}

static void a_model_file_is_a_profile_too(void **state)
{
    static const char text[] =
        "{\"format\": \"pipesched/calibration/v1\", \"framework\": \"any\", \"gpu\": \"H100-SXM5-80GB\", "
        "\"precision\": \"bf16\", \"runs\": 0, \"measurements\": [{\"gpu\": \"H100-SXM5-80GB\", \"precision\": "
        "\"bf16\", \"micro_batch_size\": 1, \"seq_length\": 4096, \"layers\": {\"block\": {\"forward_ms\": 1, "
        "\"backward_input_ms\": 1, \"backward_weight_ms\": 1}}}]}";
    bench *b = make_bench(*state);
    ps_profile profile;
    ps_status status = {0};
    assert_ok(parse(*state, b, text, &profile, &status), &status);
    assert_int_equal(profile.num_measurements, 1);
    assert_int_equal(profile.measurement[0].layer[0].forward_ns, 1000000);
}

#define COLUMNS "layer,micro_batch_size,forward_ms,backward_input_ms,backward_weight_ms"

static void nonsense_is_refused_by_name(void **state)
{
    static const char *const cases[][2] = {
        {"layer,forward_ms\nblock,1\n", "missing-column"},
        {COLUMNS ",activation\nblock,1,1,1,1,1\n", "unknown-column"},
        {COLUMNS ",layer\nblock,1,1,1,1,block\n", "csv-duplicate-column"},
        {COLUMNS "\nblock,1,1,1\n", "csv-cells"},
        {COLUMNS "\nblock,1,0,1,1\n", "profile-time"},
        {COLUMNS "\nblock,1,-1,1,1\n", "profile-time"},
        {COLUMNS "\nblock,1,nan,1,1\n", "profile-time"},
        {COLUMNS "\nblock,1,1,1e300,1\n", "profile-time"},
        {COLUMNS "\nblock,0,1,1,1\n", "profile-condition"},
        {COLUMNS "\nblock,,1,1,1\n", "profile-condition"},
        {COLUMNS ",precision\nblock,1,1,1,1,bf17\n", "profile-condition"},
        {COLUMNS "\nblock.0,1,1,1,1\n", "unknown-layer"},
        {COLUMNS "\nblock,1,1,1,1\nblock,1,2,2,2\n", "duplicate-layer"},
        {COLUMNS "\n", "profile-empty"},
        {"", "csv-empty"},
        {"{}", "wrong-format"},
        {"{\"format\": \"pipesched/model/v1\", \"name\": \"m\", \"layers\": [{\"name\": \"l\", \"kind\": \"x\", "
         "\"forward_ms\": 1, \"backward_input_ms\": 1, \"backward_weight_ms\": 1}]}",
         "profile-empty"},
    };
    bench *b = make_bench(*state);
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
        ps_profile profile;
        ps_status status = {0};
        ps_code code = parse(*state, b, cases[index][0], &profile, &status);
        if (code != PS_BAD_INPUT || strcmp(status.rule, cases[index][1]) != 0)
            fail_msg("expected %s, got code %d, rule %s: %s", cases[index][1], (int)code, status.rule, status.message);
        assert_string_equal(status.source, "profile");
    }
}

static void a_block_that_is_named_singly_is_told_the_entry(void **state)
{
    bench *b = make_bench(*state);
    ps_profile profile;
    ps_status status = {0};
    assert_int_equal(parse(*state, b, COLUMNS "\nblock.7,1,1,1,1\n", &profile, &status), PS_BAD_INPUT);
    assert_non_null(strstr(status.hint, "\"block\""));
    assert_int_equal(status.line, 2);
}

static const double sizes[] = {1024, 1048576, 1073741824};
static const double times[] = {30e-6, 70e-6, 11e-3};

static ps_nccl_test all_reduce_of(int32_t ranks, int32_t nodes, const char *gpu)
{
    return (ps_nccl_test){.source = "log",
                          .line = 7,
                          .name = "all_reduce",
                          .has_curve = true,
                          .collective = PS_COLLECTIVE_ALL_REDUCE,
                          .ranks = ranks,
                          .nodes = nodes,
                          .gpu = gpu,
                          .num_points = 3,
                          .bytes = sizes,
                          .seconds = times};
}

static ps_code collect(ps_arena *arena, const bench *b, ps_calibration_sources *sources, ps_calibration *out,
                       ps_status *status)
{
    return ps_calibration_collect(arena, &b->model, &b->cluster, NULL, PS_PRECISION_BF16, sources, out, status);
}

// As the file of `calibration` says it.
static ps_calibration written(ps_arena *arena, const ps_calibration *calibration)
{
    char *text = NULL;
    size_t size = 0;
    ps_calibration again;
    ps_status status = {0};
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_ok(ps_calibration_write(calibration, file, &status), &status);
    fclose(file);
    assert_ok(ps_calibration_parse(arena, "calibration", text, (int64_t)size, &again, &status), &status);
    free(text);
    return again;
}

static void collectives_and_layers_make_a_calibration_without_runs(void **state)
{
    bench *b = make_bench(*state);
    ps_nccl_test tests[] = {all_reduce_of(8, 1, "NVIDIA H100 80GB HBM3"), all_reduce_of(16, 2, NULL)};
    ps_calibration_sources sources = {.tests = {.count = 2, .test = tests}};
    ps_calibration calibration;
    ps_status status = {0};
    assert_ok(parse(*state, b, COLUMNS "\nblock,1,2,2,2\n", &sources.profile, &status), &status);
    assert_ok(collect(*state, b, &sources, &calibration, &status), &status);
    assert_int_equal(sources.num_warnings, 0);
    ps_calibration again = written(*state, &calibration);
    assert_string_equal(again.framework, "any");
    assert_int_equal(again.runs, 0);
    assert_true(again.factor[PS_FACTOR_GEMM] == 1 && again.factor[PS_FACTOR_PP] == 1);
    assert_int_equal(again.num_curves, 2);
    assert_int_equal(again.curve[1].nodes, 2);
    assert_true(again.curve[0].bytes[1] == 1048576);
    assert_true(again.curve[0].seconds[2] > 10.99e-3 && again.curve[0].seconds[2] < 11.01e-3);
    assert_int_equal(again.num_measurements, 1);
    assert_int_equal(again.measurement[0].layer[0].forward_ns, 2000000);
    assert_ok(ps_calibration_check(&again, &b->cluster.group[0].gpu, PS_PRECISION_BF16, "megatron", &status), &status);
}

static void what_this_cluster_cannot_use_is_said(void **state)
{
    bench *b = make_bench(*state);
    ps_nccl_test tests[] = {all_reduce_of(16, 1, NULL), all_reduce_of(8, 1, NULL), all_reduce_of(8, 1, NULL)};
    tests[1].name = "sendrecv";
    tests[1].has_curve = false;
    tests[2].num_points = 1;
    ps_calibration_sources sources = {.tests = {.count = 3, .test = tests}};
    ps_calibration calibration;
    ps_status status = {0};
    assert_ok(collect(*state, b, &sources, &calibration, &status), &status);
    assert_int_equal(calibration.num_curves, 2);
    assert_int_equal(sources.num_warnings, 3);
    assert_non_null(strstr(sources.warning[0], "a node of this cluster has 8 GPUs"));
    assert_non_null(strstr(sources.warning[1], "sendrecv is not kept"));
    assert_non_null(strstr(sources.warning[2], "ends at 1.00 KiB"));
}

static void another_gpu_is_refused(void **state)
{
    bench *b = make_bench(*state);
    ps_nccl_test test = all_reduce_of(8, 1, "NVIDIA A100-SXM4-80GB");
    ps_calibration_sources sources = {.tests = {.count = 1, .test = &test}};
    ps_calibration calibration;
    ps_status status = {0};
    assert_int_equal(collect(*state, b, &sources, &calibration, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "calibration-gpu");
    assert_int_equal(status.line, 7);

    sources = (ps_calibration_sources){0};
    status = (ps_status){0};
    assert_ok(parse(*state, b, COLUMNS ",gpu\nblock,1,2,2,2,A100-SXM4-80GB\n", &sources.profile, &status), &status);
    assert_int_equal(collect(*state, b, &sources, &calibration, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "calibration-gpu");
}

static void layers_in_another_precision_are_left_out_or_refused(void **state)
{
    bench *b = make_bench(*state);
    ps_calibration_sources sources = {0};
    ps_calibration calibration;
    ps_status status = {0};
    assert_ok(
        parse(*state, b, COLUMNS ",precision\nblock,1,2,2,2,fp8\nblock,1,3,3,3,bf16\n", &sources.profile, &status),
        &status);
    assert_ok(collect(*state, b, &sources, &calibration, &status), &status);
    assert_int_equal(calibration.num_measurements, 1);
    assert_int_equal(sources.num_warnings, 1);

    assert_ok(parse(*state, b, COLUMNS ",precision\nblock,1,2,2,2,fp8\n", &sources.profile, &status), &status);
    assert_int_equal(collect(*state, b, &sources, &calibration, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "calibration-precision");
    assert_non_null(strstr(status.hint, "--precision fp8"));
}

// The measured collective decides what a plan that needs it takes.
static void a_plan_uses_the_curves(void **state)
{
    bench *b = make_bench(*state);
    const double slow[] = {1e-3, 5e-3, 1};
    ps_nccl_test test = all_reduce_of(8, 1, NULL);
    test.seconds = slow;
    ps_calibration_sources sources = {.tests = {.count = 1, .test = &test}};
    ps_calibration calibration;
    ps_status status = {0};
    ps_plan plain;
    ps_plan measured;
    ps_job job = job_of(OPTIONS("global-batch-size", "16", "seq-length", "4096", "tp", "8", "pp", "2", "dp", "1",
                                "micro-batch-size", "1", "overlap-tp", "off", "sequence-parallel", "off"));
    assert_ok(collect(*state, b, &sources, &calibration, &status), &status);
    assert_ok(ps_plan_search_best(*state, &b->model, &b->cluster, &job, NULL, &plain, &status), &status);
    job.calibration = &calibration;
    assert_ok(ps_plan_search_best(*state, &b->model, &b->cluster, &job, NULL, &measured, &status), &status);
    assert_true(measured.prediction.iteration_ns > 2 * plain.prediction.iteration_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(a_table_of_layers_is_sorted_into_conditions),
        test_in_arena(a_model_file_is_a_profile_too),
        test_in_arena(nonsense_is_refused_by_name),
        test_in_arena(a_block_that_is_named_singly_is_told_the_entry),
        test_in_arena(collectives_and_layers_make_a_calibration_without_runs),
        test_in_arena(what_this_cluster_cannot_use_is_said),
        test_in_arena(another_gpu_is_refused),
        test_in_arena(layers_in_another_precision_are_left_out_or_refused),
        test_in_arena(a_plan_uses_the_curves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
