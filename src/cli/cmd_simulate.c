// SPDX-License-Identifier: Apache-2.0
//
// cmd_simulate.c: replay a plan or a PyTorch schedule file, or generate and replay a schedule, named or stated as
// rules, from bare numbers, as papers' tables give them. One bare unit of time is a millisecond; memory may be in any
// unit as long as all of it is.
#include <inttypes.h>
#include <string.h>

#include "cli/bare_pipeline.h"
#include "cli/command.h"
#include "cli/jitter_options.h"
#include "cli/load.h"
#include "cli/option_value.h"
#include "cli/simulate_compare.h"
#include "cli/simulate_csv.h"
#include "cli/simulate_curve.h"
#include "cli/simulate_rules.h"
#include "cli/simulate_search.h"
#include "cli/step_options.h"
#include "pipesched/limits.h"
#include "pipesched/plan.h"
#include "pipesched/schedule.h"
#include "pipesched/timeline.h"
#include "report/gantt.h"
#include "report/simulation.h"

static const char *const schedules[] = {
    "gpipe", "1f1b",   "interleaved", "zb-h1",     "zb-h2",  "looped-bfs", "interleaved-zb",
    "zb-v",  "v-half", "v-min",       "dualpipev", "h-1f1b", "dualpipe",   "gpipe-recompute",
    "zb",    "auto",   NULL};
static const char *const objectives[] = {"makespan", "span", NULL};

typedef struct simulate_options {
    ps_common_options common;
    ps_bare_options bare;
    ps_csv_options csv;
    ps_jitter_words jitter;
    ps_step_words step;
    const char *rules;
    bool compare;
    int32_t objective;
    int64_t effort;
    int64_t time_limit;
    bool draw;
    bool timeline;
} simulate_options;

#define AT(kind, field, option, values, text)                                                                          \
    PS_OPTION_AT(kind, simulate_options, bare.field, option, values, NULL, text)

static const ps_option bare_rows[] = {
    PS_OPTION_CHOICE_AT(
        simulate_options, bare.schedule, "schedule", schedules, NULL,
        "order of the ops; required without --rules; zb and auto search for one within --memory-limit: zb with I and W, "
        "auto with these or with B"),
    PS_OPTION_AT(
        STRING, simulate_options, rules, "rules", "FILE", NULL,
        "order of the ops by rules, instead of --schedule: a rule file, or gpipe, gpipe-recompute, 1f1b, interleaved or "
        "zb-h1 as shipped"),
    PS_OPTION_INT_AT(simulate_options, bare.pp, "pp", 1, PS_MAX_DEVICES, NULL, "pipeline ranks; required"),
    PS_OPTION_INT_AT(simulate_options, bare.vp, "vp", 1, PS_MAX_STAGES, "1",
                     "virtual stages a rank; 2 where a schedule takes no other number"),
    PS_OPTION_INT_AT(simulate_options, bare.num_microbatches, "num-microbatches", 1, PS_MAX_MICROBATCHES, NULL,
                     "micro-batches; required"),
    PS_OPTION_INT_AT(simulate_options, bare.group_size, "group-size", 1, PS_MAX_MICROBATCHES, NULL,
                     "micro-batches that interleaved sends through a stage together; pp if not given"),
    AT(STRING, launch_counts, "launch-counts", "LIST",
       "forwards of each rank before its first backward, for h-1f1b: one, or one a rank"),
    AT(STRING, placement, "placement", "PLACE",
       "of the stages of zb and auto on the ranks: loop, which is stage s on rank s mod pp; v, there and back again with "
       "two a rank; or the rank of every virtual stage, as in 0,1,1,0; loop if not given"),
    AT(TIMES, forward, "forward", "TIMES", "of a micro-batch's F on a virtual stage; required"),
    AT(TIMES, backward_input, "backward-input", "TIMES", "of I, the gradient of the input"),
    AT(TIMES, backward_weight, "backward-weight", "TIMES",
       "of W, the gradient of the weights; whole backwards take I + W"),
    AT(TIMES, backward, "backward", "TIMES", "of B, the whole backward, for schedules that do not split it"),
    AT(TIMES, recompute, "recompute", "TIMES",
       "of R, the forward again before the backward, for schedules that have it: gpipe-recompute, and rules with R"),
    AT(TIMES, comm_latency, "comm-ms", "TIMES", "latency of a hop between ranks: transfers do not delay each other"),
    AT(TIMES, comm_occupy, "comm-occupy-ms", "TIMES", "time that a transfer occupies its link: later ones queue"),
    AT(MEMORY, activation, "activation", "SIZES",
       "held from F to the end of I or B by a micro-batch on a virtual stage"),
    AT(MEMORY, held_after_recompute, "held-after-recompute", "SIZES",
       "what R makes of it until the end of I or B, at least --activation"),
    AT(MEMORY, held_after_backward_input, "held-after-backward-input", "SIZES", "what is left of it from I to W"),
    AT(MEMORY, memory_limit, "memory-limit", "SIZES", "of a rank; exceeded: exit status 1"),
    AT(MEMORY, memory_curve, "memory-curve", "SIZES",
       "with zb or auto: search at each of these limits of every rank, rising, and print time against memory; an order "
       "for less memory counts for more, so that the time never rises"),
};

