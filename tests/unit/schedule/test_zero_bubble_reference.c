// SPDX-License-Identifier: Apache-2.0
//
// test_zero_bubble_reference.c: makespans and spans of our schedules against those of the Zero Bubble authors' own
// schedulers, row by row. Runs only where the reference data is.
#include <stdio.h>
#include <stdlib.h>

#include "support/cmocka_all.h"
#include "support/pipelines.h"

enum { FIELDS = 19 };

// Columns of zero_bubble_baseline.csv; times in microseconds.
enum { METHOD = 1, P = 3, M = 4, F = 5, B = 6, W = 7, C = 8, MAKESPAN = 13, METRIC = 17 };

// Nanoseconds of a whole number of microseconds, times `scale`; what is not whole is no row of one stage a device.
static int64_t read_ns(const char *text)
{
    char *end;
    double us = strtod(text, &end);
    assert_true(end != text && *end == '\0');
    assert_true(us == (double)(int64_t)us);
    return (int64_t)us * 1000;
}

static void check_row(ps_arena *arena, ps_schedule_kind kind, char *field[FIELDS])
{
    costs cost = {.forward_ns = read_ns(field[F]),
                  .backward_input_ns = read_ns(field[B]),
                  .backward_weight_ns = read_ns(field[W]),
                  .hop_latency_ns = read_ns(field[C])};
    int32_t devices = (int32_t)strtol(field[P], NULL, 10);
    int32_t microbatches = (int32_t)strtol(field[M], NULL, 10);
    ps_timeline timeline = run(arena, equal_stages(arena, devices, microbatches, cost), kind);
    bool span = strcmp(field[METRIC], "span") == 0;
    assert_true(span || strcmp(field[METRIC], "global") == 0);
    int64_t ours = span ? timeline.span_ns : timeline.makespan_ns;
    if (ours != read_ns(field[MAKESPAN]))
        fail_msg("%s p %s m %s f %s: %lld ns, published %s us", field[METHOD], field[P], field[M], field[F],
                 (long long)ours, field[MAKESPAN]);
}

static void times_equal_those_of_the_authors_schedulers(void **state)
{
    char path[4096];
    char line[1024];
    int rows = 0;
    snprintf(path, sizeof path, "%s/zero_bubble_baseline.csv", reference_data());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *field[FIELDS];
        assert_true(split_csv_line(line, field, FIELDS));
        ps_schedule_kind kind = strcmp(field[METHOD], "1F1B") == 0    ? PS_SCHEDULE_1F1B
                                : strcmp(field[METHOD], "ZB-H1") == 0 ? PS_SCHEDULE_ZB_H1
                                : strcmp(field[METHOD], "ZB-H2") == 0 ? PS_SCHEDULE_ZB_H2
                                                                      : PS_SCHEDULE_KINDS;
        if (kind == PS_SCHEDULE_KINDS)
            continue;
        check_row(*state, kind, field);
        rows++;
    }
    fclose(file);
    assert_true(rows >= 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {test_in_arena(times_equal_those_of_the_authors_schedulers)};
    return run_reference_tests(tests);
}
