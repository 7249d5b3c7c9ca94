// SPDX-License-Identifier: Apache-2.0
//
// test_order_memory.c: what a search takes of memory, at its peak. The linker puts the counting in between (--wrap).
#include <malloc.h>

#include "pipesched/order_search.h"
#include "support/cmocka_all.h"
#include "support/pipelines.h"

static int64_t now_bytes;
static int64_t peak_bytes;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *memory);

static void *counted(void *memory)
{
    now_bytes += (int64_t)malloc_usable_size(memory);
    peak_bytes = now_bytes > peak_bytes ? now_bytes : peak_bytes;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return counted(__real_calloc(count, size));
}

void __wrap_free(void *memory)
{
    now_bytes -= (int64_t)malloc_usable_size(memory);
    __real_free(memory);
}

typedef struct search_call {
    const ps_pipeline *pipeline;
    ps_arena *arena;
    ps_order_backward backward;
} search_call;

static ps_code run_search(void *context, ps_status *status)
{
    search_call *call = context;
    ps_order_options options = {.objective = PS_ORDER_SPAN, .backward = call->backward, .effort = 1};
    ps_order_result result;
    return ps_order_search(call->arena, call->pipeline, &options, &result, status);
}

// The peak of a search, in bytes for each F, I and W there is.
static double peak_of(const ps_pipeline *pipeline, ps_order_backward backward)
{
    now_bytes = peak_bytes = 0;
    search_call call = {.pipeline = pipeline, .arena = ps_arena_new(0), .backward = backward};
    ps_status status = {0};
    assert_ok(ps_guard(run_search, &call, call.arena, &status), &status);
    ps_arena_free(call.arena);
    assert_int_equal(now_bytes, 0);
    return (double)peak_bytes / (3.0 * pipeline->num_stages * pipeline->num_microbatches);
}

// Stages a little apart, so that no order is proved before all parts of the search have run.
static ps_pipeline *uneven(ps_arena *arena, bool folded, int32_t devices, int32_t microbatches, int64_t room)
{
    costs cost = {.forward_ns = 18522,
                  .backward_input_ns = 18086,
                  .backward_weight_ns = 9337,
                  .held_after_forward = 8,
                  .held_after_backward_input = 3};
    ps_pipeline *out =
        folded ? v_stages(arena, devices, microbatches, cost) : equal_stages(arena, devices, microbatches, cost);
    for (int32_t s = 0; s < out->num_stages; s++)
        out->stage[s].duration_ns[PS_OP_FORWARD] += 500 * (s % 3);
    for (int32_t d = 0; d < devices; d++)
        out->device[d].memory_limit = 8 * room;
    return out;
}

// Searched as they are, with a core just below, and with one far below.
static void search_takes_less_than_64_bytes_an_op(void **state)
{
    static const int32_t microbatches[] = {60, 100, 128, 200, 600};
    for (size_t i = 0; i < sizeof microbatches / sizeof *microbatches; i++) {
        assert_true(peak_of(uneven(*state, false, 32, microbatches[i], 40), PS_ORDER_SPLIT) < 64);
        assert_true(peak_of(uneven(*state, false, 32, microbatches[i], 40), PS_ORDER_EITHER) < 64);
    }
    for (size_t i = 0; i + 1 < sizeof microbatches / sizeof *microbatches; i++)
        assert_true(peak_of(uneven(*state, true, 16, microbatches[i], 20), PS_ORDER_SPLIT) < 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {test_in_arena(search_takes_less_than_64_bytes_an_op)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