static const ps_option step_rows[] = {
    PS_OPTION_AT(TIMES, simulate_options, step.grad_sync, "grad-sync", "TIMES", NULL,
                 "of the reduction of a virtual stage's gradients among the replicas, from its last W or B on"),
    PS_OPTION_AT(TIMES, simulate_options, step.optimizer_step, "optimizer-step", "TIMES", NULL,
                 "of the optimizer: one, or one a rank"),
    PS_OPTION_AT(TIMES, simulate_options, step.param_gather, "param-gather", "TIMES", NULL,
                 "of the gather of a virtual stage's parameters, after the optimizer"),
    PS_OPTION_CHOICE_AT(simulate_options, step.optimizer_barrier, "optimizer-barrier", ps_step_switch, "on",
                        "whether all ranks agree on the norm of the gradients before the optimizer; off: each steps by "
                        "itself and is validated afterwards"),
    PS_OPTION_AT(TIMES, simulate_options, step.barrier, "barrier-ms", "TIME", NULL, "of that agreement"),
    PS_OPTION_CHOICE_AT(simulate_options, step.overlap, "overlap-grad-sync", ps_step_switch, "on",
                        "whether reductions and gathers run beside ops; off: after the last and before the first"),
    PS_OPTION_INT_AT(simulate_options, step.buckets, "grad-buckets", 1, INT32_MAX, "1",
                     "equal parts in which a reduction leaves while the op that makes it runs, and a gather arrives"),
};

static const ps_option own_rows[] = {
    PS_OPTION_CHOICE_AT(simulate_options, objective, "objective", objectives, "makespan",
                        "what bound and gap are about, and what a search makes small: first start to last end of all, "
                        "or of each rank by itself"),
    PS_OPTION_INT_AT(simulate_options, effort, "effort", 1, 1000, "1",
                     "how much longer than by default zb and auto search"),
    PS_OPTION_AT(DURATION, simulate_options, time_limit, "time-limit", "TIME", NULL,
                 "stop the search of zb or auto, print the best so far, exit status 5; seconds, or with a unit as in "
                 "500ms; none unless given"),
    PS_OPTION_FLAG_AT(
        simulate_options, compare, "compare",
        "instead of --schedule: rank all schedules of the same ops that are legal and fit, and the best order that a "
        "search finds, by the objective; with --jitter by its p95"),
    PS_OPTION_FLAG_AT(simulate_options, draw, "draw", "draw the timeline in text"),
    PS_OPTION_FLAG_AT(simulate_options, timeline, "timeline", "add the start and end of every op to the JSON"),
    PS_OPTION_CHOICE_AT(simulate_options, csv.to_csv, "to-csv", ps_csv_forms, NULL,
                        "write the schedule as a PyTorch CSV instead of the summary: its ops, its ops with idle cells, "
                        "or ops and transfers"),
    PS_OPTION_CHOICE_AT(
        simulate_options, csv.sends, "sends", ps_csv_sends, "rendezvous",
        "of a CSV with transfers: a send waits until it is received, or does not, or adjacent transfers of a "
        "rank are issued together and none waits for another of them"),
    PS_OPTION_AT(STRING, simulate_options, jitter.share, "jitter", "SHARE", NULL,
                 "also run with every op and transfer up to this much shorter or longer at random, as in 5% or 0.05"),
    PS_OPTION_INT_AT(simulate_options, jitter.samples, "samples", 1, PS_MAX_JITTER_SAMPLES, "1000",
                     "runs with --jitter"),
    PS_OPTION_INT_AT(simulate_options, jitter.seed, "seed", 0, INT64_MAX, "1",
                     "of the random times of --jitter; the same seed gives the same times on every machine"),
    PS_OPTION_AT(STRING, simulate_options, jitter.straggler, "straggler", "RANK:FACTOR", NULL,
                 "with --jitter, the ops of this rank take so many times as long, as in 3:1.5"),
};

