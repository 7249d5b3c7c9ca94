// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <stdio.h>

#include "base/text.h"
#include "io/file.h"
#include "io/json_read.h"
#include "support/cmocka_all.h"

static ps_code parse(ps_arena *arena, const char *text, int64_t size, ps_status *status)
{
    ps_json root;
    *status = (ps_status){0};
    return ps_json_parse(arena, "f.json", text, size, &root, status);
}

typedef struct fault {
    const char *text;
    const char *rule;
    int32_t line;
    int32_t column;
} fault;

// Each fault with its rule and the very byte that is wrong.
static const fault faults[] = {
    {"", "json-empty", 1, 1},
    {" \n\t", "json-empty", 2, 2},
    {"\xEF\xBB\xBF{}", "json-utf8", 1, 1},
    {"\xFE\xFF\0{", "json-utf8", 1, 1},
    {"{} x", "json-trailing", 1, 4},
    {"{}\n{}", "json-trailing", 2, 1},
    {"1 2", "json-trailing", 1, 3},
    {"{\"a\": 1,}", "json-syntax", 1, 8},
    {"[1,\n2,\n]", "json-syntax", 2, 2},
    {"[1 2]", "json-syntax", 1, 4},
    {"{\"a\" 1}", "json-syntax", 1, 6},
    {"{\"a\":}", "json-syntax", 1, 6},
    {"{a: 1}", "json-syntax", 1, 2},
    {"{'a': 1}", "json-syntax", 1, 2},
    {"[1, 2}", "json-syntax", 1, 6},
    {"]", "json-syntax", 1, 1},
    {"[,]", "json-syntax", 1, 2},
    {"{\n  // c\n}", "json-syntax", 2, 3},
    {"{\"a\": 1", "json-syntax", 1, 8},
    {"[1,", "json-syntax", 1, 4},
    {"{\"a\": \"b", "json-syntax", 1, 7},
    {"{\"a", "json-syntax", 1, 2},
    {"tru", "json-syntax", 1, 1},
    {"[True]", "json-syntax", 1, 2},
    {"[yes]", "json-syntax", 1, 2},
    {"[\"a\nb\"]", "json-syntax", 1, 4},
    {"[\"a\tb\"]", "json-syntax", 1, 4},
    {"[\"\\x\"]", "json-syntax", 1, 3},
    {"[\"\\", "json-syntax", 1, 3},
    {"[\"\\u12g4\"]", "json-syntax", 1, 3},
    {"[\"\\u00\"]", "json-syntax", 1, 3},
    {"[\"\\u0000\"]", "json-syntax", 1, 3},
    {"{\"\\u0000\": 1}", "json-syntax", 1, 3},
    {"[\"\\ud800\"]", "json-utf8", 1, 3},
    {"[\"\\udc00\"]", "json-utf8", 1, 3},
    {"[\"\\ud800\\u0041\"]", "json-utf8", 1, 3},
    {"[\"\\ud800\\ud800\"]", "json-utf8", 1, 3},
    {"[\"a\xE9\"]", "json-utf8", 1, 4},
    {"[\"\xC0\xAF\"]", "json-utf8", 1, 3},
    {"[\"\xC1\xBF\"]", "json-utf8", 1, 3},
    {"[\"\xE0\x9F\xBF\"]", "json-utf8", 1, 3},
    {"[\"\xF0\x8F\xBF\xBF\"]", "json-utf8", 1, 3},
    {"[\"\xED\xA0\x80\"]", "json-utf8", 1, 3},
    {"[\"\xF4\x90\x80\x80\"]", "json-utf8", 1, 3},
    {"[\"\xF5\x80\x80\x80\"]", "json-utf8", 1, 3},
    {"[\"\x80\"]", "json-utf8", 1, 3},
    {"[\"\xE2\x82\"]", "json-utf8", 1, 3},
    {"[01]", "json-number", 1, 2},
    {"[-01]", "json-number", 1, 2},
    {"[00]", "json-number", 1, 2},
    {"[+1]", "json-number", 1, 2},
    {"[.5]", "json-number", 1, 2},
    {"[1.]", "json-number", 1, 2},
    {"[1.e3]", "json-number", 1, 2},
    {"[1e]", "json-number", 1, 2},
    {"[1e+]", "json-number", 1, 2},
    {"[-]", "json-number", 1, 2},
    {"[--1]", "json-number", 1, 2},
    {"[1-2]", "json-number", 1, 2},
    {"[1.2.3]", "json-number", 1, 2},
    {"[0x10]", "json-number", 1, 2},
    {"[80GiB]", "json-number", 1, 2},
    {"[1_000]", "json-number", 1, 2},
    {"[1e999]", "json-number", 1, 2},
    {"[-1e999]", "json-number", 1, 2},
    {"[NaN]", "json-number", 1, 2},
    {"[-Infinity]", "json-number", 1, 2},
    {"[Infinity]", "json-number", 1, 2},
    {"[9007199254740993]", "json-number", 1, 2},
    {"[-9007199254740993]", "json-number", 1, 2},
    {"[18446744073709551616]", "json-number", 1, 2},
    {"[0.11111111111111111111111111111111111111111111111111111111111111]", "json-number", 1, 2},
    {"{\"a\": 1,\n \"a\": 2}", "json-duplicate-key", 2, 2},
    {"{\"a\": 1, \"\\u0061\": 2}", "json-duplicate-key", 1, 10},
    {"{\"\": 1, \"\": 2}", "json-duplicate-key", 1, 9},
    {"[{\"x\": {\"k\": 1, \"k\": 2}}]", "json-duplicate-key", 1, 17},
    {"{\"b\": 1, \"a\": 1, \"b\": 2, \"a\": 2}", "json-duplicate-key", 1, 18}, // the earliest repetition
    {"{\"\\ud83d\\ude00\": 1, \"\xF0\x9F\x98\x80\": 2}", "json-duplicate-key", 1, 21},
};

