// SPDX-License-Identifier: Apache-2.0
//
// Runs that the cost model itself made up with known factors, and files of runs that are at fault.
#include <math.h>
#include <stdlib.h>

#include "pipesched/calibrate.h"
#include "plan/calibrate_fit.h"
#include "plan/calibrate_predict.h"
#include "support/cmocka_all.h"
#include "support/planned.h"

static const char header[] = "name,tp,pp,dp,vp,micro_batch_size,global_batch_size,seq_length,iteration_ms\n";
static const char *const layouts[] = {"a,2,4,1,1,1,64,4096",  "b,1,8,1,1,1,64,4096", "c,1,4,2,1,2,128,4096",
                                      "d,4,2,1,1,1,64,4096",  "e,8,1,1,1,2,64,4096", "f,1,2,4,4,1,64,4096",
                                      "g,2,2,2,1,1,256,2048", "h,1,8,1,2,1,128,1024"};

typedef struct bench {
    ps_model model;
    ps_cluster cluster;
    ps_job base;
} bench;

static bench *make_bench(ps_arena *arena)
{
    bench *b = ps_new(arena, bench, 1);
    load(arena, "llama-3.1-8b", "1x8xH100-SXM5-80GB", &b->model, &b->cluster);
    ps_job_init(&b->base);
    return b;
}

static ps_code parse(ps_arena *arena, const bench *b, const char *text, ps_measured_runs *out, ps_status *status)
{
    return ps_measured_runs_parse(arena, "runs", text, (int64_t)strlen(text), &b->base, "megatron", out, status);
}

// The first `count` layouts, whose times are those of the cost model under `factor`, each times its own error.
static ps_measured_runs runs_of(ps_arena *arena, const bench *b, int32_t count, const double factor[PS_FACTORS],
                                const double *error)
{
    ps_measured_runs runs;
    ps_status status = {0};
    char *text = ps_new(arena, char, 4096);
    strcpy(text, header);
    for (int32_t run = 0; run < count; run++) {
        strcat(text, layouts[run]);
        strcat(text, ",1\n");
    }
    assert_ok(parse(arena, b, text, &runs, &status), &status);
    ps_measured_runs complete = runs;
    complete.run = ps_new(arena, ps_measured_run, count);
    memcpy(complete.run, runs.run, (size_t)count * sizeof *runs.run);
    ps_calibration none = {0};
    ps_run_predictor predictor = {
        .model = &b->model, .group = &b->cluster.group[0], .calibration = &none, .runs = &complete};
    for (int32_t run = 0; run < count; run++) {
        double seconds = 0;
        assert_ok(ps_measured_run_complete(&complete, run, &complete.run[run].job, &status), &status);
        assert_ok(ps_run_predict(&predictor, run, factor, arena, &seconds, &status), &status);
        runs.run[run].seconds = seconds * (error ? error[run] : 1);
    }
    return runs;
}

static ps_code calibrate(ps_arena *arena, const bench *b, const ps_measured_runs *runs, ps_calibration *out,
                         ps_calibration_report *report, ps_status *status)
{
    *out = (ps_calibration){.source = "", .leave_one_out = -1};
    return ps_calibrate(arena, &b->model, &b->cluster, runs, 2, out, report, status);
}

typedef struct fitted {
    ps_calibration calibration;
    ps_calibration_report report;
} fitted;

// The fit to runs that the cost model made up.
static fitted fit_to(ps_arena *arena, int32_t count, const double factor[PS_FACTORS], const double *error)
{
    bench *b = make_bench(arena);
    ps_measured_runs runs = runs_of(arena, b, count, factor, error);
    fitted fit;
    ps_status status = {0};
    assert_ok(calibrate(arena, b, &runs, &fit.calibration, &fit.report, &status), &status);
    return fit;
}

// One run is believed half of the way where 10 % are to be expected: 0.05^2 / (0.05^2 + 0.05^2).
static void one_run_scales_matrix_products_most_of_the_way(void **state)
{
    const double slow[PS_FACTORS] = {1.17, 1, 1, 1, 1, 1, 1};
    fitted fit = fit_to(*state, 1, slow, NULL);
    double gemm = fit.calibration.factor[PS_FACTOR_GEMM];
    assert_true(gemm > 1.06 && gemm < 1.1);
    double left = log(1 - fit.calibration.error) / log(1 - fit.report.error_before);
    assert_float_equal(left, 0.5, 0.001);
    assert_true(fit.report.error_before > 0.05);
    assert_true(fit.calibration.leave_one_out < 0);
    for (int factor = PS_FACTOR_ATTENTION; factor < PS_FACTORS; factor++)
        assert_true(fit.calibration.factor[factor] == 1);
}

