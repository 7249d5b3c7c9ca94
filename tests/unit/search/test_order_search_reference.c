// SPDX-License-Identifier: Apache-2.0
//
// test_order_search_reference.c: the order search against the schedulers of the Zero Bubble and the controllable-memory
// papers, row by row, at the same costs, hops and memory limit. Runs only where the reference data is.
#include <math.h>

#include "pipesched/order_search.h"
#include "support/cmocka_all.h"
#include "support/zero_bubble.h"

typedef struct tally {
    const char *method;
    int rows;
    int proved;
    int worse;
    double log_ratio;
    double log_gap;
    double worst_gap;
    double worst_ratio;
} tally;

static void compare_row(ps_arena *arena, const zero_bubble_row *row, tally *t)
{
    ps_pipeline pipeline;
    ps_status status = {0};
    ps_order_result result;
    zero_bubble_pipeline(arena, row, &pipeline);
    assert_ok(ps_pipeline_validate(&pipeline, &status), &status);
    ps_order_options options = {.objective = row->span ? PS_ORDER_SPAN : PS_ORDER_MAKESPAN, .effort = 1};
    assert_ok(ps_order_search(arena, &pipeline, &options, &result, &status), &status);
    assert_ok(ps_timeline_fits(&pipeline, &result.timeline, &status), &status);
    assert_int_equal(result.value_ns, row->span ? result.timeline.span_ns : result.timeline.makespan_ns);
    double ratio = (double)result.value_ns / (double)row->value_ns;
    double gap = (double)result.value_ns / (double)result.bound_ns - 1;
    print_message("%-12s %-18s p %2d m %3d: ours / theirs %.5f, over the bound %.3f %%%s%s\n", row->set, row->method,
                  (int)row->devices, (int)row->microbatches, ratio, 100 * gap, result.proved ? " (proved)" : "",
                  ratio > 1 ? "  WORSE" : "");
    t->rows++;
    t->proved += result.proved;
    t->worse += ratio > 1;
    t->log_ratio += log(ratio);
    t->log_gap += log(1 + gap);
    t->worst_gap = fmax(t->worst_gap, gap);
    t->worst_ratio = fmax(t->worst_ratio, ratio);
}

// Every row of one method, printed.
static tally compare_method(const char *method)
{
    tally t = {.method = method};
    zero_bubble_row row;
    FILE *table = zero_bubble_open();
    assert_non_null(table);
    while (zero_bubble_next(table, method, &row)) {
        ps_arena *arena = ps_arena_new(0);
        compare_row(arena, &row, &t);
        ps_arena_free(arena);
    }
    fclose(table);
    print_message(
        "%s: %d rows, geometric mean ours / theirs %.5f (at most %.5f), over the bound %.5f (at most %.3f %%), "
        "%d proved, %d worse\n",
        t.method, t.rows, exp(t.log_ratio / t.rows), t.worst_ratio, exp(t.log_gap / t.rows), 100 * t.worst_gap,
        t.proved, t.worse);
    return t;
}

static void every_published_schedule_with_the_memory_of_1f1b_is_met_and_proved_optimal(void **state)
{
    (void)state;
    tally t = compare_method("ZB-1p");
    assert_true(t.rows >= 20);
    assert_int_equal(t.worse, 0);
    assert_int_equal(t.proved, t.rows);
}

static void with_twice_the_memory_every_row_is_met_and_at_most_0_7_percent_from_the_bound(void **state)
{
    (void)state;
    tally t = compare_method("ZB-2p");
    assert_true(t.rows >= 20);
    assert_int_equal(t.worse, 0);
    assert_true(t.worst_gap <= 0.007);
}

static void what_integer_programs_found_is_met_and_proved(void **state)
{
    (void)state;
    static const char *const methods[] = {"ILP(CBC) ZB-1p", "ILP(CBC) ZB-2p"};
    for (int i = 0; i < 2; i++) {
        tally t = compare_method(methods[i]);
        assert_true(t.rows >= 3);
        assert_int_equal(t.worse, 0);
        assert_int_equal(t.proved, t.rows);
    }
}

// Two stages a device, at the memory of 1F1B, half and a third of it.
static void every_published_schedule_of_folded_pipelines_is_met(void **state)
{
    (void)state;
    static const char *const methods[] = {"ZB-V(2p chunk-mem)", "V-Half", "V-Min"};
    for (int i = 0; i < 3; i++) {
        tally t = compare_method(methods[i]);
        assert_true(t.rows >= 10);
        assert_int_equal(t.worse, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_published_schedule_with_the_memory_of_1f1b_is_met_and_proved_optimal),
        cmocka_unit_test(with_twice_the_memory_every_row_is_met_and_at_most_0_7_percent_from_the_bound),
        cmocka_unit_test(what_integer_programs_found_is_met_and_proved),
        cmocka_unit_test(every_published_schedule_of_folded_pipelines_is_met),
    };
    return run_reference_tests(tests);
}
