// SPDX-License-Identifier: Apache-2.0
//
// rule_expression.c: precedence climbing into postfix steps, and the stack machine that computes them.
//
// The parser knows how high the stack gets and refuses what is higher than MAX_STACK, so computing needs no check.
#include "schedule/rule_expression.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"

enum { MAX_NESTING = 32, MAX_STACK = 64, MAX_STEPS = 256 };

typedef enum step_kind {
    NUMBER,
    VARIABLE,
    OR,
    AND,
    LESS_EQUAL,
    GREATER_EQUAL,
    EQUAL,
    UNEQUAL,
    LESS,
    GREATER,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    REMAINDER,
    NEGATE,
    NOT,
    LEAST,
    GREATEST
} step_kind;

// Longer ones before those that they begin with.
static const struct {
    const char *text;
    uint8_t kind;
    uint8_t level; // binds tighter
} OPERATOR[] = {{"||", OR, 0},      {"&&", AND, 1},     {"<=", LESS_EQUAL, 2}, {">=", GREATER_EQUAL, 2},
                {"==", EQUAL, 2},   {"!=", UNEQUAL, 2}, {"<", LESS, 2},        {">", GREATER, 2},
                {"+", ADD, 3},      {"-", SUBTRACT, 3}, {"*", MULTIPLY, 4},    {"/", DIVIDE, 4},
                {"%", REMAINDER, 4}};
enum { OPERATORS = sizeof OPERATOR / sizeof *OPERATOR, UNARY_LEVEL = 5 };

static const char *const NAME[PS_RULE_VARIABLES] = {"p",      "m", "v", "r", "s",         "k",
                                                    "warmup", "f", "b", "w", "recomputed"};

typedef struct parse {
    ps_arena *arena;
    ps_rule_text *text;
    ps_vec(ps_rule_step) step;
    int32_t variables; // that may be named
    int32_t nesting;
    int32_t stack;
} parse;

void ps_rule_skip_blanks(ps_rule_text *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\t'))
        text->at++;
}

ps_code ps_rule_fail_at(const ps_rule_text *text, const char *at, ps_status *status)
{
    return ps_fail_at(status, text->source, text->line, (int32_t)(at - text->line_start) + 1, NULL);
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_small(char byte)
{
    return byte >= 'a' && byte <= 'z';
}

static ps_code add_step(parse *p, const char *at, step_kind kind, int64_t number, ps_status *status)
{
    p->stack += kind <= VARIABLE ? 1 : kind == NEGATE || kind == NOT ? 0 : -1;
    if (p->stack > MAX_STACK || p->step.count >= MAX_STEPS) {
        ps_fail(status, PS_BAD_INPUT, "rules-depth",
                "the expression is too large: at most %d numbers, names and operators", MAX_STEPS);
        return ps_rule_fail_at(p->text, at, status);
    }
    *ps_vec_push(p->arena, &p->step) =
        (ps_rule_step){.number = number, .column = (int32_t)(at - p->text->line_start) + 1, .kind = (uint8_t)kind};
    return PS_OK;
}

static ps_code parse_level(parse *p, int32_t level, ps_status *status);

static bool take(parse *p, char byte)
{
    ps_rule_skip_blanks(p->text);
    if (p->text->at >= p->text->end || *p->text->at != byte)
        return false;
    p->text->at++;
    return true;
}

static ps_code expect(parse *p, char byte, ps_status *status)
{
    if (take(p, byte))
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "rules-expression", "expected '%c' here", byte);
    return ps_rule_fail_at(p->text, p->text->at, status);
}

static ps_code parse_number(parse *p, ps_status *status)
{
    const char *start = p->text->at;
    int64_t number = 0;
    for (; p->text->at < p->text->end && is_digit(*p->text->at); p->text->at++) {
        if (!__builtin_mul_overflow(number, 10, &number) &&
            !__builtin_add_overflow(number, *p->text->at - '0', &number))
            continue;
        ps_fail(status, PS_BAD_INPUT, "rules-number", "the number is above %" PRId64, INT64_MAX);
        return ps_rule_fail_at(p->text, start, status);
    }
    return add_step(p, start, NUMBER, number, status);
}

