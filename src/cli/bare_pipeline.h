// SPDX-License-Identifier: Apache-2.0
//
// bare_pipeline.h: a pipeline from the bare numbers of `simulate`.
#ifndef PS_CLI_BARE_PIPELINE_H
#define PS_CLI_BARE_PIPELINE_H

#include "cli/options.h"
#include "pipesched/pipeline.h"
#include "pipesched/schedule.h"

typedef struct ps_bare_options {
    int32_t schedule;
    int64_t pp;
    int64_t vp;
    int64_t num_microbatches;
    ps_number_list forward; // times in ns, one or one a virtual stage; for dualpipe one a stage of the model
    ps_number_list backward_input;
    ps_number_list backward_weight;
    ps_number_list backward;
    ps_number_list comm_latency; // one or one a hop
    ps_number_list comm_occupy;
    ps_number_list activation; // memory, one or one a virtual stage
    ps_number_list held_after_backward_input;
    ps_number_list memory_limit; // one or one a rank
    ps_number_list memory_curve; // limits of every rank alike, to search at one after the other
    int64_t group_size;          // of interleaved; 0: not given
    const char *launch_counts;   // of h-1f1b, as written; NULL: not given
    const char *placement;       // of a searched order, as written; NULL: not given
} ps_bare_options;

// Stand for the orders that are searched for: legal anywhere; zb splits the backward, auto may.
extern const ps_schedule_family ps_bare_zb;
extern const ps_schedule_family ps_bare_auto;

// Counts and choices, legal for the family. PS_USAGE with rules missing-option, conflicting-options, list-length,
// bad-value, too-many-stages; otherwise what the family says.
ps_code ps_bare_shape(ps_arena *arena, const ps_bare_options *bare, const ps_schedule_family *family,
                      ps_schedule_shape *out, ps_status *status);

// Stages in the family's placement, validated. PS_USAGE with rules missing-option, conflicting-options, list-length,
// mixed-units, and as ps_bare_shape(); PS_BAD_INPUT as ps_pipeline_validate().
ps_code ps_bare_pipeline(ps_arena *arena, const ps_bare_options *bare, const ps_schedule_family *family,
                         ps_pipeline *out, ps_status *status);

// What the figures are laid on when a schedule is given: pp, vp and num_microbatches of the options do not count.
typedef struct ps_bare_ground {
    const char *name; // of the schedule, for messages
    ps_schedule_shape shape;
    const int32_t *device;  // [stages]
    bool splits_backward;   // some backward is I and W
    ps_placement placement; // PS_PLACEMENT_DUAL: lists are of one way, and hold for the other as well
} ps_bare_ground;

ps_code ps_bare_pipeline_on(ps_arena *arena, const ps_bare_options *bare, const ps_bare_ground *ground,
                            ps_pipeline *out, ps_status *status);

#endif
