// SPDX-License-Identifier: Apache-2.0
//
// memory_terms.c: a device's memory part by part, each with its terms.
#include "report/memory_terms.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "io/json_write.h"
#include "report/table.h"

typedef struct memory_part {
    const char *name;
    int64_t bytes;
} memory_part;

enum { MEMORY_PARTS = 8 };

static void parts_of(const ps_plan_memory *memory, memory_part part[MEMORY_PARTS])
{
    const memory_part all[MEMORY_PARTS] = {
        {"parameters", memory->parameters},       {"gradients", memory->gradients},
        {"optimizer", memory->optimizer},         {"activations_peak", memory->activations_peak},
        {"transient", memory->transient},         {"framework", memory->framework},
        {"fragmentation", memory->fragmentation}, {"reserve", memory->reserve}};
    memcpy(part, all, sizeof all);
}

static void put_peak(ps_json_writer *json, const ps_memory_terms *device)
{
    char cell[32];
    ps_op_format(device->peak, cell);
    ps_json_object(json, "peak");
    ps_json_put_string(json, "cell", cell);
    ps_json_put_ms(json, "start_ms", device->peak_start_ns);
    ps_json_put_ms(json, "end_ms", device->peak_end_ns);
    ps_json_array(json, "micro_batches");
    for (int32_t index = 0; index < device->num_holdings; index++) {
        const ps_memory_holding *holding = &device->holding[index];
        ps_json_object_inline(json, NULL);
        ps_json_put_int(json, "stage", holding->stage);
        ps_json_put_int(json, "after_forward", holding->after_forward);
        ps_json_put_int(json, "recomputed", holding->recomputed);
        ps_json_put_int(json, "after_backward_input", holding->after_backward_input);
        ps_json_close(json);
    }
    ps_json_close(json);
    ps_json_close(json);
}

static void put_term(ps_json_writer *json, const ps_memory_term *term)
{
    ps_json_object_inline(json, NULL);
    ps_json_put_string(json, "part", term->part);
    if (term->stage >= 0)
        ps_json_put_int(json, "stage", term->stage);
    if (term->layer)
        ps_json_put_string(json, "layer", term->layer);
    ps_json_put_string(json, "formula", term->formula);
    ps_json_put_int(json, "layers", term->layers);
    ps_json_put_int(json, "micro_batches", term->microbatches);
    ps_json_put_double(json, "each", term->each);
    ps_json_put_double(json, "value", term->bytes);
    ps_json_put_string(json, "unit", "bytes");
    ps_json_close(json);
}

static void put_device(ps_json_writer *json, const ps_memory_terms *device)
{
    memory_part part[MEMORY_PARTS];
    parts_of(device->memory, part);
    ps_json_object(json, NULL);
    ps_json_put_int(json, "pp_rank", device->device);
    put_peak(json, device);
    ps_json_array(json, "terms");
    for (int32_t index = 0; index < device->count; index++)
        put_term(json, &device->term[index]);
    ps_json_close(json);
    ps_json_object_inline(json, "memory");
    for (int32_t index = 0; index < MEMORY_PARTS; index++)
        ps_json_put_int(json, part[index].name, part[index].bytes);
    ps_json_put_int(json, "total_peak", device->memory->total_peak);
    ps_json_put_int(json, "capacity", device->memory->capacity);
    ps_json_put_int(json, "headroom", device->memory->headroom);
    ps_json_close(json);
    ps_json_close(json);
}

ps_code ps_memory_json(FILE *file, const ps_memory_report *report, ps_status *status)
{
    ps_json_writer json;
    ps_json_begin(&json, file);
    ps_json_object(&json, NULL);
    ps_json_put_string(&json, "format", "pipesched/show/v1");
    ps_json_put_string(&json, "shows", "memory");
    ps_json_put_string(&json, "model", report->plan->inputs.model_name);
    if (report->not_split)
        ps_json_put_string(&json, "note", report->not_split);
    ps_json_array(&json, "devices");
    for (int32_t index = 0; index < report->num_devices; index++)
        put_device(&json, &report->device[index]);
    ps_json_close(&json);
    ps_coverage_json(&json, &report->coverage);
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}

static const char *op_name(ps_op op)
{
    static const char *const name[PS_OP_KINDS] = {
        [PS_OP_FORWARD] = "forward",
        [PS_OP_BACKWARD] = "backward",
        [PS_OP_BACKWARD_INPUT] = "input gradient",
        [PS_OP_BACKWARD_WEIGHT] = "weight gradient",
        [PS_OP_RECOMPUTE] = "recompute",
    };
    return name[op.kind];
}

