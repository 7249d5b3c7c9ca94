// SPDX-License-Identifier: Apache-2.0
//
// plan_json_write.c: a plan as pipesched/plan/v1, in fixed order and with exact numbers.
//
// An infeasible plan stops after what was asked and why nothing fits. With a timeline every op and every transfer is
// listed with its start and end.
#include <stdio.h>
#include <string.h>

#include "io/json_write.h"
#include "pipesched/limits.h"
#include "plan/plan_json.h"

typedef struct plan_writer {
    ps_json_writer json;
    const ps_plan *plan;
    const ps_timeline *timeline; // NULL: the plan's own, if it has one
} plan_writer;

static void write_table(plan_writer *writer, const ps_field_table *table, const void *object);

static int64_t int64_at(const void *object, size_t offset)
{
    int64_t value;
    memcpy(&value, (const char *)object + offset, sizeof value);
    return value;
}

static int32_t int32_at(const void *object, size_t offset)
{
    int32_t value;
    memcpy(&value, (const char *)object + offset, sizeof value);
    return value;
}

static const void *pointer_at(const void *object, size_t offset)
{
    const void *value;
    memcpy(&value, (const char *)object + offset, sizeof value);
    return value;
}

static void write_object(plan_writer *writer, const char *key, const ps_field *field, const void *object)
{
    if (field->one_line)
        ps_json_object_inline(&writer->json, key);
    else
        ps_json_object(&writer->json, key);
    write_table(writer, field->table, object);
    ps_json_close(&writer->json);
}

static void write_array(plan_writer *writer, const ps_field *field, const void *object)
{
    const char *element = pointer_at(object, field->offset);
    int32_t count = int32_at(object, field->count_offset);
    ps_json_array(&writer->json, field->key);
    for (int32_t index = 0; index < count; index++)
        write_object(writer, NULL, field, element + (size_t)index * field->element_size);
    ps_json_close(&writer->json);
}

static void write_set(plan_writer *writer, const ps_field *field, const ps_int_set *set)
{
    if (set->count == 0) {
        ps_json_put_string(&writer->json, field->key, "auto");
        return;
    }
    ps_json_array_inline(&writer->json, field->key);
    for (int32_t index = 0; index < set->count; index++) {
        if (field->names)
            ps_json_put_string(&writer->json, NULL, field->names->name(set->value[index]));
        else
            ps_json_put_int(&writer->json, NULL, set->value[index]);
    }
    ps_json_close(&writer->json);
}

static void write_bits(plan_writer *writer, const ps_field *field, int32_t bits)
{
    ps_json_array_inline(&writer->json, field->key);
    for (int32_t bit = 0; bit < (int32_t)field->max; bit++)
        if (bits & 1 << bit)
            ps_json_put_string(&writer->json, NULL, field->names->name(bit));
    ps_json_close(&writer->json);
}

static void write_layers(plan_writer *writer, const ps_field *field, const ps_plan_stage *stage)
{
    ps_json_array_inline(&writer->json, field->key);
    if (field->kind == PS_FIELD_LAYER_IDS) {
        for (int32_t range = 0; range < stage->num_ranges; range++) {
            ps_json_array_inline(&writer->json, NULL);
            ps_json_put_int(&writer->json, NULL, stage->first_layer[range]);
            ps_json_put_int(&writer->json, NULL, stage->last_layer[range]);
            ps_json_close(&writer->json);
        }
    } else {
        for (int32_t layer = 0; layer < stage->num_layers; layer++)
            ps_json_put_string(&writer->json, NULL, stage->layer_name[layer]);
    }
    ps_json_close(&writer->json);
}

static void write_stage_list(plan_writer *writer, const ps_field *field, const ps_plan_device *device)
{
    ps_json_array_inline(&writer->json, field->key);
    for (int32_t index = 0; index < device->num_stages; index++)
        ps_json_put_int(&writer->json, NULL, device->stage[index]);
    ps_json_close(&writer->json);
}

static void write_rank_map(plan_writer *writer, const ps_field *field)
{
    const ps_plan *plan = writer->plan;
    if (!plan->rank || plan->num_ranks > PS_PLAN_MAX_RANK_MAP)
        return;
    ps_json_array(&writer->json, field->key);
    for (int64_t index = 0; index < plan->num_ranks; index++) {
        ps_json_object_inline(&writer->json, NULL);
        write_table(writer, field->table, &plan->rank[index]);
        ps_json_close(&writer->json);
    }
    ps_json_close(&writer->json);
}

static void write_cells(plan_writer *writer, const ps_field *field)
{
    const ps_schedule *schedule = &writer->plan->schedule;
    char cell[32];
    ps_json_array(&writer->json, field->key);
    for (int32_t device = 0; device < schedule->num_devices; device++) {
        ps_json_array_inline(&writer->json, NULL);
        for (int32_t index = schedule->first[device]; index < schedule->first[device + 1]; index++) {
            ps_op_format(schedule->op[index], cell);
            ps_json_put_string(&writer->json, NULL, cell);
        }
        ps_json_close(&writer->json);
    }
    ps_json_close(&writer->json);
}