static void every_fault_has_its_rule_and_place(void **state)
{
    for (size_t index = 0; index < sizeof faults / sizeof *faults; index++) {
        const fault *one = &faults[index];
        ps_status status;
        if (parse(*state, one->text, (int64_t)strlen(one->text), &status) != PS_BAD_INPUT)
            fail_msg("accepted: %s", one->text);
        if (strcmp(status.rule, one->rule) != 0 || status.line != one->line || status.column != one->column)
            fail_msg("%s: rule %s at %d:%d instead of %s at %d:%d", one->text, status.rule, (int)status.line,
                     (int)status.column, one->rule, (int)one->line, (int)one->column);
        assert_string_equal(status.source, "f.json");
        assert_true(status.message[0] != '\0');
    }
}

static void what_json_allows_is_accepted(void **state)
{
    static const char *const good[] = {
        "{}",
        " [ ] \r\n",
        "0",
        "-0",
        "\"\"",
        "null",
        "[true, false, null]",
        "[9007199254740992, -9007199254740992, 9007199254740993.0, 1e300, 1E-999, 0.5e+3]",
        "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"]",
        "[\"\x7F \xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xEF\xBF\xBF \xF0\x90\x80\x80 \xF4\x8F\xBF\xBF\"]",
        "{\"a\": {\"a\": 1}, \"A\": 2, \"aa\": 3, \"\": 4}",
    };
    for (size_t index = 0; index < sizeof good / sizeof *good; index++) {
        ps_status status;
        assert_ok(parse(*state, good[index], (int64_t)strlen(good[index]), &status), &status);
    }
}

