// SPDX-License-Identifier: Apache-2.0
//
// cost_terms.c: the terms of layers, one row each.
#include "report/cost_terms.h"

#include "base/text.h"
#include "io/json_write.h"
#include "report/table.h"

static void put_calibration(ps_json_writer *json, const ps_calibration *calibration)
{
    if (!calibration)
        return;
    ps_json_object(json, "calibration");
    ps_json_put_string(json, "source", calibration->source);
    ps_json_put_string(json, "sha256", calibration->sha256);
    ps_json_put_string(json, "framework", calibration->framework);
    ps_json_put_int(json, "runs", calibration->runs);
    ps_json_object_inline(json, "factors");
    for (int32_t factor = 0; factor < PS_FACTORS; factor++)
        ps_json_put_double(json, ps_factor_name((ps_factor)factor), calibration->factor[factor]);
    ps_json_close(json);
    ps_json_close(json);
}

ps_code ps_cost_json(FILE *file, const ps_cost_report *report, ps_status *status)
{
    ps_json_writer json;
    ps_json_begin(&json, file);
    ps_json_object(&json, NULL);
    ps_json_put_string(&json, "format", "pipesched/show/v1");
    ps_json_put_string(&json, "shows", "cost");
    ps_json_put_string(&json, "model", report->model);
    ps_json_put_string(&json, "gpu", report->gpu);
    ps_json_put_int(&json, "micro_batch_size", report->micro_batch_size);
    ps_json_put_int(&json, "seq_length", report->seq_length);
    ps_json_put_int(&json, "tp", report->tp);
    put_calibration(&json, report->calibration);
    ps_json_array(&json, "terms");
    for (int32_t layer = 0; layer < report->num_layers; layer++) {
        for (int32_t index = 0; index < report->layer[layer].count; index++) {
            const ps_cost_term *term = &report->layer[layer].term[index];
            ps_json_object_inline(&json, NULL);
            ps_json_put_string(&json, "layer", term->layer);
            ps_json_put_string(&json, "quantity", term->quantity);
            ps_json_put_string(&json, "formula", term->formula);
            ps_json_put_double(&json, "value", term->value);
            ps_json_put_string(&json, "unit", term->unit);
            ps_json_close(&json);
        }
    }
    ps_json_close(&json);
    ps_coverage_json(&json, &report->coverage);
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}

static void print_calibration(FILE *file, const ps_calibration *calibration)
{
    if (!calibration)
        return;
    fprintf(file, "times calibrated by %s (%s, %d run%s):", calibration->source, calibration->framework,
            (int)calibration->runs, ps_plural(calibration->runs));
    for (int32_t factor = 0; factor < PS_FACTORS; factor++)
        fprintf(file, " %s %.3f", ps_factor_name((ps_factor)factor), calibration->factor[factor]);
    fputc('\n', file);
}

void ps_cost_text(FILE *file, ps_arena *arena, const ps_cost_report *report, bool brief)
{
    char tokens[32];
    fprintf(file, "%s on %s, tp %d, micro-batches of %d x %s tokens; a micro-batch on one GPU\n", report->model,
            report->gpu, (int)report->tp, (int)report->micro_batch_size, ps_format_count(report->seq_length, tokens));
    print_calibration(file, report->calibration);
    for (int32_t layer = 0; layer < report->num_layers; layer++) {
        const ps_cost_terms *terms = &report->layer[layer];
        ps_table table;
        ps_table_begin(&table, arena, "lrll");
        for (int32_t index = 0; index < terms->count; index++) {
            const ps_cost_term *term = &terms->term[index];
            ps_table_put(&table, "%s", term->quantity);
            ps_table_put(&table, "%.6g", term->value);
            ps_table_put(&table, "%s", term->unit);
            ps_table_put(&table, "%s", term->formula);
        }
        fprintf(file, "\n%s\n", terms->count > 0 ? terms->term[0].layer : "a layer without cost");
        ps_table_print(file, &table, 2);
    }
    if (!brief)
        ps_coverage_text(file, arena, &report->coverage);
}
