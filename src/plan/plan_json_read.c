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
#include "base/vec.h"
#include "io/json_read.h"
#include "pipesched/limits.h"
#include "plan/plan_json.h"

enum { MAX_UNKNOWN_KEYS = 100 };

typedef struct plan_reader {
    ps_arena *arena;
    ps_plan *plan;
    ps_vec(ps_plan_diagnostic) unknown;
    ps_status *status;
} plan_reader;

static ps_code read_table(plan_reader *reader, ps_json object, const ps_field_table *table, void *to);

static void *place(const ps_field *field, void *object)
{
    return (char *)object + field->offset;
}

static ps_need need_of(const ps_field *field)
{
    return field->optional ? PS_OPTIONAL : PS_REQUIRED;
}

static ps_code member_of(plan_reader *reader, ps_json object, const ps_field *field, ps_json_type type, ps_json *out)
{
    *out = ps_json_member(object, field->key);
    if (!out->node)
        return ps_json_fail(object, "missing-key", reader->status, "\"%s\" is missing", field->key);
    return ps_json_expect(*out, type, reader->status);
}

static ps_code array_of(plan_reader *reader, ps_json object, const ps_field *field, ps_json *out)
{
    PS_TRY(member_of(reader, object, field, PS_JSON_ARRAY, out));
    int64_t count = ps_json_count(*out);
    if (field->max > 0 && count > field->max)
        return ps_json_fail(*out, "out-of-range", reader->status, "at most %" PRId64 " entries, got %" PRId64,
                            field->max, count);
    return PS_OK;
}

static ps_code int_of(plan_reader *reader, ps_json value, int32_t max, int32_t *out)
{
    PS_TRY(ps_json_expect(value, PS_JSON_NUMBER, reader->status));
    double number = ps_json_number(value);
    if (!(number >= 0 && number <= max) || number != (double)(int32_t)number)
        return ps_json_fail(value, "out-of-range", reader->status, "a whole number from 0 to %" PRId32 " is expected",
                            max);
    *out = (int32_t)number;
    return PS_OK;
}

static ps_code name_of(plan_reader *reader, ps_json value, const ps_field_names *names, int *out)
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

static ps_code read_name(plan_reader *reader, ps_json object, const ps_field *field, void *to)
{
    ps_json value;
    int name;
    PS_TRY(member_of(reader, object, field, PS_JSON_STRING, &value));
    PS_TRY(name_of(reader, value, field->names, &name));
    int before = ps_field_get_name(field, to);
    if (field->kind == PS_FIELD_NAME_AGAIN && before != name)
        return ps_json_fail(value, "plan-contradiction", reader->status, "the layout says \"%s\", here it is \"%s\"",
                            field->names->name(before), field->names->name(name));
    ps_field_set_name(field, to, name);
    return PS_OK;
}

static ps_code read_set(plan_reader *reader, ps_json object, const ps_field *field, ps_int_set *set)
{
    ps_json value = ps_json_member(object, field->key);
    *set = (ps_int_set){0};
    if (ps_json_is(value, PS_JSON_STRING) && strcmp(ps_json_text(value), "auto") == 0)
        return PS_OK;
    PS_TRY(member_of(reader, object, field, PS_JSON_ARRAY, &value));
    if (ps_json_count(value) < 1 || ps_json_count(value) > PS_SET_MAX)
        return ps_json_fail(value, "out-of-range", reader->status, "\"auto\" or 1 to %d values are expected",
                            (int)PS_SET_MAX);
    for (ps_json item = ps_json_first(value); item.node; item = ps_json_next(item)) {
        int32_t *slot = &set->value[set->count++];
        if (field->names)
            PS_TRY(name_of(reader, item, field->names, slot));
        else
            PS_TRY(int_of(reader, item, (int32_t)field->max, slot));
        if (!field->names && *slot < 1)
            return ps_json_fail(item, "out-of-range", reader->status, "at least 1 is expected");
    }
    return PS_OK;
}