// min(a, b, ...): one operator between each two.
static ps_code parse_extreme(parse *p, const char *at, step_kind kind, ps_status *status)
{
    PS_TRY(expect(p, '(', status));
    PS_TRY(parse_level(p, 0, status));
    PS_TRY(expect(p, ',', status));
    do {
        PS_TRY(parse_level(p, 0, status));
        PS_TRY(add_step(p, at, kind, 0, status));
    } while (take(p, ','));
    return expect(p, ')', status);
}

static ps_code parse_name(parse *p, ps_status *status)
{
    const char *start = p->text->at;
    while (p->text->at < p->text->end && is_small(*p->text->at))
        p->text->at++;
    const char *word = ps_text_copy_n(p->arena, start, p->text->at - start);
    if (strcmp(word, "min") == 0)
        return parse_extreme(p, start, LEAST, status);
    if (strcmp(word, "max") == 0)
        return parse_extreme(p, start, GREATEST, status);
    int32_t variable = 0;
    while (variable < PS_RULE_VARIABLES && strcmp(word, NAME[variable]) != 0)
        variable++;
    if (variable < p->variables)
        return add_step(p, start, VARIABLE, variable, status);
    if (variable < PS_RULE_VARIABLES) {
        ps_fail(status, PS_BAD_INPUT, "rules-variable", "\"%s\" has a value only in the condition of an op", word);
        return ps_rule_fail_at(p->text, start, status);
    }
    ps_fail(status, PS_BAD_INPUT, "rules-variable", "\"%.40s\" is no variable", word);
    ps_rule_fail_at(p->text, start, status);
    const char *nearest = ps_text_nearest(word, NAME, p->variables);
    if (nearest && strlen(word) > 2)
        return ps_fail_hint(status, "did you mean \"%s\"?", nearest);
    return ps_fail_hint(status, "p ranks, m micro-batches, v chunks of rank r, s stages%s",
                        p->variables == PS_RULE_VARIABLES ? "; round k, warmup, and f, b, w, recomputed ops written"
                                                          : "");
}

static ps_code parse_operand(parse *p, ps_status *status)
{
    ps_rule_skip_blanks(p->text);
    const char *at = p->text->at;
    char byte = at < p->text->end ? *at : '\0';
    if (is_digit(byte))
        return parse_number(p, status);
    if (is_small(byte))
        return parse_name(p, status);
    if (byte == '(') {
        p->text->at++;
        PS_TRY(parse_level(p, 0, status));
        return expect(p, ')', status);
    }
    if (byte == '-' || byte == '!') {
        p->text->at++;
        PS_TRY(parse_level(p, UNARY_LEVEL, status));
        return add_step(p, at, byte == '-' ? NEGATE : NOT, 0, status);
    }
    ps_fail(status, PS_BAD_INPUT, "rules-expression", "expected a number, a variable, '(', min or max here");
    return ps_rule_fail_at(p->text, at, status);
}

// Operators of this level and tighter ones.
static ps_code parse_level(parse *p, int32_t level, ps_status *status)
{
    if (p->nesting == MAX_NESTING) {
        ps_fail(status, PS_BAD_INPUT, "rules-depth", "the expression nests deeper than %d", MAX_NESTING);
        return ps_rule_fail_at(p->text, p->text->at, status);
    }
    p->nesting++;
    PS_TRY(parse_operand(p, status));
    for (;;) {
        ps_rule_skip_blanks(p->text);
        const char *at = p->text->at;
        int32_t found = 0;
        while (found < OPERATORS) {
            size_t size = strlen(OPERATOR[found].text);
            if ((size_t)(p->text->end - at) >= size && memcmp(at, OPERATOR[found].text, size) == 0)
                break;
            found++;
        }
        if (found == OPERATORS || OPERATOR[found].level < level)
            break;
        p->text->at += strlen(OPERATOR[found].text);
        PS_TRY(parse_level(p, OPERATOR[found].level + 1, status));
        PS_TRY(add_step(p, at, (step_kind)OPERATOR[found].kind, 0, status));
    }
    p->nesting--;
    return PS_OK;
}

