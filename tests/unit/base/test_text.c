// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include "support/cmocka_all.h"

static void text_grows_and_stays_terminated(void **state)
{
    ps_text text = {.arena = *state};
    for (int line = 0; line < 1000; line++) {
        ps_text_addf(&text, "%d,", line % 10);
        ps_text_add(&text, "xyz", 1);
        assert_int_equal(text.size, 3 * (line + 1));
        assert_int_equal(text.data[text.size], '\0');
    }
    assert_memory_equal(text.data + 2997, "9,x", 4);
    ps_text_add(&text, "", 0);
    assert_int_equal(text.size, 3000);
}

static void copies_are_independent(void **state)
{
    char original[] = "pipeline";
    char *copy = ps_text_copy(*state, original);
    char *part = ps_text_copy_n(*state, original, 4);
    char *made = ps_text_format(*state, "%s-%d", original, 7);
    memset(original, '?', 3);
    assert_string_equal(copy, "pipeline");
    assert_string_equal(part, "pipe");
    assert_string_equal(made, "pipeline-7");
}

static void typo_finds_its_name(void **state)
{
    (void)state;
    static const char *const names[] = {
        "tp", "pp", "hidden_size", "attention_heads", "micro_batch_size", "H100-SXM5-80GB"};
    enum { COUNT = 6 };
    assert_string_equal(ps_text_nearest("hiden_size", names, COUNT), "hidden_size");
    assert_string_equal(ps_text_nearest("hidden-size", names, COUNT), "hidden_size");
    assert_string_equal(ps_text_nearest("atention_haeds", names, COUNT), "attention_heads");
    assert_string_equal(ps_text_nearest("MICRO_BATCH_SIZE", names, COUNT), "micro_batch_size");
    assert_string_equal(ps_text_nearest("h100-sxm-80gb", names, COUNT), "H100-SXM5-80GB");
    assert_string_equal(ps_text_nearest("pt", names, COUNT), "tp"); // a swap is one edit, like the change to "pp"
    assert_string_equal(ps_text_nearest("xp", names, COUNT), "tp"); // ties go to the earlier name
}

static void stranger_finds_none(void **state)
{
    (void)state;
    static const char *const names[] = {"tp", "pp", "hidden_size"};
    assert_null(ps_text_nearest("vocabulary", names, 3));
    assert_null(ps_text_nearest("x", names, 3));
    assert_null(ps_text_nearest("", names, 3));
    assert_null(ps_text_nearest("tp", names, 0));
    char endless[4096];
    memset(endless, 'h', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_null(ps_text_nearest(endless, names, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(text_grows_and_stays_terminated),
        test_in_arena(copies_are_independent),
        cmocka_unit_test(typo_finds_its_name),
        cmocka_unit_test(stranger_finds_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
