// SPDX-License-Identifier: Apache-2.0
//
// calibrate_predict.c: a run as a plan of one layout, on as many nodes of the cluster's kind as it used.
#include "plan/calibrate_predict.h"

#include <string.h>

#include "pipesched/limits.h"
#include "plan/candidates.h"
#include "plan/device_room.h"
#include "plan/evaluate.h"
#include "plan/layout_search.h"

ps_code ps_run_fail_at(const ps_measured_runs *runs, int32_t run, ps_status *status)
{
    return ps_fail_at(status, runs->source, runs->run[run].line, 0, runs->run[run].pointer);
}

static void default_to(ps_int_set *set, int32_t value)
{
    if (set->count == 0)
        *set = (ps_int_set){.count = 1, .value = {value}};
}

static ps_code check_single(const ps_measured_runs *runs, int32_t run, const ps_int_set *set, const char *what,
                            ps_status *status)
{
    if (set->count <= 1)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "run-layout", "%.80s: a run has one %s, got %d values", runs->run[run].name, what,
            (int)set->count);
    return ps_run_fail_at(runs, run, status);
}

// An order that was searched for depends on the memory that it may use.
static bool is_searched(const ps_job *job)
{
    return job->schedule.value[0] == PS_SCHEDULE_ZB;
}

ps_code ps_measured_run_complete(const ps_measured_runs *runs, int32_t run, ps_job *job, ps_status *status)
{
    const struct {
        const ps_int_set *set;
        const char *what;
    } sets[] = {{&job->micro_batch_size, "micro_batch_size"},
                {&job->tp, "tp"},
                {&job->pp, "pp"},
                {&job->vp, "vp"},
                {&job->dp, "dp"},
                {&job->cp, "cp"},
                {&job->ep, "ep"},
                {&job->etp, "etp"},
                {&job->schedule, "schedule"},
                {&job->recompute, "recompute"}};

    for (size_t index = 0; index < sizeof sets / sizeof *sets; index++)
        PS_TRY(check_single(runs, run, sets[index].set, sets[index].what, status));
    default_to(&job->tp, 1);
    default_to(&job->pp, 1);
    default_to(&job->vp, 1);
    if (job->schedule.count == 0)
        default_to(&job->schedule, job->vp.value[0] > 1 ? PS_SCHEDULE_INTERLEAVED : PS_SCHEDULE_1F1B);
    default_to(&job->recompute, PS_RECOMPUTE_NONE);
    if (job->micro_batch_size.count == 0) {
        ps_fail(status, PS_BAD_INPUT, "run-layout", "%.80s: its micro_batch_size is missing", runs->run[run].name);
        return ps_run_fail_at(runs, run, status);
    }
    if (!is_searched(job))
        job->memory_limit_bytes = PS_MAX_BYTES;
    job->jitter_ppm = 0;
    if (ps_job_check(job, status) == PS_OK)
        return PS_OK;
    status->code = PS_BAD_INPUT; // the file is at fault, not the command line
    return ps_run_fail_at(runs, run, status);
}

static int64_t degree(const ps_int_set *set)
{
    return set->count > 0 ? set->value[0] : 1;
}

// Without a dp the run used the whole cluster.
static int64_t gpus_of(const ps_run_predictor *predictor, const ps_job *job)
{
    const ps_group *group = predictor->group;
    if (job->dp.count == 0)
        return (int64_t)group->nodes * group->gpus_per_node;
    int64_t model_ranks = degree(&job->tp) * degree(&job->pp); // each below 2^20
    int64_t gpus = 0;
    if (__builtin_mul_overflow(model_ranks, degree(&job->cp) * degree(&job->dp), &gpus) || gpus > PS_MAX_GPUS)
        return 0;
    return gpus;
}

// Whole nodes, or part of one.
static bool shrink(ps_group *group, int64_t gpus)
{
    if (gpus < 1 || (gpus > group->gpus_per_node && gpus % group->gpus_per_node != 0))
        return false;
    if (gpus < group->gpus_per_node) {
        group->nodes = 1;
        group->nvlink_domain_nodes = 1;
        group->gpus_per_node = (int32_t)gpus;
        return true;
    }
    group->nodes = (int32_t)(gpus / group->gpus_per_node);
    if (group->nvlink_domain_nodes > group->nodes || group->nodes % group->nvlink_domain_nodes != 0)
        group->nvlink_domain_nodes = group->nvlink_domain_nodes > group->nodes ? group->nodes : 1;
    return true;
}

