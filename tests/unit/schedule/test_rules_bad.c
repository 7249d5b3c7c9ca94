// SPDX-License-Identifier: Apache-2.0
//
// Every file of tests/bad/rules is named after the rule that refuses it, when read or on three ranks.
#include "unit/model/bad_files.h"

#include "io/file.h"
#include "schedule/rule_file.h"
#include "support/pipelines.h"

static ps_code load_rules(ps_arena *arena, const char *path, ps_status *status)
{
    ps_schedule_shape shape = {.num_devices = 3, .num_stages = 6, .num_microbatches = 5};
    const ps_pipeline *pipeline = looped_stages(arena, 3, 6, 5, (costs){.forward_ns = 1, .backward_ns = 1});
    const int32_t *device;
    ps_file_bytes bytes;
    ps_rules rules;
    ps_schedule schedule;
    PS_TRY(ps_file_read(arena, path, 1 << 20, &bytes, status));
    PS_TRY(ps_rules_parse(arena, path, bytes.data, bytes.size, &rules, status));
    PS_TRY(ps_rules_place(arena, &rules, &shape, &device, status));
    return ps_rules_generate(arena, &rules, pipeline, &schedule, status);
}

static void every_faulty_rule_file_fails_with_its_rule_line_and_column(void **state)
{
    (void)state;
    each_bad_file_fails_by_its_name(PS_TESTS_DIR "/bad/rules", load_rules, 60);
}

static void expect_place(ps_arena *arena, const char *name, int32_t line, int32_t column, const char *hint)
{
    ps_status status = {0};
    load_rules(arena, ps_text_format(arena, "%s/bad/rules/%s.rules", PS_TESTS_DIR, name), &status);
    assert_int_equal(status.line, line);
    assert_int_equal(status.column, column);
    assert_string_equal(status.hint, hint);
}

static void the_place_is_that_of_the_very_word_or_operator(void **state)
{
    expect_place(*state, "unknown-key", 6, 1, "did you mean \"warmup\"?");
    expect_place(*state, "rules-word--backward", 2, 11, "did you mean \"split\"?");
    expect_place(*state, "rules-variable--nearest", 4, 18, "did you mean \"warmup\"?");
    expect_place(*state, "rules-expression--open", 3, 15, "");
    expect_place(*state, "rules-division", 3, 11, "");
    expect_place(*state, "rules-overflow", 3, 29, "");
    expect_place(*state, "rules-require", 6, 10, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_faulty_rule_file_fails_with_its_rule_line_and_column),
        test_in_arena(the_place_is_that_of_the_very_word_or_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
