// SPDX-License-Identifier: Apache-2.0
//
// calibration.h: what measured runs, profiles and collectives say about the shipped constants of the cost model.
//
// A calibration file ("pipesched/calibration/v1") is made by `pipesched calibrate` and read by `plan --calibration`. It
// holds one factor of time a class of work, bounded, with the framework, precision and GPU that it was measured under;
// beside them measured curves of collectives, which join the cluster, and measured layers, which join the model.
#ifndef PIPESCHED_CALIBRATION_H
#define PIPESCHED_CALIBRATION_H

#include <stdint.h>
#include <stdio.h>

#include "pipesched/arena.h"
#include "pipesched/cluster.h"
#include "pipesched/job.h"
#include "pipesched/model.h"
#include "pipesched/precision.h"
#include "pipesched/status.h"

// Classes of work whose predicted seconds are scaled together.
typedef enum ps_factor {
    PS_FACTOR_GEMM,      // matrix products, grouped ones too
    PS_FACTOR_ATTENTION, // core attention
    PS_FACTOR_MEMORY,    // what only moves data, and the optimizer step
    PS_FACTOR_KERNEL,    // time a kernel, and time to launch one
    PS_FACTOR_TP,        // tensor, context and expert parallel exchanges
    PS_FACTOR_DP,        // gradients and parameters among replicas
    PS_FACTOR_PP,        // hops between stages
    PS_FACTORS
} ps_factor;
const char *ps_factor_name(ps_factor factor); // "gemm", "attention", "memory", "kernel", "tp", "dp", "pp"

// A factor never leaves these bounds, and beyond the narrow ones a calibration warns.
#define PS_FACTOR_LEAST 0.5
#define PS_FACTOR_MOST 2.0
#define PS_FACTOR_USUAL_LEAST 0.8
#define PS_FACTOR_USUAL_MOST 1.25

struct ps_calibration {
    const char *source;    // file
    char sha256[65];       // of its bytes
    const char *framework; // as the runs name it: "megatron"; "any" without runs
    const char *gpu;       // catalog name
    ps_precision precision;
    double factor[PS_FACTORS]; // of predicted seconds; 1: as shipped
    int32_t runs;              // that the factors were fitted to; 0: collectives or layers alone
    double error;              // mean absolute error over those runs, a share of the measured time
    double leave_one_out;      // the same with each run judged by a fit to the others; below 0: too few runs
    int32_t num_curves;
    const ps_collective_curve *curve;
    int32_t num_measurements;
    const ps_measurement *measurement; // of layers, by base names of the model
};

// A file or "-". Rules: those of JSON, unknown-version, wrong-format, out-of-range for a factor beyond its bounds,
// calibration-order for curves that do not ascend.
ps_code ps_calibration_load(ps_arena *arena, const char *path, ps_calibration *out, ps_status *status);
ps_code ps_calibration_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_calibration *out,
                             ps_status *status);
ps_code ps_calibration_write(const ps_calibration *calibration, FILE *file, ps_status *status);

// A calibration holds for what it was measured under. Rules calibration-gpu, calibration-precision, and
// calibration-framework where `framework` is not NULL: PS_ILLEGAL with what to do instead.
ps_code ps_calibration_check(const ps_calibration *calibration, const ps_gpu *gpu, ps_precision precision,
                             const char *framework, ps_status *status);

// The group with the measured curves and the factor of its hops, and the model with the measured layers. Rules
// unknown-layer and duplicate-measurement.
ps_code ps_calibration_join(ps_arena *arena, const ps_calibration *calibration, ps_group *group, ps_model *model,
                            ps_status *status);

#endif
