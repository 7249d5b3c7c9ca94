// SPDX-License-Identifier: Apache-2.0
//
// calibrate_predict.h: what a measured run is predicted to take.
#ifndef PS_PLAN_CALIBRATE_PREDICT_H
#define PS_PLAN_CALIBRATE_PREDICT_H

#include "pipesched/calibrate.h"

// What all predictions of a calibration share; read-only while workers run.
typedef struct ps_run_predictor {
    const ps_model *model;
    const ps_group *group;
    const ps_calibration *calibration; // curves and measurements; its factors are not used
    const ps_measured_runs *runs;
} ps_run_predictor;

// Where a run does not say: no parallelism, 1F1B or interleaved, no recompute. Rules run-layout, and those of a job.
ps_code ps_measured_run_complete(const ps_measured_runs *runs, int32_t run, ps_job *job, ps_status *status);

// A ps_predict_fn; `context` is a ps_run_predictor. Memory is no limit: the run was made. But of an order
// that was searched for (schedule zb) it is what decides: the run's memory_limit, or the GPU's usable memory.
ps_code ps_run_predict(void *context, int32_t run, const double factor[PS_FACTORS], ps_arena *scratch, double *seconds,
                       ps_status *status);
// Micro-batches a replica; 0 when the run is no layout.
int64_t ps_run_microbatches(const ps_run_predictor *predictor, int32_t run);

// Add the run's place to a status just filled.
ps_code ps_run_fail_at(const ps_measured_runs *runs, int32_t run, ps_status *status);

#endif
