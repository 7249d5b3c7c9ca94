// SPDX-License-Identifier: Apache-2.0
//
// fuzz.h: what every fuzz target shares. A target gives fuzz_one(); this runs it in a guarded arena with a byte limit,
// so that exhaustion is an answer and not a crash.
#ifndef PS_TESTS_FUZZ_H
#define PS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

// Handle one input. Return the code of what was tried; the input may be anything.
ps_code fuzz_one(ps_arena *arena, const char *text, int64_t size, ps_status *status);

typedef struct fuzz_input {
    ps_arena *arena;
    const char *text;
    int64_t size;
} fuzz_input;

static ps_code fuzz_guarded(void *context, ps_status *status)
{
    fuzz_input *input = context;
    return fuzz_one(input->arena, input->text, input->size, status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ps_arena *arena = ps_arena_new(INT64_C(1) << 28);
    if (!arena)
        return 0;
    fuzz_input input = {.arena = arena, .text = (const char *)data, .size = (int64_t)size};
    ps_status status = {0};
    ps_code code = ps_guard(fuzz_guarded, &input, arena, &status);
    // A refusal always says which rule and why; a bug of ours must never be the answer.
    if (code != PS_OK && (status.code != code || !status.rule[0] || !status.message[0]))
        abort();
    if (code == PS_INTERNAL)
        abort();
    ps_arena_free(arena);
    return 0;
}

#endif
