// SPDX-License-Identifier: Apache-2.0
#include "io/json_read.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "support/cmocka_all.h"

static ps_json parse(ps_arena *arena, const char *text)
{
    ps_json root;
    ps_status status = {0};
    assert_ok(ps_json_parse(arena, "f.json", text, (int64_t)strlen(text), &root, &status), &status);
    return root;
}

static void assert_error(const ps_status *status, const char *rule, const char *line)
{
    char text[2048];
    ps_status_format(status, text, sizeof text);
    assert_string_equal(text, line);
    assert_string_equal(status->rule, rule);
    assert_int_equal(status->code, PS_BAD_INPUT);
}

static void values_are_walked_in_order(void **state)
{
    ps_json root = parse(*state, "{\"b\": [10, true, null, \"x\\u00e9\\n\"], \"a\": {}, \"B\": -2.5e-1}");
    assert_int_equal(ps_json_count(root), 3);
    ps_json list = ps_json_member(root, "b");
    assert_int_equal(ps_json_count(list), 4);

    ps_json element = ps_json_first(list);
    assert_true(ps_json_number(element) == 10);
    element = ps_json_next(element);
    assert_true(ps_json_is(element, PS_JSON_BOOL) && ps_json_bool(element));
    element = ps_json_next(element);
    assert_true(ps_json_is(element, PS_JSON_NULL));
    element = ps_json_next(element);
    assert_string_equal(ps_json_text(element), "x\xC3\xA9\n");
    assert_null(ps_json_next(element).node);

    assert_string_equal(ps_json_key(ps_json_first(root)), "b");
    assert_true(ps_json_number(ps_json_member(root, "B")) == -0.25); // keys are told apart by case
    assert_int_equal(ps_json_count(ps_json_member(root, "a")), 0);
    assert_null(ps_json_member(root, "c").node);
    assert_null(ps_json_member(list, "b").node);
}

static void absent_values_are_harmless(void **state)
{
    ps_json absent = ps_json_member(parse(*state, "{}"), "a");
    assert_false(ps_json_is(absent, PS_JSON_NULL));
    assert_null(ps_json_member(absent, "b").node);
    assert_null(ps_json_first(absent).node);
    assert_null(ps_json_next(absent).node);
    assert_int_equal(ps_json_count(absent), 0);
    assert_string_equal(ps_json_text(absent), "");
    assert_string_equal(ps_json_key(absent), "");
    assert_true(ps_json_number(absent) == 0);
    assert_false(ps_json_bool(absent));
    assert_string_equal(ps_json_source(absent), "f.json");
}

static void raw_text_is_what_the_file_says(void **state)
{
    static const char *const raw[] = {"1.50", "-0", "\"a\\\"b\"", "null", "true", "\"\\\\\"", "1E2"};
    ps_json list = parse(*state, "[1.50 , -0,\"a\\\"b\",null,true,\"\\\\\",1E2]");
    int32_t index = 0;
    for (ps_json e = ps_json_first(list); e.node; e = ps_json_next(e), index++) {
        int64_t size;
        const char *text = ps_json_raw(e, &size);
        assert_int_equal(size, strlen(raw[index]));
        assert_memory_equal(text, raw[index], (size_t)size);
    }
    assert_int_equal(index, 7);
}

static void numbers_are_exact(void **state)
{
    ps_json list = parse(*state, "[9007199254740992, 0.30000000000000004, 5e-324, 1.7976931348623157e308]");
    static const double expected[] = {0x1p53, 0.1 + 0.2, 0x1p-1074, 0x1.fffffffffffffp1023};
    int32_t index = 0;
    for (ps_json e = ps_json_first(list); e.node; e = ps_json_next(e))
        assert_true(ps_json_number(e) == expected[index++]);
}