static void a_few_runs_take_the_median(void **state)
{
    const double slow[PS_FACTORS] = {1.1, 1, 1, 1, 1, 1, 1};
    const double error[] = {1.0, 1.02, 0.985};
    fitted fit = fit_to(*state, 3, slow, error);
    assert_float_equal(fit.calibration.factor[PS_FACTOR_GEMM], 1.075F, 0.01F); // three are believed by 0.75
    assert_true(fit.calibration.error < fit.report.error_before);
}

static void many_runs_move_all_factors(void **state)
{
    const double factor[PS_FACTORS] = {1.15, 1, 1.1, 1, 1.3, 1, 1};
    fitted fit = fit_to(*state, 8, factor, NULL);
    assert_float_equal(fit.calibration.factor[PS_FACTOR_GEMM], 1.15, 0.08);
    assert_true(fit.calibration.factor[PS_FACTOR_TP] > 1.1);
    assert_true(fit.calibration.error < 0.02 && fit.report.error_before > 0.08);
    assert_true(fit.calibration.leave_one_out >= fit.calibration.error && fit.calibration.leave_one_out < 0.06);
}

static void factors_stay_within_bounds_and_say_so(void **state)
{
    const double ones[PS_FACTORS] = {1, 1, 1, 1, 1, 1, 1};
    const double error[] = {2.95, 2.95, 2.95};
    fitted fit = fit_to(*state, 3, ones, error);
    assert_true(fit.calibration.factor[PS_FACTOR_GEMM] <= PS_FACTOR_MOST);
    assert_true(fit.report.num_warnings > 0);
    assert_non_null(strstr(fit.report.warning[0], "bound"));
}

static void an_outlier_is_kept_out_and_named(void **state)
{
    const double ones[PS_FACTORS] = {1, 1, 1, 1, 1, 1, 1};
    const double error[] = {1.0, 1.01, 1.6, 0.99, 1.0, 1.0, 1.0, 1.0};
    fitted fit = fit_to(*state, 8, ones, error);
    assert_true(fit.report.run[2].kept_out);
    assert_int_equal(fit.calibration.runs, 7);
    assert_non_null(strstr(fit.report.warning[0], "c is kept out"));
    assert_true(fit.calibration.factor[PS_FACTOR_GEMM] < 1.05);
}

static void assert_calibration_fails(ps_arena *arena, const bench *b, const char *text, const char *rule)
{
    ps_measured_runs runs;
    ps_calibration calibration;
    ps_calibration_report report;
    ps_status status = {0};
    ps_code code = parse(arena, b, text, &runs, &status);
    if (code == PS_OK)
        code = calibrate(arena, b, &runs, &calibration, &report, &status);
    if (code != PS_BAD_INPUT || strcmp(status.rule, rule) != 0)
        fail_msg("expected %s, got code %d, rule %s: %s", rule, (int)code, status.rule, status.message);
}

