// SPDX-License-Identifier: Apache-2.0
//
// calibrate.c: runs are checked against each other and against nonsense, then fitted, and what the fit is worth is
// said.
#include "pipesched/calibrate.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "pipesched/cost.h"
#include "pipesched/limits.h"
#include "plan/calibrate_fit.h"
#include "plan/calibrate_predict.h"

#define FAR_OFF 3.0    // measured by predicted: beyond it the run is not what it says
#define DISAGREE 1.5   // between two runs of which neither can be kept out
#define OUTLIER_MOST 3 // one in so many runs may be kept out
enum { MAX_RUNS = 1000 };

typedef struct calibrator {
    ps_arena *arena;
    ps_run_predictor predictor;
    ps_measured_runs runs; // completed
    ps_fit_problem problem;
    double *measured;
    bool *kept_out;
    ps_calibration *out;
    ps_calibration_report *report;
    ps_vec(const char *) warnings;
} calibrator;

static void warn(calibrator *c, const char *text)
{
    *ps_vec_push(c->arena, &c->warnings) = text;
}

static const ps_measured_run *run_at(const calibrator *c, int32_t run)
{
    return &c->runs.run[run];
}

static ps_code check_time(const calibrator *c, int32_t run, ps_status *status)
{
    double seconds = run_at(c, run)->seconds;
    if (seconds > 0 && seconds <= (double)PS_MAX_TIME_NS * 1e-9)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "run-time", "%.80s: the time of an iteration must be above 0 and finite",
            run_at(c, run)->name);
    return ps_run_fail_at(&c->runs, run, status);
}

static ps_code check_framework(const calibrator *c, int32_t run, ps_status *status)
{
    const char *framework = run_at(c, run)->framework;
    const char *first = run_at(c, 0)->framework;
    if (!framework) {
        ps_fail(status, PS_BAD_INPUT, "run-framework", "%.80s: its framework is not said", run_at(c, run)->name);
        ps_run_fail_at(&c->runs, run, status);
        return ps_fail_hint(status, "add --framework NAME, or the key \"framework\": a calibration holds for one");
    }
    if (strcmp(framework, first) == 0)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "mixed-frameworks", "%.80s ran on %.64s, %.80s on %.64s", run_at(c, 0)->name, first,
            run_at(c, run)->name, framework);
    ps_run_fail_at(&c->runs, run, status);
    return ps_fail_hint(status, "efficiencies differ from framework to framework: calibrate each on its own runs");
}

static ps_code check_conditions(const calibrator *c, int32_t run, ps_status *status)
{
    const ps_measured_run *measured = run_at(c, run);
    const char *gpu = c->predictor.group->gpu.name;
    const char *matched = measured->gpu ? ps_catalog_match(c->arena, measured->gpu, 0) : gpu;

    PS_TRY(check_framework(c, run, status));
    if (measured->gpu && strcmp(measured->gpu, gpu) != 0 && (!matched || strcmp(matched, gpu) != 0)) {
        ps_fail(status, PS_BAD_INPUT, "calibration-gpu", "%.80s ran on %.64s, the cluster has %.64s", measured->name,
                measured->gpu, gpu);
        ps_run_fail_at(&c->runs, run, status);
        return ps_fail_hint(status, "calibrate each GPU type on its own runs");
    }
    if (measured->job.precision == run_at(c, 0)->job.precision)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "mixed-precisions", "%.80s ran in %s, %.80s in %s", run_at(c, 0)->name,
            ps_precision_name(run_at(c, 0)->job.precision), measured->name, ps_precision_name(measured->job.precision));
    ps_run_fail_at(&c->runs, run, status);
    return ps_fail_hint(status, "calibrate each precision on its own runs");
}

static bool is_filled(const calibrator *c, int32_t run)
{
    const ps_job *job = &run_at(c, run)->job;
    return job->pp.value[0] > 1 && ps_run_microbatches(&c->predictor, run) >= 2 * (int64_t)job->pp.value[0];
}

static ps_code complete_runs(calibrator *c, const ps_measured_runs *runs, ps_status *status)
{
    if (runs->count < 1 || runs->count > MAX_RUNS) {
        ps_fail(status, PS_BAD_INPUT, "runs-missing", "1 to %d runs are expected, got %d", (int)MAX_RUNS,
                (int)runs->count);
        return ps_fail_at(status, runs->source, 0, 0, NULL);
    }
    c->runs = *runs;
    c->runs.run = ps_new(c->arena, ps_measured_run, runs->count);
    memcpy(c->runs.run, runs->run, (size_t)runs->count * sizeof *runs->run);
    c->measured = ps_new(c->arena, double, runs->count);
    c->kept_out = ps_new(c->arena, bool, runs->count);
    bool *filled = ps_new(c->arena, bool, runs->count);
    for (int32_t run = 0; run < runs->count; run++) {
        PS_TRY(check_time(c, run, status));
        PS_TRY(check_conditions(c, run, status));
        PS_TRY(ps_measured_run_complete(&c->runs, run, &c->runs.run[run].job, status));
        c->measured[run] = run_at(c, run)->seconds;
        filled[run] = is_filled(c, run);
    }
    c->problem.num_runs = runs->count;
    c->problem.measured = c->measured;
    c->problem.kept_out = c->kept_out;
    c->problem.filled = filled;
    return PS_OK;
}

