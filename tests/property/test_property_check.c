// SPDX-License-Identifier: Apache-2.0
//
// Mutation test of the checker: in consistent plans of every schedule, each figure and each name is changed, one at a
// time and as little as its kind allows. The reader or the checker must refuse every one. And each is replaced by
// values at the limits, within a small memory budget.
#include <inttypes.h>

#include "base/text.h"
#include "pipesched/check.h"
#include "support/cmocka_all.h"
#include "support/timed_plan.h"

static const char *const MUTATED_SECTIONS[] = {"/layout/",
                                               "/links/",
                                               "/gpus/",
                                               "/stages/",
                                               "/hops/",
                                               "/devices/",
                                               "/ranks/",
                                               "/schedule/",
                                               "/prediction/",
                                               "/bounds/",
                                               "/search/candidates",
                                               "/search/pruned",
                                               "/search/evaluated",
                                               "/search/infeasible/",
                                               "/search/limit_hit",
                                               "/search/alternatives/",
                                               "/timeline/",
                                               "/inputs/job/global_batch_size",
                                               "/inputs/job/seq_length",
                                               "/inputs/job/op_overhead_ms",
                                               "/inputs/job/memory_reserve_bytes",
                                               "/inputs/job/zero",
                                               "/inputs/model/layers",
                                               "/inputs/model/parameters",
                                               "/inputs/cluster/gpus_per_node"};

// What only says in words where a figure comes from. Layer names come from the model alone; that each stands once and
// that there are as many as layers is checked.
static const char *const WORDS[] = {"/prediction/accuracy", "/bounds/limited_by", "/bounds/method"};

typedef struct scalar {
    const char *start;
    const char *end;
    char path[200];
} scalar;

typedef struct walker walker;
struct walker {
    ps_arena *arena; // of one trial
    const char *text;
    const char *at;
    char path[200];
    int64_t mutations;
    int64_t accepted;
    void (*mutate)(walker *w, const scalar *value);
};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text);
    size_t length = strlen(end);
    return size >= length && strcmp(text + size - length, end) == 0;
}

static bool is_mutated(const char *path)
{
    if (strstr(path, "/layers/") && starts_with(path, "/stages/"))
        return false;
    for (size_t index = 0; index < sizeof WORDS / sizeof WORDS[0]; index++)
        if (strcmp(path, WORDS[index]) == 0)
            return false;
    // Of another layout only the range of its size is known, and more chunks a rank may be as legal as these.
    if (starts_with(path, "/search/alternatives/") && (ends_with(path, "/peak_bytes") || ends_with(path, "/vp")))
        return false;
    for (size_t index = 0; index < sizeof MUTATED_SECTIONS / sizeof MUTATED_SECTIONS[0]; index++)
        if (starts_with(path, MUTATED_SECTIONS[index]))
            return true;
    return false;
}

static bool is_refused(ps_arena *arena, const char *text)
{
    ps_plan plan;
    ps_check_result result;
    ps_status status = {0};
    if (ps_plan_read_json(arena, "plan.json", text, (int64_t)strlen(text), &plan, &status) != PS_OK)
        return true;
    assert_ok(ps_check_plan(arena, &plan, &result, &status), &status);
    return result.total > 0;
}

static void try_mutation(walker *w, const scalar *value, const char *replacement)
{
    char *text = ps_text_format(w->arena, "%.*s%s%s", (int)(value->start - w->text), w->text, replacement, value->end);
    w->mutations++;
    if (!is_refused(w->arena, text)) {
        w->accepted++;
        print_message("accepted: %s: %.*s -> %s\n", value->path, (int)(value->end - value->start), value->start,
                      replacement);
    }
    ps_arena_reset(w->arena);
}

// Times by a nanosecond, counts and bytes by one, rates by a hundred-millionth. A bandwidth by a hundredth: what moves
// no transfer by a nanosecond changes nothing.
static void mutate_number(walker *w, const scalar *value)
{
    int64_t size = value->end - value->start;
    char text[64];
    if (ends_with(value->path, "_ms") || strstr(value->path, "/idle/")) {
        int64_t ns;
        assert_true(ps_decimal_scaled(value->start, size, 1000000, &ns));
        try_mutation(w, value, ps_format_ms(ns + 1, text));
        if (ns > 0)
            try_mutation(w, value, ps_format_ms(ns - 1, text));
        return;
    }
    double number;
    assert_true(ps_decimal_double(value->start, size, &number));
    bool is_rate = ends_with(value->path, "_per_s") || ends_with(value->path, "flops") ||
                   ends_with(value->path, "gap") || ends_with(value->path, "bubble") || ends_with(value->path, "mfu") ||
                   ends_with(value->path, "_per_gpu") || ends_with(value->path, "_per_iteration");
    if (is_rate) {
        double change = ends_with(value->path, "bytes_per_s") ? 1e-2 : 1e-8;
        try_mutation(w, value, ps_format_double(number + (number > 0 ? number * change : change), text));
        try_mutation(w, value, ps_format_double(number - (number > 0 ? number * change : change), text));
        return;
    }
    int64_t whole = (int64_t)number;
    snprintf(text, sizeof text, "%" PRId64, whole + 1);
    try_mutation(w, value, text);
    snprintf(text, sizeof text, "%" PRId64, whole - 1);
    try_mutation(w, value, text);
}

