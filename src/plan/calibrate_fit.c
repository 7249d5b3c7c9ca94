// SPDX-License-Identifier: Apache-2.0
//
// calibrate_fit.c: one run by bisection, few by the median of that, many by regularised least squares.
//
// With many runs the factors f minimise the sum of (predicted / measured - 1)^2 / NOISE^2 over the runs plus the sum of
// (f - 1)^2 / spread^2 over the factors, within bounds: the most likely factors when runs vary by NOISE and the shipped
// constants are right to within `spread`. Predicted times are nearly linear in the factors, so a few Gauss-Newton steps
// suffice. The same linear form judges each run by the others.
#include "plan/calibrate_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"

#define NOISE 0.03      // of a measured time, with what the model leaves out
#define DIFFERENCE 0.05 // by which a factor is moved to see what it does
#define OWN 0.05        // what runs of one framework, precision and GPU type are off from each other (docs/fidelity.md)
#define FAR 0.15        // from the median ratio: not what the other runs show
#define FAR_IN_SPREADS 5 // nor this many median deviations

// How far the shipped constants may be off.
static const double spread[PS_FACTORS] = {
    [PS_FACTOR_GEMM] = 0.2, [PS_FACTOR_ATTENTION] = 0.2, [PS_FACTOR_MEMORY] = 0.2, [PS_FACTOR_KERNEL] = 0.3,
    [PS_FACTOR_TP] = 0.3,   [PS_FACTOR_DP] = 0.3,        [PS_FACTOR_PP] = 0.3,
};

enum { BISECTIONS = 24, ROUNDS = 4, HALVINGS = 3, SWEEPS = 400 };

static void set_all(double factor[PS_FACTORS], double value)
{
    for (int k = 0; k < PS_FACTORS; k++)
        factor[k] = value;
}

static double clamped(double factor)
{
    return factor < PS_FACTOR_LEAST ? PS_FACTOR_LEAST : factor > PS_FACTOR_MOST ? PS_FACTOR_MOST : factor;
}

// ---- predictions of many points at once: `columns` sets of factors for each run

typedef struct grid {
    const ps_fit_problem *problem;
    const double (*factor)[PS_FACTORS]; // [columns]; without columns [runs], each run its own
    int32_t columns;
    double *seconds; // [runs * columns]
} grid;

static ps_code predict_one(void *context, int64_t index, ps_arena *scratch, ps_status *status)
{
    grid *g = context;
    int64_t run = g->columns > 0 ? index / g->columns : index;
    int64_t row = g->columns > 0 ? index % g->columns : index;
    return g->problem->predict(g->problem->context, (int32_t)run, g->factor[row], scratch, &g->seconds[index], status);
}

static ps_code predict_grid(grid *g, ps_status *status)
{
    int64_t points = (int64_t)g->problem->num_runs * (g->columns > 0 ? g->columns : 1);
    return ps_parallel_for(points, g->problem->threads, 0, predict_one, g, status);
}

ps_code ps_fit_predict(const ps_fit_problem *problem, const double factor[PS_FACTORS], double *seconds,
                       ps_status *status)
{
    double one[1][PS_FACTORS];
    memcpy(one[0], factor, sizeof one[0]);
    grid g = {.problem = problem, .factor = (const double(*)[PS_FACTORS])one, .columns = 1};
    g.seconds = seconds;
    return predict_grid(&g, status);
}

double ps_fit_error(const ps_fit_problem *problem, const double *seconds)
{
    double sum = 0;
    int32_t count = 0;
    for (int32_t run = 0; run < problem->num_runs; run++) {
        if (problem->kept_out[run])
            continue;
        sum += fabs(seconds[run] / problem->measured[run] - 1);
        count++;
    }
    return count > 0 ? sum / count : 0;
}

// ---- medians

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

