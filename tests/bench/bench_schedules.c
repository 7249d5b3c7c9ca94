// SPDX-License-Identifier: Apache-2.0
//
// bench_schedules.c: our orders beside the published ones, row by row of the reference table; what memory buys; uneven
// stages. The first argument is the effort (1). Times are of the processor; none is asserted.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "pipesched/order_search.h"
#include "support/cmocka_all.h"
#include "support/zero_bubble.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// One search, in memory of its own.
typedef struct bench_case {
    const ps_pipeline *pipeline;
    ps_order_options options;
    ps_order_result result;
    double took_s;
    ps_arena *arena;
} bench_case;

static ps_code search(void *context, ps_status *status)
{
    bench_case *c = context;
    double begun = now_s();
    PS_TRY(ps_order_search(c->arena, c->pipeline, &c->options, &c->result, status));
    c->took_s = now_s() - begun;
    return PS_OK;
}

// False when nothing fits.
static bool run(bench_case *c)
{
    ps_status status = {0};
    c->arena = ps_arena_new(0);
    ps_code code = c->arena ? ps_guard(search, c, c->arena, &status) : PS_EXHAUSTED;
    ps_arena_free(c->arena);
    if (code != PS_OK && code != PS_INFEASIBLE) {
        fprintf(stderr, "%s: %s\n", status.rule, status.message);
        exit(EXIT_FAILURE);
    }
    return code == PS_OK;
}

typedef struct tally {
    int rows;
    int worse;
    int proved;
    double log_ratio;
    double log_gap;
    double worst_gap;
    double took_s;
} tally;

static void add(tally *t, double ratio, double gap, const bench_case *c)
{
    t->rows++;
    t->worse += ratio > 1;
    t->proved += c->result.proved;
    t->log_ratio += log(ratio);
    t->log_gap += log(1 + gap);
    t->worst_gap = fmax(t->worst_gap, gap);
    t->took_s += c->took_s;
}

static void print_tally(const char *name, const tally *t)
{
    printf("%s: %d rows, ours / theirs %.5f (geometric mean), %d worse; over the bound %.5f (geometric mean), at most "
           "%.3f %%, %d proved; %.2f s\n\n",
           name, t->rows, exp(t->log_ratio / t->rows), t->worse, exp(t->log_gap / t->rows), 100 * t->worst_gap,
           t->proved, t->took_s);
}

static void compare_row(const zero_bubble_row *row, int32_t effort, tally *t)
{
    ps_arena *arena = ps_arena_new(0);
    ps_pipeline pipeline;
    zero_bubble_pipeline(arena, row, &pipeline);
    bench_case c = {.pipeline = &pipeline,
                    .options = {.objective = row->span ? PS_ORDER_SPAN : PS_ORDER_MAKESPAN, .effort = effort}};
    if (run(&c)) {
        double ratio = (double)c.result.value_ns / (double)row->value_ns;
        double gap = (double)c.result.value_ns / (double)c.result.bound_ns - 1;
        add(t, ratio, gap, &c);
        printf("%-12s %-18s %2d %4d %-8s %12.3f %12.3f %8.5f %12.3f %8.3f%% %8.1f%s\n", row->set, row->model,
               (int)row->devices, (int)row->microbatches, row->span ? "span" : "makespan", 1e-6 * (double)row->value_ns,
               1e-6 * (double)c.result.value_ns, ratio, 1e-6 * (double)c.result.bound_ns, 100 * gap, 1e3 * c.took_s,
               c.result.proved ? "  proved" : "");
    }
    ps_arena_free(arena);
}

static void compare_method(const char *method, int32_t effort)
{
    tally t = {0};
    zero_bubble_row row;
    FILE *table = zero_bubble_open();
    printf("%s\n%-12s %-18s %2s %4s %-8s %12s %12s %8s %12s %9s %8s\n", method, "set", "model", "p", "m", "metric",
           "theirs ms", "ours ms", "ratio", "bound ms", "gap", "cpu ms");
    while (zero_bubble_next(table, method, &row))
        compare_row(&row, effort, &t);
    fclose(table);
    if (t.rows > 0)
        print_tally(method, &t);
}

// The first published row of ZB-1p from a third to three times p activations, in steps of an eighth of one.
static void print_curve(int32_t effort)
{
    enum { MOST_RUNGS = 1024 };
    zero_bubble_row row;
    FILE *table = zero_bubble_open();
    bool found = zero_bubble_next(table, "ZB-1p", &row);
    fclose(table);
    if (!found)
        return;
    ps_arena *arena = ps_arena_new(0);
    ps_pipeline pipeline;
    ps_order_rung rung[MOST_RUNGS];
    int64_t limit[MOST_RUNGS];
    int32_t count = 0;
    int32_t done = 0;
    ps_status status = {0};
    zero_bubble_pipeline(arena, &row, &pipeline);
    for (int64_t at = (8 * row.devices + 2) / 3; at <= INT64_C(24) * row.devices && count < MOST_RUNGS; at++)
        limit[count++] = at * row.held / 8;
    ps_order_options options = {.objective = PS_ORDER_SPAN, .effort = effort};
    double begun = now_s();
    if (ps_order_curve(arena, &pipeline, &options, count, limit, rung, &done, &status) != PS_OK) {
        fprintf(stderr, "%s: %s\n", status.rule, status.message);
        exit(EXIT_FAILURE);
    }
    int rises = 0;
    printf("memory curve, p %d, m %d, bubble of the span by activations:\n", (int)row.devices, (int)row.microbatches);
    for (int32_t i = 0; i < done; i++) {
        rises += i > 0 && rung[i - 1].fits && rung[i].span_ns > rung[i - 1].span_ns;
        if (i % 8 == 0 && rung[i].fits)
            printf("  %7.3f  %.4f  gap %.3f %%%s\n", (double)limit[i] / (double)row.held, rung[i].bubble,
                   100 * ((double)rung[i].span_ns / (double)rung[i].bound_ns - 1), rung[i].proved ? "  proved" : "");
    }
    printf("%d rungs, it rises %d times; %.2f s\n\n", (int)done, rises, now_s() - begun);
    ps_arena_free(arena);
}

int main(int argc, char **argv)
{
    static const char *const methods[] = {"ZB-1p", "ZB-2p",          "ZB-V(2p chunk-mem)", "V-Half",
                                          "V-Min", "ILP(CBC) ZB-1p", "ILP(CBC) ZB-2p"};
    int32_t effort = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 1;
    FILE *table = zero_bubble_open();
    if (!table) {
        printf("not run: PIPESCHED_REFERENCE_DATA does not name a folder with zero_bubble_baseline.csv\n");
        return 0;
    }
    fclose(table);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        compare_method(methods[i], effort);
    print_curve(effort);
    return 0;
}