static const ps_option_group bare_group = {
    "Bare numbers (TIMES and SIZES: one value, or one a virtual stage separated by commas, for dualpipe one a rank)",
    bare_rows, PS_OPTION_COUNT(bare_rows)};
static const ps_option_group step_group = {"End of the step (in bare numbers; left out when none of these is given)",
                                           step_rows, PS_OPTION_COUNT(step_rows)};
static const ps_option_group own_group = {"Simulation options", own_rows, PS_OPTION_COUNT(own_rows)};
static const ps_option_group *const groups[] = {&bare_group, &step_group, &own_group, &ps_common_option_group, NULL};

static bool is_split(const ps_schedule *schedule)
{
    for (int32_t op = 0; op < schedule->first[schedule->num_devices]; op++)
        if (schedule->op[op].kind == PS_OP_BACKWARD_INPUT)
            return true;
    return false;
}

static double gap_of(int64_t value, int64_t bound)
{
    if (value == bound)
        return 0;
    return bound > 0 ? (double)(value - bound) / (double)bound : 1;
}

// Of any order with the same ops. One that does not fit is compared with all orders, else with those that do.
static void find_bound(ps_arena *arena, ps_simulation *simulation, bool of_span, bool fits)
{
    ps_pipeline pipeline = *simulation->pipeline;
    if (!fits) {
        pipeline.device = ps_new_raw(arena, ps_device, pipeline.num_devices);
        for (int32_t d = 0; d < pipeline.num_devices; d++)
            pipeline.device[d] = (ps_device){.memory_limit = INT64_MAX};
    }
    ps_schedule_bound bound;
    bool fused = !is_split(simulation->schedule);
    if (pipeline.num_routes > 0)
        ps_schedule_bound_routed(arena, &pipeline, fused, &bound);
    else
        ps_schedule_bound_compute(&pipeline, fused, &bound);
    simulation->bound_ns = of_span ? bound.span_ns : bound.makespan_ns;
    simulation->limited_by = of_span ? bound.span_by : bound.makespan_by;
}

static ps_code add_jitter(ps_run *run, ps_simulation *simulation, ps_status *status)
{
    const simulate_options *options = run->parsed.values;
    ps_jitter_options jitter;
    ps_jitter_result *result = ps_new(run->arena, ps_jitter_result, 1);
    PS_TRY(ps_jitter_options_read(run, &options->jitter, &jitter, status));
    PS_TRY(ps_jitter_straggler_expect(&jitter, simulation->pipeline->num_devices, status));
    PS_TRY(ps_jitter_sample(run->arena, simulation->pipeline, simulation->schedule, &jitter, result, status));
    simulation->jitter = result;
    return PS_OK;
}

// What ends the step, for a plan its own: `simulation->step` is set.
static ps_code add_step(ps_run *run, ps_simulation *simulation, ps_status *status)
{
    const simulate_options *options = run->parsed.values;
    ps_step *step = NULL;
    if (!simulation->step) {
        PS_TRY(ps_step_options_read(run, &options->step, simulation->pipeline, &step, status));
        simulation->step = step;
    }
    if (!simulation->step)
        return PS_OK;
    ps_step_timeline *tail = ps_new(run->arena, ps_step_timeline, 1);
    ps_step_place(run->arena, simulation->pipeline, simulation->schedule, simulation->timeline, simulation->step, tail);
    simulation->tail = tail;
    return ps_step_repeat(run->arena, simulation->pipeline, simulation->schedule, simulation->step, &simulation->period,
                          status);
}

