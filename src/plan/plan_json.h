// SPDX-License-Identifier: Apache-2.0
//
// plan_json.h: pipesched/plan/v1 as tables of fields, in the order in which they are written.
//
// Writer and reader walk the same tables, so a field is one row: key, kind, place in the struct, range. What has a
// shape of its own (verdict, cells, counts by rule) is a kind of its own.
#ifndef PS_PLAN_PLAN_JSON_H
#define PS_PLAN_PLAN_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipesched/plan.h"

#define PS_PLAN_FORMAT_PREFIX "pipesched/plan/v"
#define PS_PLAN_FORMAT "pipesched/plan/v1"

typedef enum ps_field_kind {
    PS_FIELD_INT32,
    PS_FIELD_INT64,
    PS_FIELD_NS,       // int64 nanoseconds, printed as exact milliseconds
    PS_FIELD_PLAIN_NS, // the same under a key without _ms
    PS_FIELD_DOUBLE,
    PS_FIELD_BOOL,
    PS_FIELD_TEXT,
    PS_FIELD_NAME,       // an enum, or an int32 or bool that is one of few values; printed by name
    PS_FIELD_NAME_AGAIN, // the same value told a second time: refused when it differs from the first
    PS_FIELD_SET,        // ps_int_set: "auto" or a list
    PS_FIELD_BITS,       // an int32 whose bits have names: a list of these
    PS_FIELD_OBJECT,     // a struct in place
    PS_FIELD_ARRAY,      // count and pointer to structs
    PS_FIELD_TOOL,
    PS_FIELD_FORMAT,
    PS_FIELD_VERDICT,
    PS_FIELD_TARGET,
    PS_FIELD_LAYER_IDS,
    PS_FIELD_LAYER_NAMES,
    PS_FIELD_STAGE_LIST,
    PS_FIELD_RANK_MAP,
    PS_FIELD_CELLS,
    PS_FIELD_CELL,   // one op of a timeline
    PS_FIELD_COUNTS, // search.infeasible
    PS_FIELD_LAUNCHABLE,
    PS_FIELD_TIMELINE
} ps_field_kind;

// The name of a value, or NULL for a value that has none; `bytes` values are not contiguous, hence `last`.
typedef struct ps_field_names {
    const char *(*name)(int value);
    int first;
    int last;
} ps_field_names;

typedef struct ps_field_table ps_field_table;

typedef struct ps_field {
    const char *key;
    ps_field_kind kind;
    size_t offset;               // of the value, or of the pointer to the elements
    size_t count_offset;         // arrays: of the int32 count
    size_t element_size;         // arrays
    const ps_field_table *table; // objects and arrays
    const ps_field_names *names; // names, and sets of them
    int64_t min;
    int64_t max;          // of the value, or of the number of elements
    bool optional;        // may be absent or null; left out: an integer of 0, a real below 0, an object whose first
                          // member is a text that is NULL
    bool one_line;        // objects: written on one line
    bool when_infeasible; // top level: also part of a plan whose verdict is infeasible
} ps_field;

struct ps_field_table {
    int32_t count;
    const ps_field *field;
};

extern const ps_field_table ps_plan_fields;

// The value of a named field, whose member is an int32, an enum or a bool.
int ps_field_get_name(const ps_field *field, const void *object);
void ps_field_set_name(const ps_field *field, void *object, int value);

// One entry of `timeline`: an op or a transfer.
extern const ps_field_table ps_plan_op_fields;
extern const ps_field_table ps_plan_transfer_fields;

#endif
