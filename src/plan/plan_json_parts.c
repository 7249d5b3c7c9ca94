// SPDX-License-Identifier: Apache-2.0
//
// plan_json_parts.c: the parts of a plan file that have a shape of their own: layers, ranks, cells, counts.
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "job/dialect.h"
#include "pipesched/limits.h"
#include "plan/plan_json_read.h"

ps_code ps_plan_member(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_json_type type, ps_json *out)
{
    *out = ps_json_member(object, field->key);
    if (!out->node)
        return ps_json_fail(object, "missing-key", reader->status, "\"%s\" is missing", field->key);
    return ps_json_expect(*out, type, reader->status);
}

ps_code ps_plan_array(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_json *out)
{
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_ARRAY, out));
    int64_t count = ps_json_count(*out);
    if (field->max > 0 && count > field->max)
        return ps_json_fail(*out, "out-of-range", reader->status, "at most %" PRId64 " entries, got %" PRId64,
                            field->max, count);
    return PS_OK;
}

ps_code ps_plan_int(ps_plan_reader *reader, ps_json value, int32_t max, int32_t *out)
{
    PS_TRY(ps_json_expect(value, PS_JSON_NUMBER, reader->status));
    double number = ps_json_number(value);
    if (!(number >= 0 && number <= max) || number != (double)(int32_t)number)
        return ps_json_fail(value, "out-of-range", reader->status, "a whole number from 0 to %" PRId32 " is expected",
                            max);
    *out = (int32_t)number;
    return PS_OK;
}

ps_code ps_plan_read_layer_ids(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_plan_stage *stage)
{
    ps_json array;
    PS_TRY(ps_plan_array(reader, object, field, &array));
    int64_t count = ps_json_count(array);
    stage->first_layer = ps_new(reader->arena, int32_t, count);
    stage->last_layer = ps_new(reader->arena, int32_t, count);
    for (ps_json range = ps_json_first(array); range.node; range = ps_json_next(range)) {
        int32_t index = stage->num_ranges++;
        PS_TRY(ps_json_expect(range, PS_JSON_ARRAY, reader->status));
        if (ps_json_count(range) != 2)
            return ps_json_fail(range, "layer-range", reader->status, "a range is [first, last]");
        ps_json first = ps_json_first(range);
        PS_TRY(ps_plan_int(reader, first, PS_MAX_LAYERS, &stage->first_layer[index]));
        PS_TRY(ps_plan_int(reader, ps_json_next(first), PS_MAX_LAYERS, &stage->last_layer[index]));
        if (stage->last_layer[index] < stage->first_layer[index])
            return ps_json_fail(range, "layer-range", reader->status, "the range ends before it begins");
    }
    return PS_OK;
}

ps_code ps_plan_read_layer_names(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_plan_stage *stage)
{
    ps_json array;
    PS_TRY(ps_plan_array(reader, object, field, &array));
    stage->layer_name = ps_new(reader->arena, const char *, ps_json_count(array));
    for (ps_json name = ps_json_first(array); name.node; name = ps_json_next(name)) {
        PS_TRY(ps_json_expect(name, PS_JSON_STRING, reader->status));
        stage->layer_name[stage->num_layers++] = ps_text_copy(reader->arena, ps_json_text(name));
    }
    return PS_OK;
}

ps_code ps_plan_read_stage_list(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_plan_device *device)
{
    ps_json array;
    PS_TRY(ps_plan_array(reader, object, field, &array));
    device->stage = ps_new(reader->arena, int32_t, ps_json_count(array));
    for (ps_json item = ps_json_first(array); item.node; item = ps_json_next(item))
        PS_TRY(ps_plan_int(reader, item, PS_MAX_STAGES, &device->stage[device->num_stages++]));
    return PS_OK;
}