double ps_fit_median(ps_arena *arena, const double *value, int32_t count)
{
    double *sorted = ps_new(arena, double, count);
    memcpy(sorted, value, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

void ps_fit_find_outliers(ps_arena *arena, int32_t num_runs, const double *ratio, bool *far)
{
    double middle = ps_fit_median(arena, ratio, num_runs);
    double *off = ps_new(arena, double, num_runs);
    for (int32_t run = 0; run < num_runs; run++)
        off[run] = fabs(ratio[run] / middle - 1);
    double limit = FAR_IN_SPREADS * ps_fit_median(arena, off, num_runs);
    if (limit < FAR)
        limit = FAR;
    for (int32_t run = 0; run < num_runs; run++)
        far[run] = num_runs > 2 && off[run] > limit;
}

// ---- one factor, one run

typedef struct single_fits {
    const ps_fit_problem *problem;
    double *target; // [runs] seconds
    double *gemm;   // [runs]
} single_fits;

// A run tells of its framework and of itself. Where the framework's runs are off by `doubt` together and by OWN from
// each other, n of them tell of the framework the share doubt^2 / (doubt^2 + OWN^2 / n) of what they are off: the mean
// of one normal distribution given samples of another around it.
static ps_code set_targets(single_fits *fits, int32_t fitted, ps_status *status)
{
    const ps_fit_problem *problem = fits->problem;
    double doubt = problem->doubt * problem->doubt;
    double share = doubt / (doubt + OWN * OWN / fitted);
    double shipped[PS_FACTORS];

    set_all(shipped, 1);
    PS_TRY(ps_fit_predict(problem, shipped, fits->target, status));
    for (int32_t run = 0; run < problem->num_runs; run++)
        fits->target[run] *= pow(problem->measured[run] / fits->target[run], share);
    return PS_OK;
}

// A slower GEMM never makes a run shorter: the factor lies between one that is too short and one that is not.
static ps_code fit_single(void *context, int64_t index, ps_arena *scratch, ps_status *status)
{
    single_fits *fits = context;
    const ps_fit_problem *problem = fits->problem;
    int32_t run = (int32_t)index;
    double low = PS_FACTOR_LEAST;
    double high = PS_FACTOR_MOST;
    double factor[PS_FACTORS];

    set_all(factor, 1);
    for (int step = 0; step < BISECTIONS; step++) {
        double seconds = 0;
        factor[PS_FACTOR_GEMM] = (low + high) / 2;
        PS_TRY(problem->predict(problem->context, run, factor, scratch, &seconds, status));
        if (seconds < fits->target[run])
            low = factor[PS_FACTOR_GEMM];
        else
            high = factor[PS_FACTOR_GEMM];
    }
    // What cannot be reached ends at the bound itself.
    double found = (low + high) / 2;
    fits->gemm[run] = low == PS_FACTOR_LEAST ? PS_FACTOR_LEAST : high == PS_FACTOR_MOST ? PS_FACTOR_MOST : found;
    return PS_OK;
}

// The median of the single fits without `left_out` (-1: of all); runs with a filled pipeline alone, if there are any.
static double median_of_singles(ps_arena *arena, const ps_fit_problem *problem, const double *gemm, int32_t left_out)
{
    double *used = ps_new(arena, double, problem->num_runs);
    for (int pass = 0; pass < 2; pass++) {
        int32_t count = 0;
        for (int32_t run = 0; run < problem->num_runs; run++)
            if (run != left_out && !problem->kept_out[run] && (pass == 1 || problem->filled[run]))
                used[count++] = gemm[run];
        if (count > 0)
            return ps_fit_median(arena, used, count);
    }
    return 0;
}

static ps_code fit_few(ps_arena *arena, const ps_fit_problem *problem, int32_t fitted, ps_fit *out, ps_status *status)
{
    single_fits fits = {.problem = problem,
                        .target = ps_new(arena, double, problem->num_runs),
                        .gemm = ps_new(arena, double, problem->num_runs)};
    double(*factor)[PS_FACTORS] = ps_arena_alloc(arena, problem->num_runs, sizeof *factor);

    PS_TRY(set_targets(&fits, fitted, status));
    PS_TRY(ps_parallel_for(problem->num_runs, problem->threads, 0, fit_single, &fits, status));
    out->factor[PS_FACTOR_GEMM] = median_of_singles(arena, problem, fits.gemm, -1);
    for (int32_t run = 0; run < problem->num_runs; run++) {
        double without = median_of_singles(arena, problem, fits.gemm, run);
        if (without == 0)
            return PS_OK; // of one run: no other judges it
        set_all(factor[run], 1);
        factor[run][PS_FACTOR_GEMM] = without;
    }
    grid own = {.problem = problem, .factor = (const double(*)[PS_FACTORS])factor, .seconds = out->left_out};
    return predict_grid(&own, status);
}

// ---- all factors, many runs

// Errors of the runs and what each factor does to them, near `factor`.
typedef struct linear_form {
    double factor[PS_FACTORS];
    double *error;               // [runs]
    double (*slope)[PS_FACTORS]; // [runs]
} linear_form;

static double objective(const ps_fit_problem *problem, const double factor[PS_FACTORS], const double *seconds)
{
    double sum = 0;
    for (int32_t run = 0; run < problem->num_runs; run++) {
        double error = (seconds[run] / problem->measured[run] - 1) / NOISE;
        if (!problem->kept_out[run])
            sum += error * error;
    }
    for (int k = 0; k < PS_FACTORS; k++) {
        double off = (factor[k] - 1) / spread[k];
        sum += off * off;
    }
    return sum;
}

static ps_code linearise(ps_arena *arena, const ps_fit_problem *problem, linear_form *form, ps_status *status)
{
    enum { COLUMNS = PS_FACTORS + 1 };
    double factor[COLUMNS][PS_FACTORS];
    double *seconds = ps_new(arena, double, (int64_t)problem->num_runs *COLUMNS);
    double step[PS_FACTORS];

    for (int column = 0; column < COLUMNS; column++)
        memcpy(factor[column], form->factor, sizeof factor[column]);
    for (int k = 0; k < PS_FACTORS; k++) {
        step[k] = form->factor[k] + DIFFERENCE > PS_FACTOR_MOST ? -DIFFERENCE : DIFFERENCE;
        factor[k + 1][k] += step[k];
    }
    grid g = {
        .problem = problem, .factor = (const double(*)[PS_FACTORS])factor, .columns = COLUMNS, .seconds = seconds};
    PS_TRY(predict_grid(&g, status));
    for (int32_t run = 0; run < problem->num_runs; run++) {
        const double *row = &seconds[(int64_t)run * COLUMNS];
        form->error[run] = row[0] / problem->measured[run] - 1;
        for (int k = 0; k < PS_FACTORS; k++)
            form->slope[run][k] = (row[k + 1] - row[0]) / (problem->measured[run] * step[k]);
    }
    return PS_OK;
}

// Least of the quadratic within bounds, coordinate by coordinate: it is strictly convex, so this converges.
static void solve(const ps_fit_problem *problem, const linear_form *form, int32_t left_out, double factor[PS_FACTORS])
{
    double a[PS_FACTORS][PS_FACTORS] = {{0}};
    double b[PS_FACTORS] = {0};

    for (int32_t run = 0; run < problem->num_runs; run++) {
        if (run == left_out || problem->kept_out[run])
            continue;
        double target = -form->error[run];
        for (int k = 0; k < PS_FACTORS; k++)
            target += form->slope[run][k] * form->factor[k];
        for (int k = 0; k < PS_FACTORS; k++) {
            b[k] += form->slope[run][k] * target / (NOISE * NOISE);
            for (int j = 0; j < PS_FACTORS; j++)
                a[k][j] += form->slope[run][k] * form->slope[run][j] / (NOISE * NOISE);
        }
    }
    for (int k = 0; k < PS_FACTORS; k++) {
        a[k][k] += 1 / (spread[k] * spread[k]);
        b[k] += 1 / (spread[k] * spread[k]);
    }
    memcpy(factor, form->factor, sizeof form->factor);
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int k = 0; k < PS_FACTORS; k++) {
            double rest = b[k];
            for (int j = 0; j < PS_FACTORS; j++)
                rest -= j == k ? 0 : a[k][j] * factor[j];
            factor[k] = clamped(rest / a[k][k]);
        }
}

// Towards the least of the quadratic, half as far each time that the true objective does not fall.
static ps_code descend(ps_arena *arena, const ps_fit_problem *problem, linear_form *form, bool *moved,
                       ps_status *status)
{
    double *seconds = ps_new(arena, double, problem->num_runs);
    double wanted[PS_FACTORS];
    double best = 0;

    *moved = false;
    for (int32_t run = 0; run < problem->num_runs; run++)
        seconds[run] = (form->error[run] + 1) * problem->measured[run];
    best = objective(problem, form->factor, seconds);
    solve(problem, form, -1, wanted);
    for (int halving = 0; halving < HALVINGS; halving++) {
        PS_TRY(ps_fit_predict(problem, wanted, seconds, status));
        if (objective(problem, wanted, seconds) < best) {
            memcpy(form->factor, wanted, sizeof wanted);
            *moved = true;
            return PS_OK;
        }
        for (int k = 0; k < PS_FACTORS; k++)
            wanted[k] = (wanted[k] + form->factor[k]) / 2;
    }
    return PS_OK;
}

static ps_code fit_many(ps_arena *arena, const ps_fit_problem *problem, ps_fit *out, ps_status *status)
{
    linear_form form = {.error = ps_new(arena, double, problem->num_runs),
                        .slope = ps_arena_alloc(arena, problem->num_runs, sizeof *form.slope)};
    bool moved = true;

    set_all(form.factor, 1);
    PS_TRY(linearise(arena, problem, &form, status));
    for (int round = 0; round < ROUNDS && moved; round++) {
        PS_TRY(descend(arena, problem, &form, &moved, status));
        if (moved)
            PS_TRY(linearise(arena, problem, &form, status));
    }
    memcpy(out->factor, form.factor, sizeof form.factor);

    double(*factor)[PS_FACTORS] = ps_arena_alloc(arena, problem->num_runs, sizeof *factor);
    for (int32_t run = 0; run < problem->num_runs; run++)
        solve(problem, &form, run, factor[run]);
    grid own = {.problem = problem, .factor = (const double(*)[PS_FACTORS])factor, .seconds = out->left_out};
    return predict_grid(&own, status);
}

ps_code ps_fit_factors(ps_arena *arena, const ps_fit_problem *problem, ps_fit *out, ps_status *status)
{
    int32_t fitted = 0;
    *out = (ps_fit){.after = ps_new(arena, double, problem->num_runs),
                    .left_out = ps_new(arena, double, problem->num_runs)};
    set_all(out->factor, 1);
    for (int32_t run = 0; run < problem->num_runs; run++) {
        out->left_out[run] = -1;
        fitted += !problem->kept_out[run];
    }
    if (fitted >= PS_FIT_MANY) {
        out->method = "all factors, regularised least squares";
        PS_TRY(fit_many(arena, problem, out, status));
    } else {
        out->method = fitted == 1 ? "gemm alone, by bisection" : "gemm alone, median of single fits";
        PS_TRY(fit_few(arena, problem, fitted, out, status));
    }
    return ps_fit_predict(problem, out->factor, out->after, status);
}
