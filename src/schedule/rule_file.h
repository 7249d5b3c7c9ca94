// SPDX-License-Identifier: Apache-2.0
//
// rule_file.h: schedules that are stated as rules in a small text file (docs/formats/rules.md).
//
// A rank writes `warmup` forwards, repeats the ops of `steady` while forwards are left and those of `drain` while
// backwards are, then the W's that are left. Forwards and backwards each visit the chunks of the rank group by group.
#ifndef PS_SCHEDULE_RULE_FILE_H
#define PS_SCHEDULE_RULE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/schedule.h"
#include "schedule/rule_expression.h"

#define PS_MAX_RULES_BYTES (INT64_C(1) << 16)

typedef struct ps_rule_op {
    uint8_t kind;            // ps_op_kind
    ps_rule_expression when; // of no step: always
} ps_rule_op;

typedef struct ps_rule_round {
    ps_rule_text place; // of its value; line 0: not given
    int32_t count;
    ps_rule_op *op;
} ps_rule_round;

typedef enum ps_rule_placement { PS_RULE_LOOP, PS_RULE_V, PS_RULE_GIVEN } ps_rule_placement;

typedef struct ps_rule_require {
    ps_rule_expression expression;
    const char *text; // as written
    int32_t column;
} ps_rule_require;

typedef struct ps_rules {
    const char *source;
    ps_rule_placement placement;
    ps_rule_text placement_place;
    int32_t num_given; // stages of a given placement
    const int32_t *given_device;
    bool splits_backward;
    bool recomputes;           // some round has R
    bool forward_down;         // chunks from the last to the first
    bool backward_up;          // from the first to the last
    ps_rule_expression group;  // micro-batches that visit a chunk together; of no step: m
    ps_rule_expression warmup; // forwards of a rank before its first round
    ps_rule_text group_place;
    ps_rule_text warmup_place;
    ps_rule_round steady;
    ps_rule_round drain;
    int32_t num_requires;
    const ps_rule_require *require;
} ps_rules;

// PS_BAD_INPUT with line and column; rules rules-empty, rules-too-long, rules-character, rules-format, rules-line,
// unknown-key, duplicate-key, missing-key, rules-word, rules-op, rules-placement, and those of an expression.
ps_code ps_rules_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_rules *out,
                       ps_status *status);

// A file, "-", or the name of rules that are compiled in; PS_IO, rule file-missing, for neither.
ps_code ps_rules_load(ps_arena *arena, const char *name, ps_rules *out, ps_status *status);

// Where the stages are. A given placement says itself how many there are; for the others it is shape.num_stages.
// PS_BAD_INPUT, rule rules-placement, for a rank that the shape does not have, or that has no stage.
ps_code ps_rules_place(ps_arena *arena, const ps_rules *rules, ps_schedule_shape *shape, const int32_t **device,
                       ps_status *status);

// The order for a pipeline that passed ps_pipeline_validate(), its stages wherever they are. PS_ILLEGAL, rule
// rules-require; PS_BAD_INPUT with rules rules-group, rules-warmup, rules-stall, rules-recompute (B or I before its R),
// too-many-ops, and those of computing. Ops may still wait for each other: ps_simulate() says so. O(ops * steps of the
// conditions).
ps_code ps_rules_generate(ps_arena *arena, const ps_rules *rules, const ps_pipeline *pipeline, ps_schedule *out,
                          ps_status *status);

#endif