static void print_peak(FILE *file, const ps_memory_terms *device)
{
    char cell[32];
    char start[32];
    char end[32];
    ps_op_format(device->peak, cell);
    fprintf(file, "  held with %s, %s of micro-batch %d on stage %d, from %s to %s:\n", cell, op_name(device->peak),
            (int)device->peak.microbatch, (int)device->peak.stage, ps_format_ns(device->peak_start_ns, start),
            ps_format_ns(device->peak_end_ns, end));
    for (int32_t index = 0; index < device->num_holdings; index++) {
        const ps_memory_holding *holding = &device->holding[index];
        fprintf(file, "  stage %d: %d micro-batch%s behind F", (int)holding->stage, (int)holding->after_forward,
                holding->after_forward == 1 ? "" : "es");
        if (holding->recomputed > 0)
            fprintf(file, ", %d of them recomputed", (int)holding->recomputed);
        if (holding->after_backward_input > 0)
            fprintf(file, ", %d behind I", (int)holding->after_backward_input);
        fputc('\n', file);
    }
}

static const char *signed_bytes(double bytes, char text[32])
{
    char size[32];
    if (fabs(bytes) < 1)
        snprintf(text, 32, "%.2g B", bytes);
    else
        snprintf(text, 32, "%s%s", bytes < 0 ? "-" : "", ps_format_bytes(llround(fabs(bytes)), size));
    return text;
}

static void put_row(ps_table *table, const ps_memory_term *term)
{
    char text[32];
    ps_table_put(table, "%s", signed_bytes(term->bytes, text));
    ps_table_put(table, "%s", term->stage >= 0 ? ps_text_format(table->arena, "stage %d", (int)term->stage) : "");
    ps_table_put(table, "%s", term->layer ? term->layer : "");
    if (term->layers * (int64_t)term->microbatches == 1)
        ps_table_put(table, "%s", "");
    else if (term->microbatches == 1)
        ps_table_put(table, "%d x %s", (int)term->layers, signed_bytes(term->each, text));
    else
        ps_table_put(table, "%d x %d x %s", (int)term->microbatches, (int)term->layers, signed_bytes(term->each, text));
    ps_table_put(table, "%s", term->formula);
}

static void print_part(FILE *file, ps_arena *arena, const ps_memory_terms *device, memory_part part)
{
    ps_table table;
    char text[32];
    fprintf(file, "\n%s %s\n", part.name, ps_format_bytes(part.bytes, text));
    if (strcmp(part.name, "activations_peak") == 0 && part.bytes > 0)
        print_peak(file, device);
    ps_table_begin(&table, arena, "rllrl");
    for (int32_t index = 0; index < device->count; index++)
        if (strcmp(device->term[index].part, part.name) == 0)
            put_row(&table, &device->term[index]);
    ps_table_print(file, &table, 2);
}

static void print_sum(FILE *file, ps_arena *arena, const ps_memory_terms *device)
{
    const ps_plan_memory *memory = device->memory;
    const struct {
        const char *name;
        int64_t bytes;
    } rows[] = {{"total_peak", memory->total_peak}, {"capacity", memory->capacity}, {"headroom", memory->headroom}};
    ps_table table;
    char text[32];
    ps_table_begin(&table, arena, "lrr");
    for (size_t index = 0; index < sizeof rows / sizeof *rows; index++) {
        ps_table_put(&table, "%s", rows[index].name);
        ps_table_put(&table, "%s", ps_format_bytes(rows[index].bytes, text));
        ps_table_put(&table, "%s B", ps_format_count(rows[index].bytes, text));
    }
    fputc('\n', file);
    ps_table_print(file, &table, 0);
}

static void print_device(FILE *file, ps_arena *arena, const ps_plan *plan, const ps_memory_terms *device)
{
    memory_part part[MEMORY_PARTS];
    const ps_layout *layout = &plan->layout;
    char tokens[32];
    parts_of(device->memory, part);
    fprintf(file, "memory of pipeline rank %d of %d, %s of %s; a product is micro-batches x layers x each\n",
            (int)device->device, (int)plan->num_devices, plan->device[device->device].gpu, plan->inputs.model_name);
    fprintf(file, "%s, tp %d, dp %d, cp %d, ep %d, ZeRO %d, micro-batches of %d x %s tokens\n",
            ps_schedule_family_at(layout->schedule)->name, (int)layout->tp, (int)layout->dp, (int)layout->cp,
            (int)layout->ep, (int)layout->zero, (int)layout->micro_batch_size,
            ps_format_count(plan->inputs.job.seq_length, tokens));
    for (int32_t index = 0; index < MEMORY_PARTS; index++)
        print_part(file, arena, device, part[index]);
    print_sum(file, arena, device);
}

void ps_memory_text(FILE *file, ps_arena *arena, const ps_memory_report *report, bool brief)
{
    for (int32_t index = 0; index < report->num_devices; index++) {
        if (index > 0)
            fputc('\n', file);
        print_device(file, arena, report->plan, &report->device[index]);
    }
    if (report->not_split)
        fprintf(file, "\nnote: %s\n", report->not_split);
    if (!brief)
        ps_coverage_text(file, arena, &report->coverage);
}
