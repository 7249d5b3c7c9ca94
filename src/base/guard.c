// SPDX-License-Identifier: Apache-2.0
//
// guard.c: where exhaustion of an arena lands.
//
// Each ps_guard() puts a frame on its arena's stack; a request that cannot be served jumps to the topmost. Exhaustion
// of one arena may jump over guards of others: these arenas are then allocated from only inside a new guard, which is
// the rule of arena.h anyway.
#include "base/guard.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

struct ps_guard_frame {
    jmp_buf landing;
};

static ps_code fail_exhausted(const ps_exhaustion *exhaustion, ps_status *status)
{
    char wanted[32];
    char used[32];
    char limit[32];
    ps_format_bytes(exhaustion->wanted_bytes, wanted);
    ps_format_bytes(exhaustion->used_bytes, used);
    ps_format_bytes(exhaustion->limit_bytes, limit);
    if (exhaustion->wanted_bytes == INT64_MAX)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "more bytes are needed than can be counted");
    if (exhaustion->limit_bytes > 0)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory",
                       "the memory limit of %s is reached: %s are used and %s more are needed", limit, used, wanted);
    return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "memory ran out: %s are used and %s more are needed", used,
                   wanted);
}

ps_code ps_guard(ps_guard_fn fn, void *context, ps_arena *arena, ps_status *status)
{
    ps_guard_frame frame;
    ps_guard_frame *const outer = ps_arena_swap_guard(arena, &frame);

    if (setjmp(frame.landing) != 0) {
        ps_arena_swap_guard(arena, outer);
        return fail_exhausted(ps_arena_exhaustion(arena), status);
    }
    ps_code code = fn(context, status);
    ps_arena_swap_guard(arena, outer);
    return code;
}

_Noreturn void ps_guard_land(ps_guard_frame *frame, const ps_exhaustion *exhaustion)
{
    if (frame)
        longjmp(frame->landing, 1);
    ps_status status = {0};
    fail_exhausted(exhaustion, &status);
    fprintf(stderr, "pipesched: internal error: %s, outside any guard\n", status.message);
    abort();
}
