// SPDX-License-Identifier: Apache-2.0
//
// simulation.c: a schedule that was replayed: time, idle time by class, memory, bound and cells.
#include "report/simulation.h"

#include <inttypes.h>

#include "base/text.h"
#include "io/json_write.h"
#include "report/table.h"

static void put_device(ps_json_writer *json, int32_t index, const ps_device_timeline *device)
{
    ps_json_object_inline(json, NULL);
    ps_json_put_int(json, "device", index);
    ps_json_put_ms(json, "busy_ms", device->busy_ns);
    ps_json_put_ms(json, "idle_ms", device->idle_ns);
    ps_json_object_inline(json, "idle");
    ps_json_put_ms(json, "warmup", device->idle.warmup_ns);
    ps_json_put_ms(json, "steady", device->idle.steady_ns);
    ps_json_put_ms(json, "cooldown", device->idle.cooldown_ns);
    ps_json_close(json);
    ps_json_put_int(json, "in_flight_peak", device->in_flight_peak);
    ps_json_put_int(json, "peak_activation", device->peak_activation);
    ps_json_put_int(json, "peak_memory", device->peak_memory);
    ps_json_put_ms(json, "first_start_ms", device->first_start_ns);
    ps_json_put_ms(json, "last_end_ms", device->last_end_ns);
    ps_json_close(json);
}

static void put_cells(ps_json_writer *json, const ps_schedule *schedule)
{
    ps_json_array(json, "cells");
    for (int32_t device = 0; device < schedule->num_devices; device++) {
        ps_json_array_inline(json, NULL);
        for (int32_t op = schedule->first[device]; op < schedule->first[device + 1]; op++) {
            char text[32];
            ps_op_format(schedule->op[op], text);
            ps_json_put_string(json, NULL, text);
        }
        ps_json_close(json);
    }
    ps_json_close(json);
}

static void put_verdict(ps_json_writer *json, const ps_simulation *simulation)
{
    const ps_status *misfit = simulation->misfit;
    ps_json_put_string(json, "verdict", misfit ? "infeasible" : "feasible");
    ps_json_array(json, "reasons");
    if (misfit) {
        ps_json_object_inline(json, NULL);
        ps_json_put_string(json, "rule", misfit->rule);
        ps_json_put_string(json, "message", misfit->message);
        ps_json_put_int(json, "device", simulation->misfit_device);
        ps_json_put_int(json, "have", simulation->pipeline->device[simulation->misfit_device].memory_limit);
        ps_json_put_int(json, "need", simulation->timeline->device[simulation->misfit_device].peak_memory);
        ps_json_put_string(json, "hint", misfit->hint[0] ? misfit->hint : NULL);
        ps_json_close(json);
    }
    ps_json_close(json);
}

static void put_statistics(ps_json_writer *json, const char *key, const ps_jitter_statistics *statistics)
{
    ps_json_object_inline(json, key);
    ps_json_put_ms(json, "p50", statistics->p50_ns);
    ps_json_put_ms(json, "p95", statistics->p95_ns);
    ps_json_put_ms(json, "mean", statistics->mean_ns);
    ps_json_put_ms(json, "max", statistics->max_ns);
    ps_json_close(json);
}

static void put_jitter(ps_json_writer *json, const ps_jitter_result *jitter)
{
    const ps_jitter_options *options = &jitter->options;
    ps_json_object(json, "jitter");
    ps_json_put_double(json, "share", (double)options->share / PS_JITTER_ONE);
    ps_json_put_int(json, "samples", options->samples);
    ps_json_put_int(json, "seed", options->seed);
    if (options->straggler < 0) {
        ps_json_put_null(json, "straggler");
    } else {
        ps_json_object_inline(json, "straggler");
        ps_json_put_int(json, "device", options->straggler);
        ps_json_put_double(json, "factor", (double)options->factor / PS_JITTER_ONE);
        ps_json_close(json);
    }
    put_statistics(json, "makespan_ms", &jitter->makespan);
    put_statistics(json, "span_ms", &jitter->span);
    ps_json_close(json);
}

