// SPDX-License-Identifier: Apache-2.0
//
// model_names.h: finding layers by the names that a file uses: a layer ("block.3") or all layers that came from one
// repeated entry ("block").
#ifndef PS_MODEL_MODEL_NAMES_H
#define PS_MODEL_MODEL_NAMES_H

#include <stdint.h>

#include "io/json_read.h"
#include "pipesched/arena.h"
#include "pipesched/model.h"

// One entry of "layers": its layers are first up to first + repeat.
typedef struct ps_layer_entry {
    ps_json at;
    int32_t first;
    int32_t repeat;
} ps_layer_entry;

typedef struct ps_layer_range {
    int32_t first;
    int32_t last;
} ps_layer_range;

typedef struct ps_named_range {
    const char *name;
    ps_layer_range layers;
    int32_t entry;
} ps_named_range;

typedef struct ps_layer_names {
    int64_t count;
    ps_named_range *range; // by name
    const char **spelling; // [count] the same names, for "did you mean"
    int32_t num_entries;
    const ps_layer_entry *entry;
} ps_layer_names;

// Sort the names of all layers and entries. PS_BAD_INPUT with rule duplicate-layer. O(n log n).
ps_code ps_layer_names_build(ps_arena *arena, const ps_model *model, const ps_layer_entry *entry, int32_t num_entries,
                             ps_layer_names *out, ps_status *status);

// NULL: no such name. O(log n).
const ps_named_range *ps_layer_names_find(const ps_layer_names *names, const char *name);

// The string at `at` as a layer or entry, refused with rule unknown-layer and the nearest name.
ps_code ps_layer_names_read(const ps_layer_names *names, ps_json at, ps_layer_range *out, ps_status *status);

#endif
