// SPDX-License-Identifier: Apache-2.0
//
// planner.c: resolve the job on this cluster, refuse what is hopeless at once, search, fill the plan, have it checked.
#include "plan/planner.h"

#include <string.h>

#include "base/text.h"
#include "pipesched/check.h"
#include "pipesched/version.h"
#include "plan/device_room.h"
#include "plan/jitter_rank.h"

typedef struct planner_run {
    ps_arena *arena;
    ps_plan *plan;
    ps_plan_context context;
    ps_job job;     // resolved
    ps_group group; // and
    ps_model model; // with what a calibration measured
    ps_diagnostic_list diagnostics;
    ps_reason_list reasons;
} planner_run;

static void note(planner_run *planner, const char *level, const char *code, const char *message)
{
    *ps_vec_push(planner->arena, &planner->diagnostics) =
        (ps_plan_diagnostic){.level = level, .code = code, .message = message};
}

static ps_code refuse_unsupported(const ps_cluster *cluster, ps_status *status)
{
    const ps_group *group = &cluster->group[0];
    if (cluster->num_groups != 1) {
        ps_fail(status, PS_ILLEGAL, "unsupported-mixed-cluster", "a plan needs one group of equal nodes, got %d groups",
                (int)cluster->num_groups);
        ps_fail_at(status, cluster->source, 0, 0, "/groups");
        return ps_fail_hint(status, "plan for one group at a time");
    }
    if (group->num_slow_gpus > 0) {
        ps_fail(status, PS_ILLEGAL, "unsupported-slow-gpus", "%d GPUs are listed as slow; a plan needs equal GPUs",
                (int)group->num_slow_gpus);
        ps_fail_at(status, cluster->source, 0, 0, "/groups/0/slow_gpus");
        return ps_fail_hint(status, "drop \"slow_gpus\", or lower the GPU's figures for all");
    }
    if (group->gpu.memory_usable_bytes.value <= 0 || group->gpu.memory_bytes_per_s.value <= 0) {
        ps_fail(status, PS_ILLEGAL, "gpu-figures-missing", "%s: memory size or bandwidth is not known",
                group->gpu.name);
        ps_fail_at(status, cluster->source, 0, 0, "/groups/0/node/gpu");
        return ps_fail_hint(status, "name a GPU of the catalog with --gpu (pipesched show --list)");
    }
    return PS_OK;
}

// bf16 is the default, not a wish: where the GPU has none, fp16 takes its place and the plan says so.
static void resolve_precision(planner_run *planner)
{
    const ps_gpu *gpu = &planner->context.group->gpu;
    ps_job *job = &planner->job;
    if (job->precision_given || gpu->peak_flops[job->precision].value > 0)
        return;
    if (gpu->peak_flops[PS_PRECISION_FP16].value > 0) {
        job->precision = PS_PRECISION_FP16;
        note(planner, "note", "precision-fp16",
             ps_text_format(planner->arena, "%s computes no bf16: fp16 is planned", gpu->name));
    }
}

static bool precision_fits(planner_run *planner)
{
    const ps_gpu *gpu = &planner->context.group->gpu;
    ps_precision precision = planner->job.precision;
    if (gpu->peak_flops[precision].value > 0)
        return true;
    ps_text have = {.arena = planner->arena};
    for (int32_t other = 0; other < PS_PRECISIONS; other++) {
        if (gpu->peak_flops[other].value > 0)
            ps_text_addf(&have, "%s--precision %s", have.size ? " or " : "", ps_precision_name((ps_precision)other));
    }
    *ps_vec_push(planner->arena, &planner->reasons) = (ps_reason){
        .rule = "precision-unsupported",
        .message = ps_text_format(planner->arena, "--precision %s: %s does not compute it",
                                  ps_precision_name(precision), gpu->name),
        .hint = have.data,
    };
    return false;
}

