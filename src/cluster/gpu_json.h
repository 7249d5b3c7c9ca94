// SPDX-License-Identifier: Apache-2.0
//
// gpu_json.h: figures as configs/gpus.json and the "gpu" object of a cluster file write them.
//
// A figure is a number, a quantity with a unit, or {"value": ..., "source": "..."} where its source is not that of the
// object around it.
#ifndef PS_CLUSTER_GPU_JSON_H
#define PS_CLUSTER_GPU_JSON_H

#include "io/json_read.h"
#include "pipesched/cluster.h"

// Largest rate that anything here may state; a terabyte a second times a thousand.
#define PS_MAX_RATE_BYTES_PER_S 1e15

typedef enum ps_figure_unit {
    PS_FIGURE_BYTES,
    PS_FIGURE_RATE,
    PS_FIGURE_SECONDS,
    PS_FIGURE_SHARE,  // above 0, at most 1
    PS_FIGURE_NUMBER, // not negative
    PS_FIGURE_TERA    // written in units of 10^12, kept in units
} ps_figure_unit;

// Whose figures these are: the catalog's say "looked up" or, by their source, "assumed"; a user's file says "read".
typedef struct ps_figure_context {
    ps_arena *arena;
    ps_origin origin;
    const char *source; // of figures that state none
} ps_figure_context;

// Reads object[key] into *out; absent leaves it unchanged.
ps_code ps_figure_read(const ps_figure_context *context, ps_json object, const char *key, ps_figure_unit unit,
                       ps_figure *out, ps_status *status);

// Every figure of a GPU that `object` states; the others are left as they are.
ps_code ps_gpu_read(const ps_figure_context *context, ps_json object, ps_gpu *gpu, ps_status *status);

// bandwidth, efficiency and latency of a link object.
ps_code ps_link_read(const ps_figure_context *context, ps_json object, ps_link *link, ps_status *status);

// Figures without a source become 0 with an empty one: not known.
void ps_gpu_mark_unknown(ps_gpu *gpu);

#endif