static void put_step(ps_json_writer *json, const ps_simulation *simulation)
{
    const ps_step *step = simulation->step;
    const ps_step_timeline *tail = simulation->tail;
    ps_json_object(json, "step");
    ps_json_put_bool(json, "optimizer_barrier", step->barrier);
    ps_json_put_bool(json, "overlap_grad_sync", step->overlap);
    ps_json_put_ms(json, "iteration_ms", tail->iteration_ns);
    ps_json_put_ms(json, "pipeline_ms", tail->pipeline_ns);
    ps_json_put_ms(json, "grad_sync_exposed_ms", tail->sync_exposed_ns);
    ps_json_put_ms(json, "optimizer_ms", tail->optimizer_ns);
    ps_json_put_ms(json, "param_gather_exposed_ms", tail->gather_exposed_ns);
    ps_json_put_ms(json, "barrier_ms", step->barrier_ns);
    ps_json_put_ms(json, "validation_hop_ms", step->validation_hop_ns);
    ps_json_put_ms(json, "period_ms", simulation->period.period_ns);
    ps_json_array(json, "devices");
    for (int32_t index = 0; index < simulation->timeline->num_devices; index++) {
        const ps_step_device *device = &tail->device[index];
        ps_json_object_inline(json, NULL);
        ps_json_put_int(json, "device", index);
        ps_json_put_ms(json, "grad_sync_ms", device->sync_ns);
        ps_json_put_ms(json, "grad_sync_hidden_ms", device->sync_ns - device->sync_exposed_ns);
        ps_json_put_ms(json, "grad_sync_exposed_ms", device->sync_exposed_ns);
        ps_json_put_ms(json, "synced_ms", device->synced_ns);
        ps_json_put_ms(json, "optimizer_ms", step->optimizer_ns[index]);
        ps_json_put_ms(json, "param_gather_ms", device->gather_ns);
        ps_json_put_ms(json, "param_gather_exposed_ms", device->gather_exposed_ns);
        ps_json_put_ms(json, "validated_ms", device->validated_ns);
        ps_json_put_ms(json, "ready_ms", device->ready_ns);
        ps_json_close(json);
    }
    ps_json_close(json);
    ps_json_close(json);
}

static void put_event(ps_json_writer *json, int32_t device, const char *cell, int64_t start_ns, int64_t end_ns)
{
    ps_json_object_inline(json, NULL);
    ps_json_put_int(json, "device", device);
    ps_json_put_string(json, "cell", cell);
    ps_json_put_ms(json, "start_ms", start_ns);
    ps_json_put_ms(json, "end_ms", end_ns);
    ps_json_close(json);
}

static void put_timeline(ps_json_writer *json, const ps_simulation *simulation)
{
    const ps_schedule *schedule = simulation->schedule;
    const ps_timeline *timeline = simulation->timeline;
    const ps_step_timeline *tail = simulation->tail;
    char cell[48];
    ps_json_array(json, "timeline");
    for (int32_t device = 0; device < schedule->num_devices; device++)
        for (int32_t op = schedule->first[device]; op < schedule->first[device + 1]; op++) {
            ps_op_format(schedule->op[op], cell);
            put_event(json, device, cell, timeline->start_ns[op], timeline->end_ns[op]);
        }
    for (int32_t op = 0; tail && op < tail->num_ops; op++) {
        ps_step_op_format(&tail->op[op], cell);
        put_event(json, tail->op[op].device, cell, tail->op[op].start_ns, tail->op[op].end_ns);
    }
    ps_json_close(json);
}

