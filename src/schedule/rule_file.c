// SPDX-License-Identifier: Apache-2.0
//
// rule_file.c: lines "key: value" to rules. One pass; what a key takes is one row of KEY.
#include "schedule/rule_file.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "io/builtin.h"
#include "io/file.h"
#include "pipesched/limits.h"

enum { MAX_ROUND_OPS = 32, MAX_REQUIRES = 16 };

typedef struct parse {
    ps_arena *arena;
    ps_rules *rules;
    ps_rule_text line;
    ps_vec(ps_rule_require) require;
    bool has_backward;
} parse;

typedef ps_code (*value_reader)(parse *p, ps_status *status);

static ps_code refuse_at(const parse *p, const char *at, ps_status *status)
{
    return ps_rule_fail_at(&p->line, at, status);
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

// The next word up to a blank; "" at the end of the line. `text` is where it begins.
static const char *next_word(parse *p, const char **text)
{
    ps_rule_skip_blanks(&p->line);
    const char *start = p->line.at;
    while (p->line.at < p->line.end && !is_blank(*p->line.at))
        p->line.at++;
    *text = start;
    return ps_text_copy_n(p->arena, start, p->line.at - start);
}

static ps_code end_line(parse *p, ps_status *status)
{
    ps_rule_skip_blanks(&p->line);
    if (p->line.at == p->line.end)
        return PS_OK;
    int64_t left = p->line.end - p->line.at;
    ps_fail(status, PS_BAD_INPUT, "rules-line", "\"%.*s\" is left over at the end of the line",
            (int)(left < 40 ? left : 40), p->line.at);
    return refuse_at(p, p->line.at, status);
}

// One of two words; `second` says which.
static ps_code read_choice(parse *p, const char *const word[2], bool *second, ps_status *status)
{
    const char *at;
    const char *got = next_word(p, &at);
    *second = strcmp(got, word[1]) == 0;
    if (*second || strcmp(got, word[0]) == 0)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "rules-word", "expected %s or %s, got \"%.40s\"", word[0], word[1], got);
    refuse_at(p, at, status);
    const char *nearest = ps_text_nearest(got, word, 2);
    return nearest ? ps_fail_hint(status, "did you mean \"%s\"?", nearest) : status->code;
}

static ps_code read_format(parse *p, ps_status *status)
{
    const char *at;
    const char *got = next_word(p, &at);
    if (strcmp(got, "pipesched/rules/v1") == 0)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "rules-format", "expected pipesched/rules/v1, got \"%.40s\"", got);
    return refuse_at(p, at, status);
}

static ps_code read_given(parse *p, ps_status *status)
{
    ps_vec(int32_t) device = {0};
    for (;;) {
        const char *at;
        int64_t rank;
        const char *word = next_word(p, &at);
        if (word[0] == '\0' && device.count > 0)
            break;
        ps_status ignored = {0};
        if (device.count >= PS_MAX_STAGES || ps_parse_int(word, 0, PS_MAX_DEVICES - 1, &rank, &ignored) != PS_OK) {
            ps_fail(status, PS_BAD_INPUT, "rules-placement", "expected a rank, got \"%.40s\"", word);
            refuse_at(p, at, status);
            return ps_fail_hint(status, "loop, v, or the rank of every stage in order: given 0 1 1 0");
        }
        *ps_vec_push(p->arena, &device) = (int32_t)rank;
    }
    p->rules->num_given = (int32_t)device.count;
    p->rules->given_device = device.data;
    return PS_OK;
}

static ps_code read_placement(parse *p, ps_status *status)
{
    static const char *const word[] = {"loop", "v", "given"};
    const char *at;
    const char *got = next_word(p, &at);
    int32_t found = 0;
    while (found < 3 && strcmp(got, word[found]) != 0)
        found++;
    if (found == 3) {
        ps_fail(status, PS_BAD_INPUT, "rules-word", "expected loop, v or given, got \"%.40s\"", got);
        refuse_at(p, at, status);
        const char *nearest = ps_text_nearest(got, word, 3);
        return nearest ? ps_fail_hint(status, "did you mean \"%s\"?", nearest) : status->code;
    }
    p->rules->placement = (ps_rule_placement)found;
    p->rules->placement_place = p->line;
    p->rules->placement_place.at = at;
    return found == PS_RULE_GIVEN ? read_given(p, status) : PS_OK;
}

