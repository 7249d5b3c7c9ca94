// SPDX-License-Identifier: Apache-2.0
//
// scratch.c: work in memory that is given back as soon as it is done.
#include "base/scratch.h"

typedef struct scratch_call {
    ps_scratch_fn fn;
    void *context;
    ps_arena *scratch;
} scratch_call;

static ps_code run(void *context, ps_status *status)
{
    scratch_call *call = context;
    return call->fn(call->context, call->scratch, status);
}

ps_code ps_in_scratch(ps_scratch_fn fn, void *context, ps_status *status)
{
    scratch_call call = {.fn = fn, .context = context, .scratch = ps_arena_new(0)};
    if (!call.scratch)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "no memory for an arena");
    ps_code code = ps_guard(run, &call, call.scratch, status);
    ps_arena_free(call.scratch);
    return code;
}
