// SPDX-License-Identifier: Apache-2.0
//
// vec.h: a typed array that grows on an arena.
//
//     ps_vec(int32_t) ids = {0};
//     *ps_vec_push(arena, &ids) = 7;
#ifndef PS_BASE_VEC_H
#define PS_BASE_VEC_H

#include <stdint.h>

#include "pipesched/arena.h"

#define ps_vec(type)                                                                                                   \
    struct {                                                                                                           \
        type *data;                                                                                                    \
        int64_t count;                                                                                                 \
        int64_t capacity;                                                                                              \
    }

// Room for one more, zeroed; yields its address.
#define ps_vec_push(arena, vec)                                                                                        \
    ((vec)->data = ps_vec_grow((arena), (vec)->data, (vec)->count, &(vec)->capacity, (int64_t)sizeof *(vec)->data),    \
     (vec)->data + (vec)->count++)

void *ps_vec_grow(ps_arena *arena, void *data, int64_t count, int64_t *capacity, int64_t size);

#endif