// Time it unless a search has, compare with the bound, and write what was asked for. `actions`: what a CSV had; NULL:
// no CSV.
static ps_code replay(ps_run *run, ps_simulation *simulation, const ps_actions *actions, ps_status *status)
{
    const simulate_options *options = run->parsed.values;
    const ps_pipeline *pipeline = simulation->pipeline;
    const ps_timeline *timeline = simulation->timeline;
    if (!timeline) {
        ps_timeline *replayed = ps_new(run->arena, ps_timeline, 1);
        PS_TRY(ps_simulate(run->arena, pipeline, simulation->schedule, replayed, status));
        simulation->timeline = timeline = replayed;
    }

    ps_status *misfit = ps_new(run->arena, ps_status, 1);
    bool fits = ps_timeline_fits(pipeline, timeline, misfit) == PS_OK;
    bool of_span = strcmp(objectives[options->objective], "span") == 0;
    int64_t value = of_span ? timeline->span_ns : timeline->makespan_ns;
    simulation->objective = objectives[options->objective];
    simulation->bubble = ps_timeline_bubble(timeline);
    simulation->span_bubble = ps_timeline_span_bubble(timeline);
    if (!simulation->limited_by)
        find_bound(run->arena, simulation, of_span, fits);
    simulation->gap = gap_of(value, simulation->bound_ns);
    simulation->proved = value == simulation->bound_ns;

    if (!fits) {
        simulation->misfit = misfit;
        while (timeline->device[simulation->misfit_device].peak_memory <=
               pipeline->device[simulation->misfit_device].memory_limit)
            simulation->misfit_device++;
        run->verdict = PS_INFEASIBLE;
    }
    PS_TRY(add_step(run, simulation, status));
    if (options->jitter.share)
        PS_TRY(add_jitter(run, simulation, status));
    if (ps_option_given(&run->parsed, "to-csv"))
        return ps_csv_simulation_write(run, (ps_csv_form)options->csv.to_csv, pipeline, simulation->schedule, actions,
                                       status);
    simulation->list_timeline = options->timeline;
    if (run->common->json)
        return ps_simulation_json(run->out, simulation, status);
    ps_simulation_text(run->out, run->arena, simulation);
    if (options->draw) {
        fputc('\n', run->out);
        ps_report_gantt(run->out,
                        &(ps_gantt){.pipeline = pipeline,
                                    .schedule = simulation->schedule,
                                    .timeline = timeline,
                                    .step = simulation->step,
                                    .tail = simulation->tail},
                        &run->style);
    }
    return PS_OK;
}

static ps_code simulate_plan(ps_run *run, const ps_file_bytes *bytes, ps_status *status)
{
    for (int32_t row = 0; row < bare_group.count; row++) {
        if (!ps_option_given(&run->parsed, bare_rows[row].name))
            continue;
        ps_fail(status, PS_USAGE, "conflicting-options", "--%s is for bare numbers and does not go with a plan",
                bare_rows[row].name);
        return ps_fail_hint(status, "a plan carries its own figures; leave out either");
    }
    PS_TRY(ps_step_options_refuse(run, status));
    ps_plan plan;
    PS_TRY(ps_load_plan_bytes(run, run->parsed.operand[0], bytes, &plan, status));
    if (!plan.feasible)
        return ps_fail(status, PS_INFEASIBLE, "plan-infeasible",
                       "the plan says that nothing fits: there is no schedule");
    ps_pipeline pipeline;
    ps_step step;
    PS_TRY(ps_plan_pipeline(run->arena, &plan, &pipeline, status));
    PS_TRY(ps_pipeline_validate(&pipeline, status));
    PS_TRY(ps_plan_step(run->arena, &plan, &pipeline, &step, status));
    ps_simulation simulation = {
        .name = ps_schedule_family_at(plan.layout.schedule)->name,
        .virtual_stages = plan.layout.vp,
        .pipeline = &pipeline,
        .schedule = &plan.schedule,
        .step = &step,
        .in_bytes = true,
    };
    return replay(run, &simulation, NULL, status);
}

static bool in_bytes(const ps_bare_options *bare)
{
    return bare->activation.with_unit || bare->memory_limit.with_unit;
}

static ps_code simulate_csv(ps_run *run, const ps_file_bytes *bytes, ps_status *status)
{
    const simulate_options *options = run->parsed.values;
    ps_csv_simulation loaded;
    PS_TRY(ps_csv_simulation_load(run, run->parsed.operand[0], bytes, &options->bare, &options->csv, &loaded, status));
    const ps_pipeline *pipeline = &loaded.pipeline;
    ps_simulation simulation = {
        .name = "csv",
        .virtual_stages = (pipeline->num_stages + pipeline->num_devices - 1) / pipeline->num_devices,
        .pipeline = pipeline,
        .schedule = &loaded.csv.schedule,
        .in_bytes = in_bytes(&options->bare),
    };
    ps_code code = replay(run, &simulation, &loaded.csv.actions, status);
    return code == PS_OK ? code : ps_fail_at(status, run->parsed.operand[0], 0, 0, NULL);
}