// Every value of the text is named by the pointer and the place that a reader would give it.
static void error_names_place_and_pointer(void **state)
{
    ps_json root =
        parse(*state, "{\n  \"groups\": [\n    {\"node\": {\"a/b~c\": 7}},\n    [[], [1, 2]]\n  ],\n\"\": 0}");
    ps_json groups = ps_json_member(root, "groups");
    ps_json deep = ps_json_first(ps_json_first(ps_json_first(groups)));
    ps_json last = ps_json_next(ps_json_first(ps_json_next(ps_json_first(ps_json_next(ps_json_first(groups))))));
    ps_status status = {0};
    ps_json_fail(deep, "r", &status, "wrong %d", 1);
    assert_error(&status, "r", "f.json:3:24: /groups/0/node/a~1b~0c: wrong 1");
    ps_json_fail(last, "r", &status, "wrong");
    assert_error(&status, "r", "f.json:4:14: /groups/1/1/1: wrong");
    ps_json_fail(ps_json_member(root, ""), "r", &status, "wrong");
    assert_error(&status, "r", "f.json:6:5: /: wrong");
    ps_json_fail(root, "r", &status, "wrong");
    assert_error(&status, "r", "f.json:1:1: wrong");
    ps_json_fail(ps_json_member(root, "x"), "r", &status, "wrong"); // absent: only the file is known
    assert_error(&status, "r", "f.json: wrong");
}

static void unknown_key_is_refused_with_the_nearest(void **state)
{
    static const char *const names[] = {"hidden_size", "kv_heads", NULL};
    ps_status status = {0};
    ps_json good = parse(*state, "{\"kv_heads\": 1, \"_comment\": 2, \"$schema\": 3}");
    assert_ok(ps_json_check_keys(good, names, &status), &status);

    assert_int_equal(ps_json_check_keys(parse(*state, "{\"hiden_size\": 1}"), names, &status), PS_BAD_INPUT);
    assert_error(&status, "unknown-key", "f.json:1:16: /hiden_size: unknown key \"hiden_size\"");
    assert_string_equal(status.hint, "did you mean \"hidden_size\"?");
    assert_int_equal(ps_json_check_keys(parse(*state, "{\"colour\": 1}"), names, &status), PS_BAD_INPUT);
    assert_string_equal(status.hint, "the keys known here are hidden_size, kv_heads");
    assert_int_equal(ps_json_check_keys(parse(*state, "[]"), names, &status), PS_BAD_INPUT);
    assert_error(&status, "json-type", "f.json:1:1: expected an object, got an array");
}

static void optional_members_keep_their_defaults(void **state)
{
    ps_json object = parse(*state, "{\"n\": null}");
    ps_status status = {0};
    int64_t i = 1;
    int32_t i32 = 2;
    double d = 3;
    bool b = true;
    const char *s = "s";
    int64_t bytes = 4;
    double rate = 5;
    int64_t ns = 6;
    static const char *const keys[] = {"absent", "n"};
    for (int index = 0; index < 2; index++) {
        const char *key = keys[index];
        assert_ok(ps_json_get_int(object, key, PS_OPTIONAL, 0, 9, &i, &status), &status);
        assert_ok(ps_json_get_int32(object, key, PS_OPTIONAL, 0, 9, &i32, &status), &status);
        assert_ok(ps_json_get_double(object, key, PS_OPTIONAL, 0, 9, &d, &status), &status);
        assert_ok(ps_json_get_bool(object, key, PS_OPTIONAL, &b, &status), &status);
        assert_ok(ps_json_get_string(object, key, PS_OPTIONAL, &s, &status), &status);
        assert_ok(ps_json_get_bytes(object, key, PS_OPTIONAL, &bytes, &status), &status);
        assert_ok(ps_json_get_rate(object, key, PS_OPTIONAL, &rate, &status), &status);
        assert_ok(ps_json_get_ms(object, key, PS_OPTIONAL, 9, &ns, &status), &status);
    }
    assert_true(i == 1 && i32 == 2 && d == 3 && b && s[0] == 's' && bytes == 4 && rate == 5 && ns == 6);

    assert_int_equal(ps_json_get_int(object, "n", PS_REQUIRED, 0, 9, &i, &status), PS_BAD_INPUT);
    assert_error(&status, "missing-key", "f.json:1:1: the key \"n\" is missing");
}