static ps_code read_array(plan_reader *reader, ps_json object, const ps_field *field, void *to)
{
    ps_json array;
    PS_TRY(array_of(reader, object, field, &array));
    int32_t count = (int32_t)ps_json_count(array);
    char *element = ps_arena_alloc(reader->arena, count, (int64_t)field->element_size);
    void *first = element;
    memcpy((char *)to + field->count_offset, &count, sizeof count);
    memcpy(place(field, to), &first, sizeof first);
    for (ps_json item = ps_json_first(array); item.node; item = ps_json_next(item)) {
        PS_TRY(read_table(reader, item, field->table, element));
        element += field->element_size;
    }
    return PS_OK;
}

static ps_code read_layer_ids(plan_reader *reader, ps_json object, const ps_field *field, ps_plan_stage *stage)
{
    ps_json array;
    PS_TRY(array_of(reader, object, field, &array));
    int64_t count = ps_json_count(array);
    stage->first_layer = ps_new(reader->arena, int32_t, count);
    stage->last_layer = ps_new(reader->arena, int32_t, count);
    for (ps_json range = ps_json_first(array); range.node; range = ps_json_next(range)) {
        int32_t index = stage->num_ranges++;
        PS_TRY(ps_json_expect(range, PS_JSON_ARRAY, reader->status));
        if (ps_json_count(range) != 2)
            return ps_json_fail(range, "layer-range", reader->status, "a range is [first, last]");
        ps_json first = ps_json_first(range);
        PS_TRY(int_of(reader, first, PS_MAX_LAYERS, &stage->first_layer[index]));
        PS_TRY(int_of(reader, ps_json_next(first), PS_MAX_LAYERS, &stage->last_layer[index]));
        if (stage->last_layer[index] < stage->first_layer[index])
            return ps_json_fail(range, "layer-range", reader->status, "the range ends before it begins");
    }
    return PS_OK;
}

static ps_code read_layer_names(plan_reader *reader, ps_json object, const ps_field *field, ps_plan_stage *stage)
{
    ps_json array;
    PS_TRY(array_of(reader, object, field, &array));
    stage->layer_name = ps_new(reader->arena, const char *, ps_json_count(array));
    for (ps_json name = ps_json_first(array); name.node; name = ps_json_next(name)) {
        PS_TRY(ps_json_expect(name, PS_JSON_STRING, reader->status));
        stage->layer_name[stage->num_layers++] = ps_text_copy(reader->arena, ps_json_text(name));
    }
    return PS_OK;
}

static ps_code read_stage_list(plan_reader *reader, ps_json object, const ps_field *field, ps_plan_device *device)
{
    ps_json array;
    PS_TRY(array_of(reader, object, field, &array));
    device->stage = ps_new(reader->arena, int32_t, ps_json_count(array));
    for (ps_json item = ps_json_first(array); item.node; item = ps_json_next(item))
        PS_TRY(int_of(reader, item, PS_MAX_STAGES, &device->stage[device->num_stages++]));
    return PS_OK;
}

static ps_code read_rank_map(plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_plan *plan = reader->plan;
    ps_json array = ps_json_member(object, field->key);
    if (!array.node || ps_json_is(array, PS_JSON_NULL))
        return PS_OK;
    PS_TRY(array_of(reader, object, field, &array));
    if (ps_json_count(array) != plan->num_ranks)
        return ps_json_fail(array, "rank-count", reader->status, "%" PRId64 " entries for %" PRId64 " ranks",
                            ps_json_count(array), plan->num_ranks);
    plan->rank = ps_new(reader->arena, ps_plan_rank, plan->num_ranks);
    ps_plan_rank *rank = plan->rank;
    for (ps_json item = ps_json_first(array); item.node; item = ps_json_next(item))
        PS_TRY(read_table(reader, item, field->table, rank++));
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
    static const char letters[] = {'F', 'B', 'I', 'W'}; // by ps_op_kind
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

static ps_code read_cells(plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_schedule *schedule = &reader->plan->schedule;
    ps_json array;
    PS_TRY(array_of(reader, object, field, &array));
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
            if (!ps_json_is(cell, PS_JSON_STRING) || !parse_cell(ps_json_text(cell), op))
                return ps_json_fail(cell, "bad-cell", reader->status,
                                    "a cell is a stage, one of F B I W, and a micro-batch, such as \"0F12\"");
            op++;
        }
        schedule->first[++schedule->num_devices] = (int32_t)(op - schedule->op);
    }
    return PS_OK;
}