static void write_cell(plan_writer *writer, const ps_field *field, const ps_plan_event *event)
{
    char cell[48];
    if (event->ends_step)
        ps_step_op_format(&event->step, cell);
    else
        ps_op_format(event->op, cell);
    ps_json_put_string(&writer->json, field->key, cell);
}

static void write_counts(plan_writer *writer, const ps_field *field, const ps_plan_search *search)
{
    ps_json_object(&writer->json, field->key);
    for (int32_t index = 0; index < search->num_infeasible; index++)
        ps_json_put_int(&writer->json, search->infeasible[index].rule, search->infeasible[index].count);
    ps_json_close(&writer->json);
}

static void write_launchable(plan_writer *writer, const ps_field *field)
{
    const ps_plan *plan = writer->plan;
    ps_json_object(&writer->json, field->key);
    for (int32_t index = 0; index < plan->num_launchable; index++)
        ps_json_put_string(&writer->json, plan->launchable[index].target, plan->launchable[index].verdict);
    ps_json_close(&writer->json);
}

static void write_tool(plan_writer *writer, const ps_field *field)
{
    ps_json_object_inline(&writer->json, field->key);
    ps_json_put_string(&writer->json, "name", "pipesched");
    ps_json_put_string(&writer->json, "version", writer->plan->tool_version);
    ps_json_close(&writer->json);
}

static void write_target(plan_writer *writer, const ps_field *field)
{
    ps_json_object_inline(&writer->json, field->key);
    ps_json_put_string(&writer->json, "name", "any");
    ps_json_put_null(&writer->json, "version");
    ps_json_close(&writer->json);
}

static void write_value(plan_writer *writer, const ps_field *field, const void *object)
{
    ps_json_writer *json = &writer->json;
    const char *at = (const char *)object + field->offset;
    double real;
    bool flag;
    switch (field->kind) {
    case PS_FIELD_INT32: ps_json_put_int(json, field->key, int32_at(object, field->offset)); break;
    case PS_FIELD_INT64:
        if (!field->optional || int64_at(object, field->offset) != 0)
            ps_json_put_int(json, field->key, int64_at(object, field->offset));
        break;
    case PS_FIELD_NS:
    case PS_FIELD_PLAIN_NS: ps_json_put_ms(json, field->key, int64_at(object, field->offset)); break;
    case PS_FIELD_DOUBLE:
        memcpy(&real, at, sizeof real);
        if (!field->optional || real >= 0)
            ps_json_put_double(json, field->key, real);
        break;
    case PS_FIELD_BOOL:
        memcpy(&flag, at, sizeof flag);
        ps_json_put_bool(json, field->key, flag);
        break;
    case PS_FIELD_TEXT: ps_json_put_string(json, field->key, pointer_at(object, field->offset)); break;
    case PS_FIELD_NAME:
    case PS_FIELD_NAME_AGAIN:
        ps_json_put_string(json, field->key, field->names->name(ps_field_get_name(field, object)));
        break;
    case PS_FIELD_BITS: write_bits(writer, field, int32_at(object, field->offset)); break;
    case PS_FIELD_SET: write_set(writer, field, (const void *)at); break;
    case PS_FIELD_OBJECT:
        if (!field->optional || pointer_at(at, field->table->field[0].offset))
            write_object(writer, field->key, field, at);
        break;
    case PS_FIELD_ARRAY: write_array(writer, field, object); break;
    case PS_FIELD_TOOL: write_tool(writer, field); break;
    case PS_FIELD_FORMAT: ps_json_put_string(json, field->key, PS_PLAN_FORMAT); break;
    case PS_FIELD_VERDICT:
        ps_json_put_string(json, field->key, writer->plan->feasible ? "feasible" : "infeasible");
        break;
    case PS_FIELD_TARGET: write_target(writer, field); break;
    case PS_FIELD_LAYER_IDS:
    case PS_FIELD_LAYER_NAMES: write_layers(writer, field, object); break;
    case PS_FIELD_STAGE_LIST: write_stage_list(writer, field, object); break;
    case PS_FIELD_RANK_MAP: write_rank_map(writer, field); break;
    case PS_FIELD_CELLS: write_cells(writer, field); break;
    case PS_FIELD_CELL: write_cell(writer, field, object); break;
    case PS_FIELD_TIMELINE: break; // last, as it may be the planner's instead
    case PS_FIELD_COUNTS: write_counts(writer, field, object); break;
    case PS_FIELD_LAUNCHABLE: write_launchable(writer, field); break;
    }
}

static void write_table(plan_writer *writer, const ps_field_table *table, const void *object)
{
    for (int32_t index = 0; index < table->count; index++)
        write_value(writer, &table->field[index], object);
}

static void write_event(plan_writer *writer, const ps_plan_event *event)
{
    ps_json_object_inline(&writer->json, NULL);
    write_table(writer, event->is_transfer ? &ps_plan_transfer_fields : &ps_plan_op_fields, event);
    ps_json_close(&writer->json);
}

