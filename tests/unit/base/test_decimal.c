// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/text.h"
#include "support/cmocka_all.h"

static double convert(const char *text)
{
    double value = NAN;
    assert_true(ps_decimal_double(text, (int64_t)strlen(text), &value));
    return value;
}

static uint64_t bits(double value)
{
    uint64_t out;
    memcpy(&out, &value, sizeof out);
    return out;
}

static void doubles_are_rounded_correctly(void **state)
{
    (void)state;
    // Halfway cases and limits, each with its known neighbour.
    assert_true(convert("9007199254740993") == 9007199254740992.0);
    assert_true(convert("9007199254740993.00000000000000000000000000000000000000000000000001") == 9007199254740994.0);
    assert_true(convert("1.00000000000000011102230246251565404236316680908203125") == 1.0);
    assert_true(convert("1.00000000000000011102230246251565404236316680908203126") == 1.0 + 0x1p-52);
    assert_true(convert("2.2250738585072011e-308") == 0x0.fffffffffffffp-1022);
    assert_true(convert("4.9406564584124654e-324") == 0x1p-1074);
    assert_true(convert("1e-400") == 0);
    assert_true(convert("1.7976931348623157e308") == 0x1.fffffffffffffp1023);
    assert_true(convert("0.000000000000000000000000000000000000001e39") == 1);
    assert_true(convert("000123.4500") == 123.45);
    assert_true(signbit(convert("-0")));
}

static void random_decimals_agree_with_the_c_library(void **state)
{
    (void)state;
    ps_rng rng = {1};
    for (int trial = 0; trial < 200000; trial++) {
        char text[64];
        snprintf(text, sizeof text, "%lld.%llde%d", (long long)ps_rng_range(&rng, 0, trial % 2 ? 99 : INT64_MAX),
                 (long long)ps_rng_range(&rng, 0, trial % 3 ? 999 : INT64_MAX), (int)ps_rng_range(&rng, -330, 280));
        assert_int_equal(bits(convert(text)), bits(strtod(text, NULL)));
    }
}

static void what_is_no_decimal_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",   "-",   "+1",  ".5",  "1.",  "1e",       "1e+",   "--1",  " 1",
                                        "1 ", "0x1", "nan", "inf", "1,5", "infinity", "1e999", "1.e3", "1e1.5"};
    for (size_t index = 0; index < sizeof wrong / sizeof *wrong; index++) {
        double value = 7;
        if (ps_decimal_double(wrong[index], (int64_t)strlen(wrong[index]), &value))
            fail_msg("\"%s\" was read as %g", wrong[index], value);
        assert_true(value == 7);
    }
}

static int64_t scaled(const char *text, int64_t factor)
{
    int64_t value = -1;
    return ps_decimal_scaled(text, (int64_t)strlen(text), factor, &value) ? value : -1;
}

static void scaling_is_exact(void **state)
{
    (void)state;
    assert_int_equal(scaled("1331.21", 1000000), 1331210000);
    assert_int_equal(scaled("9223372036854.775807", 1000000), INT64_MAX);
    assert_int_equal(scaled("9223372036854.775808", 1000000), -1);
    assert_int_equal(scaled("9223372036854775807", 1), INT64_MAX);
    assert_int_equal(scaled("0.5", 1), 1); // half away from zero
    assert_int_equal(scaled("0.49999999999999999999999999", 1), 0);
    assert_int_equal(scaled("2.5", 1), 3);
    assert_int_equal(scaled("1e-6", 1000000), 1);
    assert_int_equal(scaled("4e-7", 1000000), 0);
    assert_int_equal(scaled("1e18", 1), INT64_C(1000000000000000000));
    assert_int_equal(scaled("1e19", 1), -1);
    assert_int_equal(scaled("1e999999999999", 1), -1);
    assert_int_equal(scaled("1e-999999999999", INT64_MAX), 0);
    assert_int_equal(scaled("0e999999999999", INT64_MAX), 0);
    assert_int_equal(scaled("9.999999999999999999e-39", INT64_MAX), 0);
    assert_int_equal(scaled("-1", 1), -1);
    assert_int_equal(scaled("1", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_are_rounded_correctly),
        cmocka_unit_test(random_decimals_agree_with_the_c_library),
        cmocka_unit_test(what_is_no_decimal_is_refused),
        cmocka_unit_test(scaling_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
