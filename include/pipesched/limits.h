// SPDX-License-Identifier: Apache-2.0
//
// limits.h: the one table of input limits. Within them no sum or product below overflows int64 unchecked.
#ifndef PIPESCHED_LIMITS_H
#define PIPESCHED_LIMITS_H

#include <stdint.h>

#define PS_MAX_LAYERS INT32_C(1000000)
#define PS_MAX_LAYER_NS (INT64_C(1) << 40) // about 18 minutes for one layer and micro-batch
#define PS_MAX_TIME_NS (INT64_C(1) << 62)  // any sum of times of one run
#define PS_MAX_BYTES (INT64_C(1) << 60)
#define PS_MAX_PARAMETERS (INT64_C(1) << 56)
#define PS_MAX_OPS (INT64_C(1) << 27) // ops of one schedule, all devices together
#define PS_MAX_STAGES INT32_C(65535)  // virtual stages: ps_op keeps a stage in 16 bits
#define PS_MAX_DEVICES INT32_C(65535) // pipeline ranks
#define PS_MAX_GPUS INT64_C(1048576)  // GPUs of a cluster
#define PS_MAX_MICROBATCHES INT32_C(16777216)
#define PS_MAX_BATCH (INT64_C(1) << 32)     // sequences in a global batch
#define PS_MAX_SEQUENCE (INT64_C(1) << 32)  // tokens in a sequence
#define PS_MAX_DIMENSION (INT64_C(1) << 28) // hidden, heads, experts, vocabulary
#define PS_MAX_JSON_DEPTH INT32_C(64)
#define PS_MAX_FILE_BYTES (INT64_C(1) << 32)

#endif
