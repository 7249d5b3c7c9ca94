// SPDX-License-Identifier: Apache-2.0
//
// profile.h: measured times of layers from a file beside the model.
//
// A profile is a CSV with a row a layer, or a model or calibration file of which the measurements are taken.
#ifndef PIPESCHED_PROFILE_H
#define PIPESCHED_PROFILE_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/job.h"
#include "pipesched/model.h"
#include "pipesched/status.h"

// What rows that have no such column were measured under: degrees, micro-batch size and sequence length of the job.
typedef struct ps_profile_conditions {
    const char *gpu; // catalog name
    ps_precision precision;
    const ps_job *job;
} ps_profile_conditions;

typedef struct ps_profile {
    const char *source;
    int32_t num_measurements;
    const ps_measurement *measurement;
} ps_profile;

// A file or "-". Layers are named as the entries of `model`. Rules: those of the formats; of a CSV missing-column,
// unknown-column, csv-cells, profile-time, profile-condition for a condition that is neither a column nor given,
// unknown-layer, duplicate-layer; profile-empty for a file without times of layers.
ps_code ps_profile_load(ps_arena *arena, const char *path, const ps_model *model,
                        const ps_profile_conditions *conditions, ps_profile *out, ps_status *status);
ps_code ps_profile_parse(ps_arena *arena, const char *source, const char *text, int64_t size, const ps_model *model,
                         const ps_profile_conditions *conditions, ps_profile *out, ps_status *status);

#endif
