// SPDX-License-Identifier: Apache-2.0
//
// model_formats.h: what a model format provides. A new format is one new file and one row of the table in model.c.
#ifndef PS_MODEL_MODEL_FORMATS_H
#define PS_MODEL_MODEL_FORMATS_H

#include <stdbool.h>

#include "io/json_read.h"
#include "pipesched/model.h"

typedef struct ps_model_format {
    const char *name; // in errors
    bool (*sniff)(ps_json root);
    // Fills the model's layers, measurements, pins and warnings, and `format`; name, source and sha256 are set before,
    // totals after. `name` may be replaced by the file's own.
    ps_code (*load)(ps_arena *arena, ps_json root, ps_model *model, ps_status *status);
} ps_model_format;

extern const ps_model_format ps_model_format_json;
extern const ps_model_format ps_model_format_hf;

#endif
