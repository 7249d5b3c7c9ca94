// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "pipesched/limits.h"
#include "support/cmocka_all.h"

static void sizes_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"80GiB", INT64_C(80) << 30},
        {"80 GiB", INT64_C(80) << 30},
        {"2TB", INT64_C(2000000000000)},
        {"512B", 512},
        {"0", 0},
        {"0B", 0},
        {"1.5KiB", 1536},
        {"0.1GB", 100000000},
        {"8MiB", 8 << 20},
        {"3kB", 3000},
        {"3KB", 3000},
        {"1EiB", INT64_C(1) << 60},
        {"9007199254740993B", INT64_C(9007199254740993)}, // a double could not hold it
        {"0.5B", 1},
    };
    for (size_t index = 0; index < sizeof good / sizeof *good; index++) {
        ps_status status = {0};
        int64_t bytes = -1;
        assert_ok(ps_parse_bytes(good[index].text, &bytes, &status), &status);
        assert_int_equal(bytes, good[index].bytes);
    }
}

static void rates_tell_bits_from_bytes(void **state)
{
    (void)state;
    ps_status status = {0};
    double rate = 0;
    assert_ok(ps_parse_rate("400Gb/s", &rate, &status), &status);
    assert_true(rate == 50e9);
    assert_ok(ps_parse_rate("25GB/s", &rate, &status), &status);
    assert_true(rate == 25e9);
    assert_ok(ps_parse_rate("3.35TB/s", &rate, &status), &status);
    assert_true(rate == 3.35e12);
    assert_ok(ps_parse_rate("1GiB/s", &rate, &status), &status);
    assert_true(rate == 0x1p30);
    assert_ok(ps_parse_rate("1b/s", &rate, &status), &status);
    assert_true(rate == 0.125);
}

static void durations_are_exact(void **state)
{
    (void)state;
    ps_status status = {0};
    int64_t ns = 0;
    assert_ok(ps_parse_duration("3.2ms", &ns, &status), &status);
    assert_int_equal(ns, 3200000);
    assert_ok(ps_parse_duration("5us", &ns, &status), &status);
    assert_int_equal(ns, 5000);
    assert_ok(ps_parse_duration("1s", &ns, &status), &status);
    assert_int_equal(ns, 1000000000);
    assert_ok(ps_parse_duration("1.5min", &ns, &status), &status);
    assert_int_equal(ns, INT64_C(90000000000));
    assert_ok(ps_parse_duration("7ns", &ns, &status), &status);
    assert_int_equal(ns, 7);
    assert_ok(ps_parse_duration("0", &ns, &status), &status);
    assert_int_equal(ns, 0);
}

static void wrong_sizes_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",       "80",
        "GiB",    "-1GB",
        "+1GB",   "1e3GB",
        "1..5GB", ".5GB",
        "1.GB",   "80gigs",
        "80GiBs", " 80GB",
        "80GB ",  "80  GB",
        "0x10GB", "nanGB",
        "infGB",  "1,5GB",
        "80Gb",   "2terabytes",
        "17EiB",  "99999999999999999999GB",
        "1EB1",   "80GB/s",
        "00",
    };
    for (size_t index = 0; index < sizeof wrong / sizeof *wrong; index++) {
        ps_status status = {0};
        int64_t bytes = 7;
        if (ps_parse_bytes(wrong[index], &bytes, &status) != PS_BAD_INPUT)
            fail_msg("\"%s\" was taken for %lld bytes", wrong[index], (long long)bytes);
        assert_string_equal(status.rule, "bad-quantity");
        assert_non_null(strstr(status.message, wrong[index]));
        assert_int_equal(bytes, 7);
    }
}

static void refusal_says_what_was_expected_and_what_is_near(void **state)
{
    (void)state;
    ps_status status = {0};
    int64_t bytes;
    double rate;
    ps_parse_bytes("2 terabytes", &bytes, &status);
    assert_string_equal(status.message, "expected bytes such as \"80GiB\", got \"2 terabytes\"");
    ps_parse_bytes("80gib", &bytes, &status);
    assert_string_equal(status.hint, "did you mean \"80GiB\"?");
    ps_parse_bytes("80", &bytes, &status);
    assert_string_equal(status.hint, "add a unit");
    ps_parse_bytes("2EiB", &bytes, &status);
    assert_string_equal(status.message, "expected bytes such as \"80GiB\", at most 1EiB, got \"2EiB\"");
    ps_parse_rate("400Gbps", &rate, &status);
    assert_string_equal(status.message, "expected a rate such as \"400Gb/s\" or \"25GB/s\", got \"400Gbps\"");
}

static void bare_integers_are_strict(void **state)
{
    (void)state;
    ps_status status = {0};
    int64_t value = 0;
    assert_ok(ps_parse_int("-9223372036854775808", INT64_MIN, INT64_MAX, &value, &status), &status);
    assert_int_equal(value, INT64_MIN);
    assert_ok(ps_parse_int("9223372036854775807", 0, INT64_MAX, &value, &status), &status);
    assert_int_equal(value, INT64_MAX);

    static const char *const wrong[] = {"",  "-", "+1", "1.0", "1e3", "0x10", " 1", "1 ", "9223372036854775808",
                                        "0", "9"};
    for (size_t index = 0; index < sizeof wrong / sizeof *wrong; index++) {
        value = 7;
        assert_int_equal(ps_parse_int(wrong[index], 1, 8, &value, &status), PS_BAD_INPUT);
        assert_string_equal(status.rule, "bad-quantity");
        assert_int_equal(value, 7);
    }
    assert_string_equal(status.message, "expected a whole number from 1 to 8, got \"9\"");
    ps_parse_int("0", 1, INT64_MAX, &value, &status);
    assert_string_equal(status.message, "expected a whole number of at least 1, got \"0\"");
}

static void bare_reals_are_strict(void **state)
{
    (void)state;
    ps_status status = {0};
    double value = 0;
    assert_ok(ps_parse_double("-2.5e-1", -1, 1, &value, &status), &status);
    assert_true(value == -0.25);
    static const char *const wrong[] = {"",   "nan", "inf",  "1e999", "0x1p3", "+1",
                                        ".5", "5.",  "1.01", "-1.01", "0,5",   "1 "};
    for (size_t index = 0; index < sizeof wrong / sizeof *wrong; index++) {
        value = 7;
        assert_int_equal(ps_parse_double(wrong[index], -1, 1, &value, &status), PS_BAD_INPUT);
        assert_true(value == 7);
    }
    ps_parse_double("2", 0, 0.5, &value, &status);
    assert_string_equal(status.message, "expected a number from 0 to 0.5, got \"2\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_exact),
        cmocka_unit_test(rates_tell_bits_from_bytes),
        cmocka_unit_test(durations_are_exact),
        cmocka_unit_test(wrong_sizes_are_refused),
        cmocka_unit_test(refusal_says_what_was_expected_and_what_is_near),
        cmocka_unit_test(bare_integers_are_strict),
        cmocka_unit_test(bare_reals_are_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