static void members_are_read_with_their_types(void **state)
{
    ps_json object =
        parse(*state, "{\"i\": 12, \"e\": 1e3, \"d\": 0.25, \"b\": false, \"s\": \"text\", \"size\": \"8MiB\","
                      " \"x_bytes\": 4096, \"nic\": \"400Gb/s\", \"l_bytes_per_s\": 1e9,"
                      " \"f_ms\": 1331.21, \"latency\": \"5us\", \"h_ms\": 9007199254.740993}");
    ps_status status = {0};
    int64_t i = 0;
    int32_t i32 = 0;
    double d = 0;
    bool b = true;
    const char *s = NULL;
    assert_ok(ps_json_get_int(object, "i", PS_REQUIRED, 12, 12, &i, &status), &status);
    assert_int_equal(i, 12);
    assert_ok(ps_json_get_int32(object, "e", PS_REQUIRED, 0, 1000, &i32, &status), &status);
    assert_int_equal(i32, 1000);
    assert_ok(ps_json_get_double(object, "d", PS_REQUIRED, 0, INFINITY, &d, &status), &status);
    assert_true(d == 0.25);
    assert_ok(ps_json_get_bool(object, "b", PS_REQUIRED, &b, &status), &status);
    assert_false(b);
    assert_ok(ps_json_get_string(object, "s", PS_REQUIRED, &s, &status), &status);
    assert_string_equal(s, "text");
    assert_ok(ps_json_get_bytes(object, "size", PS_REQUIRED, &i, &status), &status);
    assert_int_equal(i, 8 << 20);
    assert_ok(ps_json_get_bytes(object, "x_bytes", PS_REQUIRED, &i, &status), &status);
    assert_int_equal(i, 4096);
    assert_ok(ps_json_get_rate(object, "nic", PS_REQUIRED, &d, &status), &status);
    assert_true(d == 50e9);
    assert_ok(ps_json_get_rate(object, "l_bytes_per_s", PS_REQUIRED, &d, &status), &status);
    assert_true(d == 1e9);
    assert_ok(ps_json_get_ms(object, "f_ms", PS_REQUIRED, INT64_MAX, &i, &status), &status);
    assert_int_equal(i, 1331210000);
    assert_ok(ps_json_get_ms(object, "latency", PS_REQUIRED, INT64_MAX, &i, &status), &status);
    assert_int_equal(i, 5000);
    // 2^53 + 1 nanoseconds: exact, though the double nearest to the text is not
    assert_ok(ps_json_get_ms(object, "h_ms", PS_REQUIRED, INT64_MAX, &i, &status), &status);
    assert_int_equal(i, INT64_C(9007199254740993));
}

