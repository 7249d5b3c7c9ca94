// SPDX-License-Identifier: Apache-2.0
//
// vec.c: growth by doubling; what is outgrown stays in the arena, so n pushes take at most about 2n elements of it.
#include "base/vec.h"

#include <string.h>

void *ps_vec_grow(ps_arena *arena, void *data, int64_t count, int64_t *capacity, int64_t size)
{
    if (count == *capacity) {
        int64_t larger = *capacity < 8 ? 8 : 2 * *capacity;
        void *moved = ps_arena_alloc_raw(arena, larger, size);
        if (count > 0)
            memcpy(moved, data, (size_t)(count * size));
        data = moved;
        *capacity = larger;
    }
    memset((char *)data + count * size, 0, (size_t)size);
    return data;
}
