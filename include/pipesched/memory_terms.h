// SPDX-License-Identifier: Apache-2.0
//
// memory_terms.h: what the memory of a plan's device is made of, term by term, for `show --cost` and for tests.
//
// The bytes of all terms add up to the plan's own total_peak of that device. Terms of layers need the model that the
// plan is for; without it a stage's layers stand together.
#ifndef PIPESCHED_MEMORY_TERMS_H
#define PIPESCHED_MEMORY_TERMS_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/cluster.h"
#include "pipesched/model.h"
#include "pipesched/plan.h"
#include "pipesched/status.h"
#include "pipesched/timeline.h"

typedef struct ps_memory_term {
    const char *part;     // of the device's memory, as the plan names it: "parameters", "activations_peak"
    int32_t stage;        // -1: of the whole device
    const char *layer;    // its name before repetition; NULL: all of the stage, or none
    int32_t layers;       // of that name on the stage
    int32_t microbatches; // that hold it at the peak; 1 of what does not depend on them
    double each;          // bytes of one layer and one micro-batch
    double bytes;         // layers * microbatches * each
    const char *formula;
} ps_memory_term;

// Micro-batches of one stage in which they hold something, when activations peak.
typedef struct ps_memory_holding {
    int32_t stage;
    int32_t after_forward;        // between F and B or I
    int32_t recomputed;           // of these, behind R
    int32_t after_backward_input; // between I and W
} ps_memory_holding;

typedef struct ps_memory_terms {
    int32_t device;
    const ps_plan_memory *memory; // the plan's
    ps_op peak;                   // the op with which activations peak: F and R while it runs, others when it has ended
    int64_t peak_start_ns;
    int64_t peak_end_ns;
    int32_t num_holdings; // one a stage of the device
    ps_memory_holding *holding;
    int32_t count;
    ps_memory_term *term; // parts in the order of ps_plan_memory
} ps_memory_terms;

typedef struct ps_memory_source {
    const ps_plan *plan; // has passed ps_check_plan()
    const ps_timeline *timeline;
    const ps_model *model; // NULL: not at hand
    const ps_group *group; // whose GPU the plan is for; with a model
} ps_memory_source;

// Rule other-figures, PS_BAD_INPUT: this model does not give the sizes that the plan has. And those of
// ps_cost_table_build().
ps_code ps_plan_memory_terms(ps_arena *arena, const ps_memory_source *source, int32_t device, ps_memory_terms *out,
                             ps_status *status);

// The device with the least room left.
int32_t ps_plan_fullest(const ps_plan *plan);

#endif
