// SPDX-License-Identifier: Apache-2.0
//
// test_order_search_reference.c: the order search against the schedulers of the Zero Bubble and the controllable-memory
// papers, row by row, at the same costs, hops and memory limit. Runs only where the reference data is.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipesched/order_search.h"
#include "support/cmocka_all.h"

enum { FIELDS = 19 };

// Columns of zero_bubble_baseline.csv; times in microseconds.
enum {
    SET = 0,
    METHOD = 1,
    P = 3,
    M = 4,
    F = 5,
    B = 6,
    W = 7,
    C = 8,
    HELD = 9,
    WEIGHT_HELD = 11,
    LIMIT = 12,
    MAKESPAN = 13,
    METRIC = 17,
    ACTIVATIONS = 18
};

static int64_t read_number(const char *text, int64_t scale)
{
    char *end;
    double value = strtod(text, &end) * (double)scale;
    assert_true(end != text && *end == '\0');
    assert_true(value == (double)(int64_t)value);
    return (int64_t)value;
}

// Two stages a device: stage s and its mirror image share one. Figures of time in the table are of a whole device.
static void fill_pipeline(ps_arena *arena, char *field[FIELDS], bool folded, ps_pipeline *out)
{
    int32_t devices = (int32_t)read_number(field[P], 1);
    int32_t chunks = folded ? 2 : 1;
    int32_t stages = devices * chunks;
    *out = (ps_pipeline){.num_stages = stages,
                         .num_devices = devices,
                         .num_microbatches = (int32_t)read_number(field[M], 1),
                         .stage = ps_new(arena, ps_stage, stages),
                         .forward_hop = ps_new(arena, ps_hop, stages),
                         .backward_hop = ps_new(arena, ps_hop, stages),
                         .device = ps_new(arena, ps_device, devices)};
    bool has_memory = field[LIMIT][0] != '\0';
    for (int32_t s = 0; s < stages; s++) {
        int64_t input = read_number(field[B], 1000) / chunks;
        int64_t weight = read_number(field[W], 1000) / chunks;
        out->stage[s] = (ps_stage){
            .device = s < devices ? s : stages - 1 - s,
            .duration_ns = {read_number(field[F], 1000) / chunks, input + weight, input, weight},
            .held_after_forward = has_memory ? read_number(field[HELD], 1) : 1,
            .held_after_backward_input = has_memory ? -read_number(field[WEIGHT_HELD], 1) : 0,
        };
        bool sends = s + 1 < stages && s != devices - 1;
        out->forward_hop[s] = out->backward_hop[s] =
            (ps_hop){.latency_ns = !folded || sends ? read_number(field[C], 1000) : 0};
    }
    for (int32_t d = 0; d < devices; d++)
        out->device[d].memory_limit =
            has_memory ? read_number(field[LIMIT], 1) : read_number(field[ACTIVATIONS], chunks);
    ps_pipeline_assign_lanes(arena, out);
}

typedef struct tally {
    const char *method;
    bool folded;
    int rows;
    int proved;
    int worse;
    double log_ratio;
    double log_gap;
    double worst_gap;
    double worst_ratio;
} tally;

static void compare_row(ps_arena *arena, char *field[FIELDS], tally *t)
{
    ps_pipeline pipeline;
    ps_status status = {0};
    ps_order_result result;
    fill_pipeline(arena, field, t->folded, &pipeline);
    assert_ok(ps_pipeline_validate(&pipeline, &status), &status);
    bool span = strcmp(field[METRIC], "span") == 0;
    ps_order_options options = {.objective = span ? PS_ORDER_SPAN : PS_ORDER_MAKESPAN, .effort = 1};
    assert_ok(ps_order_search(arena, &pipeline, &options, &result, &status), &status);
    assert_ok(ps_timeline_fits(&pipeline, &result.timeline, &status), &status);
    assert_int_equal(result.value_ns, span ? result.timeline.span_ns : result.timeline.makespan_ns);
    double theirs = strtod(field[MAKESPAN], NULL) * 1000;
    double ratio = (double)result.value_ns / theirs;
    double gap = (double)result.value_ns / (double)result.bound_ns - 1;
    print_message("%-12s %-18s p %2s m %3s: ours / theirs %.5f, over the bound %.3f %%%s%s\n", field[SET],
                  field[METHOD], field[P], field[M], ratio, 100 * gap, result.proved ? " (proved)" : "",
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
static tally compare_method(const char *method, bool folded)
{
    tally t = {.method = method, .folded = folded};
    char path[4096];
    char line[1024];
    snprintf(path, sizeof path, "%s/zero_bubble_baseline.csv", reference_data());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *field[FIELDS];
        assert_true(split_csv_line(line, field, FIELDS));
        if (strcmp(field[METHOD], t.method) != 0)
            continue;
        ps_arena *arena = ps_arena_new(0);
        compare_row(arena, field, &t);
        ps_arena_free(arena);
    }
    fclose(file);
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
    tally t = compare_method("ZB-1p", false);
    assert_true(t.rows >= 20);
    assert_int_equal(t.worse, 0);
    assert_int_equal(t.proved, t.rows);
}

static void with_twice_the_memory_every_row_is_met_and_at_most_0_7_percent_from_the_bound(void **state)
{
    (void)state;
    tally t = compare_method("ZB-2p", false);
    assert_true(t.rows >= 20);
    assert_int_equal(t.worse, 0);
    assert_true(t.worst_gap <= 0.007);
}

static void what_integer_programs_found_is_met_and_proved(void **state)
{
    (void)state;
    static const char *const methods[] = {"ILP(CBC) ZB-1p", "ILP(CBC) ZB-2p"};
    for (int i = 0; i < 2; i++) {
        tally t = compare_method(methods[i], false);
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
        tally t = compare_method(methods[i], true);
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
