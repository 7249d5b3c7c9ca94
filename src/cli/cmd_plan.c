// SPDX-License-Identifier: Apache-2.0
//
// cmd_plan.c: the best plan for a model on a cluster: a summary for people, plan JSON for machines.
#include <inttypes.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/job_options.h"
#include "cli/terminal.h"
#include "pipesched/limits.h"
#include "pipesched/plan.h"
#include "report/gantt.h"
#include "report/plan_summary.h"

typedef struct plan_options {
    ps_common_options common;
    const char *job;
    const char *calibration;
    double nic;
    const char *gpu;
    int64_t nodes;
    int64_t time_limit;
    bool timeline;
    bool draw;
} plan_options;

static const ps_option rows[] = {
    PS_OPTION_AT(STRING, plan_options, job, "job", "FILE", NULL,
                 "job options from a file; those given here override it"),
    PS_OPTION_AT(STRING, plan_options, calibration, "calibration", "FILE", NULL,
                 "measured efficiencies, collectives and layers, as calibrate writes them"),
    PS_OPTION_AT(RATE, plan_options, nic, "nic", "RATE", NULL, "network bandwidth of a GPU, as in 400Gb/s"),
    PS_OPTION_AT(STRING, plan_options, gpu, "gpu", "TYPE", NULL, "GPU type, where a node file does not name it"),
    PS_OPTION_INT_AT(plan_options, nodes, "nodes", 1, PS_MAX_GPUS, NULL, "copies of a node file; 1 unless given"),
    PS_OPTION_AT(DURATION, plan_options, time_limit, "time-limit", "TIME", NULL,
                 "stop the search, print the best so far, exit status 5; seconds, or with a unit as in 500ms; none "
                 "unless given"),
    PS_OPTION_FLAG_AT(plan_options, timeline, "timeline", "add the start and end of every op to the JSON"),
    PS_OPTION_FLAG_AT(plan_options, draw, "draw", "draw the timeline below the summary"),
};

static const ps_option_group own_group = {"Plan options", rows, PS_OPTION_COUNT(rows)};
static const ps_option_group *const groups[] = {&own_group, &ps_job_option_group, &ps_common_option_group, NULL};

typedef struct replay {
    ps_pipeline pipeline;
    ps_timeline timeline;
    ps_step step;
    ps_step_timeline tail;
} replay;

// The timeline once more, for drawing and for --timeline: a plan keeps only its order.
static ps_code replay_plan(ps_run *run, const ps_plan *plan, replay *out, ps_status *status)
{
    PS_TRY(ps_plan_pipeline(run->arena, plan, &out->pipeline, status));
    PS_TRY(ps_plan_step(run->arena, plan, &out->pipeline, &out->step, status));
    PS_TRY(ps_simulate(run->arena, &out->pipeline, &plan->schedule, &out->timeline, status));
    ps_step_place(run->arena, &out->pipeline, &plan->schedule, &out->timeline, &out->step, &out->tail);
    return PS_OK;
}

static ps_code write_results(ps_run *run, const ps_plan *plan, ps_status *status)
{
    const plan_options *options = run->parsed.values;
    replay *again = NULL;
    if (plan->feasible && (options->timeline || options->draw)) {
        again = ps_new(run->arena, replay, 1);
        PS_TRY(replay_plan(run, plan, again, status));
    }
    const ps_timeline *timeline = again && options->timeline ? &again->timeline : NULL;
    if (run->to_file)
        PS_TRY(ps_plan_write_json(plan, timeline, run->file, status));
    if (run->common->json || (run->common->output && !run->to_file)) // -o - too
        return ps_plan_write_json(plan, timeline, run->out, status);
    if (run->to_file && run->common->quiet)
        return PS_OK;
    const ps_report_style style = ps_terminal_style(false); // -o FILE takes the JSON, not this
    ps_report_plan(run->arena, run->out, plan, run->common->verbose, &style);
    if (again && options->draw) {
        fputc('\n', run->out);
        ps_report_gantt(run->out,
                        &(ps_gantt){.pipeline = &again->pipeline,
                                    .schedule = &plan->schedule,
                                    .timeline = &again->timeline,
                                    .step = &again->step,
                                    .tail = &again->tail},
                        &style);
    }
    return PS_OK;
}

