// SPDX-License-Identifier: Apache-2.0
//
// plan_json_rows.h: how a row of a plan's tables of fields is written down.
#ifndef PS_PLAN_PLAN_JSON_ROWS_H
#define PS_PLAN_PLAN_JSON_ROWS_H

#include "pipesched/limits.h"
#include "plan/plan_json.h"

// Strict JSON carries integers up to 2^53; sizes beyond are of no machine.
#define MAX_JSON_INT (INT64_C(1) << 53)

extern const ps_field_names ps_schedule_names;
extern const ps_field_names ps_recompute_names;
extern const ps_field_table ps_plan_job_fields; // plan_json_job.c

#define TABLE(rows)                                                                                                    \
    {                                                                                                                  \
        .count = (int32_t)(sizeof(rows) / sizeof(rows)[0]), .field = (rows)                                            \
    }
#define INT(KEY, TYPE, MEMBER, MIN, MAX)                                                                               \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_INT32, .offset = offsetof(TYPE, MEMBER), .min = (MIN), .max = (MAX)             \
    }
#define LONG(KEY, TYPE, MEMBER, MIN, MAX)                                                                              \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_INT64, .offset = offsetof(TYPE, MEMBER), .min = (MIN), .max = (MAX)             \
    }
#define BYTES(KEY, TYPE, MEMBER) LONG(KEY, TYPE, MEMBER, 0, MAX_JSON_INT)
#define NS(KEY, TYPE, MEMBER)                                                                                          \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_NS, .offset = offsetof(TYPE, MEMBER), .max = PS_MAX_TIME_NS                     \
    }
#define PLAIN_NS(KEY, TYPE, MEMBER)                                                                                    \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_PLAIN_NS, .offset = offsetof(TYPE, MEMBER), .max = PS_MAX_TIME_NS               \
    }
#define DOUBLE(KEY, TYPE, MEMBER)                                                                                      \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_DOUBLE, .offset = offsetof(TYPE, MEMBER)                                        \
    }
#define BOOL(KEY, TYPE, MEMBER)                                                                                        \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_BOOL, .offset = offsetof(TYPE, MEMBER)                                          \
    }
#define TEXT(KEY, TYPE, MEMBER)                                                                                        \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_TEXT, .offset = offsetof(TYPE, MEMBER)                                          \
    }
#define TEXT_OR_NULL(KEY, TYPE, MEMBER)                                                                                \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_TEXT, .offset = offsetof(TYPE, MEMBER), .optional = true                        \
    }
#define NAME(KEY, TYPE, MEMBER, NAMES)                                                                                 \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_NAME, .offset = offsetof(TYPE, MEMBER), .names = &(NAMES)                       \
    }
#define SET(KEY, MEMBER, MAX)                                                                                          \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_SET, .offset = offsetof(ps_job, MEMBER), .min = 1, .max = (MAX)                 \
    }
#define NAME_SET(KEY, MEMBER, NAMES)                                                                                   \
    {                                                                                                                  \
        .key = (KEY), .kind = PS_FIELD_SET, .offset = offsetof(ps_job, MEMBER), .names = &(NAMES)                      \
    }

#endif