static ps_code read_counts(plan_reader *reader, ps_json object, const ps_field *field, ps_plan_search *search)
{
    ps_json counts;
    PS_TRY(member_of(reader, object, field, PS_JSON_OBJECT, &counts));
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

static ps_code read_launchable(plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_plan *plan = reader->plan;
    ps_json targets;
    PS_TRY(member_of(reader, object, field, PS_JSON_OBJECT, &targets));
    if (ps_json_count(targets) > field->max)
        return ps_json_fail(targets, "out-of-range", reader->status, "at most %" PRId64 " targets", field->max);
    plan->launchable = ps_new(reader->arena, ps_plan_launchable, ps_json_count(targets));
    for (ps_json item = ps_json_first(targets); item.node; item = ps_json_next(item)) {
        PS_TRY(ps_json_expect(item, PS_JSON_STRING, reader->status));
        plan->launchable[plan->num_launchable++] =
            (ps_plan_launchable){.target = ps_text_copy(reader->arena, ps_json_key(item)),
                                 .verdict = ps_text_copy(reader->arena, ps_json_text(item))};
    }
    return PS_OK;
}

static ps_code read_format(plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_json value;
    PS_TRY(member_of(reader, object, field, PS_JSON_STRING, &value));
    const char *format = ps_json_text(value);
    if (strcmp(format, PS_PLAN_FORMAT) == 0)
        return PS_OK;
    ps_json_fail(value, "plan-version", reader->status, "expected \"%s\", got \"%s\"", PS_PLAN_FORMAT, format);
    if (strncmp(format, PS_PLAN_FORMAT_PREFIX, strlen(PS_PLAN_FORMAT_PREFIX)) == 0)
        return ps_fail_hint(reader->status, "the plan is of another major version: use the pipesched that wrote it");
    return ps_fail_hint(reader->status, "this is not a plan; \"pipesched plan\" writes one");
}

static ps_code read_tool(plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_json tool;
    PS_TRY(member_of(reader, object, field, PS_JSON_OBJECT, &tool));
    const char *version = NULL;
    PS_TRY(ps_json_get_string(tool, "version", PS_REQUIRED, &version, reader->status));
    reader->plan->tool_version = ps_text_copy(reader->arena, version);
    return PS_OK;
}

static ps_code read_verdict(plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_json value;
    PS_TRY(member_of(reader, object, field, PS_JSON_STRING, &value));
    reader->plan->feasible = strcmp(ps_json_text(value), "feasible") == 0;
    if (!reader->plan->feasible && strcmp(ps_json_text(value), "infeasible") != 0)
        return ps_json_fail(value, "unknown-name", reader->status, "\"feasible\" or \"infeasible\" is expected");
    return PS_OK;
}

static ps_code read_target(plan_reader *reader, ps_json object, const ps_field *field)
{
    ps_json target;
    const char *name = "";
    PS_TRY(member_of(reader, object, field, PS_JSON_OBJECT, &target));
    PS_TRY(ps_json_get_string(target, "name", PS_REQUIRED, &name, reader->status));
    if (strcmp(name, "any") != 0)
        return ps_json_fail(target, "plan-target", reader->status, "the only target known here is \"any\", got \"%s\"",
                            name);
    ps_json version = ps_json_member(target, "version");
    if (version.node && !ps_json_is(version, PS_JSON_NULL))
        return ps_json_fail(version, "plan-target", reader->status, "target \"any\" has no version");
    return PS_OK;
}

static ps_code read_text(plan_reader *reader, ps_json object, const ps_field *field, void *to)
{
    const char *text = NULL;
    PS_TRY(ps_json_get_string(object, field->key, need_of(field), &text, reader->status));
    text = text ? ps_text_copy(reader->arena, text) : NULL;
    memcpy(place(field, to), &text, sizeof text);
    return PS_OK;
}

static ps_code read_object(plan_reader *reader, ps_json object, const ps_field *field, void *to)
{
    ps_json member;
    PS_TRY(member_of(reader, object, field, PS_JSON_OBJECT, &member));
    return read_table(reader, member, field->table, place(field, to));
}

static ps_code read_value(plan_reader *reader, ps_json object, const ps_field *field, void *to)
{
    ps_status *status = reader->status;
    ps_need need = need_of(field);
    void *at = place(field, to);
    switch (field->kind) {
    case PS_FIELD_INT32:
        return ps_json_get_int32(object, field->key, need, (int32_t)field->min, (int32_t)field->max, at, status);
    case PS_FIELD_INT64: return ps_json_get_int(object, field->key, need, field->min, field->max, at, status);
    case PS_FIELD_NS: return ps_json_get_ms(object, field->key, need, field->max, at, status);
    case PS_FIELD_DOUBLE: return ps_json_get_double(object, field->key, need, -1e300, 1e300, at, status);
    case PS_FIELD_BOOL: return ps_json_get_bool(object, field->key, need, at, status);
    case PS_FIELD_TEXT: return read_text(reader, object, field, to);
    case PS_FIELD_NAME:
    case PS_FIELD_NAME_AGAIN: return read_name(reader, object, field, to);
    case PS_FIELD_SET: return read_set(reader, object, field, at);
    case PS_FIELD_OBJECT: return read_object(reader, object, field, to);
    case PS_FIELD_ARRAY: return read_array(reader, object, field, to);
    case PS_FIELD_TOOL: return read_tool(reader, object, field);
    case PS_FIELD_FORMAT: return read_format(reader, object, field);
    case PS_FIELD_VERDICT: return read_verdict(reader, object, field);
    case PS_FIELD_TARGET: return read_target(reader, object, field);
    case PS_FIELD_LAYER_IDS: return read_layer_ids(reader, object, field, to);
    case PS_FIELD_LAYER_NAMES: return read_layer_names(reader, object, field, to);
    case PS_FIELD_STAGE_LIST: return read_stage_list(reader, object, field, to);
    case PS_FIELD_RANK_MAP: return read_rank_map(reader, object, field);
    case PS_FIELD_CELLS: return read_cells(reader, object, field);
    case PS_FIELD_COUNTS: return read_counts(reader, object, field, to);
    case PS_FIELD_LAUNCHABLE: return read_launchable(reader, object, field);
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
    return table == &ps_plan_fields && strcmp(key, "timeline") == 0;
}

static void note_unknown_keys(plan_reader *reader, ps_json object, const ps_field_table *table)
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

static ps_code read_table(plan_reader *reader, ps_json object, const ps_field_table *table, void *to)
{
    PS_TRY(ps_json_expect(object, PS_JSON_OBJECT, reader->status));
    note_unknown_keys(reader, object, table);
    for (int32_t index = 0; index < table->count; index++)
        PS_TRY(read_value(reader, object, &table->field[index], to));
    return PS_OK;
}

static void append_unknown_keys(plan_reader *reader)
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

ps_code ps_plan_read_json(ps_arena *arena, const char *source, const char *text, int64_t size, ps_plan *out,
                          ps_status *status)
{
    *out = (ps_plan){0};
    ps_job_init(&out->inputs.job);
    ps_json root;
    PS_TRY(ps_json_parse(arena, source, text, size, &root, status));
    PS_TRY(ps_json_expect(root, PS_JSON_OBJECT, status));

    plan_reader reader = {.arena = arena, .plan = out, .status = status};
    note_unknown_keys(&reader, root, &ps_plan_fields);
    for (int32_t index = 0; index < ps_plan_fields.count; index++) {
        const ps_field *field = &ps_plan_fields.field[index];
        if (field->kind == PS_FIELD_FORMAT || out->feasible || field->when_infeasible)
            PS_TRY(read_value(&reader, root, field, out));
    }
    append_unknown_keys(&reader);
    return PS_OK;
}