// What any file says itself.
static ps_code refuse_shape_options(const ps_run *run, ps_status *status)
{
    static const char *const from_file[] = {"schedule",   "rules", "compare", "effort",
                                            "time-limit", "pp",    "vp",      "num-microbatches"};
    for (size_t i = 0; i < sizeof from_file / sizeof *from_file; i++) {
        if (!ps_option_given(&run->parsed, from_file[i]))
            continue;
        ps_fail(status, PS_USAGE, "conflicting-options", "--%s is for bare numbers and does not go with a file",
                from_file[i]);
        return ps_fail_hint(status, "a plan or a schedule CSV says its own order, ranks, stages and micro-batches");
    }
    return PS_OK;
}

static ps_code simulate_file(ps_run *run, ps_status *status)
{
    PS_TRY(refuse_shape_options(run, status));
    const char *path = run->parsed.operand[0];
    const char *ending = strrchr(path, '.');
    bool csv = ending && strcmp(ending, ".csv") == 0;
    ps_file_bytes bytes;
    ps_content content = PS_CONTENT_SCHEDULE_CSV;
    PS_TRY(ps_file_read(run->arena, path, PS_MAX_FILE_BYTES, &bytes, status));
    if (!csv)
        PS_TRY(ps_content_of(run->arena, path, &bytes, &content, status));
    if (content == PS_CONTENT_SCHEDULE_CSV)
        return simulate_csv(run, &bytes, status);
    if (ps_option_given(&run->parsed, "sends"))
        return ps_fail(status, PS_USAGE, "conflicting-options", "--sends is for a CSV with transfers, not for a plan");
    return simulate_plan(run, &bytes, status);
}

static ps_code simulate_rules(ps_run *run, ps_status *status)
{
    const simulate_options *options = run->parsed.values;
    ps_rules_simulation loaded;
    PS_TRY(ps_search_options_refuse(run, options->rules, status));
    PS_TRY(ps_rules_simulation_load(run, options->rules, &options->bare, &loaded, status));
    ps_simulation simulation = {
        .name = options->rules,
        .virtual_stages = loaded.virtual_stages,
        .pipeline = &loaded.pipeline,
        .schedule = &loaded.schedule,
        .in_bytes = in_bytes(&options->bare),
    };
    ps_code code = replay(run, &simulation, NULL, status);
    return code == PS_ILLEGAL ? ps_fail_at(status, loaded.source, 0, 0, NULL) : code;
}

static ps_code compare(ps_run *run, ps_status *status)
{
    const simulate_options *options = run->parsed.values;
    bool limit_hit = false;
    ps_compare_options compared = {.bare = &options->bare,
                                   .jitter = &options->jitter,
                                   .of_span = strcmp(objectives[options->objective], "span") == 0,
                                   .effort = (int32_t)options->effort};
    ps_search_start(run, options->time_limit);
    PS_TRY(ps_compare_run(run, &compared, &limit_hit, status));
    ps_search_end(run, limit_hit);
    return PS_OK;
}

static ps_code simulate_bare(ps_run *run, ps_status *status)
{
    const simulate_options *options = run->parsed.values;
    static const char *const required[] = {"schedule", "pp", "num-microbatches", "forward"};
    PS_TRY(ps_run_exclude(run, "rules", "schedule", status));
    for (size_t index = options->rules ? 1 : 0; index < sizeof required / sizeof *required; index++)
        PS_TRY(ps_run_require(run, required[index], status));
    PS_TRY(ps_run_exclude(run, "backward", "backward-input", status));
    PS_TRY(ps_run_exclude(run, "backward", "backward-weight", status));
    if (ps_option_given(&run->parsed, "sends"))
        return ps_fail(status, PS_USAGE, "conflicting-options", "--sends is for a CSV with transfers");
    if (options->rules)
        return simulate_rules(run, status);

    const char *name = schedules[options->bare.schedule];
    const ps_schedule_family *family = ps_schedule_family_named(name);
    bool searched = !family;
    if (searched)
        family = strcmp(name, ps_bare_zb.name) == 0 ? &ps_bare_zb : &ps_bare_auto;
    else
        PS_TRY(ps_search_options_refuse(run, name, status));
    ps_bare_options bare = options->bare;
    bool folded = family->placement != PS_PLACEMENT_LOOP || (bare.placement && strcmp(bare.placement, "v") == 0);
    if (folded && !ps_option_given(&run->parsed, "vp"))
        bare.vp = 2;
    ps_pipeline pipeline;
    ps_schedule_shape shape = {0};
    ps_schedule schedule;
    PS_TRY(ps_bare_shape(run->arena, &bare, family, &shape, status));
    PS_TRY(ps_bare_pipeline(run->arena, &bare, family, &pipeline, status));
    ps_simulation simulation = {
        .name = name,
        .virtual_stages = (int32_t)bare.vp,
        .pipeline = &pipeline,
        .schedule = &schedule,
        .in_bytes = in_bytes(&bare),
    };
    bool curve = bare.memory_curve.count > 0;
    if (curve && !searched) {
        ps_fail(status, PS_USAGE, "conflicting-options", "--memory-curve is for a search, and %s is no search", name);
        return ps_fail_hint(status, "use --schedule zb or auto, or --memory-limit");
    }
    ps_search_call search = {.family = family,
                             .bare = &bare,
                             .pipeline = &pipeline,
                             .of_span = strcmp(objectives[options->objective], "span") == 0,
                             .effort = (int32_t)options->effort,
                             .time_limit = options->time_limit};
    if (searched)
        PS_TRY(ps_simulate_search(run, &search, &simulation, status));
    else
        PS_TRY(ps_schedule_generate_shaped(run->arena, family->kind, &pipeline, shape, &schedule, status));
    return curve ? PS_OK : replay(run, &simulation, NULL, status);
}

