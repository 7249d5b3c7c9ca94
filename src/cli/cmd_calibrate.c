// SPDX-License-Identifier: Apache-2.0
//
// cmd_calibrate.c: factors of the cost model from measured runs, measured collectives and layers: a summary for people,
// a calibration file for plan.
#include <string.h>

#include "cli/command.h"
#include "cli/job_options.h"
#include "pipesched/calibrate.h"
#include "pipesched/limits.h"
#include "report/calibration_summary.h"

typedef struct calibrate_options {
    ps_common_options common;
    const char *runs;
    ps_string_list nccl_tests;
    const char *profile;
    const char *framework;
    const char *job;
    double nic;
    const char *gpu;
    int64_t nodes;
} calibrate_options;

static const ps_option rows[] = {
    PS_OPTION_AT(STRING, calibrate_options, runs, "runs", "FILE", NULL,
                 "measured iterations: JSON, CSV, or the log of Megatron-LM"),
    PS_OPTION_AT(STRINGS, calibrate_options, nccl_tests, "nccl-tests", "FILE", NULL,
                 "measured collectives: what nccl-tests print; may be given several times"),
    PS_OPTION_AT(STRING, calibrate_options, profile, "profile", "FILE", NULL,
                 "measured layers: CSV, or a model or calibration file with measurements"),
    PS_OPTION_AT(STRING, calibrate_options, framework, "framework", "NAME", NULL,
                 "that the runs were made with, where the file does not say"),
    PS_OPTION_AT(STRING, calibrate_options, job, "job", "FILE", NULL,
                 "job options that runs do not give, from a file; those given here override it"),
    PS_OPTION_AT(RATE, calibrate_options, nic, "nic", "RATE", NULL, "network bandwidth of a GPU, as in 400Gb/s"),
    PS_OPTION_AT(STRING, calibrate_options, gpu, "gpu", "TYPE", NULL, "GPU type, where a node file does not name it"),
    PS_OPTION_INT_AT(calibrate_options, nodes, "nodes", 1, PS_MAX_GPUS, NULL, "copies of a node file; 1 unless given"),
};

static const ps_option_group own_group = {"Calibrate options", rows, PS_OPTION_COUNT(rows)};
static const ps_option_group *const groups[] = {&own_group, &ps_job_option_group, &ps_common_option_group, NULL};

// All that a calibration is made from.
typedef struct calibrate_call {
    ps_model model;
    ps_cluster cluster;
    ps_job base;
    bool has_runs;
    ps_measured_runs runs;
    ps_calibration_sources sources;
    ps_calibration calibration;
    ps_calibration_report report;
} calibrate_call;

static void warn_all(const ps_run *run, const char **warning, int32_t count)
{
    for (int32_t index = 0; index < count; index++)
        ps_run_warn(run, warning[index]);
}

static ps_code write_results(ps_run *run, const calibrate_call *call, ps_status *status)
{
    const ps_calibration *calibration = &call->calibration;

    warn_all(run, call->sources.tests.warning, call->sources.tests.num_warnings);
    warn_all(run, call->sources.warning, call->sources.num_warnings);
    if (call->has_runs) {
        warn_all(run, call->runs.warning, call->runs.num_warnings);
        warn_all(run, call->report.warning, call->report.num_warnings);
    }
    if (run->to_file)
        PS_TRY(ps_calibration_write(calibration, run->file, status));
    if (run->common->json || (run->common->output && !run->to_file)) // -o - too
        return ps_calibration_write(calibration, run->out, status);
    if (!run->to_file || !run->common->quiet)
        ps_report_calibration(run->arena, run->out, call->has_runs ? &call->runs : NULL, calibration,
                              call->has_runs ? &call->report : NULL, &call->sources);
    return PS_OK;
}

static ps_code check_options(const ps_run *run, const calibrate_options *options, ps_status *status)
{
    const char *read_from_stdin = NULL;
    int32_t count = options->nccl_tests.count;
    const char **value = ps_new(run->arena, const char *, count + 2);

    if (!options->runs && count == 0 && !options->profile) {
        ps_fail(status, PS_USAGE, "missing-option", "calibrate needs --runs, --nccl-tests or --profile here");
        return ps_fail_hint(status, "one measured iteration sharpens most: --runs FILE");
    }
    for (int32_t index = 0; index < count; index++)
        value[index] = options->nccl_tests.value[index];
    value[count++] = options->runs;
    value[count++] = options->profile;
    for (int32_t index = 0; index < count; index++) {
        if (!value[index] || strcmp(value[index], "-") != 0)
            continue;
        if (read_from_stdin)
            return ps_run_stdin_again(status);
        read_from_stdin = value[index];
    }
    return ps_run_stdin_once(run, read_from_stdin, status);
}