static void nonsense_is_refused_by_name(void **state)
{
    static const char *const cases[][2] = {
        {"tp,pp,dp,micro_batch_size,global_batch_size,seq_length,iteration_ms\n2,4,1,1,64,4096,-5\n", "run-time"},
        {"tp,pp,dp,micro_batch_size,global_batch_size,seq_length,iteration_ms\n2,4,1,1,64,4096,0\n", "run-time"},
        {"tp,pp,dp,micro_batch_size,global_batch_size,seq_length,iteration_ms\n2,4,1,1,64,4096,nan\n", "run-time"},
        {"tp,pp,dp,micro_batch_size,global_batch_size,seq_length,iteration_ms\n2,4,1,1,64,4096,9000000\n",
         "run-far-off"},
        {"tp,pp,dp,micro_batch_size,global_batch_size,seq_length,iteration_ms\n8,1,1,1,64,4096,6000\n", "runs-too-few"},
        {"tp,pp,dp,micro_batch_size,global_batch_size,seq_length,iteration_ms\n2,4,1,1,64,4096,4000\n"
         "2,4,1,1,64,4096,4000\n",
         "runs-alike"},
        {"framework,tp,pp,dp,micro_batch_size,global_batch_size,seq_length,iteration_ms\n"
         "megatron,2,4,1,1,64,4096,4000\ntorchtitan,1,8,1,1,64,4096,4000\n",
         "mixed-frameworks"},
        {"precision,tp,pp,dp,micro_batch_size,global_batch_size,seq_length,iteration_ms\n"
         "bf16,2,4,1,1,64,4096,4000\nfp8,1,8,1,1,64,4096,4000\n",
         "mixed-precisions"},
        {"gpu,tp,pp,dp,micro_batch_size,global_batch_size,seq_length,iteration_ms\nA100-SXM4-80GB,2,4,1,1,64,4096,4000\n",
         "calibration-gpu"},
        {"tp,pp,dp,micro_batch_size,global_batch_size,seq_length,iteration_ms\n3,4,1,1,64,4096,4000\n", "run-layout"},
        {"tp,pp,dp,micro_batch_size,global_batch_size,seq_length\n2,4,1,1,64,4096\n", "missing-column"},
        {"tp,tp,iteration_ms\n1,2,3\n", "csv-duplicate-column"},
        {"tp,iteration_ms\n1\n", "csv-cells"},
        {"iteration_ms\n", "runs-missing"},
        {"{\"format\": \"pipesched/runs/v1\", \"runs\": []}", "runs-missing"},
        {"{\"format\": \"pipesched/runs/v1\", \"runs\": [{\"iteration_ms\": -1}]}", "out-of-range"},
        {"{\"format\": \"pipesched/runs/v1\", \"runs\": [{\"time\": 1}]}", "unknown-key"},
        {"{\"format\": \"pipesched/runs/v2\", \"runs\": []}", "unknown-version"},
        {" iteration 1/ 2 | elapsed time per iteration (ms): -3.0 |\n", "run-time"},
        {"  tensor_model_parallel_size ...... two\n iteration 1/ 2 | elapsed time per iteration (ms): 3.0 |\n",
         "bad-value"},
    };
    bench *b = make_bench(*state);
    for (size_t index = 0; index < sizeof cases / sizeof *cases; index++)
        assert_calibration_fails(*state, b, cases[index][0], cases[index][1]);
}

static void a_log_is_one_run_with_the_arguments_it_prints(void **state)
{
    static const char text[] = "------------------------ arguments ------------------------\n"
                               "  bf16 ............................................ True\n"
                               "  data_parallel_size .............................. 1\n"
                               "  global_batch_size ............................... 64\n"
                               "  micro_batch_size ................................ 1\n"
                               "  pipeline_model_parallel_size .................... 4\n"
                               "  recompute_granularity ........................... None\n"
                               "  seq_length ...................................... 4096\n"
                               "  tensor_model_parallel_size ...................... 2\n"
                               "  virtual_pipeline_model_parallel_size ............ None\n"
                               " iteration 1/ 6 | elapsed time per iteration (ms): 9000.0 | lm loss: 1 |\r\n"
                               " iteration 2/ 6 | elapsed time per iteration (ms): 5000.0 |\n"
                               " iteration 3/ 6 | elapsed time per iteration (ms): 4010.0 |\n"
                               " iteration 4/ 6 | elapsed time per iteration (ms): 4000.0 |\n"
                               " iteration 5/ 6 | elapsed time per iteration (ms): 3990.5 |";
    bench *b = make_bench(*state);
    ps_measured_runs runs;
    ps_status status = {0};
    assert_ok(parse(*state, b, text, &runs, &status), &status);
    assert_int_equal(runs.count, 1);
    assert_float_equal(runs.run[0].seconds, 4.0, 1e-9);
    assert_int_equal(runs.run[0].job.tp.value[0], 2);
    assert_int_equal(runs.run[0].job.pp.value[0], 4);
    assert_int_equal(runs.run[0].job.vp.count, 0);
    assert_int_equal(runs.run[0].job.seq_length, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(one_run_scales_matrix_products_most_of_the_way),
        test_in_arena(a_few_runs_take_the_median),
        test_in_arena(many_runs_move_all_factors),
        test_in_arena(factors_stay_within_bounds_and_say_so),
        test_in_arena(an_outlier_is_kept_out_and_named),
        test_in_arena(nonsense_is_refused_by_name),
        test_in_arena(a_log_is_one_run_with_the_arguments_it_prints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
