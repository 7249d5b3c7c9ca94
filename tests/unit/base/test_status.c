// SPDX-License-Identifier: Apache-2.0
#include "pipesched/status.h"

#include "support/cmocka_all.h"

static void line_names_place_and_message(void **state)
{
    (void)state;
    ps_status status = {0};
    char text[256];
    assert_int_equal(ps_fail(&status, PS_BAD_INPUT, "bad-quantity", "expected %s, got \"%d\"", "bytes", 7),
                     PS_BAD_INPUT);
    ps_status_format(&status, text, sizeof text);
    assert_string_equal(text, "expected bytes, got \"7\"");

    assert_int_equal(ps_fail_at(&status, "cluster.json", 14, 22, "/groups/0/node"), PS_BAD_INPUT);
    assert_int_equal(ps_fail_hint(&status, "try %d", 8), PS_BAD_INPUT);
    int32_t length = ps_status_format(&status, text, sizeof text);
    assert_string_equal(text, "cluster.json:14:22: /groups/0/node: expected bytes, got \"7\"");
    assert_int_equal(length, strlen(text));
    assert_string_equal(status.hint, "try 8");

    ps_fail_at(&status, NULL, 0, 0, NULL); // leaves everything
    ps_status_format(&status, text, sizeof text);
    assert_string_equal(text, "cluster.json:14:22: /groups/0/node: expected bytes, got \"7\"");
}

static void short_buffer_is_not_overrun(void **state)
{
    (void)state;
    ps_status status = {0};
    char text[8] = "zzzzzzz";
    ps_fail(&status, PS_IO, "file-read", "0123456789");
    assert_int_equal(ps_status_format(&status, text, 5), 10);
    assert_string_equal(text, "0123");
    assert_int_equal(text[5], 'z');
}

static void long_text_is_cut_between_characters(void **state)
{
    (void)state;
    char longest[4096];
    for (int shift = 0; shift < 3; shift++) { // each way in which the cut can meet the three bytes of U+20AC
        memset(longest, 'x', sizeof longest);
        for (int at = shift; at + 3 < (int)sizeof longest; at += 3)
            memcpy(longest + at, "\xE2\x82\xAC", 3);
        longest[sizeof longest - 1] = '\0';
        ps_status status = {0};
        ps_fail(&status, PS_BAD_INPUT, longest, "%s", longest);
        ps_fail_at(&status, longest, 1, 1, longest);
        ps_fail_hint(&status, "%s", longest);
        size_t size = strlen(status.message);
        assert_in_range(size, sizeof status.message - 3, sizeof status.message - 1);
        assert_int_equal((size - (size_t)shift) % 3, 0);
        assert_in_range(strlen(status.hint), sizeof status.hint - 3, sizeof status.hint - 1);
        assert_in_range(strlen(status.source), sizeof status.source - 3, sizeof status.source - 1);
    }
}

static void control_characters_never_reach_the_terminal(void **state)
{
    (void)state;
    ps_status status = {0};
    ps_fail(&status, PS_BAD_INPUT, "x", "a%sb", "\x1b[31m\n\x7f");
    ps_fail_at(&status, "f\r.json", 1, 1, "/\x1b");
    assert_string_equal(status.message, "a?[31m??b");
    assert_string_equal(status.source, "f?.json");
    assert_string_equal(status.pointer, "/?");
}

static void every_code_has_its_exit_status(void **state)
{
    (void)state;
    assert_int_equal(ps_exit_status(PS_OK), 0);
    assert_int_equal(ps_exit_status(PS_INFEASIBLE), 1);
    assert_int_equal(ps_exit_status(PS_ILLEGAL), 1);
    assert_int_equal(ps_exit_status(PS_USAGE), 2);
    assert_int_equal(ps_exit_status(PS_BAD_INPUT), 3);
    assert_int_equal(ps_exit_status(PS_IO), 4);
    assert_int_equal(ps_exit_status(PS_TIME_LIMIT), 5);
    assert_int_equal(ps_exit_status(PS_STOPPED), 5);
    assert_int_equal(ps_exit_status(PS_EXHAUSTED), 70);
    assert_int_equal(ps_exit_status(PS_INTERNAL), 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_names_place_and_message),
        cmocka_unit_test(short_buffer_is_not_overrun),
        cmocka_unit_test(long_text_is_cut_between_characters),
        cmocka_unit_test(control_characters_never_reach_the_terminal),
        cmocka_unit_test(every_code_has_its_exit_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
