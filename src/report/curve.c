// SPDX-License-Identifier: Apache-2.0
//
// curve.c: time against memory.
#include "report/curve.h"

#include <string.h>

#include "base/text.h"
#include "io/json_write.h"
#include "report/table.h"

enum { BAR_CELLS = 32 };

static int64_t value_of(const ps_curve *curve, const ps_order_rung *rung)
{
    return strcmp(curve->objective, "span") == 0 ? rung->span_ns : rung->makespan_ns;
}

static double gap_of(const ps_curve *curve, const ps_order_rung *rung)
{
    return (double)(value_of(curve, rung) - rung->bound_ns) / (double)(rung->bound_ns > 0 ? rung->bound_ns : 1);
}

ps_code ps_curve_json(FILE *file, const ps_curve *curve, ps_status *status)
{
    ps_json_writer json;
    ps_json_begin(&json, file);
    ps_json_object(&json, NULL);
    ps_json_put_string(&json, "schedule", curve->name);
    ps_json_put_string(&json, "objective", curve->objective);
    ps_json_array(&json, "curve");
    for (int32_t i = 0; i < curve->count; i++) {
        const ps_order_rung *rung = &curve->rung[i];
        ps_json_object_inline(&json, NULL);
        ps_json_put_int(&json, "memory_limit", rung->memory_limit);
        ps_json_put_string(&json, "verdict", rung->fits ? "feasible" : "infeasible");
        if (rung->fits) {
            ps_json_put_ms(&json, "makespan_ms", rung->makespan_ns);
            ps_json_put_ms(&json, "span_ms", rung->span_ns);
            ps_json_put_double(&json, "bubble", rung->bubble);
            ps_json_put_ms(&json, "bound_ms", rung->bound_ns);
            ps_json_put_double(&json, "gap", gap_of(curve, rung));
            ps_json_put_bool(&json, "proved", rung->proved);
            ps_json_put_string(&json, "limited_by", rung->bound_by);
            ps_json_put_string(&json, "backward", rung->fused ? "whole" : "split");
        }
        ps_json_close(&json);
    }
    ps_json_close(&json);
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}

static const char *memory_text(const ps_curve *curve, int64_t size, char text[32])
{
    return curve->in_bytes ? ps_format_bytes(size, text) : ps_format_count(size, text);
}

// The share of the time that is idle, as a bar; the widest is the first that fits.
static void draw_bar(char bar[BAR_CELLS + 1], double bubble, double widest)
{
    int32_t cells = widest > 0 ? (int32_t)(bubble / widest * BAR_CELLS + 0.5) : 0;
    cells = cells > BAR_CELLS ? BAR_CELLS : cells;
    memset(bar, '#', (size_t)cells);
    bar[cells] = '\0';
}

void ps_curve_text(FILE *file, ps_arena *arena, const ps_curve *curve)
{
    ps_table table;
    char text[32];
    char bar[BAR_CELLS + 1];
    double widest = 0;
    fprintf(file, "%s, %d rank%s", curve->name, (int)curve->ranks, ps_plural(curve->ranks));
    if (curve->virtual_stages > 1)
        fprintf(file, " of %d virtual stages", (int)curve->virtual_stages);
    fprintf(file, ", %d micro-batch%s: %s against memory\n\n", (int)curve->num_microbatches,
            curve->num_microbatches == 1 ? "" : "es", curve->objective);
    ps_table_begin(&table, arena, "rrrrl");
    ps_table_put(&table, "memory");
    ps_table_put(&table, "%s ms", curve->objective);
    ps_table_put(&table, "gap");
    ps_table_put(&table, "bubble");
    ps_table_put(&table, "%s", "");
    for (int32_t i = 0; i < curve->count; i++) {
        const ps_order_rung *rung = &curve->rung[i];
        ps_table_put(&table, "%s", memory_text(curve, rung->memory_limit, text));
        if (!rung->fits) {
            ps_table_put(&table, "%s", "");
            ps_table_put(&table, "%s", "");
            ps_table_put(&table, "%s", "");
            ps_table_put(&table, "does not fit");
            continue;
        }
        widest = widest > 0 ? widest : rung->bubble;
        draw_bar(bar, rung->bubble, widest);
        ps_table_put(&table, "%s", ps_format_ms(value_of(curve, rung), text));
        if (rung->proved)
            ps_table_put(&table, "proved");
        else
            ps_table_put(&table, "%.2f %%", 100 * gap_of(curve, rung));
        ps_table_put(&table, "%.2f %%", 100 * rung->bubble);
        ps_table_put(&table, "%s", bar);
    }
    ps_table_print(file, &table, 2);
}