static bool same_set(const ps_int_set *a, const ps_int_set *b)
{
    return a->count == b->count && (a->count == 0 || a->value[0] == b->value[0]);
}

// The model tells two runs apart by their times; of one layout with one prediction one is the other again.
static ps_code check_alike(const calibrator *c, const double *predicted, ps_status *status)
{
    for (int32_t run = 1; run < c->runs.count; run++)
        for (int32_t other = 0; other < run; other++) {
            const ps_job *a = &run_at(c, other)->job;
            const ps_job *b = &run_at(c, run)->job;
            if (predicted[run] != predicted[other] || !same_set(&a->tp, &b->tp) || !same_set(&a->pp, &b->pp) ||
                !same_set(&a->dp, &b->dp) || !same_set(&a->vp, &b->vp) || a->global_batch_size != b->global_batch_size)
                continue;
            ps_fail(status, PS_BAD_INPUT, "runs-alike", "%.80s and %.80s are one configuration", run_at(c, other)->name,
                    run_at(c, run)->name);
            ps_run_fail_at(&c->runs, run, status);
            return ps_fail_hint(status, "give their median once");
        }
    return PS_OK;
}

static ps_code check_far_off(const calibrator *c, const double *predicted, ps_status *status)
{
    for (int32_t run = 0; run < c->runs.count; run++) {
        double ratio = c->measured[run] / predicted[run];
        if (ratio < FAR_OFF && ratio > 1 / FAR_OFF)
            continue;
        ps_fail(status, PS_BAD_INPUT, "run-far-off",
                "%.80s took %.4g s, as shipped %.4g s is predicted: no efficiency explains that", run_at(c, run)->name,
                c->measured[run], predicted[run]);
        ps_run_fail_at(&c->runs, run, status);
        return ps_fail_hint(status, "check the unit of the time, the layout, the model and the cluster");
    }
    return PS_OK;
}

// A model that gives the times of its layers leaves nothing to scale.
static ps_code check_predicted(calibrator *c, const double *before, ps_status *status)
{
    const double slower[PS_FACTORS] = {2, 2, 2, 2, 1, 1, 1};
    double *after = ps_new(c->arena, double, c->runs.count);
    PS_TRY(ps_fit_predict(&c->problem, slower, after, status));
    for (int32_t run = 0; run < c->runs.count; run++)
        if (after[run] > before[run] * 1.1)
            return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "calibration-times-given", "%.80s gives the times of its layers: none is predicted",
            c->predictor.model->name);
    ps_fail_at(status, c->predictor.model->source, 0, 0, NULL);
    return ps_fail_hint(status, "calibrate a model that is known by its architecture");
}

// Two runs that contradict each other say nothing; of more, what the others do not show is kept out.
static ps_code keep_out(calibrator *c, const double *predicted, ps_status *status)
{
    int32_t count = c->runs.count;
    int32_t out = 0;
    double *ratio = ps_new(c->arena, double, count);

    for (int32_t run = 0; run < count; run++)
        ratio[run] = c->measured[run] / predicted[run];
    ps_fit_find_outliers(c->arena, count, ratio, c->kept_out);
    double middle = ps_fit_median(c->arena, ratio, count);
    for (int32_t run = 0; run < count; run++) {
        if (!c->kept_out[run])
            continue;
        out++;
        warn(c, ps_text_format(c->arena,
                               "%s is kept out: it took %.2f times the prediction, the runs' median is %.2f times",
                               run_at(c, run)->name, ratio[run], middle));
    }
    bool apart = count == 2 && (ratio[0] > DISAGREE * ratio[1] || ratio[1] > DISAGREE * ratio[0]);
    if (!apart && out * OUTLIER_MOST <= count)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "runs-disagree", "%d of %d runs are far from what the others show",
            apart ? 1 : (int)out, (int)count);
    ps_fail_at(status, c->runs.source, 0, 0, NULL);
    return ps_fail_hint(status, "check their layouts and times; add runs of the same framework and machine");
}

