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

#include "pipesched/precision.h"

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
    const char *framework; // as the runs name it: "megatron"
    const char *gpu;       // catalog name
    ps_precision precision;
    double factor[PS_FACTORS]; // of predicted seconds; 1: as shipped
    int32_t runs;              // that the factors were fitted to; 0: collectives or layers alone
    double error;              // mean absolute error over those runs, a share of the measured time
    double leave_one_out;      // the same with each run judged by a fit to the others; below 0: too few runs
};

#endif