static ps_code read_backward(parse *p, ps_status *status)
{
    static const char *const word[] = {"fused", "split"};
    p->has_backward = true;
    return read_choice(p, word, &p->rules->splits_backward, status);
}

static ps_code read_forward_chunks(parse *p, ps_status *status)
{
    static const char *const word[] = {"up", "down"};
    return read_choice(p, word, &p->rules->forward_down, status);
}

static ps_code read_backward_chunks(parse *p, ps_status *status)
{
    static const char *const word[] = {"down", "up"};
    return read_choice(p, word, &p->rules->backward_up, status);
}

static ps_code read_group(parse *p, ps_status *status)
{
    ps_rule_skip_blanks(&p->line);
    p->rules->group_place = p->line;
    return ps_rule_expression_parse(p->arena, &p->line, false, &p->rules->group, status);
}

static ps_code read_warmup(parse *p, ps_status *status)
{
    ps_rule_skip_blanks(&p->line);
    p->rules->warmup_place = p->line;
    return ps_rule_expression_parse(p->arena, &p->line, false, &p->rules->warmup, status);
}

static ps_code read_require(parse *p, ps_status *status)
{
    ps_rule_skip_blanks(&p->line);
    const char *at = p->line.at;
    if (p->require.count == MAX_REQUIRES) {
        ps_fail(status, PS_BAD_INPUT, "duplicate-key", "more than %d lines \"require\"", MAX_REQUIRES);
        return refuse_at(p, p->line.line_start, status);
    }
    ps_rule_require *require = ps_vec_push(p->arena, &p->require);
    PS_TRY(ps_rule_expression_parse(p->arena, &p->line, false, &require->expression, status));
    const char *end = p->line.at;
    while (end > at && is_blank(end[-1]))
        end--;
    require->text = ps_text_copy_n(p->arena, at, end - at);
    require->column = (int32_t)(at - p->line.line_start) + 1;
    return PS_OK;
}

// Ops in capitals, each with a condition or none; an expression ends where the next op begins.
static ps_code read_round(parse *p, ps_rule_round *round, ps_status *status)
{
    static const char letters[] = "FBIWR"; // in the order of ps_op_kind
    ps_vec(ps_rule_op) op = {0};
    ps_rule_skip_blanks(&p->line);
    round->place = p->line;
    do {
        const char *at;
        const char *word = next_word(p, &at);
        const char *letter = word[0] != '\0' && word[1] == '\0' ? strchr(letters, word[0]) : NULL;
        if (!letter || op.count == MAX_ROUND_OPS) {
            ps_fail(status, PS_BAD_INPUT, "rules-op", "expected F, B, I, W or R, at most %d of them, got \"%.40s\"",
                    MAX_ROUND_OPS, word);
            return refuse_at(p, at, status);
        }
        ps_rule_op *added = ps_vec_push(p->arena, &op);
        added->kind = (uint8_t)(letter - letters);
        ps_rule_skip_blanks(&p->line);
        const char *after = p->line.at;
        if (p->line.end - after >= 4 && memcmp(after, "when", 4) == 0) {
            p->line.at += 4;
            PS_TRY(ps_rule_expression_parse(p->arena, &p->line, true, &added->when, status));
        }
        ps_rule_skip_blanks(&p->line);
    } while (p->line.at < p->line.end);
    round->op = op.data;
    round->count = (int32_t)op.count;
    return PS_OK;
}

static ps_code read_steady(parse *p, ps_status *status)
{
    return read_round(p, &p->rules->steady, status);
}

static ps_code read_drain(parse *p, ps_status *status)
{
    return read_round(p, &p->rules->drain, status);
}

