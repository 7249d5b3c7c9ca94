// SPDX-License-Identifier: Apache-2.0
//
// rule_expression.h: integer expressions of rule files (docs/formats/rules.md), compiled once and computed often.
//
// Loosest first: ||, &&, comparisons (1 or 0), + -, * / %, unary - and !, min(...) and max(...). Division rounds down.
#ifndef PS_SCHEDULE_RULE_EXPRESSION_H
#define PS_SCHEDULE_RULE_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

// What an expression can name. Those from the round on exist only in the condition of an op.
typedef enum ps_rule_variable {
    PS_RULE_RANKS,        // p
    PS_RULE_MICROBATCHES, // m
    PS_RULE_CHUNKS,       // v, stages of this rank
    PS_RULE_RANK,         // r
    PS_RULE_STAGES,       // s, of all ranks
    PS_RULE_ROUND,        // k, from 0, through steady and drain
    PS_RULE_WARMUP,       // warmup, cut to the forwards there are
    PS_RULE_FORWARDS,     // f, written so far
    PS_RULE_BACKWARDS,    // b, likewise, B or I
    PS_RULE_WEIGHTS,      // w, likewise
    PS_RULE_RECOMPUTES,   // recomputed, likewise
    PS_RULE_VARIABLES
} ps_rule_variable;

// A line being read, or a place in it.
typedef struct ps_rule_text {
    const char *source;
    const char *line_start;
    const char *at;
    const char *end; // of the line, comment left out
    int32_t line;
} ps_rule_text;

// Postfix.
typedef struct ps_rule_step {
    int64_t number; // or the variable
    int32_t column;
    uint8_t kind;
} ps_rule_step;

typedef struct ps_rule_expression {
    const char *source;
    const ps_rule_step *step;
    int32_t count; // 0: no expression
    int32_t line;
} ps_rule_expression;

void ps_rule_skip_blanks(ps_rule_text *text);
// Add the place of `at` in its line to a status just filled.
ps_code ps_rule_fail_at(const ps_rule_text *text, const char *at, ps_status *status);

// Read as far as an expression goes and move `text` behind it. `in_condition`: every variable may be named.
// PS_BAD_INPUT with line and column; rules rules-expression, rules-number, rules-variable (with the nearest name),
// rules-depth.
ps_code ps_rule_expression_parse(ps_arena *arena, ps_rule_text *text, bool in_condition, ps_rule_expression *out,
                                 ps_status *status);

// PS_BAD_INPUT with the place of the operator; rules rules-overflow, rules-division. O(steps).
ps_code ps_rule_expression_compute(const ps_rule_expression *expression, const int64_t variable[PS_RULE_VARIABLES],
                                   int64_t *out, ps_status *status);

#endif