int64_t ps_run_microbatches(const ps_run_predictor *predictor, int32_t run)
{
    const ps_job *job = &predictor->runs->run[run].job;
    int64_t ranks = degree(&job->tp) * degree(&job->pp) * degree(&job->cp);
    int64_t replicas = job->dp.count > 0 ? job->dp.value[0] : gpus_of(predictor, job) / ranks;
    if (replicas < 1)
        return 0;
    return job->global_batch_size / replicas / degree(&job->micro_batch_size);
}

static ps_code refuse_layout(const ps_run_predictor *predictor, int32_t run, const ps_candidate_list *list,
                             ps_status *status)
{
    const char *name = predictor->runs->run[run].name;
    if (list->candidate.count > 1)
        ps_fail(status, PS_BAD_INPUT, "run-layout", "%.80s: a run is one layout, this one may be any of %lld", name,
                (long long)list->candidate.count);
    else if (list->rejection.count > 0)
        ps_fail(status, PS_BAD_INPUT, "run-layout", "%.80s: %.400s: %s", name, list->rejection.data[0].status.rule,
                list->rejection.data[0].status.message);
    else
        ps_fail(status, PS_BAD_INPUT, "run-layout", "%.80s: no layout is like this", name);
    ps_run_fail_at(predictor->runs, run, status);
    return ps_fail_hint(status, "give every degree, the micro-batch size, the schedule and recompute as they were");
}

static ps_code predict_searched(const ps_run_predictor *predictor, int32_t run, ps_plan_context *plan,
                                ps_arena *scratch, double *seconds, ps_status *status)
{
    ps_search_outcome *outcome = ps_new(scratch, ps_search_outcome, 1);

    plan->capacity_bytes = plan->job->memory_limit_bytes > 0 ? plan->job->memory_limit_bytes
                                                             : (int64_t)plan->group->gpu.memory_usable_bytes.value;
    plan->room_bytes = ps_room_bytes(plan->job, plan->capacity_bytes);
    PS_TRY(ps_layout_search(scratch, plan, PS_SEARCH_BEST, NULL, outcome, status));
    if (outcome->num_found == 0)
        return refuse_layout(predictor, run, &outcome->list, status);
    *seconds = (double)outcome->found[0].iteration_ns * 1e-9;
    return PS_OK;
}

ps_code ps_run_predict(void *context, int32_t run, const double factor[PS_FACTORS], ps_arena *scratch, double *seconds,
                       ps_status *status)
{
    const ps_run_predictor *predictor = context;
    ps_calibration calibration = *predictor->calibration;
    ps_job job = predictor->runs->run[run].job;
    ps_group group = *predictor->group;
    ps_model model = *predictor->model;
    ps_candidate_list list = {0};
    int64_t gpus = gpus_of(predictor, &job);

    memcpy(calibration.factor, factor, sizeof calibration.factor);
    job.calibration = &calibration;
    job.threads = 1;
    PS_TRY(ps_calibration_join(scratch, &calibration, &group, &model, status));
    if (!shrink(&group, gpus)) {
        ps_fail(status, PS_BAD_INPUT, "run-layout", "%.80s: its degrees make %lld GPUs, no whole number of nodes of %d",
                predictor->runs->run[run].name, (long long)gpus, (int)group.gpus_per_node);
        return ps_run_fail_at(predictor->runs, run, status);
    }
    ps_plan_context plan = {
        .model = &model, .group = &group, .job = &job, .num_gpus = gpus, .capacity_bytes = PS_MAX_BYTES};
    plan.room_bytes = ps_room_bytes(&job, PS_MAX_BYTES);
    if (is_searched(&job))
        return predict_searched(predictor, run, &plan, scratch, seconds, status);
    ps_candidates_enumerate(scratch, &plan, &list);
    if (list.candidate.count != 1)
        return refuse_layout(predictor, run, &list, status);

    const ps_candidate *candidate = &list.candidate.data[0];
    ps_evaluation evaluation = {.first_layer = ps_new(scratch, int32_t, (int64_t)model.num_layers + 1)};
    PS_TRY(ps_evaluate(scratch, &plan, candidate, &evaluation, status));
    if (!evaluation.feasible) {
        ps_fail(status, PS_BAD_INPUT, "run-layout", "%.80s: %.64s: %.500s", predictor->runs->run[run].name,
                evaluation.refusal.rule, evaluation.refusal.message);
        return ps_run_fail_at(predictor->runs, run, status);
    }
    *seconds = (double)evaluation.iteration_ns * 1e-9;
    return PS_OK;
}
