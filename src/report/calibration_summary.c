// SPDX-License-Identifier: Apache-2.0
//
// calibration_summary.c: runs as measured, as predicted before and after, and by a fit to the others; then the factors.
#include "report/calibration_summary.h"

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

void ps_report_calibration(ps_arena *arena, FILE *file, const ps_measured_runs *runs, const ps_calibration *calibration,
                           const ps_calibration_report *report)
{
    ps_table table;
    fprintf(file, "calibration of %s in %s on %s: %d run%s, %s\n\n", calibration->framework,
            ps_precision_name(calibration->precision), calibration->gpu, (int)calibration->runs,
            ps_plural(calibration->runs), report->method);
    print_runs(arena, file, runs, report);
    fprintf(file, "\n  mean error  %.1f %% as shipped, %.1f %% calibrated", 100 * report->error_before,
            100 * calibration->error);
    if (calibration->leave_one_out >= 0)
        fprintf(file, ", %.1f %% by the others\n\n", 100 * calibration->leave_one_out);
    else
        fprintf(file, "; too few runs to judge one by the others\n\n");
    ps_table_begin(&table, arena, "lr");
    ps_table_put(&table, "times of");
    ps_table_put(&table, "factor");
    for (int32_t factor = 0; factor < PS_FACTORS; factor++) {
        ps_table_put(&table, "%s", ps_factor_name((ps_factor)factor));
        ps_table_put(&table, "%.3f", calibration->factor[factor]);
    }
    ps_table_print(file, &table, 2);
}
