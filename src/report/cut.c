// SPDX-License-Identifier: Apache-2.0
//
// cut.c: the answer of a partitioner: stages, bottleneck, bound, proof, and other cuts.
#include "report/cut.h"

#include "base/text.h"
#include "io/json_write.h"
#include "report/table.h"

static const char *objective_name(ps_objective objective)
{
    return objective == PS_OBJECTIVE_ITERATION ? "iteration" : "bottleneck";
}

static void put_stage(ps_json_writer *json, const ps_cut_report *cut, const ps_partition *partition, int32_t stage)
{
    int32_t first = partition->first_layer[stage];
    int32_t last = partition->first_layer[stage + 1] - 1;
    ps_json_object_inline(json, NULL);
    ps_json_put_int(json, "stage", stage);
    ps_json_put_int(json, "first_layer", first);
    ps_json_put_int(json, "last_layer", last);
    ps_json_put_ms(json, "cost_ms", partition->stage_ns[stage]);
    ps_json_put_string(json, "type", cut->problem->type[partition->type[stage]].name);
    if (cut->layer_name) {
        ps_json_array_inline(json, "layers");
        for (int32_t layer = first; layer <= last; layer++)
            ps_json_put_string(json, NULL, cut->layer_name[layer]);
        ps_json_close(json);
    }
    ps_json_close(json);
}

static void put_alternative(ps_json_writer *json, const ps_partition *partition)
{
    ps_json_object_inline(json, NULL);
    ps_json_array_inline(json, "first_layers");
    for (int32_t stage = 0; stage < partition->num_stages; stage++)
        ps_json_put_int(json, NULL, partition->first_layer[stage]);
    ps_json_close(json);
    ps_json_put_ms(json, "bottleneck_ms", partition->bottleneck_ns);
    ps_json_put_ms(json, "sum_ms", partition->sum_ns);
    ps_json_put_ms(json, "objective_ms", partition->objective_ns);
    ps_json_close(json);
}

ps_code ps_cut_json(FILE *file, const ps_cut_report *cut, ps_status *status)
{
    const ps_partition_result *result = cut->result;
    const ps_partition *best = &result->partition[0];
    ps_json_writer json;
    ps_json_begin(&json, file);
    ps_json_object(&json, NULL);
    ps_json_put_string(&json, "format", "pipesched/partition/v1");
    ps_json_array(&json, "stages");
    for (int32_t stage = 0; stage < best->num_stages; stage++)
        put_stage(&json, cut, best, stage);
    ps_json_close(&json);
    ps_json_put_string(&json, "objective", objective_name(cut->problem->objective));
    ps_json_put_ms(&json, "bottleneck_ms", best->bottleneck_ns);
    ps_json_put_ms(&json, "sum_ms", best->sum_ns);
    ps_json_put_ms(&json, "objective_ms", best->objective_ns);
    ps_json_put_ms(&json, "bound_ms", result->bound_ns);
    ps_json_put_double(&json, "gap", result->gap);
    ps_json_put_bool(&json, "proved", result->proved);
    ps_json_put_string(&json, "engine", result->engine);
    ps_json_put_int(&json, "nodes", result->nodes);
    ps_json_put_bool(&json, "limit_hit", result->limit_hit);
    ps_json_array(&json, "alternatives");
    for (int32_t index = 1; index < result->count; index++)
        put_alternative(&json, &result->partition[index]);
    ps_json_close(&json);
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}

static void print_stages(FILE *file, ps_arena *arena, const ps_cut_report *cut)
{
    const ps_partition *best = &cut->result->partition[0];
    ps_table table;
    ps_table_begin(&table, arena, cut->layer_name ? "rlrll" : "rlrl");
    ps_table_put(&table, "stage");
    ps_table_put(&table, "layers");
    ps_table_put(&table, "cost ms");
    ps_table_put(&table, "type");
    if (cut->layer_name)
        ps_table_put(&table, "from .. to");
    for (int32_t stage = 0; stage < best->num_stages; stage++) {
        int32_t first = best->first_layer[stage];
        int32_t last = best->first_layer[stage + 1] - 1;
        char text[32];
        ps_table_put(&table, "%d", (int)stage);
        if (first == last)
            ps_table_put(&table, "%d", (int)first);
        else
            ps_table_put(&table, "%d-%d", (int)first, (int)last);
        ps_table_put(&table, "%s", ps_format_ms(best->stage_ns[stage], text));
        ps_table_put(&table, "%s", cut->problem->type[best->type[stage]].name);
        if (cut->layer_name && first == last)
            ps_table_put(&table, "%s", cut->layer_name[first]);
        else if (cut->layer_name)
            ps_table_put(&table, "%s .. %s", cut->layer_name[first], cut->layer_name[last]);
    }
    ps_table_print(file, &table, 2);
}

void ps_cut_text(FILE *file, ps_arena *arena, const ps_cut_report *cut)
{
    const ps_partition_result *result = cut->result;
    const ps_partition *best = &result->partition[0];
    char text[32];
    fprintf(file, "%d layer%s on %d stage%s\n\n", (int)cut->problem->num_layers, ps_plural(cut->problem->num_layers),
            (int)best->num_stages, ps_plural(best->num_stages));
    print_stages(file, arena, cut);
    fprintf(file, "\n  bottleneck  %s ms\n", ps_format_ms(best->bottleneck_ns, text));
    fprintf(file, "  sum         %s ms\n", ps_format_ms(best->sum_ns, text));
    if (cut->problem->objective == PS_OBJECTIVE_ITERATION)
        fprintf(file, "  iteration   %s ms: sum + %d x bottleneck\n", ps_format_ms(best->objective_ns, text),
                (int)cut->problem->num_microbatches - 1);
    fprintf(file, "  bound       %s ms for the %s: ", ps_format_ms(result->bound_ns, text),
            objective_name(cut->problem->objective));
    if (result->proved)
        fprintf(file, "proved best, by %s\n", result->engine);
    else
        fprintf(file, "gap %.2f %%, by %s%s\n", 100 * result->gap, result->engine,
                result->limit_hit ? ", cut short by a limit" : "");
    for (int32_t index = 1; index < result->count; index++) {
        const ps_partition *other = &result->partition[index];
        fprintf(file, "%s%s ms with stages from layer", index == 1 ? "\n  next best:\n    " : "    ",
                ps_format_ms(other->objective_ns, text));
        for (int32_t stage = 0; stage < other->num_stages; stage++)
            fprintf(file, "%s%d", stage > 0 ? ", " : " ", (int)other->first_layer[stage]);
        fputc('\n', file);
    }
}
