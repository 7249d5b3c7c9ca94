// SPDX-License-Identifier: Apache-2.0
//
// test_order_closed_forms.c: what a search must find on equal stages, where the best schedules have closed forms (Qi et
// al., ICLR 2024, and their own scheduler rerun).
#include "pipesched/order_search.h"

#include "support/cmocka_all.h"
#include "support/pipelines.h"

enum { F = 100, I = 98, W = 55, HOP = 3, HELD = 30 };

// Makespan with room for so many micro-batches on every device, proved to be the least.
static int64_t least_makespan(int32_t p, int32_t m, int32_t room)
{
    ps_arena *arena = ps_arena_new(0);
    costs cost = {.forward_ns = F,
                  .backward_input_ns = I,
                  .backward_weight_ns = W,
                  .hop_latency_ns = HOP,
                  .held_after_forward = HELD,
                  .held_after_backward_input = 11};
    ps_pipeline *pipeline = equal_stages(arena, p, m, cost);
    for (int32_t device = 0; device < p; device++)
        pipeline->device[device].memory_limit = (int64_t)room * HELD;
    ps_order_options options = {.objective = PS_ORDER_MAKESPAN, .backward = PS_ORDER_SPLIT, .effort = 1};
    ps_order_result result;
    ps_status status = {0};
    assert_ok(ps_order_search(arena, pipeline, &options, &result, &status), &status);
    assert_ok(ps_timeline_fits(pipeline, &result.timeline, &status), &status);
    if (!result.proved)
        fail_msg("p %d, m %d, room %d: %d is not proved, the bound is %d", (int)p, (int)m, (int)room,
                 (int)result.value_ns, (int)result.bound_ns);
    int64_t value = result.value_ns;
    ps_arena_free(arena);
    return value;
}

// ZB-1p is as fast as ZB-H1: m (F + I + W) + (p - 1)(F + I - W + 4c) from two micro-batches a device on.
static void with_the_memory_of_1f1b_zb_h1_is_the_best(void **state)
{
    (void)state;
    for (int32_t p = 2; p <= 8; p++)
        for (int32_t m = 2 * p; m <= 4 * p; m += p - 1)
            assert_int_equal(least_makespan(p, m, p), m * (F + I + W) + (p - 1) * (F + I - W + 4 * HOP));
}

// With as many micro-batches as devices both ZB-1p and ZB-2p take m (F + I) + (p - 1)(F + I + 2c) + W, the chain bound.
static void with_p_micro_batches_more_memory_is_of_no_use(void **state)
{
    (void)state;
    for (int32_t p = 2; p <= 8; p++)
        for (int32_t room = p; room <= 2 * p; room += p)
            assert_int_equal(least_makespan(p, p, room), p * (F + I) + (p - 1) * (F + I + 2 * HOP) + W);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_the_memory_of_1f1b_zb_h1_is_the_best),
        cmocka_unit_test(with_p_micro_batches_more_memory_is_of_no_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