ps_code ps_plan_read_rank_map(ps_plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_plan *plan = reader->plan;
    ps_json array = ps_json_member(object, field->key);
    if (!array.node || ps_json_is(array, PS_JSON_NULL))
        return PS_OK;
    PS_TRY(ps_plan_array(reader, object, field, &array));
    if (ps_json_count(array) != plan->num_ranks)
        return ps_json_fail(array, "rank-count", reader->status, "%" PRId64 " entries for %" PRId64 " ranks",
                            ps_json_count(array), plan->num_ranks);
    plan->rank = ps_new(reader->arena, ps_plan_rank, plan->num_ranks);
    ps_plan_rank *rank = plan->rank;
    for (ps_json item = ps_json_first(array); item.node; item = ps_json_next(item))
        PS_TRY(ps_plan_read_table(reader, item, field->table, rank++));
    return PS_OK;
}

// Digits without leading zeros, at most `max`; NULL otherwise.
static const char *take_index(const char *text, int32_t max, int32_t *out)
{
    int64_t value = 0;
    const char *at = text;
    while (*at >= '0' && *at <= '9' && value <= max)
        value = value * 10 + (*at++ - '0');
    if (at == text || value > max || (*text == '0' && at != text + 1))
        return NULL;
    *out = (int32_t)value;
    return at;
}

static bool parse_cell(const char *text, ps_op *op)
{
    static const char letters[] = {'F', 'B', 'I', 'W', 'R'}; // by ps_op_kind
    int32_t stage;
    int32_t microbatch;
    const char *at = take_index(text, UINT16_MAX, &stage);
    if (!at || *at == '\0')
        return false;
    const char *letter = memchr(letters, *at, sizeof letters);
    if (!letter)
        return false;
    at = take_index(at + 1, INT32_MAX, &microbatch);
    if (!at || *at)
        return false;
    *op = (ps_op){.stage = (uint16_t)stage, .kind = (uint8_t)(letter - letters), .microbatch = microbatch};
    return true;
}

static ps_code read_cell(ps_plan_reader *reader, ps_json cell, ps_op *op)
{
    if (ps_json_is(cell, PS_JSON_STRING) && parse_cell(ps_json_text(cell), op))
        return PS_OK;
    return ps_json_fail(cell, "bad-cell", reader->status,
                        "a cell is a stage, one of F B I W, and a micro-batch, such as \"0F12\"");
}

ps_code ps_plan_read_cell(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_plan_event *event)
{
    ps_json cell;
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_STRING, &cell));
    event->ends_step = ps_step_op_parse(ps_json_text(cell), &event->step);
    return event->ends_step ? PS_OK : read_cell(reader, cell, &event->op);
}

// Entries with a cell are ops, also those that end the step; the others are transfers. Plans without a timeline are
// complete.
ps_code ps_plan_read_timeline(ps_plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_plan *plan = reader->plan;
    ps_json array = ps_json_member(object, field->key);
    if (!array.node)
        return PS_OK;
    PS_TRY(ps_plan_array(reader, object, field, &array));
    plan->has_timeline = true;
    plan->event = ps_new(reader->arena, ps_plan_event, ps_json_count(array));
    for (ps_json item = ps_json_first(array); item.node; item = ps_json_next(item)) {
        ps_plan_event *event = &plan->event[plan->num_events++];
        PS_TRY(ps_json_expect(item, PS_JSON_OBJECT, reader->status));
        event->is_transfer = !ps_json_member(item, "cell").node;
        PS_TRY(ps_plan_read_table(reader, item, event->is_transfer ? &ps_plan_transfer_fields : &ps_plan_op_fields,
                                  event));
    }
    return PS_OK;
}