// Without runs nothing need be said of a job, and without any of the others a calibration would be empty.
static ps_code check_held(const calibrate_call *call, ps_status *status)
{
    if (call->has_runs || call->calibration.num_curves > 0 || call->calibration.num_measurements > 0)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "calibration-empty", "%.64s among %d ranks is nothing that a calibration holds",
            call->sources.tests.test[0].name, (int)call->sources.tests.test[0].ranks);
    ps_fail_at(status, call->sources.tests.test[0].source, call->sources.tests.test[0].line, 1, NULL);
    return ps_fail_hint(status, "measure all_reduce, reduce_scatter, all_gather or alltoall, or add --runs FILE");
}

static ps_code load_sources(const ps_run *run, const calibrate_options *options, ps_precision precision,
                            calibrate_call *call, ps_status *status)
{
    const ps_profile_conditions conditions = {
        .gpu = call->cluster.group[0].gpu.name, .precision = precision, .job = &call->base};

    if (options->nccl_tests.count > 0)
        PS_TRY(ps_nccl_tests_load(run->arena, options->nccl_tests.value, options->nccl_tests.count,
                                  &call->sources.tests, status));
    if (options->profile)
        PS_TRY(
            ps_profile_load(run->arena, options->profile, &call->model, &conditions, &call->sources.profile, status));
    PS_TRY(ps_calibration_collect(run->arena, &call->model, &call->cluster, options->framework, precision,
                                  &call->sources, &call->calibration, status));
    return check_held(call, status);
}

static ps_code run_calibrate(ps_run *run, ps_status *status)
{
    const calibrate_options *options = run->parsed.values;
    const ps_cluster_options cluster_options = {
        .nic_bytes_per_s = options->nic, .gpu = options->gpu, .nodes = (int32_t)options->nodes};
    calibrate_call *call = ps_new(run->arena, calibrate_call, 1);

    PS_TRY(check_options(run, options, status));
    PS_TRY(ps_job_from_options(run, options->job, &call->base, status));
    PS_TRY(ps_model_load(run->arena, run->parsed.operand[0], &call->model, status));
    PS_TRY(ps_cluster_load(run->arena, run->parsed.operand[1], &cluster_options, &call->cluster, status));
    call->has_runs = options->runs != NULL;
    ps_precision precision = ps_calibration_precision(&call->base, &call->cluster.group[0].gpu);
    if (call->has_runs) {
        PS_TRY(ps_measured_runs_load(run->arena, options->runs, &call->base, options->framework, &call->runs, status));
        precision = call->runs.run[0].job.precision;
    }
    PS_TRY(load_sources(run, options, precision, call, status));
    if (call->has_runs)
        PS_TRY(ps_calibrate(run->arena, &call->model, &call->cluster, &call->runs, call->base.threads,
                            &call->calibration, &call->report, status));
    return write_results(run, call, status);
}

const ps_command ps_command_calibrate = {
    .name = "calibrate",
    .operands = "MODEL CLUSTER",
    .summary = "fit efficiencies to measured runs; writes a calibration file",
    .about =
        "Makes a calibration file from what you measured: iterations (--runs), collectives (--nccl-tests), layers "
        "(--profile), any of them or all. plan --calibration reads what -o FILE writes.\n"
        "It compares measured iterations with what the cost model predicts for their layouts, and scales classes of "
        "work until both agree: matrix products alone for up to three runs, everything for four or more. Factors "
        "stay from 0.5 to 2; a run far from what the others show is kept out and named. Each run is also judged "
        "by a fit to the others.\n"
        "A run gives its degrees, micro-batch size and schedule; job options given here hold for runs that do "
        "not give them. A calibration holds for one framework, precision and GPU type.\n"
        "Collectives are kept as they were measured, by the number of ranks and nodes, and take the place of "
        "latency and bandwidth there; the line through each is printed to compare. Measured layers take the "
        "place of predicted ones.",
    .examples =
        "pipesched calibrate llama-3.1-8b 1x8xH100-SXM5-80GB --runs runs.csv --framework megatron -o h100.json\n"
        "pipesched calibrate llama-3.1-8b 2x8xH100-SXM5-80GB --nic 400Gb/s --nccl-tests all_reduce.log "
        "--nccl-tests all_gather.log -o h100.json",
    .min_operands = 2,
    .max_operands = 2,
    .groups = groups,
    .options_size = sizeof(calibrate_options),
    .run = run_calibrate,
};