static ps_code check_enough(const calibrator *c, ps_status *status)
{
    int32_t fitted = 0;
    bool filled = false;
    for (int32_t run = 0; run < c->runs.count; run++) {
        fitted += !c->kept_out[run];
        filled = filled || (!c->kept_out[run] && c->problem.filled[run]);
    }
    if (filled || fitted >= PS_FIT_MANY)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "runs-too-few",
            "of %d run%s none has a pipeline (pp above 1) filled by at least 2 pp micro-batches", (int)fitted,
            ps_plural(fitted));
    ps_fail_at(status, c->runs.source, 0, 0, NULL);
    return ps_fail_hint(status, "add such a run, or give %d runs or more", (int)PS_FIT_MANY);
}

static void warn_of_factors(calibrator *c)
{
    for (int k = 0; k < PS_FACTORS; k++) {
        double factor = c->out->factor[k];
        const char *name = ps_factor_name((ps_factor)k);
        if (factor <= PS_FACTOR_LEAST || factor >= PS_FACTOR_MOST)
            warn(c, ps_text_format(c->arena, "%s is kept at its bound of %g: the runs ask for more than that", name,
                                   factor));
        else if (factor < PS_FACTOR_USUAL_LEAST || factor > PS_FACTOR_USUAL_MOST)
            warn(c, ps_text_format(c->arena,
                                   "%s is scaled by %.3f, beyond the usual %g to %g: are layout, model and GPU right?",
                                   name, factor, PS_FACTOR_USUAL_LEAST, PS_FACTOR_USUAL_MOST));
    }
}

static void judge(calibrator *c, const ps_fit *fit, const double *before)
{
    ps_calibration_report *report = c->report;
    bool judged = true;

    report->method = fit->method;
    report->run = ps_new(c->arena, ps_run_report, c->runs.count);
    for (int32_t run = 0; run < c->runs.count; run++) {
        report->run[run] = (ps_run_report){.before = before[run],
                                           .after = fit->after[run],
                                           .left_out = fit->left_out[run],
                                           .kept_out = c->kept_out[run]};
        judged = judged && (c->kept_out[run] || fit->left_out[run] > 0);
        c->out->runs += !c->kept_out[run];
    }
    report->error_before = ps_fit_error(&c->problem, before);
    c->out->error = ps_fit_error(&c->problem, fit->after);
    c->out->leave_one_out = judged && c->out->runs > 1 ? ps_fit_error(&c->problem, fit->left_out) : -1;
    warn_of_factors(c);
    if (c->out->leave_one_out > report->error_before)
        warn(c,
             ps_text_format(c->arena,
                            "judged by the others the runs are off by %.1f %%, uncalibrated by %.1f %%: they share no "
                            "one correction",
                            100 * c->out->leave_one_out, 100 * report->error_before));
}

ps_code ps_calibrate(ps_arena *arena, const ps_model *model, const ps_cluster *cluster, const ps_measured_runs *runs,
                     int32_t threads, ps_calibration *out, ps_calibration_report *report, ps_status *status)
{
    double ones[PS_FACTORS] = {1, 1, 1, 1, 1, 1, 1};
    calibrator c = {.arena = arena, .out = out, .report = report};
    ps_fit fit;

    *report = (ps_calibration_report){0};
    if (cluster->num_groups != 1) {
        ps_fail(status, PS_ILLEGAL, "unsupported-mixed-cluster", "a calibration needs one group of equal nodes, got %d",
                (int)cluster->num_groups);
        return ps_fail_at(status, cluster->source, 0, 0, "/groups");
    }
    c.predictor = (ps_run_predictor){.model = model, .group = &cluster->group[0], .calibration = out, .runs = &c.runs};
    // What is to be expected is twice the standard deviation.
    c.problem = (ps_fit_problem){.doubt = ps_cost_expected_error(c.predictor.group->gpu.name) / 2,
                                 .predict = ps_run_predict,
                                 .context = &c.predictor,
                                 .threads = threads};
    PS_TRY(complete_runs(&c, runs, status));
    double *before = ps_new(arena, double, runs->count);
    PS_TRY(ps_fit_predict(&c.problem, ones, before, status));
    PS_TRY(check_alike(&c, before, status));
    PS_TRY(check_far_off(&c, before, status));
    PS_TRY(check_predicted(&c, before, status));
    PS_TRY(keep_out(&c, before, status));
    PS_TRY(check_enough(&c, status));
    PS_TRY(ps_fit_factors(arena, &c.problem, &fit, status));

    out->framework = c.runs.run[0].framework;
    out->gpu = cluster->group[0].gpu.name;
    out->precision = c.runs.run[0].job.precision;
    memcpy(out->factor, fit.factor, sizeof out->factor);
    out->runs = 0;
    judge(&c, &fit, before);
    report->num_warnings = (int32_t)c.warnings.count;
    report->warning = c.warnings.data;
    return PS_OK;
}