ps_code ps_simulation_json(FILE *file, const ps_simulation *simulation, ps_status *status)
{
    const ps_timeline *timeline = simulation->timeline;
    ps_json_writer json;
    ps_json_begin(&json, file);
    ps_json_object(&json, NULL);
    ps_json_put_string(&json, "format", "pipesched/simulation/v1");
    put_verdict(&json, simulation);
    ps_json_put_string(&json, "schedule", simulation->name);
    ps_json_put_int(&json, "pp", simulation->pipeline->num_devices);
    ps_json_put_int(&json, "vp", simulation->virtual_stages);
    ps_json_put_int(&json, "num_microbatches", simulation->pipeline->num_microbatches);
    ps_json_put_ms(&json, "makespan_ms", timeline->makespan_ns);
    ps_json_put_ms(&json, "span_ms", timeline->span_ns);
    ps_json_put_double(&json, "bubble", simulation->bubble);
    ps_json_put_double(&json, "span_bubble", simulation->span_bubble);
    ps_json_array_inline(&json, "peak_activation");
    for (int32_t device = 0; device < timeline->num_devices; device++)
        ps_json_put_int(&json, NULL, timeline->device[device].peak_activation);
    ps_json_close(&json);
    ps_json_put_string(&json, "objective", simulation->objective);
    ps_json_put_ms(&json, "bound_ms", simulation->bound_ns);
    ps_json_put_double(&json, "gap", simulation->gap);
    ps_json_put_bool(&json, "proved", simulation->proved);
    ps_json_put_string(&json, "limited_by", simulation->limited_by);
    if (simulation->searched)
        ps_json_put_bool(&json, "limit_hit", simulation->limit_hit);
    if (simulation->jitter)
        put_jitter(&json, simulation->jitter);
    if (simulation->tail)
        put_step(&json, simulation);
    ps_json_array(&json, "devices");
    for (int32_t device = 0; device < timeline->num_devices; device++)
        put_device(&json, device, &timeline->device[device]);
    ps_json_close(&json);
    put_cells(&json, simulation->schedule);
    if (simulation->list_timeline)
        put_timeline(&json, simulation);
    ps_json_close(&json);
    return ps_json_write_end(&json, status);
}

static const char *format_memory(const ps_simulation *simulation, int64_t size, char text[32])
{
    return simulation->in_bytes ? ps_format_bytes(size, text) : ps_format_count(size, text);
}

static void print_devices(FILE *file, ps_arena *arena, const ps_simulation *simulation)
{
    static const char *const head[] = {"rank",   "busy ms",   "idle ms",   "warm-up",
                                       "steady", "cool-down", "in flight", "activations"};
    ps_table table;
    ps_table_begin(&table, arena, "rrrrrrrr");
    for (int32_t column = 0; column < table.num_columns; column++)
        ps_table_put(&table, "%s", head[column]);
    for (int32_t index = 0; index < simulation->timeline->num_devices; index++) {
        const ps_device_timeline *device = &simulation->timeline->device[index];
        char text[32];
        ps_table_put(&table, "%d", (int)index);
        ps_table_put(&table, "%s", ps_format_ms(device->busy_ns, text));
        ps_table_put(&table, "%s", ps_format_ms(device->idle_ns, text));
        ps_table_put(&table, "%s", ps_format_ms(device->idle.warmup_ns, text));
        ps_table_put(&table, "%s", ps_format_ms(device->idle.steady_ns, text));
        ps_table_put(&table, "%s", ps_format_ms(device->idle.cooldown_ns, text));
        ps_table_put(&table, "%d", (int)device->in_flight_peak);
        ps_table_put(&table, "%s", format_memory(simulation, device->peak_activation, text));
    }
    ps_table_print(file, &table, 2);
}

static void print_statistics(FILE *file, const char *name, const ps_jitter_statistics *statistics)
{
    char text[4][32];
    fprintf(file, "    %-8s  p50 %s, p95 %s, mean %s, max %s ms\n", name, ps_format_ms(statistics->p50_ns, text[0]),
            ps_format_ms(statistics->p95_ns, text[1]), ps_format_ms(statistics->mean_ns, text[2]),
            ps_format_ms(statistics->max_ns, text[3]));
}

static void print_jitter(FILE *file, const ps_jitter_result *jitter)
{
    const ps_jitter_options *options = &jitter->options;
    char text[32];
    fprintf(file, "  jitter    up to %s %% of every time, %d sample%s, seed %" PRId64,
            ps_format_double((double)options->share * 100 / PS_JITTER_ONE, text), (int)options->samples,
            ps_plural(options->samples), options->seed);
    if (options->straggler >= 0)
        fprintf(file, ", rank %d slower by a factor of %s", (int)options->straggler,
                ps_format_double((double)options->factor / PS_JITTER_ONE, text));
    fputc('\n', file);
    print_statistics(file, "makespan", &jitter->makespan);
    print_statistics(file, "span", &jitter->span);
}

