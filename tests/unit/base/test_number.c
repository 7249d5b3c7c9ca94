// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"

#include <math.h>

#include "base/rng.h"
#include "support/cmocka_all.h"

static void overflow_is_seen_and_leaves_the_result(void **state)
{
    (void)state;
    int64_t out = 7;
    assert_false(ps_add_checked(INT64_MAX, 1, &out));
    assert_false(ps_add_checked(INT64_MIN, -1, &out));
    assert_false(ps_multiply_checked(INT64_C(1) << 32, INT64_C(1) << 31, &out));
    assert_false(ps_multiply_checked(INT64_MIN, -1, &out));
    assert_int_equal(out, 7);
    assert_true(ps_add_checked(INT64_MAX, -1, &out));
    assert_int_equal(out, INT64_MAX - 1);
    assert_true(ps_multiply_checked(-(INT64_C(1) << 32), INT64_C(1) << 31, &out));
    assert_int_equal(out, INT64_MIN);
}

static void saturating_sums_and_products_stick(void **state)
{
    (void)state;
    assert_int_equal(ps_add_saturating(INT64_MAX, INT64_MAX), INT64_MAX);
    assert_int_equal(ps_add_saturating(2, 3), 5);
    assert_int_equal(ps_multiply_saturating(INT64_MAX, 2), INT64_MAX);
    assert_int_equal(ps_multiply_saturating(INT64_MAX, 0), 0);
    assert_int_equal(ps_ceil_div(0, 8), 0);
    assert_int_equal(ps_ceil_div(8, 8), 1);
    assert_int_equal(ps_ceil_div(9, 8), 2);
    assert_int_equal(ps_ceil_div(INT64_MAX, 2), INT64_MAX / 2 + 1);
}

static void reals_are_rounded_half_away_from_zero(void **state)
{
    (void)state;
    ps_status status = {0};
    int64_t out = -1;
    assert_ok(ps_ns_from_seconds(0.0025, 10000000, &out, &status), &status);
    assert_int_equal(out, 2500000);
    assert_ok(ps_bytes_from_double(2.5, 10, &out, &status), &status);
    assert_int_equal(out, 3);
    assert_ok(ps_bytes_from_double(0.49, 10, &out, &status), &status);
    assert_int_equal(out, 0);
    assert_ok(ps_bytes_from_double(10.49, 10, &out, &status), &status);
    assert_int_equal(out, 10);
}

static void reals_that_are_no_time_or_size_are_refused(void **state)
{
    (void)state;
    static const double wrong[] = {NAN, INFINITY, -INFINITY, -1, -0x1p-1074, 11, 0x1p63, 1e300};
    for (size_t index = 0; index < sizeof wrong / sizeof *wrong; index++) {
        ps_status status = {0};
        int64_t out = 7;
        assert_int_equal(ps_bytes_from_double(wrong[index], 10, &out, &status), PS_BAD_INPUT);
        assert_string_equal(status.rule, "out-of-range");
        assert_int_equal(ps_ns_from_seconds(wrong[index], 10, &out, &status), PS_BAD_INPUT);
        assert_int_equal(out, 7);
    }
    ps_status status = {0};
    int64_t out = 0;
    assert_int_equal(ps_bytes_from_double(0x1p63, INT64_MAX, &out, &status), PS_BAD_INPUT);
    assert_int_equal(ps_ns_from_seconds(NAN, 1000, &out, &status), PS_BAD_INPUT);
    assert_string_equal(status.message, "a time must lie between 0 and 1.00 us, got not a number");
}

// The first outputs for seed 1234567, from the reference implementation (Vigna, splitmix64.c).
static void generator_is_splitmix64(void **state)
{
    (void)state;
    ps_rng rng = {1234567};
    assert_true(ps_rng_next(&rng) == UINT64_C(6457827717110365317));
    assert_true(ps_rng_next(&rng) == UINT64_C(3203168211198807973));
    assert_true(ps_rng_next(&rng) == UINT64_C(9817491932198370423));
}

static void ranges_are_met_evenly(void **state)
{
    (void)state;
    ps_rng rng = {9};
    int32_t seen[6] = {0};
    for (int trial = 0; trial < 60000; trial++)
        seen[ps_rng_range(&rng, -2, 3) + 2]++;
    for (int value = 0; value < 6; value++)
        assert_in_range(seen[value], 9600, 10400); // four standard deviations
    assert_int_equal(ps_rng_range(&rng, 5, 5), 5);
    bool negative = false;
    for (int trial = 0; trial < 100; trial++)
        negative |= ps_rng_range(&rng, INT64_MIN, INT64_MAX) < 0;
    assert_true(negative);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflow_is_seen_and_leaves_the_result),
        cmocka_unit_test(saturating_sums_and_products_stick),
        cmocka_unit_test(reals_are_rounded_half_away_from_zero),
        cmocka_unit_test(reals_that_are_no_time_or_size_are_refused),
        cmocka_unit_test(generator_is_splitmix64),
        cmocka_unit_test(ranges_are_met_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
