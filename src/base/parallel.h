// SPDX-License-Identifier: Apache-2.0
//
// parallel.h: the one place with threads.
#ifndef PS_BASE_PARALLEL_H
#define PS_BASE_PARALLEL_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

// Call fn(context, index, scratch, status) for every index below n on at most `threads` threads (0 or less: one per
// online core). Slot i belongs to index i: fn writes only there, so results do not depend on the thread count. Each
// worker has one scratch arena with the given byte limit, reset after every call, and a guard around each call.
// Returns the failure of the lowest failing index, whatever the thread count.
typedef ps_code (*ps_parallel_fn)(void *context, int64_t index, ps_arena *scratch, ps_status *status);
ps_code ps_parallel_for(int64_t n, int32_t threads, int64_t byte_limit, ps_parallel_fn fn, void *context,
                        ps_status *status);

#endif