static void print_step(FILE *file, const ps_simulation *simulation)
{
    const ps_step_timeline *tail = simulation->tail;
    char text[6][32];
    fprintf(file, "  step      %s ms %s: pipeline %s, gradient sync %s, optimizer %s, parameter gather %s\n",
            ps_format_ms(tail->iteration_ns, text[0]),
            simulation->step->barrier ? "with the barrier" : "validated later",
            ps_format_ms(tail->pipeline_ns, text[1]), ps_format_ms(tail->sync_exposed_ns, text[2]),
            ps_format_ms(tail->optimizer_ns, text[3]), ps_format_ms(tail->gather_exposed_ns, text[4]));
    fprintf(file, "  period    %s ms from one step to the next, back to back\n",
            ps_format_ms(simulation->period.period_ns, text[5]));
}

static void print_step_devices(FILE *file, ps_arena *arena, const ps_simulation *simulation)
{
    static const char *const head[] = {"rank",      "sync ms", "hidden", "exposed",   "synced",
                                       "optimizer", "gather",  "late",   "validated", "ready"};
    ps_table table;
    ps_table_begin(&table, arena, "rrrrrrrrrr");
    for (int32_t column = 0; column < table.num_columns; column++)
        ps_table_put(&table, "%s", head[column]);
    for (int32_t index = 0; index < simulation->timeline->num_devices; index++) {
        const ps_step_device *device = &simulation->tail->device[index];
        const int64_t times[] = {device->sync_ns,
                                 device->sync_ns - device->sync_exposed_ns,
                                 device->sync_exposed_ns,
                                 device->synced_ns,
                                 simulation->step->optimizer_ns[index],
                                 device->gather_ns,
                                 device->gather_exposed_ns,
                                 device->validated_ns,
                                 device->ready_ns};
        char text[32];
        ps_table_put(&table, "%d", (int)index);
        for (size_t column = 0; column < sizeof times / sizeof *times; column++)
            ps_table_put(&table, "%s", ps_format_ms(times[column], text));
    }
    fputc('\n', file);
    ps_table_print(file, &table, 2);
}

void ps_simulation_text(FILE *file, ps_arena *arena, const ps_simulation *simulation)
{
    const ps_timeline *timeline = simulation->timeline;
    char text[32];
    char limit[32];
    fprintf(file, "%s, %d rank%s", simulation->name, (int)simulation->pipeline->num_devices,
            ps_plural(simulation->pipeline->num_devices));
    if (simulation->virtual_stages > 1)
        fprintf(file, " of %d virtual stages", (int)simulation->virtual_stages);
    fprintf(file, ", %d micro-batch%s\n\n", (int)simulation->pipeline->num_microbatches,
            simulation->pipeline->num_microbatches == 1 ? "" : "es");
    fprintf(file, "  makespan  %s ms, bubble %.2f %%\n", ps_format_ms(timeline->makespan_ns, text),
            100 * simulation->bubble);
    fprintf(file, "  span      %s ms, bubble %.2f %%\n", ps_format_ms(timeline->span_ns, text),
            100 * simulation->span_bubble);
    fprintf(file, "  bound     %s ms for the %s, by %s: ", ps_format_ms(simulation->bound_ns, text),
            simulation->objective, simulation->limited_by);
    if (simulation->proved)
        fputs("no order is faster\n", file);
    else
        fprintf(file, "gap %.2f %%\n", 100 * simulation->gap);
    if (simulation->tail)
        print_step(file, simulation);
    if (simulation->jitter)
        print_jitter(file, simulation->jitter);
    if (simulation->misfit)
        fprintf(file, "  DOES NOT FIT: rank %d needs %s at its peak, its limit is %s\n", (int)simulation->misfit_device,
                format_memory(simulation, timeline->device[simulation->misfit_device].peak_memory, text),
                format_memory(simulation, simulation->pipeline->device[simulation->misfit_device].memory_limit, limit));
    fputc('\n', file);
    print_devices(file, arena, simulation);
    if (simulation->tail)
        print_step_devices(file, arena, simulation);
}
