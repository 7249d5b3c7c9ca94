// SPDX-License-Identifier: Apache-2.0
//
// guard.h: what arena.c and guard.c share: the stack of landing places of an arena. Only these two include it.
#ifndef PS_BASE_GUARD_H
#define PS_BASE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"

typedef struct ps_guard_frame ps_guard_frame;

// The request that an arena could not serve.
typedef struct ps_exhaustion {
    int64_t wanted_bytes; // INT64_MAX: count * size does not even fit an int64
    int64_t used_bytes;
    int64_t limit_bytes; // 0: the system, not the limit, refused
} ps_exhaustion;

// Put `frame` on top of the arena's stack; returns the frame that was there.
ps_guard_frame *ps_arena_swap_guard(ps_arena *arena, ps_guard_frame *frame);
const ps_exhaustion *ps_arena_exhaustion(const ps_arena *arena);

// Return to the ps_guard() that made `frame`. NULL (no guard) prints the fault to stderr and aborts: a bug of ours.
_Noreturn void ps_guard_land(ps_guard_frame *frame, const ps_exhaustion *exhaustion);

#endif
