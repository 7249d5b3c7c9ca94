// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/text.h"
#include "support/cmocka_all.h"

static char text[32];

static void sizes_have_three_digits(void **state)
{
    (void)state;
    assert_string_equal(ps_format_bytes(0, text), "0 B");
    assert_string_equal(ps_format_bytes(1023, text), "1023 B");
    assert_string_equal(ps_format_bytes(1024, text), "1.00 KiB");
    assert_string_equal(ps_format_bytes(INT64_C(84934656000), text), "79.1 GiB");
    assert_string_equal(ps_format_bytes(INT64_C(80) << 30, text), "80.0 GiB");
    assert_string_equal(ps_format_bytes((INT64_C(1) << 30) - 1, text), "1.00 GiB");
    assert_string_equal(ps_format_bytes(-(INT64_C(3) << 29), text), "-1.50 GiB");
    assert_string_equal(ps_format_bytes(INT64_MAX, text), "8.00 EiB");
    assert_string_equal(ps_format_bytes(INT64_MIN, text), "-8.00 EiB");
}

static void times_have_three_digits(void **state)
{
    (void)state;
    assert_string_equal(ps_format_ns(0, text), "0 ns");
    assert_string_equal(ps_format_ns(999, text), "999 ns");
    assert_string_equal(ps_format_ns(12345678, text), "12.3 ms");
    assert_string_equal(ps_format_ns(9996000, text), "10.0 ms");
    assert_string_equal(ps_format_ns(999600000, text), "1.00 s");
    assert_string_equal(ps_format_ns(-1500, text), "-1.50 us");
    assert_string_equal(ps_format_ns(INT64_C(119000000000), text), "119 s");
    assert_string_equal(ps_format_ns(INT64_C(7200000000000), text), "2.00 h");
    assert_string_equal(ps_format_ns(INT64_MAX, text), "106752 days");
}

static void counts_have_commas(void **state)
{
    (void)state;
    assert_string_equal(ps_format_count(0, text), "0");
    assert_string_equal(ps_format_count(999, text), "999");
    assert_string_equal(ps_format_count(1000, text), "1,000");
    assert_string_equal(ps_format_count(INT64_C(70553706496), text), "70,553,706,496");
    assert_string_equal(ps_format_count(INT64_MIN, text), "-9,223,372,036,854,775,808");
}

static void milliseconds_read_back_exactly(void **state)
{
    (void)state;
    assert_string_equal(ps_format_ms(1331210000, text), "1331.21");
    assert_string_equal(ps_format_ms(0, text), "0");
    assert_string_equal(ps_format_ms(1, text), "0.000001");
    assert_string_equal(ps_format_ms(10000000, text), "10");
    assert_string_equal(ps_format_ms(-2500000, text), "-2.5");
    assert_string_equal(ps_format_ms(INT64_MIN, text), "-9223372036854.775808");
    ps_rng rng = {3};
    for (int trial = 0; trial < 100000; trial++) {
        int64_t ns = ps_rng_range(&rng, 0, INT64_MAX) >> ps_rng_range(&rng, 0, 62);
        int64_t back = -1;
        ps_format_ms(ns, text);
        assert_true(ps_decimal_scaled(text, (int64_t)strlen(text), 1000000, &back));
        assert_int_equal(back, ns);
    }
}

static void check_round_trip(double value)
{
    double back;
    ps_format_double(value, text);
    assert_true(strlen(text) < sizeof text);
    assert_true(ps_decimal_double(text, (int64_t)strlen(text), &back));
    if (memcmp(&back, &value, sizeof value) != 0)
        fail_msg("%a was written as %s", value, text);
}

static void doubles_read_back_exactly_and_short(void **state)
{
    (void)state;
    assert_string_equal(ps_format_double(0.1, text), "0.1");
    assert_string_equal(ps_format_double(0.1 + 0.2, text), "0.30000000000000004");
    assert_string_equal(ps_format_double(400e9, text), "400000000000");
    assert_string_equal(ps_format_double(1e300, text), "1e+300");
    assert_string_equal(ps_format_double(0x1p-1074, text), "5e-324");
    assert_string_equal(ps_format_double(-0.0, text), "-0.0");
    assert_string_equal(ps_format_double(0x1p54, text), "18014398509481984.0"); // no integer for a strict reader
    check_round_trip(DBL_MAX);
    check_round_trip(-DBL_MIN);
    check_round_trip(0x1p53);
    check_round_trip(-0.0);
    ps_rng rng = {5};
    for (int trial = 0; trial < 100000; trial++) {
        uint64_t bits = ps_rng_next(&rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            check_round_trip(value);
        check_round_trip((double)ps_rng_range(&rng, -1000000, 1000000) / 1000);
    }
}

static void decimal_comma_of_the_locale_changes_nothing(void **state)
{
    (void)state;
    static const char *const candidates[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fa_IR.UTF-8"};
    const char *set = NULL;
    for (size_t index = 0; !set && index < sizeof candidates / sizeof *candidates; index++)
        set = setlocale(LC_ALL, candidates[index]);
    if (!set) {
        print_message("not run: no locale with a decimal comma is installed\n");
        skip();
    }
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_null(strchr(text, '.'));

    assert_string_equal(ps_format_double(0.1, text), "0.1");
    assert_string_equal(ps_format_double(1.5e300, text), "1.5e+300");
    assert_string_equal(ps_format_double(0.1 + 0.2, text), "0.30000000000000004");
    assert_string_equal(ps_format_bytes(INT64_C(84934656000), text), "79.1 GiB");
    double value = 0;
    ps_status status = {0};
    assert_ok(ps_parse_double("3.25e-30", 0, 1, &value, &status), &status);
    assert_true(value == 3.25e-30);
    assert_int_equal(ps_parse_double("3,25", 0, 10, &value, &status), PS_BAD_INPUT);
    int64_t bytes = 0;
    assert_ok(ps_parse_bytes("1.5GiB", &bytes, &status), &status);
    assert_int_equal(bytes, INT64_C(3) << 29);
    for (int trial = 0; trial < 1000; trial++)
        check_round_trip(trial / 7.0);
    setlocale(LC_ALL, "C");
}

static void one_of_a_thing_has_no_plural(void **state)
{
    (void)state;
    assert_string_equal(ps_plural(1), "");
    assert_string_equal(ps_plural(0), "s");
    assert_string_equal(ps_plural(2), "s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_three_digits),
        cmocka_unit_test(times_have_three_digits),
        cmocka_unit_test(counts_have_commas),
        cmocka_unit_test(milliseconds_read_back_exactly),
        cmocka_unit_test(doubles_read_back_exactly_and_short),
        cmocka_unit_test(one_of_a_thing_has_no_plural),
        cmocka_unit_test(decimal_comma_of_the_locale_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
