// SPDX-License-Identifier: Apache-2.0
//
// cmd_partition.c: the cut alone: stages, bottleneck, bound and proof.
#include <string.h>

#include "cli/command.h"
#include "cli/cut_problem.h"
#include "cli/job_options.h"
#include "cli/terminal.h"
#include "pipesched/limits.h"
#include "report/cut.h"

static const char *const objectives[] = {"bottleneck", "iteration", NULL};
static const char *const engines[] = {"auto", "dp", "milp", "heuristic", NULL};
static const char *const on_off[] = {"on", "off", NULL};

#define OPTIONS ps_partition_command_options

static const ps_option rows[] = {
    PS_OPTION_INT_AT(OPTIONS, stages, "stages", 1, PS_MAX_STAGES, NULL,
                     "stages, none of them empty; required without --types"),
    PS_OPTION_AT(STRING, OPTIONS, weights, "weights", "TIMES", NULL,
                 "cost of every layer instead of a model: 3,1,4, or A=3,1,4;B=6,2,8 by type"),
    PS_OPTION_CHOICE_AT(OPTIONS, objective, "objective", objectives, "bottleneck",
                        "least largest stage, or least sum + (micro-batches - 1) x largest"),
    PS_OPTION_INT_AT(OPTIONS, num_microbatches, "num-microbatches", 1, PS_MAX_MICROBATCHES, NULL,
                     "for --objective iteration and --schedule"),
    PS_OPTION_CHOICE_AT(OPTIONS, engine, "engine", engines, "auto", "how to search"),
    PS_OPTION_AT(STRING, OPTIONS, types, "types", "TYPE:COUNT,...", NULL,
                 "devices of several types, as in A100:4,V100:4; a count is the most that may be used"),
    PS_OPTION_INT_AT(OPTIONS, top_k, "top-k", 1, 1000, "1", "best cuts wanted"),
    PS_OPTION_CHOICE_AT(OPTIONS, contiguous, "contiguous", on_off, "on",
                        "a stage is a run of layers; off is not supported yet"),
    PS_OPTION_AT(DURATION, OPTIONS, time_limit, "time-limit", "TIME", NULL,
                 "stop the search and print the best so far; seconds, or with a unit as in 500ms; none unless given"),
};

static const ps_option constraint_rows[] = {
    PS_OPTION_AT(MEMORY, OPTIONS, memory_limit, "memory-limit", "SIZES", NULL, "of a device, or one a type"),
    PS_OPTION_AT(MEMORY, OPTIONS, memory, "memory", "SIZES", NULL, "static memory of the layers"),
    PS_OPTION_AT(MEMORY, OPTIONS, activation, "activation", "SIZES", NULL,
                 "held by a micro-batch from F to the end of I or B"),
    PS_OPTION_AT(MEMORY, OPTIONS, held_after_backward_input, "held-after-backward-input", "SIZES", NULL,
                 "what is left of it from I to W"),
    PS_OPTION_CHOICE_AT(OPTIONS, schedule, "schedule", ps_partition_schedules, "none",
                        "how many micro-batches each stage has in flight; none: one"),
    PS_OPTION_AT(TIMES, OPTIONS, cut, "cut-ms", "TIMES", NULL, "price of a cut, paid by both stages at it"),
    PS_OPTION_AT(RATE, OPTIONS, bandwidth, "bandwidth", "RATE", NULL, "price a cut by what the layer before it sends"),
    PS_OPTION_AT(MEMORY, OPTIONS, output, "output-bytes", "SIZES", NULL,
                 "what each layer sends to the next, for --bandwidth"),
};

static const ps_option model_rows[] = {
    PS_OPTION_AT(STRING, OPTIONS, gpu, "gpu", "TYPE", NULL, "GPU that prices the layers of a model without times"),
};

static const ps_option_group own_group = {"Partition options", rows, PS_OPTION_COUNT(rows)};
static const ps_option_group constraint_group = {"Memory and cuts (lists: one value, or one a layer)", constraint_rows,
                                                 PS_OPTION_COUNT(constraint_rows)};
static const ps_option_group model_group = {"Model options", model_rows, PS_OPTION_COUNT(model_rows)};
static const ps_option_group *const groups[] = {
    &own_group, &constraint_group, &model_group, &ps_job_cost_option_group, &ps_common_option_group, NULL};

static ps_code check_options(const ps_run *run, ps_status *status)
{
    const OPTIONS *options = run->parsed.values;
    if (run->parsed.num_operands == 0 && !options->weights) {
        ps_fail(status, PS_USAGE, "missing-operand", "partition needs a MODEL or --weights");
        return ps_fail_hint(status, "as in pipesched partition --weights 3,1,4,1,5 --stages 2");
    }
    if (run->parsed.num_operands > 0 && options->weights)
        return ps_fail(status, PS_USAGE, "conflicting-options", "a MODEL and --weights do not go together");
    if (strcmp(on_off[options->contiguous], "off") == 0) {
        ps_fail(status, PS_USAGE, "unsupported-contiguous",
                "stages of layers that are not neighbours are not supported");
        return ps_fail_hint(status, "leave --contiguous on");
    }
    return PS_OK;
}

static ps_code run_partition(ps_run *run, ps_status *status)
{
    const OPTIONS *options = run->parsed.values;
    ps_cut_input input;
    PS_TRY(check_options(run, status));
    if (options->weights)
        PS_TRY(ps_cut_input_from_weights(run, &input, status));
    else
        PS_TRY(ps_cut_input_from_model(run, run->parsed.operand[0], &input, status));

    int64_t limit_ns = ps_option_given(&run->parsed, "time-limit") ? options->time_limit : -1;
    ps_cli_control_start(&run->control, limit_ns, ps_terminal_shows_progress() && !run->common->quiet);
    ps_partition_options how = {
        .engine = (ps_engine)options->engine, .top_k = (int32_t)options->top_k, .control = &run->control.control};
    ps_partition_result result;
    PS_TRY(ps_partition_solve(run->arena, &input.problem, &how, &result, status));
    if (result.limit_hit && limit_ns >= 0 && ps_cli_control_is_late(&run->control))
        run->verdict = PS_TIME_LIMIT;

    ps_cut_report report = {&input.problem, &result, input.layer_name};
    if (run->common->json)
        return ps_cut_json(run->out, &report, status);
    ps_cut_text(run->out, run->arena, &report);
    return PS_OK;
}

const ps_command ps_command_partition = {
    .name = "partition",
    .operands = "[MODEL]",
    .summary = "the cut alone: stages, bottleneck, proof",
    .about = "Cuts a chain of layers into stages: those of a model, priced by its own times or on a GPU, or bare "
             "weights in milliseconds. Says which engine ran, a bound that no cut can beat, and whether the answer is "
             "proved best.",
    .examples = "pipesched partition --weights 3,1,4,1,5 --stages 2\n"
                "pipesched partition llama-3.1-8b --stages 4 --gpu H100-SXM5-80GB --seq-length 8192\n"
                "pipesched partition --types A:2,B:2 --weights 'A=3,1,4,1,5;B=6,2,8,2,10' --objective iteration \\\n"
                "  --num-microbatches 8 --json",
    .max_operands = 1,
    .groups = groups,
    .options_size = sizeof(OPTIONS),
    .run = run_partition,
};
