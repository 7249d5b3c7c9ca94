// SPDX-License-Identifier: Apache-2.0
//
// plan_json_read.c: pipesched/plan/v1 back into a plan, strict about shapes and ranges.
//
// What the figures say is not judged here: that is the checker's work, which needs them as they are written. Nothing is
// allocated that the text does not hold, so a hostile file costs no more memory than its own size. Unknown keys are
// warnings, since version 1 grows by addition.
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "pipesched/limits.h"
#include "plan/plan_json_read.h"

enum { MAX_UNKNOWN_KEYS = 100 };

static void *place(const ps_field *field, void *object)
{
    return (char *)object + field->offset;
}

static ps_need need_of(const ps_field *field)
{
    return field->optional ? PS_OPTIONAL : PS_REQUIRED;
}

static ps_code name_of(ps_plan_reader *reader, ps_json value, const ps_field_names *names, int *out)
{
    PS_TRY(ps_json_expect(value, PS_JSON_STRING, reader->status));
    for (int known = names->first; known <= names->last; known++) {
        const char *name = names->name(known);
        if (name && strcmp(name, ps_json_text(value)) == 0) {
            *out = known;
            return PS_OK;
        }
    }
    return ps_json_fail(value, "unknown-name", reader->status, "\"%s\" is not known here", ps_json_text(value));
}

static ps_code read_name(ps_plan_reader *reader, ps_json object, const ps_field *field, void *to)
{
    ps_json value;
    int name = 0;
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_STRING, &value));
    PS_TRY(name_of(reader, value, field->names, &name));
    int before = ps_field_get_name(field, to);
    if (field->kind == PS_FIELD_NAME_AGAIN && before != name)
        return ps_json_fail(value, "plan-contradiction", reader->status, "the layout says \"%s\", here it is \"%s\"",
                            field->names->name(before), field->names->name(name));
    ps_field_set_name(field, to, name);
    return PS_OK;
}

static ps_code read_set(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_int_set *set)
{
    ps_json value = ps_json_member(object, field->key);
    *set = (ps_int_set){0};
    if (ps_json_is(value, PS_JSON_STRING) && strcmp(ps_json_text(value), "auto") == 0)
        return PS_OK;
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_ARRAY, &value));
    if (ps_json_count(value) < 1 || ps_json_count(value) > PS_SET_MAX)
        return ps_json_fail(value, "out-of-range", reader->status, "\"auto\" or 1 to %d values are expected",
                            (int)PS_SET_MAX);
    for (ps_json item = ps_json_first(value); item.node; item = ps_json_next(item)) {
        int32_t *slot = &set->value[set->count++];
        if (field->names)
            PS_TRY(name_of(reader, item, field->names, slot));
        else
            PS_TRY(ps_plan_int(reader, item, (int32_t)field->max, slot));
        if (!field->names && *slot < 1)
            return ps_json_fail(item, "out-of-range", reader->status, "at least 1 is expected");
    }
    return PS_OK;
}

static ps_code read_bits(ps_plan_reader *reader, ps_json object, const ps_field *field, int32_t *bits)
{
    ps_json array;
    PS_TRY(ps_plan_array(reader, object, field, &array));
    *bits = 0;
    for (ps_json item = ps_json_first(array); item.node; item = ps_json_next(item)) {
        int bit = 0;
        PS_TRY(name_of(reader, item, field->names, &bit));
        *bits |= 1 << bit;
    }
    return PS_OK;
}

static ps_code read_array(ps_plan_reader *reader, ps_json object, const ps_field *field, void *to)
{
    ps_json array;
    PS_TRY(ps_plan_array(reader, object, field, &array));
    int32_t count = (int32_t)ps_json_count(array);
    char *element = ps_arena_alloc(reader->arena, count, (int64_t)field->element_size);
    void *first = element;
    memcpy((char *)to + field->count_offset, &count, sizeof count);
    memcpy(place(field, to), &first, sizeof first);
    for (ps_json item = ps_json_first(array); item.node; item = ps_json_next(item)) {
        PS_TRY(ps_plan_read_table(reader, item, field->table, element));
        element += field->element_size;
    }
    return PS_OK;
}