static void fill_inputs(planner_run *planner, const ps_cluster *cluster)
{
    const ps_model *model = planner->context.model;
    const ps_group *group = planner->context.group;
    ps_plan_inputs *inputs = &planner->plan->inputs;

    inputs->model_name = model->name;
    inputs->model_sha256 = model->sha256;
    inputs->model_layers = model->num_layers;
    inputs->model_parameters = model->parameters;
    inputs->model_experts = ps_model_experts(model);
    inputs->cluster_name = cluster->name;
    inputs->cluster_sha256 = cluster->sha256;
    inputs->cluster_nodes = group->nodes;
    inputs->gpus_per_node = group->gpus_per_node;
    inputs->domain_nodes = group->nvlink_domain_nodes;
    inputs->usd_per_gpu_hour = group->usd_per_gpu_hour.value;
    // The price of a rented hour covers its energy.
    inputs->usd_per_kwh = inputs->usd_per_gpu_hour > 0 ? 0 : group->usd_per_kwh.value;
    inputs->gpu_watts = group->gpu.power_watts.value;
    inputs->job = planner->job;
}

static void fill_calibration(planner_run *planner)
{
    const ps_calibration *calibration = planner->job.calibration;
    ps_plan_calibration *filled = &planner->plan->inputs.calibration;

    if (!calibration)
        return;
    *filled = (ps_plan_calibration){.source = calibration->source,
                                    .sha256 = calibration->sha256,
                                    .framework = calibration->framework,
                                    .runs = calibration->runs,
                                    .error = calibration->error,
                                    .leave_one_out = calibration->leave_one_out};
    memcpy(filled->factor, calibration->factor, sizeof filled->factor);
}

// From here on the context's group and model are those with what was measured.
static ps_code join_calibration(planner_run *planner, ps_status *status)
{
    const ps_calibration *calibration = planner->job.calibration;
    ps_plan_context *context = &planner->context;

    if (!calibration)
        return PS_OK;
    PS_TRY(ps_calibration_check(calibration, &context->group->gpu, planner->job.precision, NULL, status));
    planner->group = *context->group;
    planner->model = *context->model;
    PS_TRY(ps_calibration_join(planner->arena, calibration, &planner->group, &planner->model, status));
    context->group = &planner->group;
    context->model = &planner->model;
    return PS_OK;
}

static void fill_search(planner_run *planner, const ps_search_outcome *outcome)
{
    ps_plan_search *search = &planner->plan->search;
    int64_t rules = outcome->list.rejection.count;

    search->candidates = outcome->enumerated;
    search->pruned = outcome->pruned;
    search->evaluated = outcome->evaluated;
    search->effort = planner->job.effort;
    search->limit_hit = outcome->limit_hit;
    search->engine = outcome->num_found > 0 ? outcome->found[0].engine : "none";
    search->num_infeasible = (int32_t)rules;
    search->infeasible = ps_new(planner->arena, ps_plan_count, rules);
    for (int64_t rule = 0; rule < rules; rule++) {
        search->infeasible[rule].rule = outcome->list.rejection.data[rule].status.rule;
        search->infeasible[rule].count = outcome->list.rejection.data[rule].count;
    }
    if (outcome->num_found < 2)
        return;
    search->num_alternatives = outcome->num_found - 1;
    search->alternative = ps_new(planner->arena, ps_plan_alternative, search->num_alternatives);
    for (int32_t index = 0; index < search->num_alternatives; index++) {
        const ps_found_layout *found = &outcome->found[index + 1];
        double best = (double)outcome->found[0].iteration_ns;
        search->alternative[index] =
            (ps_plan_alternative){.layout = found->candidate->layout,
                                  .iteration_ns = found->iteration_ns,
                                  .loses = best > 0 ? (double)found->iteration_ns / best - 1 : 0,
                                  .peak_bytes = found->peak_bytes};
    }
}

static void add_notes(planner_run *planner, const ps_cluster *cluster)
{
    const ps_model *model = planner->context.model;
    for (int32_t index = 0; index < model->num_warnings; index++)
        note(planner, "warning", "model", model->warning[index]);
    for (int32_t index = 0; index < cluster->num_warnings; index++)
        note(planner, "warning", "cluster", cluster->warning[index]);
    if (model->max_seq_length > 0 && planner->job.seq_length > model->max_seq_length)
        note(planner, "warning", "sequence-length",
             ps_text_format(planner->arena, "--seq-length %lld is beyond the model's %lld positions",
                            (long long)planner->job.seq_length, (long long)model->max_seq_length));
}

