// SPDX-License-Identifier: Apache-2.0
//
// model_summary.c: what was understood of a model.
#include "report/model_summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/json_write.h"
#include "report/model_blocks.h"
#include "report/table.h"

typedef struct kind_sum {
    const char *kind;
    int64_t layers;
    int64_t parameters;
    int64_t active_parameters;
} kind_sum;

typedef struct kind_sums {
    int32_t count;
    kind_sum *sum; // in the order in which kinds first appear
} kind_sums;

typedef struct named_index {
    const char *name;
    int32_t index;
} named_index;

static int by_name_then_index(const void *a, const void *b)
{
    const named_index *x = a;
    const named_index *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

const int32_t *ps_first_of_each(ps_arena *arena, const char *const *name, int32_t count)
{
    named_index *sorted = ps_new(arena, named_index, count);
    int32_t *first = ps_new(arena, int32_t, count);
    for (int32_t index = 0; index < count; index++)
        sorted[index] = (named_index){name[index], index};
    qsort(sorted, (size_t)count, sizeof *sorted, by_name_then_index);
    for (int32_t at = 0; at < count; at++) {
        bool same = at > 0 && strcmp(sorted[at].name, sorted[at - 1].name) == 0;
        first[sorted[at].index] = same ? first[sorted[at - 1].index] : sorted[at].index;
    }
    return first;
}

static kind_sums sum_kinds(ps_arena *arena, const ps_model *model)
{
    kind_sums sums = {0, ps_new(arena, kind_sum, model->num_layers)};
    const char **kind = ps_new(arena, const char *, model->num_layers);
    int32_t *place = ps_new(arena, int32_t, model->num_layers); // in sums, of the first layer of a kind
    for (int32_t index = 0; index < model->num_layers; index++)
        kind[index] = model->layer[index].kind;
    const int32_t *first = ps_first_of_each(arena, kind, model->num_layers);
    for (int32_t index = 0; index < model->num_layers; index++) {
        const ps_layer *layer = &model->layer[index];
        if (first[index] == index) {
            place[index] = sums.count;
            sums.sum[sums.count++].kind = layer->kind;
        }
        kind_sum *sum = &sums.sum[place[first[index]]];
        sum->layers++;
        sum->parameters += layer->parameters;
        sum->active_parameters += layer->active_parameters;
    }
    return sums;
}

static void put_given_ms(ps_json_writer *json, const char *key, int64_t ns)
{
    if (ns != PS_NOT_GIVEN)
        ps_json_put_ms(json, key, ns);
}

static void put_given_bytes(ps_json_writer *json, const char *key, int64_t bytes)
{
    if (bytes != PS_NOT_GIVEN)
        ps_json_put_int(json, key, bytes);
}

static void put_layer(ps_json_writer *json, const ps_model *model, int32_t index)
{
    const ps_layer *layer = &model->layer[index];
    ps_json_object_inline(json, NULL);
    ps_json_put_string(json, "name", layer->name);
    ps_json_put_string(json, "kind", layer->kind);
    ps_json_put_int(json, "parameters", layer->parameters);
    ps_json_put_int(json, "active_parameters", layer->active_parameters);
    if (layer->shared_with >= 0)
        ps_json_put_string(json, "shared_with", model->layer[layer->shared_with].name);
    put_given_ms(json, "forward_ms", layer->forward_ns);
    put_given_ms(json, "backward_input_ms", layer->backward_input_ns);
    put_given_ms(json, "backward_weight_ms", layer->backward_weight_ns);
    put_given_bytes(json, "held_after_forward_bytes", layer->held_after_forward_bytes);
    put_given_bytes(json, "held_after_backward_input_bytes", layer->held_after_backward_input_bytes);
    put_given_bytes(json, "output_bytes", layer->output_bytes);
    ps_json_close(json);
}

ps_code ps_model_json(FILE *file, ps_arena *arena, const ps_model *model, ps_status *status)
{
    kind_sums sums = sum_kinds(arena, model);
    ps_json_writer json;
    ps_json_begin(&json, file);
    ps_json_object(&json, NULL);
    ps_json_put_string(&json, "format", "pipesched/show/v1");
    ps_json_put_string(&json, "shows", "model");
    ps_json_put_string(&json, "name", model->name);
    ps_json_put_string(&json, "source_format", model->format);
    ps_json_put_string(&json, "sha256", model->sha256);
    ps_json_put_int(&json, "parameters", model->parameters);
    ps_json_put_int(&json, "active_parameters", model->active_parameters);
    if (model->max_seq_length > 0)
        ps_json_put_int(&json, "max_seq_length", model->max_seq_length);
    ps_json_put_int(&json, "num_layers", model->num_layers);
    ps_json_put_int(&json, "num_measurements", model->num_measurements);
    ps_json_array(&json, "kinds");
    for (int32_t kind = 0; kind < sums.count; kind++) {
        ps_json_object_inline(&json, NULL);
        ps_json_put_string(&json, "kind", sums.sum[kind].kind);
        ps_json_put_int(&json, "layers", sums.sum[kind].layers);
        ps_json_put_int(&json, "parameters", sums.sum[kind].parameters);
        ps_json_put_int(&json, "active_parameters", sums.sum[kind].active_parameters);
        ps_json_close(&json);
    }
    ps_json_close(&json);
    ps_model_blocks_json(&json, arena, model);
    ps_json_array(&json, "layers");
    for (int32_t layer = 0; layer < model->num_layers; layer++)
        put_layer(&json, model, layer);
    ps_json_close(&json);
    ps_json_array(&json, "warnings");
    for (int32_t index = 0; index < model->num_warnings; index++)
        ps_json_put_string(&json, NULL, model->warning[index]);
    ps_json_close(&json);
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}

static void print_layers(FILE *file, ps_arena *arena, const ps_model *model)
{
    ps_table table;
    char text[32];
    ps_table_begin(&table, arena, "rllr");
    ps_table_put(&table, "layer");
    ps_table_put(&table, "name");
    ps_table_put(&table, "kind");
    ps_table_put(&table, "parameters");
    for (int32_t index = 0; index < model->num_layers; index++) {
        ps_table_put(&table, "%d", (int)index);
        ps_table_put(&table, "%s", model->layer[index].name);
        ps_table_put(&table, "%s", model->layer[index].kind);
        ps_table_put(&table, "%s", ps_format_count(model->layer[index].parameters, text));
    }
    fputc('\n', file);
    ps_table_print(file, &table, 2);
}

void ps_model_text(FILE *file, ps_arena *arena, const ps_model *model, bool verbose)
{
    kind_sums sums = sum_kinds(arena, model);
    ps_table table;
    char text[32];

    fprintf(file, "%s (%s)\n\n", model->name, model->format);
    ps_table_begin(&table, arena, "lrrr");
    ps_table_put(&table, "kind");
    ps_table_put(&table, "layers");
    ps_table_put(&table, "parameters");
    ps_table_put(&table, "active");
    for (int32_t kind = 0; kind < sums.count; kind++) {
        ps_table_put(&table, "%s", sums.sum[kind].kind);
        ps_table_put(&table, "%s", ps_format_count(sums.sum[kind].layers, text));
        ps_table_put(&table, "%s", ps_format_count(sums.sum[kind].parameters, text));
        ps_table_put(&table, "%s", ps_format_count(sums.sum[kind].active_parameters, text));
    }
    ps_table_put(&table, "in all");
    ps_table_put(&table, "%s", ps_format_count(model->num_layers, text));
    ps_table_put(&table, "%s", ps_format_count(model->parameters, text));
    ps_table_put(&table, "%s", ps_format_count(model->active_parameters, text));
    ps_table_print(file, &table, 2);
    ps_model_blocks_text(file, arena, model);

    if (model->max_seq_length > 0)
        fprintf(file, "\n  sequences of up to %s tokens\n", ps_format_count(model->max_seq_length, text));
    if (model->num_measurements > 0)
        fprintf(file, "\n  %d sets of measured times\n", (int)model->num_measurements);
    if (verbose)
        print_layers(file, arena, model);
    for (int32_t index = 0; index < model->num_warnings; index++)
        fprintf(file, "%s  note: %s\n", index == 0 ? "\n" : "", model->warning[index]);
}