static const ps_plan_hop *hop_after(const ps_plan *plan, ps_op op)
{
    int32_t to = op.kind == PS_OP_FORWARD ? op.stage + 1 : op.stage - 1;
    if (op.kind >= PS_OP_BACKWARD_WEIGHT || to < 0 || to >= plan->num_stages)
        return NULL;
    if (plan->stage[to].pp_rank == plan->stage[op.stage].pp_rank)
        return NULL;
    // The planner lists all hops forward, then all backward; a plan made by hand may list them otherwise.
    int32_t guess = op.stage < to ? op.stage : plan->num_stages - 1 + to;
    for (int32_t tried = 0; tried < plan->num_hops; tried++) {
        const ps_plan_hop *hop = &plan->hop[(guess + tried) % plan->num_hops];
        if (hop->from_stage == op.stage && hop->to_stage == to)
            return hop;
    }
    return NULL;
}

// Every op of one pipeline rank, each followed by the transfer that it starts. `lane_free` is, per destination, when
// the lane of this rank to it falls free (include/pipesched/timeline.h). A transfer ends when the data have arrived.
static void write_rank_timeline(plan_writer *writer, int32_t rank, int64_t *lane_free)
{
    const ps_schedule *schedule = &writer->plan->schedule;
    const ps_timeline *timeline = writer->timeline;
    for (int32_t index = schedule->first[rank]; index < schedule->first[rank + 1]; index++) {
        ps_op op = schedule->op[index];
        int64_t end = timeline->end_ns[index];
        write_event(writer,
                    &(ps_plan_event){.pp_rank = rank, .op = op, .start_ns = timeline->start_ns[index], .end_ns = end});
        const ps_plan_hop *hop = hop_after(writer->plan, op);
        if (!hop)
            continue;
        int64_t *lane = &lane_free[writer->plan->stage[hop->to_stage].pp_rank];
        if (!writer->plan->inputs.job.overlap_p2p)
            end -= hop->transfer_ns; // the op ends with it
        int64_t start = end > *lane ? end : *lane;
        *lane = start + hop->transfer_ns;
        write_event(writer, &(ps_plan_event){.is_transfer = true,
                                             .from_stage = hop->from_stage,
                                             .to_stage = hop->to_stage,
                                             .microbatch = op.microbatch,
                                             .start_ns = start,
                                             .end_ns = *lane + hop->latency_ns});
    }
}

typedef struct timeline_task {
    plan_writer *writer;
    ps_arena *scratch;
} timeline_task;

// What ends the step, after all ops.
static ps_code write_step(const timeline_task *task, ps_status *status)
{
    plan_writer *writer = task->writer;
    ps_pipeline pipeline;
    ps_step step;
    ps_step_timeline placed;
    PS_TRY(ps_plan_pipeline(task->scratch, writer->plan, &pipeline, status));
    PS_TRY(ps_plan_step(task->scratch, writer->plan, &pipeline, &step, status));
    ps_step_place(task->scratch, &pipeline, &writer->plan->schedule, writer->timeline, &step, &placed);
    for (int32_t index = 0; index < placed.num_ops; index++)
        write_event(writer, &(ps_plan_event){.ends_step = true,
                                             .step = placed.op[index],
                                             .pp_rank = placed.op[index].device,
                                             .start_ns = placed.op[index].start_ns,
                                             .end_ns = placed.op[index].end_ns});
    return PS_OK;
}

static ps_code write_timeline(void *context, ps_status *status)
{
    const timeline_task *task = context;
    const ps_schedule *schedule = &task->writer->plan->schedule;
    int64_t *lane_free = ps_new_raw(task->scratch, int64_t, schedule->num_devices);
    for (int32_t rank = 0; rank < schedule->num_devices; rank++) {
        memset(lane_free, 0, (size_t)schedule->num_devices * sizeof *lane_free);
        write_rank_timeline(task->writer, rank, lane_free);
    }
    return write_step(task, status);
}

static ps_code add_timeline(plan_writer *writer, ps_status *status)
{
    const ps_plan *plan = writer->plan;
    ps_code code = PS_OK;
    ps_json_array(&writer->json, "timeline");
    if (writer->timeline) {
        timeline_task task = {writer, ps_arena_new(0)};
        if (!task.scratch)
            return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "no memory to list the timeline");
        code = ps_guard(write_timeline, &task, task.scratch, status);
        ps_arena_free(task.scratch);
    } else {
        for (int32_t index = 0; index < plan->num_events; index++)
            write_event(writer, &plan->event[index]);
    }
    ps_json_close(&writer->json);
    return code;
}

ps_code ps_plan_write_json(const ps_plan *plan, const ps_timeline *timeline, FILE *file, ps_status *status)
{
    plan_writer writer = {.plan = plan, .timeline = timeline};
    ps_json_begin(&writer.json, file);
    ps_json_object(&writer.json, NULL);
    for (int32_t index = 0; index < ps_plan_fields.count; index++) {
        const ps_field *field = &ps_plan_fields.field[index];
        if (plan->feasible || field->when_infeasible)
            write_value(&writer, field, plan);
    }
    if (plan->feasible && (timeline || plan->has_timeline))
        PS_TRY(add_timeline(&writer, status));
    ps_json_close(&writer.json);
    return ps_json_write_end(&writer.json, status);
}
