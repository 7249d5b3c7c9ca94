// SPDX-License-Identifier: Apache-2.0
//
// calibrate_fit.h: factors from measured and predicted times. Knows no model and no cluster: predictions are asked for.
#ifndef PS_PLAN_CALIBRATE_FIT_H
#define PS_PLAN_CALIBRATE_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/calibration.h"
#include "pipesched/status.h"

enum { PS_FIT_MANY = 4 }; // runs from which all factors move

// Seconds of a run under these factors; called from several threads at once.
typedef ps_code (*ps_predict_fn)(void *context, int32_t run, const double factor[PS_FACTORS], ps_arena *scratch,
                                 double *seconds, ps_status *status);

typedef struct ps_fit_problem {
    int32_t num_runs;
    const double *measured; // [runs] seconds, above 0
    const bool *kept_out;   // [runs] not fitted to, but predicted
    const bool *filled;     // [runs] a pipeline with enough micro-batches to show what a layer takes
    double doubt;           // standard deviation of frameworks from the shipped constants, a share
    ps_predict_fn predict;
    void *context;
    int32_t threads;
} ps_fit_problem;

typedef struct ps_fit {
    const char *method;
    double factor[PS_FACTORS];
    double *after;    // [runs] seconds
    double *left_out; // [runs] by a fit to the others; below 0: there are none
} ps_fit;

// Seconds of every run under these factors.
ps_code ps_fit_predict(const ps_fit_problem *problem, const double factor[PS_FACTORS], double *seconds,
                       ps_status *status);
ps_code ps_fit_factors(ps_arena *arena, const ps_fit_problem *problem, ps_fit *out, ps_status *status);

// Mean of |seconds / measured - 1| over the runs that are fitted to.
double ps_fit_error(const ps_fit_problem *problem, const double *seconds);

// Marks runs whose ratio of measured to predicted time is far from the median of all.
void ps_fit_find_outliers(ps_arena *arena, int32_t num_runs, const double *ratio, bool *far);
double ps_fit_median(ps_arena *arena, const double *value, int32_t count);

#endif
