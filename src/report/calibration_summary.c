// SPDX-License-Identifier: Apache-2.0
//
// calibration_summary.c: runs as measured, as predicted before and after, and by a fit to the others; then the factors,
// the collectives and the layers.
#include "report/calibration_summary.h"

#include <string.h>

#include "base/text.h"
#include "report/table.h"

static void put_prediction(ps_table *table, double predicted, double measured)
{
    if (predicted > 0)
        ps_table_put(table, "%+.1f %%", 100 * (predicted / measured - 1));
    else
        ps_table_put(table, "-");
}

static void print_runs(ps_arena *arena, FILE *file, const ps_measured_runs *runs, const ps_calibration_report *report)
{
    ps_table table;
    ps_table_begin(&table, arena, "lrrrr");
    ps_table_put(&table, "run");
    ps_table_put(&table, "measured");
    ps_table_put(&table, "shipped");
    ps_table_put(&table, "calibrated");
    ps_table_put(&table, "by the others");
    for (int32_t run = 0; run < runs->count; run++) {
        const ps_run_report *row = &report->run[run];
        double measured = runs->run[run].seconds;
        char text[32];
        ps_table_put(&table, "%.60s%s", runs->run[run].name, row->kept_out ? " (kept out)" : "");
        ps_table_put(&table, "%s", ps_format_ns((int64_t)(measured * 1e9), text));
        put_prediction(&table, row->before, measured);
        put_prediction(&table, row->after, measured);
        put_prediction(&table, row->left_out, measured);
    }
    ps_table_print(file, &table, 2);
}

static void print_errors(FILE *file, const ps_calibration *calibration, const ps_calibration_report *report)
{
    fprintf(file, "\n  mean error  %.1f %% as shipped, %.1f %% calibrated", 100 * report->error_before,
            100 * calibration->error);
    if (calibration->leave_one_out >= 0)
        fprintf(file, ", %.1f %% by the others\n\n", 100 * calibration->leave_one_out);
    else
        fprintf(file, "; too few runs to judge one by the others\n\n");
}

static void print_factors(ps_arena *arena, FILE *file, const ps_calibration *calibration)
{
    ps_table table;
    ps_table_begin(&table, arena, "lr");
    ps_table_put(&table, "times of");
    ps_table_put(&table, "factor");
    for (int32_t factor = 0; factor < PS_FACTORS; factor++) {
        ps_table_put(&table, "%s", ps_factor_name((ps_factor)factor));
        ps_table_put(&table, "%.3f", calibration->factor[factor]);
    }
    ps_table_print(file, &table, 2);
}

static void put_seconds(ps_table *table, double seconds)
{
    char text[32];
    if (seconds > 0)
        ps_table_put(table, "%s", ps_format_ns((int64_t)(seconds * 1e9 + 0.5), text));
    else
        ps_table_put(table, "-");
}

static void put_fit(ps_table *table, const ps_nccl_test *test)
{
    ps_nccl_fit fit = ps_nccl_fit_line(test);
    if (!fit.found) {
        for (int column = 0; column < 4; column++)
            ps_table_put(table, "-");
        return;
    }
    put_seconds(table, fit.latency_seconds);
    ps_table_put(table, "%.3g GB/s", fit.bytes_per_s * 1e-9);
    put_seconds(table, fit.floor_seconds);
    ps_table_put(table, "%.1f %%", 100 * fit.error);
}

// The curves are kept as measured; the line through them is for people to compare.
static void print_tests(ps_arena *arena, FILE *file, const ps_nccl_tests *tests)
{
    static const char *const head[] = {"collective", "ranks",   "nodes",     "sizes",    "from",
                                       "to",         "latency", "bandwidth", "at least", "off by"};
    ps_table table;
    ps_table_begin(&table, arena, "lrrrrrrrrr");
    for (size_t column = 0; column < sizeof head / sizeof *head; column++)
        ps_table_put(&table, "%s", head[column]);
    for (int32_t index = 0; index < tests->count; index++) {
        const ps_nccl_test *test = &tests->test[index];
        char text[32];
        ps_table_put(&table, "%s%s", test->name, test->has_curve ? "" : " (not kept)");
        ps_table_put(&table, "%d", (int)test->ranks);
        ps_table_put(&table, "%d", (int)test->nodes);
        ps_table_put(&table, "%d", (int)test->num_points);
        ps_table_put(&table, "%s", ps_format_bytes((int64_t)test->bytes[0], text));
        ps_table_put(&table, "%s", ps_format_bytes((int64_t)test->bytes[test->num_points - 1], text));
        put_fit(&table, test);
    }
    ps_table_print(file, &table, 2);
}

static void print_layers(ps_arena *arena, FILE *file, const ps_calibration *calibration)
{
    static const char *const head[] = {"measured layers", "tp", "cp", "ep", "micro-batch", "sequence"};
    ps_table table;
    ps_table_begin(&table, arena, "lrrrrr");
    for (size_t column = 0; column < sizeof head / sizeof *head; column++)
        ps_table_put(&table, "%s", head[column]);
    for (int32_t index = 0; index < calibration->num_measurements; index++) {
        const ps_measurement *set = &calibration->measurement[index];
        ps_text names = {.arena = arena};
        for (int32_t layer = 0; layer < set->num_layers; layer++)
            ps_text_addf(&names, "%s%s", layer > 0 ? ", " : "", set->layer[layer].base_name);
        ps_table_put(&table, "%.60s", names.data ? names.data : "none");
        ps_table_put(&table, "%d", (int)set->tp);
        ps_table_put(&table, "%d", (int)set->cp);
        ps_table_put(&table, "%d", (int)set->ep);
        ps_table_put(&table, "%lld", (long long)set->micro_batch_size);
        ps_table_put(&table, "%lld", (long long)set->seq_length);
    }
    ps_table_print(file, &table, 2);
}

// "2 runs, gemm alone, median of single fits", "no runs, 3 collectives, layers under 2 conditions".
static void print_head(FILE *file, const ps_calibration *calibration, const ps_calibration_report *report)
{
    bool any = strcmp(calibration->framework, "any") == 0;
    fprintf(file, "calibration of %s%s in %s on %s: ", calibration->framework, any ? " framework" : "",
            ps_precision_name(calibration->precision), calibration->gpu);
    if (report)
        fprintf(file, "%d run%s, %s", (int)calibration->runs, ps_plural(calibration->runs), report->method);
    else
        fprintf(file, "no runs");
    if (calibration->num_curves > 0)
        fprintf(file, ", %d collective%s", (int)calibration->num_curves, ps_plural(calibration->num_curves));
    if (calibration->num_measurements > 0)
        fprintf(file, ", layers under %d condition%s", (int)calibration->num_measurements,
                ps_plural(calibration->num_measurements));
    fprintf(file, "\n");
}

void ps_report_calibration(ps_arena *arena, FILE *file, const ps_measured_runs *runs, const ps_calibration *calibration,
                           const ps_calibration_report *report, const ps_calibration_sources *sources)
{
    print_head(file, calibration, report);
    if (report) {
        fprintf(file, "\n");
        print_runs(arena, file, runs, report);
        print_errors(file, calibration, report);
        print_factors(arena, file, calibration);
    }
    if (sources->tests.count > 0) {
        fprintf(file, "\n");
        print_tests(arena, file, &sources->tests);
    }
    if (calibration->num_measurements > 0) {
        fprintf(file, "\n");
        print_layers(arena, file, calibration);
    }
}