static void nul_byte_is_refused_where_it_is(void **state)
{
    ps_status status;
    assert_int_equal(parse(*state, "{\"a\": \n\0 1}", 11, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "json-syntax");
    assert_int_equal(status.line, 2);
    assert_int_equal(status.column, 1);
}

static void every_truncation_is_refused(void **state)
{
    static const char whole[] = "{\"a\": [1.5e3, \"x\\u00e9\\ud83d\\ude00\xC3\xA9\", {\"b\": true}], \"c\": null}";
    for (int64_t size = 0; size < (int64_t)sizeof whole - 1; size++) {
        ps_status status;
        assert_int_equal(parse(*state, whole, size, &status), PS_BAD_INPUT);
    }
    ps_status status;
    assert_ok(parse(*state, whole, sizeof whole - 1, &status), &status);
}

static void depth_64_is_accepted_and_65_is_not(void **state)
{
    char text[200];
    ps_status status;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    assert_ok(parse(*state, text, 128, &status), &status);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    assert_int_equal(parse(*state, text, 130, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "json-depth");
    assert_int_equal(status.column, 65);
}

// Comparing every key with every other would take minutes.
static void object_of_many_keys_is_checked_quickly(void **state)
{
    ps_text text = {.arena = *state};
    ps_text_add(&text, "{", 1);
    for (int key = 0; key < 200000; key++)
        ps_text_addf(&text, "\"key%d\": %d,\n", key, key);
    int64_t before_last = text.size;
    ps_text_addf(&text, "\"last\": 0}");
    ps_status status;
    assert_ok(parse(*state, text.data, text.size, &status), &status);

    text.size = before_last;
    ps_text_addf(&text, "\"key77777\": 0}");
    assert_int_equal(parse(*state, text.data, text.size, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "json-duplicate-key");
    assert_int_equal(status.line, 200001);
    assert_string_equal(status.hint, "the first is at line 77778, column 1");
}

static void every_malformed_file_is_refused_with_a_rule_and_a_place(void **state)
{
    ps_arena *arena = *state;
    DIR *folder = opendir(BAD_JSON_FOLDER);
    assert_non_null(folder);
    int32_t files = 0;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (!strstr(entry->d_name, ".json"))
            continue;
        files++;
        ps_status status = {0};
        ps_file_bytes bytes;
        char *path = ps_text_format(arena, "%s/%s", BAD_JSON_FOLDER, entry->d_name);
        assert_ok(ps_file_read(arena, path, 1 << 20, &bytes, &status), &status);
        if (parse(arena, bytes.data, bytes.size, &status) != PS_BAD_INPUT)
            fail_msg("%s was accepted", entry->d_name);
        if (strncmp(status.rule, "json-", 5) != 0 || status.line < 1 || status.column < 1)
            fail_msg("%s: rule %s at %d:%d", entry->d_name, status.rule, (int)status.line, (int)status.column);
    }
    closedir(folder);
    assert_true(files > 50);
}

typedef struct attempt {
    ps_arena *arena;
    const char *text;
} attempt;

static ps_code parse_guarded(void *context, ps_status *status)
{
    attempt *one = context;
    ps_json root;
    return ps_json_parse(one->arena, "f.json", one->text, (int64_t)strlen(one->text), &root, status);
}

static void any_byte_limit_ends_in_an_answer(void **state)
{
    (void)state;
    int32_t exhausted = 0;
    for (int64_t limit = 16; limit < 4000; limit += 16) {
        ps_arena *arena = ps_arena_new(limit);
        attempt one = {arena, "{\"a\\u0062\": [1, 2, {\"c\": \"d\\n\"}], \"e\": [[[[]]]], \"f\": {}}"};
        ps_status status = {0};
        ps_code code = ps_guard(parse_guarded, &one, arena, &status);
        assert_true(code == PS_OK || code == PS_EXHAUSTED);
        exhausted += code == PS_EXHAUSTED;
        ps_arena_free(arena);
    }
    assert_in_range(exhausted, 10, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(every_fault_has_its_rule_and_place),
        test_in_arena(what_json_allows_is_accepted),
        test_in_arena(nul_byte_is_refused_where_it_is),
        test_in_arena(every_truncation_is_refused),
        test_in_arena(depth_64_is_accepted_and_65_is_not),
        test_in_arena(object_of_many_keys_is_checked_quickly),
        test_in_arena(every_malformed_file_is_refused_with_a_rule_and_a_place),
        cmocka_unit_test(any_byte_limit_ends_in_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
