// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include "base/rng.h"
#include "support/cmocka_all.h"

enum { MOST = 2000 };

typedef struct work {
    int64_t result[MOST];
    int64_t fails_from; // this index and later ones that are odd fail
    int64_t hungry;     // this one asks for more than its arena has
} work;

static ps_code compute(void *context, int64_t index, ps_arena *scratch, ps_status *status)
{
    work *all = context;
    int64_t *terms = ps_new(scratch, int64_t, index == all->hungry ? 1 << 20 : 100);
    ps_rng rng = {(uint64_t)index};
    for (int32_t term = 0; term < 100; term++)
        terms[term] = ps_rng_range(&rng, 0, 1000);
    if (index >= all->fails_from && index % 2 == 1)
        return ps_fail(status, PS_INFEASIBLE, "odd", "index %d is odd", (int)index);
    all->result[index] = 0;
    for (int32_t term = 0; term < 100; term++)
        all->result[index] += terms[term];
    return PS_OK;
}

static const int32_t thread_counts[] = {1, 2, 4, 0, 1000};

static void results_do_not_depend_on_the_thread_count(void **state)
{
    (void)state;
    static work reference;
    static work other;
    ps_status status = {0};
    reference = (work){.fails_from = MOST, .hungry = -1};
    assert_ok(ps_parallel_for(MOST, 1, 1 << 16, compute, &reference, &status), &status);
    for (size_t index = 0; index < sizeof thread_counts / sizeof *thread_counts; index++) {
        other = (work){.fails_from = MOST, .hungry = -1};
        assert_ok(ps_parallel_for(MOST, thread_counts[index], 1 << 16, compute, &other, &status), &status);
        assert_memory_equal(other.result, reference.result, sizeof reference.result);
    }
}

static void lowest_failing_index_is_reported(void **state)
{
    (void)state;
    static work all;
    for (size_t index = 0; index < sizeof thread_counts / sizeof *thread_counts; index++) {
        ps_status status = {0};
        all = (work){.fails_from = 1000, .hungry = -1};
        assert_int_equal(ps_parallel_for(MOST, thread_counts[index], 0, compute, &all, &status), PS_INFEASIBLE);
        assert_string_equal(status.message, "index 1001 is odd");
    }
}

static void exhaustion_of_a_worker_is_a_failure_of_its_index(void **state)
{
    (void)state;
    static work all;
    for (size_t index = 0; index < sizeof thread_counts / sizeof *thread_counts; index++) {
        ps_status status = {0};
        all = (work){.fails_from = 500, .hungry = 300};
        assert_int_equal(ps_parallel_for(MOST, thread_counts[index], 1 << 16, compute, &all, &status), PS_EXHAUSTED);
        assert_string_equal(status.rule, "out-of-memory");
        all.hungry = 700;
        assert_int_equal(ps_parallel_for(MOST, thread_counts[index], 1 << 16, compute, &all, &status), PS_INFEASIBLE);
        assert_string_equal(status.message, "index 501 is odd");
    }
}

static void nothing_to_do_is_done(void **state)
{
    (void)state;
    ps_status status = {0};
    assert_ok(ps_parallel_for(0, 4, 0, compute, NULL, &status), &status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_do_not_depend_on_the_thread_count),
        cmocka_unit_test(lowest_failing_index_is_reported),
        cmocka_unit_test(exhaustion_of_a_worker_is_a_failure_of_its_index),
        cmocka_unit_test(nothing_to_do_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