static ps_code run_simulate(ps_run *run, ps_status *status)
{
    const simulate_options *options = run->parsed.values;
    if (options->draw)
        PS_TRY(ps_run_exclude(run, "draw", "json", status));
    if (options->timeline && !run->common->json) {
        ps_fail(status, PS_USAGE, "missing-option", "--timeline is for the JSON, which is not asked for");
        return ps_fail_hint(status, "add --json, or use --draw");
    }
    PS_TRY(ps_run_exclude(run, "to-csv", "json", status));
    PS_TRY(ps_run_exclude(run, "to-csv", "draw", status));
    PS_TRY(ps_run_exclude(run, "to-csv", "jitter", status));
    PS_TRY(ps_jitter_options_read(run, &options->jitter, &(ps_jitter_options){0}, status));
    if (options->compare && run->parsed.num_operands == 0)
        return compare(run, status);
    return run->parsed.num_operands > 0 ? simulate_file(run, status) : simulate_bare(run, status);
}

const ps_command ps_command_simulate = {
    .name = "simulate",
    .operands = "[PLAN|CSV]",
    .summary = "replay a plan or a schedule: time, memory, bubbles",
    .about =
        "Replays the schedule of a plan or of a PyTorch schedule CSV, or makes a schedule from bare numbers and replays "
        "it, without a model or a cluster: a named one, one by rules, or the best that a search finds. A CSV takes the costs of bare "
        "numbers; its order, ranks, stages and micro-batches are its own. Prints the makespan, the span that zero-bubble "
        "papers report, a lower bound on any order of the same ops, and time and memory of every rank; what ends the step, where it is known; with --jitter also how long it takes when times vary. Bare times are "
        "milliseconds; memory without a unit is in a unit of your own.",
    .examples =
        "pipesched simulate plan.json --draw\n"
        "pipesched simulate --schedule 1f1b --pp 4 --num-microbatches 8 --forward 1 --backward 2 --draw\n"
        "pipesched simulate --schedule zb-h2 --pp 8 --num-microbatches 24 --forward 18.522 \\\n"
        "  --backward-input 18.086 --backward-weight 9.337 --comm-ms 0.601 --objective span --json\n"
        "pipesched simulate --schedule zb-h2 --pp 4 --num-microbatches 8 --forward 12 --backward-input 12 \\\n"
        "  --backward-weight 12 --grad-sync 8 --optimizer-step 5 --optimizer-barrier off\n"
        "pipesched simulate --schedule auto --pp 4 --num-microbatches 8 --forward 3,4,4,5 --backward-input 4 \\\n"
        "  --backward-weight 3 --activation 2 --held-after-backward-input 1 --memory-limit 8\n"
        "pipesched simulate schedule.csv --forward 1 --backward-input 1 --backward-weight 1 --comm-ms 0.1\n"
        "pipesched simulate --rules my.rules --pp 4 --num-microbatches 8 --forward 1 --backward 2\n"
        "pipesched simulate --schedule 1f1b --pp 4 --num-microbatches 8 --forward 1 --backward 2 \\\n"
        "  --to-csv comms -o schedule.csv\n"
        "pipesched simulate plan.json --jitter 5% --samples 1000 --straggler 3:1.2",
    .max_operands = 1,
    .groups = groups,
    .options_size = sizeof(simulate_options),
    .run = run_simulate,
};
