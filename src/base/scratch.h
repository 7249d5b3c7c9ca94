// SPDX-License-Identifier: Apache-2.0
//
// scratch.h: work in memory that is given back as soon as it is done.
#ifndef PS_BASE_SCRATCH_H
#define PS_BASE_SCRATCH_H

#include "pipesched/arena.h"

typedef ps_code (*ps_scratch_fn)(void *context, ps_arena *scratch, ps_status *status);

// fn(context, scratch, status) with an arena of its own; PS_EXHAUSTED when that runs out. `fn` must not allocate from
// any other arena: exhaustion there would leave without giving the scratch back.
ps_code ps_in_scratch(ps_scratch_fn fn, void *context, ps_status *status);

#endif
