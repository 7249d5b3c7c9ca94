// SPDX-License-Identifier: Apache-2.0
#include "io/json_write.h"

#include <stdlib.h>

#include "base/rng.h"
#include "io/json_read.h"
#include "support/cmocka_all.h"

// What is written to the stream, in memory.
typedef struct capture {
    FILE *file;
    char *text;
    size_t size;
    ps_json_writer writer;
} capture;

static ps_json_writer *begin(capture *one)
{
    *one = (capture){0};
    one->file = open_memstream(&one->text, &one->size);
    assert_non_null(one->file);
    ps_json_begin(&one->writer, one->file);
    return &one->writer;
}

static void end(capture *one)
{
    ps_status status = {0};
    assert_ok(ps_json_write_end(&one->writer, &status), &status);
    fclose(one->file);
}

static void layout_is_stable(void **state)
{
    (void)state;
    capture one;
    ps_json_writer *writer = begin(&one);
    ps_json_object(writer, NULL);
    ps_json_put_string(writer, "name", "plan");
    ps_json_put_int(writer, "least", INT64_MIN);
    ps_json_array(writer, "stages");
    ps_json_object_inline(writer, NULL);
    ps_json_put_ms(writer, "forward_ms", 1331210000);
    ps_json_array(writer, "ids"); // inside an inline object, hence inline
    ps_json_put_int(writer, NULL, 1);
    ps_json_put_int(writer, NULL, 2);
    ps_json_close(writer);
    ps_json_close(writer);
    ps_json_object(writer, NULL);
    ps_json_put_bool(writer, "ok", true);
    ps_json_put_null(writer, "none");
    ps_json_close(writer);
    ps_json_close(writer);
    ps_json_array(writer, "empty");
    ps_json_close(writer);
    ps_json_object(writer, "nothing");
    ps_json_close(writer);
    ps_json_array_inline(writer, "cells");
    ps_json_put_string(writer, NULL, "0F0");
    ps_json_put_string(writer, NULL, NULL);
    ps_json_close(writer);
    ps_json_put_double(writer, "gap", 0.30000000000000004);
    ps_json_close(writer);
    end(&one);
    assert_string_equal(one.text, "{\n"
                                  "  \"name\": \"plan\",\n"
                                  "  \"least\": -9223372036854775808,\n"
                                  "  \"stages\": [\n"
                                  "    {\"forward_ms\": 1331.21, \"ids\": [1, 2]},\n"
                                  "    {\n"
                                  "      \"ok\": true,\n"
                                  "      \"none\": null\n"
                                  "    }\n"
                                  "  ],\n"
                                  "  \"empty\": [],\n"
                                  "  \"nothing\": {},\n"
                                  "  \"cells\": [\"0F0\", null],\n"
                                  "  \"gap\": 0.30000000000000004\n"
                                  "}\n");
    free(one.text);
}

static void strings_read_back_whatever_they_hold(void **state)
{
    char every[256];
    for (int byte = 1; byte < 0x80; byte++)
        every[byte - 1] = (char)byte;
    memcpy(every + 0x7F, "\xC3\xA9\xF0\x9F\x98\x80", 7);

    capture one;
    ps_json_writer *writer = begin(&one);
    ps_json_object(writer, NULL);
    ps_json_put_string(writer, every, every);
    ps_json_put_string(writer, "broken", "a\xFF\xE2\x82z"); // no UTF-8: replaced byte by byte
    ps_json_close(writer);
    end(&one);

    ps_json root;
    ps_status status = {0};
    assert_ok(ps_json_parse(*state, "f", one.text, (int64_t)one.size, &root, &status), &status);
    assert_string_equal(ps_json_key(ps_json_first(root)), every);
    assert_string_equal(ps_json_text(ps_json_member(root, every)), every);
    assert_string_equal(ps_json_text(ps_json_member(root, "broken")), "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz");
    free(one.text);
}

static void numbers_read_back_exactly(void **state)
{
    enum { COUNT = 3000 };
    ps_rng rng = {11};
    int64_t ns[COUNT];
    double real[COUNT];
    capture one;
    ps_json_writer *writer = begin(&one);
    ps_json_array(writer, NULL);
    for (int index = 0; index < COUNT; index++) {
        ns[index] = ps_rng_range(&rng, 0, (INT64_C(1) << 62) >> (index % 62));
        real[index] = (double)ps_rng_range(&rng, INT64_MIN, INT64_MAX) / (double)ps_rng_range(&rng, 1, 1 << 30);
        ps_json_object_inline(writer, NULL);
        ps_json_put_ms(writer, "t_ms", ns[index]);
        ps_json_put_double(writer, "r", real[index]);
        ps_json_close(writer);
    }
    ps_json_close(writer);
    end(&one);

    ps_json root;
    ps_status status = {0};
    // An integer beyond 2^53 is refused by the strict pass, and no time within PS_MAX_TIME_NS is one in milliseconds.
    assert_ok(ps_json_parse(*state, "f", one.text, (int64_t)one.size, &root, &status), &status);
    int index = 0;
    for (ps_json e = ps_json_first(root); e.node; e = ps_json_next(e), index++) {
        int64_t back = -1;
        assert_ok(ps_json_get_ms(e, "t_ms", PS_REQUIRED, INT64_MAX, &back, &status), &status);
        assert_int_equal(back, ns[index]);
        assert_true(ps_json_number(ps_json_member(e, "r")) == real[index]);
    }
    assert_int_equal(index, COUNT);
    free(one.text);
}

static void full_disk_is_reported_at_the_end(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    ps_json_writer writer;
    ps_json_begin(&writer, full);
    ps_json_array(&writer, NULL);
    for (int index = 0; index < 10000; index++)
        ps_json_put_int(&writer, NULL, index);
    ps_json_close(&writer);
    ps_status status = {0};
    assert_int_equal(ps_json_write_end(&writer, &status), PS_IO);
    assert_string_equal(status.rule, "file-write");
    fclose(full);
}

static void error_document_has_all_that_a_machine_needs(void **state)
{
    ps_status error = {0};
    ps_fail(&error, PS_BAD_INPUT, "unknown-key", "unknown key \"x\"");
    ps_fail_at(&error, "f.json", 3, 4, "/x");
    ps_fail_hint(&error, "did you mean y?");
    capture one;
    ps_json_put_error(begin(&one), &error);
    end(&one);

    ps_json root;
    ps_status status = {0};
    assert_ok(ps_json_parse(*state, "f", one.text, (int64_t)one.size, &root, &status), &status);
    assert_string_equal(ps_json_text(ps_json_member(root, "format")), "pipesched/error/v1");
    assert_string_equal(ps_json_text(ps_json_member(root, "code")), "bad-input");
    assert_string_equal(ps_json_text(ps_json_member(root, "rule")), "unknown-key");
    assert_string_equal(ps_json_text(ps_json_member(root, "message")), "unknown key \"x\"");
    assert_string_equal(ps_json_text(ps_json_member(root, "source")), "f.json");
    assert_true(ps_json_number(ps_json_member(root, "line")) == 3);
    assert_true(ps_json_number(ps_json_member(root, "column")) == 4);
    assert_string_equal(ps_json_text(ps_json_member(root, "pointer")), "/x");
    assert_string_equal(ps_json_text(ps_json_member(root, "hint")), "did you mean y?");
    free(one.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_stable),
        test_in_arena(strings_read_back_whatever_they_hold),
        test_in_arena(numbers_read_back_exactly),
        cmocka_unit_test(full_disk_is_reported_at_the_end),
        test_in_arena(error_document_has_all_that_a_machine_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