static void mutate_string(walker *w, const scalar *value)
{
    int size = (int)(value->end - value->start) - 2;
    char text[256];
    assert_true(size >= 1 && size < 200);
    char last = value->start[size];
    bool digit = last >= '0' && last <= '9';
    snprintf(text, sizeof text, "\"%.*s%c\"", size - 1, value->start + 1, digit ? (last == '9' ? '8' : last + 1) : 'x');
    try_mutation(w, value, text);
    snprintf(text, sizeof text, "\"%.*s1\"", size, value->start + 1);
    try_mutation(w, value, text);
}

static void change_slightly(walker *w, const scalar *value)
{
    if (!is_mutated(value->path))
        return;
    if (*value->start == '"')
        mutate_string(w, value);
    else if (*value->start == 't')
        try_mutation(w, value, "false");
    else if (*value->start == 'f')
        try_mutation(w, value, "true");
    else if (*value->start != 'n')
        mutate_number(w, value);
}

// Whatever they do, nothing may overflow, run away or touch what is not there; sanitizers see to that.
static void put_extremes(walker *w, const scalar *value)
{
    static const char *const extremes[] = {
        "0",     "-1",  "1",    "65535", "16777216", "2147483647", "9007199254740991",
        "1e300", "0.5", "\"\"", "null",  "[]",       "{}"};
    if (starts_with(value->path, "/schedule/cells/") && *value->start == '"') {
        w->mutations += is_refused(w->arena, ps_text_format(w->arena, "%.*s\"65535F2147483647\"%s",
                                                            (int)(value->start - w->text), w->text, value->end));
        ps_arena_reset(w->arena);
        return;
    }
    for (size_t index = 0; index < sizeof extremes / sizeof extremes[0]; index++) {
        w->mutations += is_refused(w->arena, ps_text_format(w->arena, "%.*s%s%s", (int)(value->start - w->text),
                                                            w->text, extremes[index], value->end));
        ps_arena_reset(w->arena);
    }
}

static void skip_blanks(walker *w)
{
    w->at += strspn(w->at, " \n");
}

static void walk_scalar(walker *w)
{
    scalar value = {.start = w->at};
    if (*w->at == '"') {
        for (w->at++; *w->at != '"'; w->at++)
            if (*w->at == '\\')
                w->at++;
        w->at++;
    } else {
        w->at += strcspn(w->at, ",]} \n");
    }
    value.end = w->at;
    memcpy(value.path, w->path, sizeof value.path);
    w->mutate(w, &value);
}

// The writer's own output, so no care is needed. Recursion is as deep as the format, six.
static void walk_value(walker *w)
{
    skip_blanks(w);
    char open = *w->at;
    if (open != '{' && open != '[') {
        walk_scalar(w);
        return;
    }
    size_t length = strlen(w->path);
    int32_t index = 0;
    w->at++;
    for (skip_blanks(w); *w->at != '}' && *w->at != ']'; skip_blanks(w)) {
        if (open == '{') {
            const char *key = w->at + 1;
            int size = (int)strcspn(key, "\"");
            snprintf(w->path + length, sizeof w->path - length, "/%.*s", size, key);
            w->at = strchr(key + size, ':') + 1;
        } else {
            snprintf(w->path + length, sizeof w->path - length, "/%" PRId32, index++);
        }
        walk_value(w);
        w->path[length] = '\0';
        skip_blanks(w);
        if (*w->at == ',')
            w->at++;
    }
    w->at++;
}