static void wrong_members_are_refused_in_the_users_terms(void **state)
{
    ps_json object = parse(
        *state, "{\"i\": 2.5, \"s\": \"3\", \"big\": 9, \"neg\": -1, \"host_memory\": \"2 terabytes\", \"o\": {},\n"
                "\"n_ms\": -3, \"m_ms\": 1e30, \"bare\": 80, \"t\": \"3 parsecs\", \"r\": \"400Gbps\"}");
    ps_status status = {0};
    int64_t i = 7;
    double d = 7;
    bool b = true;
    const char *s = NULL;
    ps_json_get_int(object, "i", PS_OPTIONAL, 1, 8, &i, &status);
    assert_error(&status, "json-type", "f.json:1:7: /i: expected a whole number, got 2.5");
    ps_json_get_int(object, "s", PS_OPTIONAL, 1, 8, &i, &status);
    assert_error(&status, "json-type", "f.json:1:17: /s: expected a whole number, got \"3\"");
    ps_json_get_int(object, "big", PS_OPTIONAL, 1, 8, &i, &status);
    assert_error(&status, "out-of-range", "f.json:1:29: /big: expected a whole number from 1 to 8, got 9");
    ps_json_get_int(object, "neg", PS_OPTIONAL, 0, INT64_MAX, &i, &status);
    assert_error(&status, "out-of-range", "f.json:1:39: /neg: expected a whole number of at least 0, got -1");
    ps_json_get_double(object, "big", PS_OPTIONAL, 0, 0.5, &d, &status);
    assert_error(&status, "out-of-range", "f.json:1:29: /big: expected a number from 0 to 0.5, got 9");
    ps_json_get_double(object, "neg", PS_OPTIONAL, 0, INFINITY, &d, &status);
    assert_error(&status, "out-of-range", "f.json:1:39: /neg: expected a number of at least 0, got -1");
    ps_json_get_bool(object, "s", PS_OPTIONAL, &b, &status);
    assert_error(&status, "json-type", "f.json:1:17: /s: expected true or false, got \"3\"");
    ps_json_get_string(object, "o", PS_OPTIONAL, &s, &status);
    assert_error(&status, "json-type", "f.json:1:78: /o: expected a string, got an object");
    ps_json_get_bytes(object, "host_memory", PS_OPTIONAL, &i, &status);
    assert_error(&status, "bad-quantity",
                 "f.json:1:58: /host_memory: expected bytes such as \"80GiB\", got \"2 terabytes\"");
    ps_json_get_bytes(object, "bare", PS_OPTIONAL, &i, &status);
    assert_error(&status, "json-type", "f.json:2:35: /bare: expected bytes such as \"80GiB\", got 80");
    ps_json_get_rate(object, "r", PS_OPTIONAL, &d, &status);
    assert_error(&status, "bad-quantity",
                 "f.json:2:62: /r: expected a rate such as \"400Gb/s\" or \"25GB/s\", got \"400Gbps\"");
    ps_json_get_ms(object, "n_ms", PS_OPTIONAL, 5000000, &i, &status);
    assert_error(&status, "out-of-range", "f.json:2:9: /n_ms: expected a time from 0 to 5 ms, got -3");
    ps_json_get_ms(object, "m_ms", PS_OPTIONAL, 5000000, &i, &status);
    assert_error(&status, "out-of-range", "f.json:2:21: /m_ms: expected a time from 0 to 5 ms, got 1e30");
    ps_json_get_ms(object, "bare", PS_OPTIONAL, 5000000, &i, &status);
    assert_error(&status, "json-type", "f.json:2:35: /bare: expected a time such as \"3.2ms\", got 80");
    ps_json_get_ms(object, "t", PS_OPTIONAL, 5000000, &i, &status);
    assert_error(&status, "bad-quantity", "f.json:2:44: /t: expected a time such as \"3.2ms\", got \"3 parsecs\"");
    assert_true(i == 7 && d == 7 && b && !s);
}

static int32_t allocations_left;

static void *allocate_some(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

static void failing_allocation_in_cjson_is_exhaustion(void **state)
{
    static const char text[] = "{\"a\": [1, \"b\", {\"c\": null}], \"d\": \"e\"}";
    ps_code code = PS_EXHAUSTED;
    int32_t failures = -1;
    for (int32_t allowed = 0; code == PS_EXHAUSTED; allowed++, failures++) {
        cJSON_Hooks hooks = {.malloc_fn = allocate_some, .free_fn = free};
        allocations_left = allowed;
        cJSON_InitHooks(&hooks);
        ps_json root;
        ps_status status = {0};
        code = ps_json_parse(*state, "f.json", text, sizeof text - 1, &root, &status);
        cJSON_InitHooks(NULL);
        if (code != PS_OK)
            assert_string_equal(status.rule, "out-of-memory");
    }
    assert_int_equal(code, PS_OK);
    assert_in_range(failures, 7, 100); // one a value at least
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(values_are_walked_in_order),
        test_in_arena(absent_values_are_harmless),
        test_in_arena(raw_text_is_what_the_file_says),
        test_in_arena(numbers_are_exact),
        test_in_arena(error_names_place_and_pointer),
        test_in_arena(unknown_key_is_refused_with_the_nearest),
        test_in_arena(optional_members_keep_their_defaults),
        test_in_arena(members_are_read_with_their_types),
        test_in_arena(wrong_members_are_refused_in_the_users_terms),
        test_in_arena(failing_allocation_in_cjson_is_exhaustion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
