// SPDX-License-Identifier: Apache-2.0
#include "report/comparison.h"

#include "base/text.h"
#include "io/json_write.h"
#include "report/table.h"

static const char *placement_name(const ps_compared *row)
{
    return row->placement == PS_PLACEMENT_DUAL ? "dual" : row->placement == PS_PLACEMENT_V ? "v" : "loop";
}

static const char *placement_words(const ps_compared *row)
{
    return row->placement == PS_PLACEMENT_DUAL ? " both ways"
           : row->placement == PS_PLACEMENT_V  ? " there and back"
                                               : "";
}

static void put_ranked(ps_json_writer *json, const ps_comparison *comparison, const ps_compared *row)
{
    ps_json_object_inline(json, NULL);
    ps_json_put_string(json, "schedule", row->name);
    ps_json_put_int(json, "vp", row->virtual_stages);
    ps_json_put_string(json, "placement", placement_name(row));
    ps_json_put_ms(json, "makespan_ms", row->makespan_ns);
    ps_json_put_ms(json, "span_ms", row->span_ns);
    ps_json_put_double(json, "bubble", row->bubble);
    ps_json_put_double(json, "span_bubble", row->span_bubble);
    if (comparison->with_jitter) {
        ps_json_put_ms(json, "p50_ms", row->p50_ns);
        ps_json_put_ms(json, "p95_ms", row->p95_ns);
    }
    ps_json_put_int(json, "peak_activation", row->peak_activation);
    ps_json_put_double(json, "loses", row->loses);
    ps_json_close(json);
}

static void put_left_out(ps_json_writer *json, const ps_compared *row)
{
    ps_json_object_inline(json, NULL);
    ps_json_put_string(json, "schedule", row->name);
    ps_json_put_int(json, "vp", row->virtual_stages);
    ps_json_put_string(json, "placement", placement_name(row));
    ps_json_put_string(json, "rule", row->refusal->rule);
    ps_json_put_string(json, "message", row->refusal->message);
    ps_json_close(json);
}

static int32_t num_ranked(const ps_comparison *comparison)
{
    int32_t count = 0;
    while (count < comparison->count && !comparison->row[count].refusal)
        count++;
    return count;
}

ps_code ps_comparison_json(FILE *file, const ps_comparison *comparison, ps_status *status)
{
    int32_t ranked = num_ranked(comparison);
    ps_json_writer json;
    ps_json_begin(&json, file);
    ps_json_object(&json, NULL);
    ps_json_put_string(&json, "format", "pipesched/comparison/v1");
    ps_json_put_string(&json, "verdict", ranked > 0 ? "feasible" : "infeasible");
    ps_json_put_int(&json, "pp", comparison->num_devices);
    ps_json_put_int(&json, "num_microbatches", comparison->num_microbatches);
    ps_json_put_string(&json, "ranked_by", comparison->ranked_by);
    ps_json_put_bool(&json, "halved", comparison->halved);
    ps_json_put_bool(&json, "limit_hit", comparison->limit_hit);
    ps_json_array(&json, "schedules");
    for (int32_t index = 0; index < ranked; index++)
        put_ranked(&json, comparison, &comparison->row[index]);
    ps_json_close(&json);
    ps_json_array(&json, "left_out");
    for (int32_t index = ranked; index < comparison->count; index++)
        put_left_out(&json, &comparison->row[index]);
    ps_json_close(&json);
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}

static void put_head(ps_table *table, bool with_jitter)
{
    static const char *const head[] = {"schedule", "stages a rank", "makespan ms", "bubble", "span ms", "bubble"};
    for (size_t column = 0; column < sizeof head / sizeof *head; column++)
        ps_table_put(table, "%s", head[column]);
    if (with_jitter) {
        ps_table_put(table, "p50 ms");
        ps_table_put(table, "p95 ms");
    }
    ps_table_put(table, "activations");
    ps_table_put(table, "loses");
}

static void put_row(ps_table *table, const ps_comparison *comparison, const ps_compared *row)
{
    char text[32];
    ps_table_put(table, "%s", row->name);
    ps_table_put(table, "%d%s", (int)row->virtual_stages, placement_words(row));
    ps_table_put(table, "%s", ps_format_ms(row->makespan_ns, text));
    ps_table_put(table, "%.2f %%", 100 * row->bubble);
    ps_table_put(table, "%s", ps_format_ms(row->span_ns, text));
    ps_table_put(table, "%.2f %%", 100 * row->span_bubble);
    if (comparison->with_jitter) {
        ps_table_put(table, "%s", ps_format_ms(row->p50_ns, text));
        ps_table_put(table, "%s", ps_format_ms(row->p95_ns, text));
    }
    ps_table_put(table, "%s",
                 comparison->in_bytes ? ps_format_bytes(row->peak_activation, text)
                                      : ps_format_count(row->peak_activation, text));
    ps_table_put(table, "%.2f %%", 100 * row->loses);
}

static void print_left_out(FILE *file, const ps_compared *row)
{
    fprintf(file, "    %s, %d stage%s a rank%s: %s: %s\n", row->name, (int)row->virtual_stages,
            ps_plural(row->virtual_stages), placement_words(row), row->refusal->rule, row->refusal->message);
}

void ps_comparison_text(FILE *file, ps_arena *arena, const ps_comparison *comparison)
{
    int32_t ranked = num_ranked(comparison);
    fprintf(file, "%d rank%s, %d micro-batch%s, by %s\n", (int)comparison->num_devices,
            ps_plural(comparison->num_devices), (int)comparison->num_microbatches,
            comparison->num_microbatches == 1 ? "" : "es", comparison->ranked_by);
    if (comparison->halved)
        fputs("two stages a rank: the halves of the stages given\n", file);
    fputc('\n', file);
    if (ranked == 0)
        fputs("  no schedule fits\n", file);
    ps_table table;
    ps_table_begin(&table, arena, comparison->with_jitter ? "llrrrrrrrr" : "llrrrrrr");
    if (ranked > 0)
        put_head(&table, comparison->with_jitter);
    for (int32_t index = 0; index < ranked; index++)
        put_row(&table, comparison, &comparison->row[index]);
    ps_table_print(file, &table, 2);
    if (ranked < comparison->count)
        fputs("\n  left out\n", file);
    for (int32_t index = ranked; index < comparison->count; index++)
        print_left_out(file, &comparison->row[index]);
}
