// SPDX-License-Identifier: Apache-2.0
//
// measurements.h: measured times of a layer under the conditions of a layout.
#ifndef PS_COST_MEASUREMENTS_H
#define PS_COST_MEASUREMENTS_H

#include "cost/rank_view.h"

typedef struct ps_measured_times {
    bool found; // false: the model measures this layer nowhere, or nowhere near and extrapolation may predict
    const char *how;
    double forward_seconds;
    double backward_input_seconds;
    double backward_weight_seconds;
} ps_measured_times;

// An exact match of GPU, precision, tp, cp, ep, micro-batch size and sequence length; else linear in tokens between the
// nearest sizes below and above; else rule measurement-missing, unless the job extrapolates. O(measurements * layers of
// a set).
ps_code ps_measured_times_find(const ps_rank_view *view, const ps_model *model, const ps_layer *layer,
                               ps_measured_times *out, ps_status *status);

#endif