enum { KEYS = 10, FORMAT = 0, REQUIRE = 9 };
static const char *const KEY[KEYS] = {"format",          "placement", "backward", "group", "forward-chunks",
                                      "backward-chunks", "warmup",    "steady",   "drain", "require"};
static const value_reader READER[KEYS] = {read_format,         read_placement,       read_backward, read_group,
                                          read_forward_chunks, read_backward_chunks, read_warmup,   read_steady,
                                          read_drain,          read_require};
static const bool REQUIRED[KEYS] = {[0] = true, [2] = true, [6] = true, [7] = true, [8] = true};

// Comment and blanks at the end left out; all else must be printable.
static ps_code trim_line(parse *p, ps_status *status)
{
    const char *end = p->line.at;
    while (end < p->line.end && *end != '#')
        end++;
    for (const char *at = p->line.at; at < p->line.end; at++) {
        unsigned char byte = (unsigned char)*at;
        if (at >= end ? byte != 0 : (byte >= ' ' && byte < 0x7f) || byte == '\t')
            continue;
        ps_fail(status, PS_BAD_INPUT, "rules-character", "byte 0x%02x; only printable ASCII outside comments", byte);
        return refuse_at(p, at, status);
    }
    while (end > p->line.at && is_blank(end[-1]))
        end--;
    p->line.end = end;
    return PS_OK;
}

static ps_code read_line(parse *p, int32_t seen[KEYS], ps_status *status)
{
    ps_rule_skip_blanks(&p->line);
    const char *start = p->line.at;
    if (start == p->line.end)
        return PS_OK;
    const char *colon = memchr(start, ':', (size_t)(p->line.end - start));
    if (!colon) {
        ps_fail(status, PS_BAD_INPUT, "rules-line", "expected \"key: value\"");
        return refuse_at(p, start, status);
    }
    const char *end = colon;
    while (end > start && is_blank(end[-1]))
        end--;
    const char *word = ps_text_copy_n(p->arena, start, end - start);
    int32_t key = 0;
    while (key < KEYS && strcmp(word, KEY[key]) != 0)
        key++;
    if (key == KEYS) {
        const char *nearest = ps_text_nearest(word, KEY, KEYS);
        ps_fail(status, PS_BAD_INPUT, "unknown-key", "\"%.40s\" is no key of a rule file", word);
        refuse_at(p, start, status);
        return nearest ? ps_fail_hint(status, "did you mean \"%s\"?", nearest)
                       : ps_fail_hint(status, "format, placement, backward, group, forward-chunks, backward-chunks, "
                                              "warmup, steady, drain, require");
    }
    if (seen[key] > 0 && key != REQUIRE) {
        ps_fail(status, PS_BAD_INPUT, "duplicate-key", "\"%s\" stands on line %d already", word, (int)seen[key]);
        return refuse_at(p, start, status);
    }
    if (key != FORMAT && seen[FORMAT] == 0) {
        ps_fail(status, PS_BAD_INPUT, "rules-format", "the first line is not \"format: pipesched/rules/v1\"");
        return refuse_at(p, start, status);
    }
    seen[key] = p->line.line;
    p->line.at = colon + 1;
    PS_TRY(READER[key](p, status));
    return end_line(p, status);
}

// Ops that the kind of backward has, and those without which a round would never end.
static ps_code check_round(ps_rules *rules, const ps_rule_round *round, bool steady, ps_status *status)
{
    uint8_t needed = steady ? PS_OP_FORWARD : rules->splits_backward ? PS_OP_BACKWARD_INPUT : PS_OP_BACKWARD;
    const char *letters = "FBIWR";
    bool found = false;
    for (int32_t index = 0; index < round->count; index++) {
        uint8_t kind = round->op[index].kind;
        bool known = kind == PS_OP_FORWARD     ? steady
                     : kind == PS_OP_RECOMPUTE ? true
                                               : (kind == PS_OP_BACKWARD) != rules->splits_backward;
        rules->recomputes |= kind == PS_OP_RECOMPUTE;
        found |= kind == needed;
        if (known)
            continue;
        ps_fail(status, PS_BAD_INPUT, "rules-op",
                kind == PS_OP_FORWARD ? "%c in drain, which begins when no forward is left"
                                      : "%c does not go with this backward: fused has B, split has I and W",
                letters[kind]);
        return ps_rule_fail_at(&round->place, round->place.at, status);
    }
    if (found)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "rules-op", "%s needs %c, or it would never end", steady ? "steady" : "drain",
            letters[needed]);
    return ps_rule_fail_at(&round->place, round->place.at, status);
}

