// SPDX-License-Identifier: Apache-2.0
//
// coverage.h: what of a training step the cost model accounts for, and what it leaves out.
//
// Whatever stands here as covered is a term that `show --cost` prints, a figure of a plan, or an option: a test looks
// each of them up. docs/cost-model.md prints the same list.
#ifndef PIPESCHED_COVERAGE_H
#define PIPESCHED_COVERAGE_H

#include <stdint.h>

typedef enum ps_cover {
    PS_COVER_TERM,   // by a term of a layer or of a device's memory
    PS_COVER_PLAN,   // by a figure of a plan, over all layers and devices
    PS_COVER_OPTION, // by what the user says: it is not predicted
    PS_COVER_NONE
} ps_cover;

typedef struct ps_cost_effect {
    const char *aspect; // "time" or "memory"
    const char *effect;
    ps_cover cover;
    const char *by; // how its formula begins, the plan's key, or the option; not covered: why not
} ps_cost_effect;

// Effects of one aspect and one cover stand together.
const ps_cost_effect *ps_cost_effects(int32_t *count);
const char *ps_cover_name(ps_cover cover); // "term", "plan", "option", "none"

#endif