static ps_code load_inputs(ps_run *run, ps_model *model, ps_cluster *cluster, ps_job *job, ps_status *status)
{
    const plan_options *options = run->parsed.values;
    const ps_cluster_options cluster_options = {
        .nic_bytes_per_s = options->nic, .gpu = options->gpu, .nodes = (int32_t)options->nodes};
    PS_TRY(ps_job_from_options(run, options->job, job, status));
    PS_TRY(ps_job_check(job, status));
    if (options->calibration) {
        ps_calibration *calibration = ps_new(run->arena, ps_calibration, 1);
        PS_TRY(ps_calibration_load(run->arena, options->calibration, calibration, status));
        job->calibration = calibration;
    }
    PS_TRY(ps_model_load(run->arena, run->parsed.operand[0], model, status));
    PS_TRY(ps_cluster_load(run->arena, run->parsed.operand[1], &cluster_options, cluster, status));
    return PS_OK;
}

static ps_code check_options(const ps_run *run, ps_status *status)
{
    const plan_options *options = run->parsed.values;
    PS_TRY(ps_run_exclude(run, "draw", "json", status));
    PS_TRY(ps_run_stdin_once(run, options->job, status));
    PS_TRY(ps_run_stdin_once(run, options->calibration, status));
    if (options->timeline && !run->common->json && !run->common->output) {
        ps_fail(status, PS_USAGE, "missing-option", "--timeline is for the JSON, which is not asked for");
        return ps_fail_hint(status, "add --json or -o FILE, or use --draw");
    }
    return PS_OK;
}

static ps_code run_plan(ps_run *run, ps_status *status)
{
    const plan_options *options = run->parsed.values;
    ps_model model;
    ps_cluster cluster;
    ps_job job;
    PS_TRY(check_options(run, status));
    PS_TRY(load_inputs(run, &model, &cluster, &job, status));

    int64_t limit_ns = ps_option_given(&run->parsed, "time-limit") ? options->time_limit : -1;
    ps_cli_control_start(&run->control, limit_ns, ps_terminal_shows_progress() && !run->common->quiet);
    ps_plan plan;
    ps_code code = ps_plan_search_best(run->arena, &model, &cluster, &job, &run->control.control, &plan, status);
    ps_cli_control_end(&run->control);
    // A time limit with a status filled in came before any plan: there is nothing to print but that.
    if (code != PS_OK && (code != PS_TIME_LIMIT || status->code != PS_OK))
        return code;
    run->verdict = code != PS_OK ? code : plan.feasible ? PS_OK : PS_INFEASIBLE;
    if (code == PS_TIME_LIMIT)
        ps_run_note(run, "the time limit was hit: this is the best so far");
    return write_results(run, &plan, status);
}

const ps_command ps_command_plan = {
    .name = "plan",
    .operands = "MODEL CLUSTER",
    .summary = "the best plan: a summary, or plan JSON",
    .about = "Searches parallel degrees, micro-batch size, recompute, schedule and cut for the fastest plan that fits, "
             "and says how far from the best possible it is and why other choices lost.\n"
             "MODEL and CLUSTER are files (- is standard input) or built-in names (pipesched show --list). A CLUSTER "
             "may also be written NODESxGPUSxTYPE. With -o FILE the plan JSON goes to FILE and the summary to standard "
             "output. Exit status 1 when nothing fits, with the reasons.",
    .examples = "pipesched plan llama-3.1-8b 1x8xH100-SXM5-80GB --global-batch-size 256 --seq-length 8192\n"
                "pipesched plan llama-3.1-70b 8x8xH100-SXM5-80GB --nic 400Gb/s --global-batch-size 1024 \\\n"
                "  --seq-length 8192 -o plan.json",
    .min_operands = 2,
    .max_operands = 2,
    .groups = groups,
    .options_size = sizeof(plan_options),
    .run = run_plan,
};
