// SPDX-License-Identifier: Apache-2.0
//
// dialect.h: whether a training framework can run a layout. Each target is one file of numbered rules over a layout
// (dialect_TARGET.c); a rule that forbids it is named, so that the same rule reads the same in a plan and in a guide.
#ifndef PS_JOB_DIALECT_H
#define PS_JOB_DIALECT_H

#include <stdint.h>

#include "pipesched/layout.h"

// What a layout that can be launched does not go with, in settings that no layout has.
typedef struct ps_caution {
    const char *rule;
    const char *message;
} ps_caution;

typedef struct ps_dialect {
    const char *target; // "megatron"
    // The id of the first rule that forbids the layout, or NULL.
    const char *(*forbids)(const ps_layout *layout);
    const ps_caution *(*caution)(const ps_layout *layout); // of a layout that is not forbidden; NULL: none, ever
} ps_dialect;

int32_t ps_dialect_count(void);
const ps_dialect *ps_dialect_at(int32_t index); // in alphabetical order of targets

const char *ps_dialect_megatron(const ps_layout *layout);
const char *ps_dialect_torchtitan(const ps_layout *layout);
const ps_caution *ps_caution_torchtitan(const ps_layout *layout);
const char *ps_dialect_deepspeed(const ps_layout *layout);

#endif
