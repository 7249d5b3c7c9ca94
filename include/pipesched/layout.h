// SPDX-License-Identifier: Apache-2.0
//
// layout.h: ONE way to spread a job over a cluster. A job allows sets of values; a layout is one point of them.
#ifndef PIPESCHED_LAYOUT_H
#define PIPESCHED_LAYOUT_H

#include <stdint.h>

#include "pipesched/schedule.h"

// Selective: the parts that the job names (ps_recompute_part), in every block.
typedef enum ps_recompute { PS_RECOMPUTE_NONE, PS_RECOMPUTE_FULL, PS_RECOMPUTE_SELECTIVE, PS_RECOMPUTES } ps_recompute;
const char *ps_recompute_name(ps_recompute recompute); // "none", "full", "selective"

typedef struct ps_layout {
    int32_t dp;               // data parallel replicas
    int32_t tp;               // tensor parallel ranks
    int32_t pp;               // pipeline ranks
    int32_t vp;               // virtual stages (chunks) a pipeline rank
    int32_t cp;               // context parallel ranks
    int32_t ep;               // expert parallel ranks, out of the tp * cp * dp of a pipeline rank
    int32_t etp;              // tensor parallel ranks of an expert; 0 reads as tp
    int32_t micro_batch_size; // sequences
    int32_t num_microbatches; // a replica and iteration: global batch / (dp * micro_batch_size)
    ps_schedule_kind schedule;
    ps_placement placement; // of zb's stages; every family has its own
    ps_recompute recompute;
    int32_t zero; // ZeRO stage of optimizer state sharding
} ps_layout;

// Where the layout's schedule puts its stages.
ps_placement ps_layout_placement(const ps_layout *layout);

#endif