ps_code ps_rule_expression_parse(ps_arena *arena, ps_rule_text *text, bool in_condition, ps_rule_expression *out,
                                 ps_status *status)
{
    parse p = {.arena = arena, .text = text, .variables = in_condition ? PS_RULE_VARIABLES : PS_RULE_ROUND};
    PS_TRY(parse_level(&p, 0, status));
    *out = (ps_rule_expression){
        .source = text->source, .step = p.step.data, .count = (int32_t)p.step.count, .line = text->line};
    return PS_OK;
}

// Division rounds down and the remainder has the divisor's sign. Neither is asked for b -1, where INT64_MIN / -1 traps.
static int64_t floor_quotient(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

static int64_t floor_remainder(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// False: beyond int64. The divisor is not 0.
static bool apply(step_kind kind, int64_t a, int64_t b, int64_t *out)
{
    switch (kind) {
    case OR: *out = a || b; return true;
    case AND: *out = a && b; return true;
    case LESS_EQUAL: *out = a <= b; return true;
    case GREATER_EQUAL: *out = a >= b; return true;
    case EQUAL: *out = a == b; return true;
    case UNEQUAL: *out = a != b; return true;
    case LESS: *out = a < b; return true;
    case GREATER: *out = a > b; return true;
    case ADD: return !__builtin_add_overflow(a, b, out);
    case SUBTRACT: return !__builtin_sub_overflow(a, b, out);
    case MULTIPLY: return !__builtin_mul_overflow(a, b, out);
    case LEAST: *out = a < b ? a : b; return true;
    case GREATEST: *out = a > b ? a : b; return true;
    default: break;
    }
    if (b == -1) { // INT64_MIN / -1 traps
        *out = 0;
        return kind == REMAINDER || !__builtin_sub_overflow(0, a, out);
    }
    assert(b != 0);
    *out = kind == DIVIDE ? floor_quotient(a, b) : floor_remainder(a, b);
    return true;
}

static ps_code refuse_step(const ps_rule_expression *expression, const ps_rule_step *step, bool division,
                           const int64_t *variable, ps_status *status)
{
    int64_t rank = variable[PS_RULE_RANK];
    if (division)
        ps_fail(status, PS_BAD_INPUT, "rules-division", "this divides by 0 on rank %" PRId64, rank);
    else
        ps_fail(status, PS_BAD_INPUT, "rules-overflow", "this is beyond 64 bits on rank %" PRId64, rank);
    return ps_fail_at(status, expression->source, expression->line, step->column, NULL);
}

ps_code ps_rule_expression_compute(const ps_rule_expression *expression, const int64_t variable[PS_RULE_VARIABLES],
                                   int64_t *out, ps_status *status)
{
    int64_t stack[MAX_STACK] = {0};
    int32_t top = -1;
    assert(expression->count > 0);
    for (int32_t index = 0; index < expression->count; index++) {
        const ps_rule_step *step = &expression->step[index];
        if (step->kind == NUMBER) {
            stack[++top] = step->number;
        } else if (step->kind == VARIABLE) {
            stack[++top] = variable[step->number];
        } else if (step->kind == NOT) {
            stack[top] = !stack[top];
        } else if (step->kind == NEGATE) {
            if (__builtin_sub_overflow(0, stack[top], &stack[top]))
                return refuse_step(expression, step, false, variable, status);
        } else {
            int64_t right = stack[top--];
            if ((step->kind == DIVIDE || step->kind == REMAINDER) && right == 0)
                return refuse_step(expression, step, true, variable, status);
            if (!apply((step_kind)step->kind, stack[top], right, &stack[top]))
                return refuse_step(expression, step, false, variable, status);
        }
    }
    *out = stack[0];
    return PS_OK;
}
