// SPDX-License-Identifier: Apache-2.0
//
// plan_json_read.h: what the two files that read plans share.
#ifndef PS_PLAN_PLAN_JSON_READ_H
#define PS_PLAN_PLAN_JSON_READ_H

#include "base/vec.h"
#include "io/json_read.h"
#include "plan/plan_json.h"

typedef struct ps_plan_reader {
    ps_arena *arena;
    ps_plan *plan;
    ps_vec(ps_plan_diagnostic) unknown; // warnings of unknown keys and targets
    ps_status *status;
} ps_plan_reader;

// An object into the struct that the table describes.
ps_code ps_plan_read_table(ps_plan_reader *reader, ps_json object, const ps_field_table *table, void *to);

// The member that a field names, which must be there and of this type; for arrays, no longer than the field allows.
ps_code ps_plan_member(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_json_type type, ps_json *out);
ps_code ps_plan_array(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_json *out);
// A whole number from 0 to max that is no member of an object.
ps_code ps_plan_int(ps_plan_reader *reader, ps_json value, int32_t max, int32_t *out);

ps_code ps_plan_read_layer_ids(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_plan_stage *stage);
ps_code ps_plan_read_layer_names(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_plan_stage *stage);
ps_code ps_plan_read_stage_list(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_plan_device *device);
ps_code ps_plan_read_rank_map(ps_plan_reader *reader, ps_json object, const ps_field *field);
ps_code ps_plan_read_cells(ps_plan_reader *reader, ps_json object, const ps_field *field);
ps_code ps_plan_read_cell(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_plan_event *event);
ps_code ps_plan_read_timeline(ps_plan_reader *reader, ps_json object, const ps_field *field);
ps_code ps_plan_read_counts(ps_plan_reader *reader, ps_json object, const ps_field *field, ps_plan_search *search);
ps_code ps_plan_read_launchable(ps_plan_reader *reader, ps_json object, const ps_field *field);
ps_code ps_plan_read_tool(ps_plan_reader *reader, ps_json object, const ps_field *field);
ps_code ps_plan_read_target(ps_plan_reader *reader, ps_json object, const ps_field *field);

#endif