ps_code ps_plan_read_cells(ps_plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_schedule *schedule = &reader->plan->schedule;
    ps_json array;
    PS_TRY(ps_plan_array(reader, object, field, &array));
    int64_t devices = ps_json_count(array);
    int64_t ops = 0;
    if (devices > PS_MAX_DEVICES)
        return ps_json_fail(array, "out-of-range", reader->status, "%" PRId64 " lists of cells, limit %" PRId32,
                            devices, PS_MAX_DEVICES);
    for (ps_json list = ps_json_first(array); list.node; list = ps_json_next(list)) {
        PS_TRY(ps_json_expect(list, PS_JSON_ARRAY, reader->status));
        ops += ps_json_count(list);
        if (ops > PS_MAX_OPS)
            return ps_json_fail(list, "too-many-ops", reader->status, "more than %" PRId64 " cells",
                                (int64_t)PS_MAX_OPS);
    }
    schedule->first = ps_new(reader->arena, int32_t, devices + 1);
    schedule->op = ps_new_raw(reader->arena, ps_op, ops);
    ps_op *op = schedule->op;
    for (ps_json list = ps_json_first(array); list.node; list = ps_json_next(list)) {
        for (ps_json cell = ps_json_first(list); cell.node; cell = ps_json_next(cell)) {
            PS_TRY(read_cell(reader, cell, op));
            op++;
        }
        schedule->first[++schedule->num_devices] = (int32_t)(op - schedule->op);
    }
    return PS_OK;
}

ps_code ps_plan_read_counts(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_plan_search *search)
{
    ps_json counts;
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_OBJECT, &counts));
    if (ps_json_count(counts) > field->max)
        return ps_json_fail(counts, "out-of-range", reader->status, "at most %" PRId64 " rules", field->max);
    search->infeasible = ps_new(reader->arena, ps_plan_count, ps_json_count(counts));
    for (ps_json item = ps_json_first(counts); item.node; item = ps_json_next(item)) {
        ps_plan_count *count = &search->infeasible[search->num_infeasible++];
        count->rule = ps_text_copy(reader->arena, ps_json_key(item));
        PS_TRY(ps_json_get_int(counts, ps_json_key(item), PS_REQUIRED, 0, INT64_C(1) << 53, &count->count,
                               reader->status));
    }
    return PS_OK;
}

static void note_unknown_target(ps_plan_reader *reader, const char *name)
{
    for (int32_t index = 0; index < ps_dialect_count(); index++)
        if (strcmp(ps_dialect_at(index)->target, name) == 0)
            return;
    *ps_vec_push(reader->arena, &reader->unknown) =
        (ps_plan_diagnostic){.level = "warning",
                             .code = "unknown-target",
                             .message = ps_text_format(
                                 reader->arena, "/launchable/%.80s: unknown target, its verdict is not checked", name)};
}

ps_code ps_plan_read_launchable(ps_plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_plan *plan = reader->plan;
    ps_json targets;
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_OBJECT, &targets));
    if (ps_json_count(targets) > field->max)
        return ps_json_fail(targets, "out-of-range", reader->status, "at most %" PRId64 " targets", field->max);
    plan->launchable = ps_new(reader->arena, ps_plan_launchable, ps_json_count(targets));
    for (ps_json item = ps_json_first(targets); item.node; item = ps_json_next(item)) {
        PS_TRY(ps_json_expect(item, PS_JSON_STRING, reader->status));
        note_unknown_target(reader, ps_json_key(item));
        plan->launchable[plan->num_launchable++] =
            (ps_plan_launchable){.target = ps_text_copy(reader->arena, ps_json_key(item)),
                                 .verdict = ps_text_copy(reader->arena, ps_json_text(item))};
    }
    return PS_OK;
}

ps_code ps_plan_read_tool(ps_plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_json tool;
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_OBJECT, &tool));
    const char *version = NULL;
    PS_TRY(ps_json_get_string(tool, "version", PS_REQUIRED, &version, reader->status));
    reader->plan->tool_version = ps_text_copy(reader->arena, version);
    return PS_OK;
}

ps_code ps_plan_read_target(ps_plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_json target;
    const char *name = "";
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_OBJECT, &target));
    PS_TRY(ps_json_get_string(target, "name", PS_REQUIRED, &name, reader->status));
    if (strcmp(name, "any") != 0)
        return ps_json_fail(target, "plan-target", reader->status, "the only target known here is \"any\", got \"%s\"",
                            name);
    ps_json version = ps_json_member(target, "version");
    if (version.node && !ps_json_is(version, PS_JSON_NULL))
        return ps_json_fail(version, "plan-target", reader->status, "target \"any\" has no version");
    return PS_OK;
}
