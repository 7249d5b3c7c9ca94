// SPDX-License-Identifier: Apache-2.0
//
// arena.c: bump allocation in growing blocks.
//
// A request is served from the current block, or else from a new one at least twice as large as the last; a large
// request gets a block of its own, so that the rest of the current one stays in use. Allocation is O(1), and a reset
// leaves at most one block: several are replaced, at the next request, by one as large as all of them together, so work
// that repeats soon allocates nothing. With PS_ARENA_EACH_MALLOC every request is a malloc of exact size, where the
// address sanitizer sees an overrun.
#include "pipesched/arena.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/number.h"

enum { ALIGNMENT = sizeof(max_align_t) > 16 ? 16 : sizeof(max_align_t) };

static const int64_t first_block_bytes = 1 << 14;
static const int64_t largest_growth_bytes = 1 << 23;

typedef struct block {
    struct block *next;
    int64_t capacity;
    int64_t used;
    _Alignas(max_align_t) char data[];
} block;

typedef struct deferred {
    struct deferred *earlier;
    void (*fn)(void *);
    void *object;
} deferred;

struct ps_arena {
    block *current; // the others hang behind it and are full or private to one request
    deferred *last_deferred;
    ps_guard_frame *guard;
    int64_t limit_bytes; // 0: none
    int64_t used_bytes;  // rounded up to the alignment, so that the limit is the same in every build
    int64_t next_block_bytes;
    ps_exhaustion exhaustion;
};

ps_arena *ps_arena_new(int64_t byte_limit)
{
    assert(byte_limit >= 0);
    ps_arena *arena = calloc(1, sizeof *arena);
    if (arena) {
        arena->limit_bytes = byte_limit;
        arena->next_block_bytes = first_block_bytes;
    }
    return arena;
}

static void run_deferred(ps_arena *arena)
{
    while (arena->last_deferred) {
        deferred *call = arena->last_deferred;
        arena->last_deferred = call->earlier;
        call->fn(call->object);
    }
}

static int64_t free_blocks(ps_arena *arena)
{
    int64_t bytes = 0;
    while (arena->current) {
        block *next = arena->current->next;
        bytes = ps_add_saturating(bytes, arena->current->capacity);
        free(arena->current);
        arena->current = next;
    }
    return bytes;
}

void ps_arena_free(ps_arena *arena)
{
    if (!arena)
        return;
    run_deferred(arena);
    free_blocks(arena);
    free(arena);
}

void ps_arena_reset(ps_arena *arena)
{
    run_deferred(arena);
    arena->used_bytes = 0;
    if (PS_ARENA_EACH_MALLOC) {
        free_blocks(arena);
        return;
    }
    if (arena->current && arena->current->next) {
        int64_t bytes = free_blocks(arena);
        if (bytes > arena->next_block_bytes)
            arena->next_block_bytes = bytes;
    }
    if (arena->current)
        arena->current->used = 0;
}

// A block of `capacity` bytes behind the current one, or NULL.
static block *new_block(ps_arena *arena, int64_t capacity)
{
    if (capacity > PTRDIFF_MAX - (int64_t)sizeof(block))
        return NULL;
    block *fresh = malloc(sizeof(block) + (size_t)capacity);
    if (!fresh)
        return NULL;
    fresh->capacity = capacity;
    fresh->used = 0;
    fresh->next = arena->current ? arena->current->next : NULL;
    if (arena->current)
        arena->current->next = fresh;
    else
        arena->current = fresh;
    return fresh;
}

// A block in which `bytes` fit, or NULL. The current block changes only when what is left of it is not worth keeping.
static block *block_with_room(ps_arena *arena, int64_t bytes)
{
    if (arena->current && arena->current->capacity - arena->current->used >= bytes)
        return arena->current;

    int64_t ordinary = arena->next_block_bytes;
    if (arena->current && bytes > ordinary / 4)
        return new_block(arena, bytes);

    block *old = arena->current;
    block *fresh = new_block(arena, bytes > ordinary ? bytes : ordinary);
    if (!fresh)
        return new_block(arena, bytes);
    if (old) {
        old->next = fresh->next;
        fresh->next = old;
        arena->current = fresh;
    }
    arena->next_block_bytes = ordinary >= largest_growth_bytes / 2 ? largest_growth_bytes : 2 * ordinary;
    return fresh;
}

static void *refuse(ps_arena *arena, int64_t bytes, int64_t limit_bytes)
{
    arena->exhaustion = (ps_exhaustion){
        .wanted_bytes = bytes,
        .used_bytes = arena->used_bytes,
        .limit_bytes = limit_bytes,
    };
    return NULL;
}

// `bytes` bytes, or NULL with arena->exhaustion filled.
static void *take(ps_arena *arena, int64_t bytes)
{
    if (bytes > INT64_MAX - 2 * ALIGNMENT)
        return refuse(arena, bytes, 0);
    int64_t rounded = bytes < 1 ? ALIGNMENT : (bytes + ALIGNMENT - 1) & -(int64_t)ALIGNMENT;
    int64_t used = ps_add_saturating(arena->used_bytes, rounded);
    if (arena->limit_bytes > 0 && used > arena->limit_bytes)
        return refuse(arena, bytes, arena->limit_bytes);
    int64_t spent = PS_ARENA_EACH_MALLOC ? bytes : rounded;
    block *from = PS_ARENA_EACH_MALLOC ? new_block(arena, bytes) : block_with_room(arena, rounded);
    if (!from)
        return refuse(arena, bytes, 0);
    void *result = from->data + from->used;
    from->used += spent;
    arena->used_bytes = used;
    return result;
}

void *ps_arena_alloc_raw(ps_arena *arena, int64_t count, int64_t size)
{
    int64_t bytes = INT64_MAX;
    if (count < 0 || size < 0 || !ps_multiply_checked(count, size, &bytes))
        bytes = INT64_MAX;
    void *result = take(arena, bytes);
    if (!result)
        ps_guard_land(arena->guard, &arena->exhaustion);
    return result;
}

void *ps_arena_alloc(ps_arena *arena, int64_t count, int64_t size)
{
    void *result = ps_arena_alloc_raw(arena, count, size);
    return memset(result, 0, (size_t)(count * size)); // checked above
}

void ps_arena_defer(ps_arena *arena, void (*fn)(void *), void *object)
{
    deferred *call = take(arena, (int64_t)sizeof *call);
    if (!call) {
        fn(object); // nobody else can give it back any more
        ps_guard_land(arena->guard, &arena->exhaustion);
    }
    *call = (deferred){.earlier = arena->last_deferred, .fn = fn, .object = object};
    arena->last_deferred = call;
}

int64_t ps_arena_used(const ps_arena *arena)
{
    return arena->used_bytes;
}

ps_guard_frame *ps_arena_swap_guard(ps_arena *arena, ps_guard_frame *frame)
{
    ps_guard_frame *outer = arena->guard;
    arena->guard = frame;
    return outer;
}

const ps_exhaustion *ps_arena_exhaustion(const ps_arena *arena)
{
    return &arena->exhaustion;
}