// A plan that the checker refuses is a bug of ours and is never shown as a result.
static ps_code pass_check(planner_run *planner, ps_status *status)
{
    ps_check_result result = {0};
    PS_TRY(ps_check_plan(planner->arena, planner->plan, &result, status));
    if (result.count == 0)
        return PS_OK;
    ps_fail(status, PS_INTERNAL, "plan-refused", "the checker refuses the plan: %s: %s (%lld findings)",
            result.finding[0].rule, result.finding[0].message, (long long)result.total);
    ps_fail_at(status, NULL, 0, 0, result.finding[0].pointer);
    return ps_fail_hint(status, "please report this with the command and its input files");
}

static void finish(planner_run *planner)
{
    ps_plan *plan = planner->plan;
    plan->reason = planner->reasons.data;
    plan->num_reasons = (int32_t)planner->reasons.count;
    plan->diagnostic = planner->diagnostics.data;
    plan->num_diagnostics = (int32_t)planner->diagnostics.count;
}

static ps_code search(planner_run *planner, const ps_control *control, ps_status *status)
{
    ps_search_outcome *outcome = ps_new(planner->arena, ps_search_outcome, 1);
    PS_TRY(ps_layout_search(planner->arena, &planner->context, PS_SEARCH_BEST, control, outcome, status));
    ps_found_layout fastest = outcome->found[0];
    if (outcome->num_found > 0 && planner->job.jitter_ppm > 0)
        PS_TRY(ps_rank_by_jitter(planner->arena, &planner->context, control, outcome, status));
    fill_search(planner, outcome);
    if (outcome->num_found > 0 && planner->job.jitter_ppm > 0)
        ps_notes_add_jitter(planner->arena, &planner->job, outcome, &fastest, &planner->diagnostics);
    if (outcome->num_found == 0) {
        if (outcome->limit_hit) {
            ps_fail(status, PS_TIME_LIMIT, "time-limit",
                    "the time limit was hit before any layout that fits was found");
            return ps_fail_hint(status, "raise --time-limit, or fix some of --tp --pp --micro-batch-size");
        }
        return ps_reasons_from_search(planner->arena, &planner->context, outcome, &planner->reasons, status);
    }
    planner->plan->feasible = true;
    PS_TRY(ps_plan_fill(planner->arena, &planner->context, outcome, planner->plan, status));
    PS_TRY(ps_notes_add(planner->arena, outcome, planner->plan, &planner->diagnostics, status));
    if (planner->plan->prediction.mfu > 1)
        note(planner, "warning", "mfu-above-1",
             "the times given are shorter than this GPU's peak allows: were they measured on another one?");
    if (outcome->limit_hit)
        note(planner, "warning", "time-limit", "the time limit cut the search short: this is the best plan so far");
    return PS_OK;
}

ps_code ps_plan_search_best(ps_arena *arena, const ps_model *model, const ps_cluster *cluster, const ps_job *job,
                            const ps_control *control, ps_plan *out, ps_status *status)
{
    PS_TRY(ps_job_check(job, status));
    PS_TRY(refuse_unsupported(cluster, status));

    *out = (ps_plan){.tool_version = PS_VERSION};
    planner_run planner = {.arena = arena, .plan = out, .job = *job};
    if (job->jitter_ppm == 0)
        planner.job.jitter_samples = 0;
    int64_t usable = (int64_t)cluster->group[0].gpu.memory_usable_bytes.value;
    planner.context = (ps_plan_context){
        .model = model,
        .group = &cluster->group[0],
        .job = &planner.job,
        .num_gpus = ps_cluster_gpus(cluster),
        .capacity_bytes = job->memory_limit_bytes > 0 ? job->memory_limit_bytes : usable,
        .control = control,
    };
    planner.context.room_bytes = ps_room_bytes(job, planner.context.capacity_bytes);
    resolve_precision(&planner);
    PS_TRY(join_calibration(&planner, status));
    fill_inputs(&planner, cluster);
    fill_calibration(&planner);
    add_notes(&planner, cluster);
    if (precision_fits(&planner) && !ps_reasons_from_bound(arena, &planner.context, &planner.reasons))
        PS_TRY(search(&planner, control, status));
    finish(&planner);
    if (!out->feasible)
        return PS_OK;
    PS_TRY(pass_check(&planner, status));
    return out->search.limit_hit ? PS_TIME_LIMIT : PS_OK;
}