static ps_code read_format(ps_plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_json value;
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_STRING, &value));
    const char *format = ps_json_text(value);
    if (strcmp(format, PS_PLAN_FORMAT) == 0)
        return PS_OK;
    ps_json_fail(value, "plan-version", reader->status, "expected \"%s\", got \"%s\"", PS_PLAN_FORMAT, format);
    if (strncmp(format, PS_PLAN_FORMAT_PREFIX, strlen(PS_PLAN_FORMAT_PREFIX)) == 0)
        return ps_fail_hint(reader->status, "the plan is of another major version: use the pipesched that wrote it");
    return ps_fail_hint(reader->status, "this is not a plan; \"pipesched plan\" writes one");
}

static ps_code read_verdict(ps_plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_json value;
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_STRING, &value));
    reader->plan->feasible = strcmp(ps_json_text(value), "feasible") == 0;
    if (!reader->plan->feasible && strcmp(ps_json_text(value), "infeasible") != 0)
        return ps_json_fail(value, "unknown-name", reader->status, "\"feasible\" or \"infeasible\" is expected");
    return PS_OK;
}

static ps_code read_text(ps_plan_reader *reader, ps_json object, const ps_field *field, void *to)
{
    const char *text = NULL;
    PS_TRY(ps_json_get_string(object, field->key, need_of(field), &text, reader->status));
    text = text ? ps_text_copy(reader->arena, text) : NULL;
    memcpy(place(field, to), &text, sizeof text);
    return PS_OK;
}

static ps_code read_object(ps_plan_reader *reader, ps_json object, const ps_field *field, void *to)
{
    ps_json member = ps_json_member(object, field->key);
    if (field->optional && (!member.node || ps_json_is(member, PS_JSON_NULL)))
        return PS_OK;
    PS_TRY(ps_plan_member(reader, object, field, PS_JSON_OBJECT, &member));
    return ps_plan_read_table(reader, member, field->table, place(field, to));
}

static ps_code read_value(ps_plan_reader *reader, ps_json object, const ps_field *field, void *to)
{
    ps_status *status = reader->status;
    ps_need need = need_of(field);
    void *at = place(field, to);
    switch (field->kind) {
    case PS_FIELD_INT32:
        return ps_json_get_int32(object, field->key, need, (int32_t)field->min, (int32_t)field->max, at, status);
    case PS_FIELD_INT64: return ps_json_get_int(object, field->key, need, field->min, field->max, at, status);
    case PS_FIELD_NS: return ps_json_get_ms(object, field->key, need, field->max, at, status);
    case PS_FIELD_PLAIN_NS: return ps_json_get_plain_ms(object, field->key, need, field->max, at, status);
    case PS_FIELD_DOUBLE: return ps_json_get_double(object, field->key, need, -1e300, 1e300, at, status);
    case PS_FIELD_BOOL: return ps_json_get_bool(object, field->key, need, at, status);
    case PS_FIELD_TEXT: return read_text(reader, object, field, to);
    case PS_FIELD_NAME:
    case PS_FIELD_NAME_AGAIN: return read_name(reader, object, field, to);
    case PS_FIELD_BITS: return read_bits(reader, object, field, at);
    case PS_FIELD_SET: return read_set(reader, object, field, at);
    case PS_FIELD_OBJECT: return read_object(reader, object, field, to);
    case PS_FIELD_ARRAY: return read_array(reader, object, field, to);
    case PS_FIELD_TOOL: return ps_plan_read_tool(reader, object, field);
    case PS_FIELD_FORMAT: return read_format(reader, object, field);
    case PS_FIELD_VERDICT: return read_verdict(reader, object, field);
    case PS_FIELD_TARGET: return ps_plan_read_target(reader, object, field);
    case PS_FIELD_LAYER_IDS: return ps_plan_read_layer_ids(reader, object, field, to);
    case PS_FIELD_LAYER_NAMES: return ps_plan_read_layer_names(reader, object, field, to);
    case PS_FIELD_STAGE_LIST: return ps_plan_read_stage_list(reader, object, field, to);
    case PS_FIELD_RANK_MAP: return ps_plan_read_rank_map(reader, object, field);
    case PS_FIELD_CELLS: return ps_plan_read_cells(reader, object, field);
    case PS_FIELD_CELL: return ps_plan_read_cell(reader, object, field, to);
    case PS_FIELD_COUNTS: return ps_plan_read_counts(reader, object, field, to);
    case PS_FIELD_LAUNCHABLE: return ps_plan_read_launchable(reader, object, field);
    case PS_FIELD_TIMELINE: return ps_plan_read_timeline(reader, object, field);
    }
    return PS_OK;
}

