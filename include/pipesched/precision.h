// SPDX-License-Identifier: Apache-2.0
//
// precision.h: number formats that GPUs compute in.
#ifndef PIPESCHED_PRECISION_H
#define PIPESCHED_PRECISION_H

typedef enum ps_precision {
    PS_PRECISION_BF16,
    PS_PRECISION_FP16,
    PS_PRECISION_FP32,
    PS_PRECISION_FP8,
    PS_PRECISION_MXFP8,
    PS_PRECISION_NVFP4,
    PS_PRECISIONS
} ps_precision;

const char *ps_precision_name(ps_precision precision); // "bf16"
int ps_precision_named(const char *name);              // a ps_precision, or -1

#endif
