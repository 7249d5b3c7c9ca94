// SPDX-License-Identifier: Apache-2.0
//
// arena.h: memory that is given back all at once.
//
// Results live as long as the arena they were made in; nothing is freed singly. Allocation never returns NULL: when
// memory or the arena's byte limit runs out, control returns to the ps_guard() around the work, which fills the status
// with rule "out-of-memory". Every use of an arena that can allocate therefore runs inside a guard.
#ifndef PIPESCHED_ARENA_H
#define PIPESCHED_ARENA_H

#include <stdint.h>

#include "pipesched/status.h"

typedef struct ps_arena ps_arena;

// `byte_limit` caps what the arena hands out; 0: no cap. NULL when even the arena itself cannot be had.
ps_arena *ps_arena_new(int64_t byte_limit);
void ps_arena_free(ps_arena *arena); // runs the deferred calls, last first; NULL is fine

// Forget everything allocated and run the deferred calls; blocks are kept for reuse.
void ps_arena_reset(ps_arena *arena);

// `count` elements of `size` bytes, aligned for any type. The first is zeroed, the second is not (hot paths).
void *ps_arena_alloc(ps_arena *arena, int64_t count, int64_t size);
void *ps_arena_alloc_raw(ps_arena *arena, int64_t count, int64_t size);

#define ps_new(arena, type, count) ((type *)ps_arena_alloc((arena), (int64_t)(count), (int64_t)sizeof(type)))
#define ps_new_raw(arena, type, count) ((type *)ps_arena_alloc_raw((arena), (int64_t)(count), (int64_t)sizeof(type)))

// Call fn(object) when the arena is reset or freed: closes files and foreign objects.
void ps_arena_defer(ps_arena *arena, void (*fn)(void *), void *object);

int64_t ps_arena_used(const ps_arena *arena); // bytes handed out since the last reset

// Run fn(context, status) so that exhaustion of `arena` lands here (PS_EXHAUSTED). Guards of one arena nest. A guard
// belongs to one thread; an arena is never shared between threads.
typedef ps_code (*ps_guard_fn)(void *context, ps_status *status);
ps_code ps_guard(ps_guard_fn fn, void *context, ps_arena *arena, ps_status *status);

#endif