static bool is_known_key(const char *key, const ps_field_table *table)
{
    if (key[0] == '_' || key[0] == '$') // comments
        return true;
    for (int32_t index = 0; index < table->count; index++)
        if (strcmp(table->field[index].key, key) == 0)
            return true;
    return false;
}

static void note_unknown_keys(ps_plan_reader *reader, ps_json object, const ps_field_table *table)
{
    for (ps_json member = ps_json_first(object); member.node; member = ps_json_next(member)) {
        const char *key = ps_json_key(member);
        if (is_known_key(key, table) || reader->unknown.count == MAX_UNKNOWN_KEYS)
            continue;
        ps_status at = {0};
        ps_json_fail(member, "unknown-key", &at, "unknown key");
        *ps_vec_push(reader->arena, &reader->unknown) =
            (ps_plan_diagnostic){.level = "warning",
                                 .code = "unknown-key",
                                 .message = ps_text_format(reader->arena, "%s: unknown key", at.pointer)};
    }
}

ps_code ps_plan_read_table(ps_plan_reader *reader, ps_json object, const ps_field_table *table, void *to)
{
    PS_TRY(ps_json_expect(object, PS_JSON_OBJECT, reader->status));
    note_unknown_keys(reader, object, table);
    for (int32_t index = 0; index < table->count; index++)
        PS_TRY(read_value(reader, object, &table->field[index], to));
    return PS_OK;
}

static void append_unknown_keys(ps_plan_reader *reader)
{
    ps_plan *plan = reader->plan;
    int64_t known = plan->num_diagnostics;
    if (reader->unknown.count == 0)
        return;
    ps_plan_diagnostic *all = ps_new(reader->arena, ps_plan_diagnostic, known + reader->unknown.count);
    if (known > 0)
        memcpy(all, plan->diagnostic, (size_t)known * sizeof *all);
    memcpy(all + known, reader->unknown.data, (size_t)reader->unknown.count * sizeof *all);
    plan->diagnostic = all;
    plan->num_diagnostics = (int32_t)(known + reader->unknown.count);
}

// The stages say where an order that was searched for has them; the checker sees whether all agree.
static void find_placement(ps_plan *plan)
{
    const ps_layout *layout = &plan->layout;
    bool turns = layout->schedule == PS_SCHEDULE_ZB && layout->pp > 1 && plan->num_stages > layout->pp &&
                 plan->stage[layout->pp].pp_rank == layout->pp - 1;
    plan->layout.placement = turns ? PS_PLACEMENT_V : PS_PLACEMENT_LOOP;
}

ps_code ps_plan_read_json(ps_arena *arena, const char *source, const char *text, int64_t size, ps_plan *out,
                          ps_status *status)
{
    *out = (ps_plan){0};
    ps_job_init(&out->inputs.job);
    out->inputs.job.jitter_samples = 0; // unless the plan says so
    out->inputs.calibration.leave_one_out = -1;
    ps_json root;
    PS_TRY(ps_json_parse(arena, source, text, size, &root, status));
    PS_TRY(ps_json_expect(root, PS_JSON_OBJECT, status));

    ps_plan_reader reader = {.arena = arena, .plan = out, .status = status};
    note_unknown_keys(&reader, root, &ps_plan_fields);
    for (int32_t index = 0; index < ps_plan_fields.count; index++) {
        const ps_field *field = &ps_plan_fields.field[index];
        if (field->kind == PS_FIELD_FORMAT || out->feasible || field->when_infeasible)
            PS_TRY(read_value(&reader, root, field, out));
    }
    append_unknown_keys(&reader);
    find_placement(out);
    ps_plan_set_sends(out);
    return PS_OK;
}
