// SPDX-License-Identifier: Apache-2.0
//
// cmd_calibrate.c: factors of the cost model from measured runs: a summary for people, a calibration file for plan.
#include "cli/command.h"
#include "cli/job_options.h"
#include "pipesched/calibrate.h"
#include "pipesched/limits.h"
#include "report/calibration_summary.h"

typedef struct calibrate_options {
    ps_common_options common;
    const char *runs;
    const char *framework;
    const char *job;
    double nic;
    const char *gpu;
    int64_t nodes;
} calibrate_options;

static const ps_option rows[] = {
    PS_OPTION_AT(STRING, calibrate_options, runs, "runs", "FILE", NULL,
                 "measured iterations: JSON, CSV, or the log of Megatron-LM; required"),
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

static ps_code write_results(ps_run *run, const ps_measured_runs *runs, const ps_calibration *calibration,
                             const ps_calibration_report *report, ps_status *status)
{
    for (int32_t index = 0; index < runs->num_warnings; index++)
        ps_run_warn(run, runs->warning[index]);
    for (int32_t index = 0; index < report->num_warnings; index++)
        ps_run_warn(run, report->warning[index]);
    if (run->to_file)
        PS_TRY(ps_calibration_write(calibration, run->file, status));
    if (run->common->json || (run->common->output && !run->to_file)) // -o - too
        return ps_calibration_write(calibration, run->out, status);
    if (!run->to_file || !run->common->quiet)
        ps_report_calibration(run->arena, run->out, runs, calibration, report);
    return PS_OK;
}

static ps_code run_calibrate(ps_run *run, ps_status *status)
{
    const calibrate_options *options = run->parsed.values;
    const ps_cluster_options cluster_options = {
        .nic_bytes_per_s = options->nic, .gpu = options->gpu, .nodes = (int32_t)options->nodes};
    ps_model model;
    ps_cluster cluster;
    ps_job base;
    ps_measured_runs runs;
    ps_calibration calibration = {.source = "", .leave_one_out = -1};
    ps_calibration_report report;

    PS_TRY(ps_run_require(run, "runs", status));
    PS_TRY(ps_run_stdin_once(run, options->runs, status));
    PS_TRY(ps_job_from_options(run, options->job, &base, status));
    PS_TRY(ps_model_load(run->arena, run->parsed.operand[0], &model, status));
    PS_TRY(ps_cluster_load(run->arena, run->parsed.operand[1], &cluster_options, &cluster, status));
    PS_TRY(ps_measured_runs_load(run->arena, options->runs, &base, options->framework, &runs, status));
    PS_TRY(ps_calibrate(run->arena, &model, &cluster, &runs, base.threads, &calibration, &report, status));
    return write_results(run, &runs, &calibration, &report, status);
}

const ps_command ps_command_calibrate = {
    .name = "calibrate",
    .operands = "MODEL CLUSTER",
    .summary = "fit efficiencies to measured runs; writes a calibration file",
    .about = "Compares measured iterations with what the cost model predicts for their layouts, and scales classes of "
             "work until both agree: matrix products alone for up to three runs, everything for four or more. Factors "
             "stay from 0.5 to 2; a run far from what the others show is kept out and named. Each run is also judged "
             "by a fit to the others.\n"
             "A run gives its degrees, micro-batch size and schedule; job options given here hold for runs that do "
             "not give them. A calibration holds for one framework, precision and GPU type. plan --calibration reads "
             "what -o FILE writes.",
    .examples = "pipesched calibrate llama-3.1-8b 1x8xH100-SXM5-80GB --runs runs.csv --framework megatron -o h100.json",
    .min_operands = 2,
    .max_operands = 2,
    .groups = groups,
    .options_size = sizeof(calibrate_options),
    .run = run_calibrate,
};