static ps_code read_lines(parse *p, const char *text, int64_t size, ps_status *status)
{
    int32_t seen[KEYS] = {0};
    const char *end = text + size;
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        const char *next = line_end ? line_end + 1 : end;
        if (!line_end)
            line_end = end;
        if (line_end > text && line_end[-1] == '\r')
            line_end--;
        p->line = (ps_rule_text){
            .source = p->line.source, .line_start = text, .at = text, .end = line_end, .line = p->line.line + 1};
        PS_TRY(trim_line(p, status));
        PS_TRY(read_line(p, seen, status));
        text = next;
    }
    for (int32_t key = 0; key < KEYS; key++) {
        if (!REQUIRED[key] || seen[key] > 0)
            continue;
        ps_fail(status, PS_BAD_INPUT, "missing-key", "the file does not say \"%s\"", KEY[key]);
        return ps_fail_at(status, p->line.source, 1, 1, NULL);
    }
    return PS_OK;
}

ps_code ps_rules_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_rules *out,
                       ps_status *status)
{
    *out = (ps_rules){.source = source};
    parse p = {.arena = arena, .rules = out, .line = {.source = source}};
    if (size == 0 || size > PS_MAX_RULES_BYTES) {
        if (size == 0)
            ps_fail(status, PS_BAD_INPUT, "rules-empty", "the file is empty");
        else
            ps_fail(status, PS_BAD_INPUT, "rules-too-long", "%" PRId64 " bytes, limit %" PRId64, size,
                    PS_MAX_RULES_BYTES);
        return ps_fail_at(status, source, 1, 1, NULL);
    }
    PS_TRY(read_lines(&p, text, size, status));
    PS_TRY(check_round(out, &out->steady, true, status));
    PS_TRY(check_round(out, &out->drain, false, status));
    out->num_requires = (int32_t)p.require.count;
    out->require = p.require.data;
    return PS_OK;
}

static ps_code no_such_rules(ps_arena *arena, const char *name, ps_status *status)
{
    int32_t count;
    const char *const *names = ps_builtin_names(arena, PS_BUILTIN_RULES, &count);
    const char *nearest = ps_text_nearest(name, names, count);
    ps_text list = {.arena = arena};
    ps_fail(status, PS_IO, "file-missing", "there is no such file, and no built-in rules of this name");
    ps_fail_at(status, name, 0, 0, NULL);
    if (nearest)
        return ps_fail_hint(status, "did you mean \"%s\"?", nearest);
    for (int32_t index = 0; index < count; index++)
        ps_text_addf(&list, "%s%s", index > 0 ? ", " : "", names[index]);
    return ps_fail_hint(status, "built-in rules: %s", list.data);
}

ps_code ps_rules_load(ps_arena *arena, const char *name, ps_rules *out, ps_status *status)
{
    if (strcmp(name, "-") != 0 && !strchr(name, '/') && !ps_file_exists(name)) {
        const ps_builtin *builtin = ps_builtin_find(PS_BUILTIN_RULES, name);
        return builtin ? ps_rules_parse(arena, builtin->path, builtin->data, builtin->size, out, status)
                       : no_such_rules(arena, name, status);
    }
    ps_file_bytes bytes;
    PS_TRY(ps_file_read(arena, name, PS_MAX_RULES_BYTES, &bytes, status));
    return ps_rules_parse(arena, name, bytes.data, bytes.size, out, status);
}
