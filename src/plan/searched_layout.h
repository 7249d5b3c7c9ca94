// SPDX-License-Identifier: Apache-2.0
//
// searched_layout.h: a layout whose order of ops is searched for, in two steps. A survey finds cuts and says how good
// an order of each could be and what is known without a search; the search itself is for the few that promise most.
#ifndef PS_PLAN_SEARCHED_LAYOUT_H
#define PS_PLAN_SEARCHED_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/control.h"
#include "plan/evaluate.h"

enum { PS_SURVEY_CUTS = 6 };

typedef struct ps_survey_cut {
    int32_t *first_layer; // [stages + 1], room given by the caller
    int64_t promise_ns;   // no order of this cut that fits has a shorter iteration
    int64_t known_ns;     // iteration in the best order that needs no search
} ps_survey_cut;

typedef struct ps_survey {
    bool known_only;  // set by the caller: no search, the best known order is taken
    int64_t limit_ns; // set by the caller: known orders of cuts that promise no less are not looked at
    bool skipped;     // not looked at: the time limit was hit
    bool proven_infeasible;
    ps_status refusal; // why there is no cut, when there is none
    int32_t num_cuts;  // those that promise most first
    ps_survey_cut cut[PS_SURVEY_CUTS];
    int64_t known_ns;   // least of all cuts; INT64_MAX: none
    int64_t known_peak; // bytes of its fullest device
    const char *engine; // of the partitioner
} ps_survey;

// Least time of a pipeline in any order of its ops, of split or whole backwards, that a plan has room for: first start
// to last end with an optimizer barrier, else the longest span.
int64_t ps_orders_bound(ps_arena *arena, const ps_pipeline *pipeline, bool barrier);

// Cuts for every named family of the layout's stages and ranks, and for the least memory. Uses only `scratch`. A layout
// that cannot work is no error: num_cuts is 0.
ps_code ps_survey_layout(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                         ps_survey *out, ps_status *status);

// Search for an order of the cuts that promise most, more of them with more effort. Never worse than the survey's
// known_ns. Uses only `scratch`; out->first_layer and out->order have room. out->limit_hit: `control` ended it early.
ps_code ps_search_layout(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                         const ps_survey *survey, const ps_control *control, ps_evaluation *out, ps_status *status);

#endif
