// SPDX-License-Identifier: Apache-2.0
//
// calibrate.h: from measured runs to a calibration.
//
// A run is one whole layout of a job and the seconds that an iteration took. Its prediction is that of a plan of this
// one layout. One run scales matrix products until both agree; two or three take the median of that; four or more move
// all factors, each held to 1 as strongly as it is known, so that few runs do not fit what they do not show.
#ifndef PIPESCHED_CALIBRATE_H
#define PIPESCHED_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/calibration.h"
#include "pipesched/cluster.h"
#include "pipesched/job.h"
#include "pipesched/model.h"
#include "pipesched/nccl_tests.h"
#include "pipesched/profile.h"
#include "pipesched/status.h"

typedef struct ps_measured_run {
    const char *name;
    const char *pointer;   // of its place in a JSON file; NULL: none
    int32_t line;          // from 1; 0: not known
    const char *framework; // NULL: not said
    const char *gpu;       // as its file says; NULL: the cluster's
    ps_job job;            // one value each; what is not given takes its default (ps_measured_run_complete)
    double seconds;        // of an iteration
} ps_measured_run;

typedef struct ps_measured_runs {
    const char *source;
    int32_t count;
    ps_measured_run *run;
    int32_t num_warnings;
    const char **warning;
} ps_measured_runs;

// A file or "-", recognised by content: pipesched/runs/v1, a CSV with a header, or the log of Megatron-LM. `base` holds
// what runs do not give; `framework` likewise, or NULL. Rules: those of the formats, run-time for a time that is not
// above 0, runs-missing for a file without any.
ps_code ps_measured_runs_load(ps_arena *arena, const char *path, const ps_job *base, const char *framework,
                              ps_measured_runs *out, ps_status *status);
ps_code ps_measured_runs_parse(ps_arena *arena, const char *source, const char *text, int64_t size, const ps_job *base,
                               const char *framework, ps_measured_runs *out, ps_status *status);

typedef struct ps_run_report {
    double before;   // predicted seconds as shipped
    double after;    // calibrated
    double left_out; // by a fit to the other runs; below 0: there are none
    bool kept_out;   // of the fit: too far from what the others agree on
} ps_run_report;

typedef struct ps_calibration_report {
    const char *method;
    ps_run_report *run;  // [runs]
    double error_before; // mean absolute, of the runs in the fit, a share of the measured time
    int32_t num_warnings;
    const char **warning;
} ps_calibration_report;

// Fills framework, gpu, precision, factors, runs and errors of `out`, whose curves and measurements are used as they
// are. Rules (PS_BAD_INPUT): run-framework, mixed-frameworks, mixed-precisions, calibration-gpu, run-layout for a run
// that is no layout or more than one, runs-alike for two runs that the model cannot tell apart, run-far-off for a time
// that cannot be this run's, runs-too-few for one run without a pipeline that is filled, runs-disagree.
ps_code ps_calibrate(ps_arena *arena, const ps_model *model, const ps_cluster *cluster, const ps_measured_runs *runs,
                     int32_t threads, ps_calibration *out, ps_calibration_report *report, ps_status *status);

// What a calibration takes in beside runs.
typedef struct ps_calibration_sources {
    ps_nccl_tests tests;  // count 0: none
    ps_profile profile;   // num_measurements 0: none
    int32_t num_warnings; // of what is left out, and of curves that no group of this cluster can use
    const char **warning;
} ps_calibration_sources;

// The precision of a calibration without runs: the job's, or fp16 where none is given and the GPU has no bf16.
ps_precision ps_calibration_precision(const ps_job *job, const ps_gpu *gpu);

// A calibration without runs, its factors all 1: framework ("any" when NULL), GPU and precision, the curves and the
// measured layers. ps_calibrate() fits runs on top of it. Rules calibration-gpu for tests and profiles of another GPU
// type, calibration-precision for a profile of another precision alone, unknown-layer, duplicate-measurement,
// unsupported-mixed-cluster.
ps_code ps_calibration_collect(ps_arena *arena, const ps_model *model, const ps_cluster *cluster, const char *framework,
                               ps_precision precision, ps_calibration_sources *sources, ps_calibration *out,
                               ps_status *status);

#endif