static void every_change_of_one_figure_is_refused(void **state)
{
    static const plan_spec specs[] = {
        {.pp = 2, .vp = 1, .dp = 2, .tp = 1, .schedule = PS_SCHEDULE_1F1B},
        {.pp = 4, .vp = 1, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_GPIPE, .recompute = PS_RECOMPUTE_FULL},
        {.pp = 2, .vp = 2, .dp = 2, .tp = 2, .schedule = PS_SCHEDULE_INTERLEAVED},
        {.pp = 4, .vp = 2, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_INTERLEAVED, .recompute = PS_RECOMPUTE_FULL},
        {.pp = 4, .vp = 1, .dp = 2, .tp = 1, .schedule = PS_SCHEDULE_ZB_H1},
        {.pp = 2, .vp = 1, .dp = 1, .tp = 2, .schedule = PS_SCHEDULE_ZB_H2, .no_barrier = true},
        {.pp = 1, .vp = 1, .dp = 4, .tp = 1, .schedule = PS_SCHEDULE_1F1B},
        {.pp = 2, .vp = 2, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_LOOPED_BFS},
        {.pp = 2, .vp = 2, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_INTERLEAVED_ZB},
        {.pp = 4, .vp = 2, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_ZB_V},
        {.pp = 2, .vp = 2, .dp = 2, .tp = 1, .schedule = PS_SCHEDULE_V_HALF},
        {.pp = 4, .vp = 1, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_ZB},
        {.pp = 2, .vp = 2, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_ZB},
        {.pp = 4, .vp = 2, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_ZB, .placement = PS_PLACEMENT_V},
        {.pp = 2, .vp = 2, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_DUALPIPEV},
        {.pp = 4, .vp = 2, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_DUALPIPE},
        {.pp = 2, .vp = 2, .dp = 2, .tp = 1, .schedule = PS_SCHEDULE_DUALPIPE},
        {.pp = 2, .vp = 1, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_GPIPE_RECOMPUTE, .recompute = PS_RECOMPUTE_FULL},
    };
    for (size_t index = 0; index < sizeof specs / sizeof specs[0]; index++) {
        plan_spec spec = specs[index];
        spec.num_microbatches = 8;
        spec.gpus_per_node = 4;
        bool timed = spec.pp == 2; // trials cost the square of the file's length
        char *text = timed ? timed_plan_text(*state, spec) : plan_text(*state, consistent_plan(*state, spec), NULL);
        walker w = {.arena = ps_arena_new(0), .text = text, .at = text, .mutate = change_slightly};
        assert_false(is_refused(w.arena, text));
        ps_arena_reset(w.arena);
        walk_value(&w);
        ps_arena_free(w.arena);
        print_message("%s of %d stages: %d changes\n", ps_schedule_family_at(spec.schedule)->name, spec.pp * spec.vp,
                      (int)w.mutations);
        assert_true(w.mutations > 250);
        assert_int_equal(w.accepted, 0);
    }
}

// Whatever a family's rule lets through passes: m = 1, m < p, m = p, m < 2p, odd numbers of devices, chunks and
// micro-batches. The times of these plans come from neither the simulator nor the checker.
static void every_schedule_of_every_family_holds(void **state)
{
    (void)state;
    int32_t held[PS_SCHEDULE_KINDS] = {0};
    for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        for (int32_t p = 1; p <= 5; p++) {
            for (int32_t chunks = 1; chunks <= 3; chunks++) {
                for (int32_t m = 1; m <= 2 * p + 3; m++) {
                    ps_schedule_shape shape = {.num_devices = p, .num_stages = p * chunks, .num_microbatches = m};
                    ps_status status = {0};
                    if (family->legal(shape, &status) != PS_OK) {
                        assert_true(status.rule[0] != '\0' && status.message[0] != '\0');
                        continue;
                    }
                    ps_arena *arena = ps_arena_new(0);
                    plan_spec spec = {.pp = p,
                                      .vp = chunks,
                                      .dp = 1,
                                      .tp = 1,
                                      .num_microbatches = m,
                                      .schedule = (ps_schedule_kind)kind,
                                      .recompute = family->recomputes ? PS_RECOMPUTE_FULL : PS_RECOMPUTE_NONE,
                                      .gpus_per_node = 2};
                    const ps_plan *plan = consistent_plan(arena, spec);
                    ps_check_result result;
                    assert_ok(ps_check_plan(arena, plan, &result, &status), &status);
                    if (result.total > 0)
                        fail_msg("%s, p %d, v %d, m %d: %s: %s", family->name, (int)p, (int)chunks, (int)m,
                                 result.finding[0].rule, result.finding[0].message);
                    held[kind]++;
                    ps_arena_free(arena);
                }
            }
        }
        // Of dualpipe even numbers of devices and micro-batches only, and two micro-batches a device.
        assert_true(held[kind] >= (family->placement == PS_PLACEMENT_DUAL ? 4 : 15));
    }
}

static void extreme_figures_anywhere_are_survived(void **state)
{
    char *text = timed_plan_text(*state, (plan_spec){.pp = 2,
                                                     .vp = 1,
                                                     .dp = 2,
                                                     .tp = 1,
                                                     .num_microbatches = 4,
                                                     .schedule = PS_SCHEDULE_1F1B,
                                                     .gpus_per_node = 2});
    walker w = {.arena = ps_arena_new(INT64_C(1) << 24), .text = text, .at = text, .mutate = put_extremes};
    walk_value(&w);
    ps_arena_free(w.arena);
    assert_true(w.mutations > 2000); // most of them are refused
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(every_change_of_one_figure_is_refused),
        test_in_arena(every_schedule_of_every_family_holds),
        test_in_arena(extreme_figures_anywhere_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
