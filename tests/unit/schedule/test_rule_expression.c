// SPDX-License-Identifier: Apache-2.0
#include "schedule/rule_expression.h"
#include "support/cmocka_all.h"

static int64_t value_of(ps_arena *arena, const char *written)
{
    static const int64_t variable[PS_RULE_VARIABLES] = {4, 12, 2, 3, 8, 5, 1, 7, 6, 2};
    ps_rule_text text = {
        .source = "t", .line_start = written, .at = written, .end = written + strlen(written), .line = 1};
    ps_rule_expression expression;
    ps_status status = {0};
    int64_t value;
    assert_ok(ps_rule_expression_parse(arena, &text, true, &expression, &status), &status);
    assert_ptr_equal(text.at, text.end);
    assert_ok(ps_rule_expression_compute(&expression, variable, &value, &status), &status);
    return value;
}

static void operators_bind_as_in_c(void **state)
{
    assert_int_equal(value_of(*state, "2 + 3 * 4 - 1"), 13);
    assert_int_equal(value_of(*state, "(2 + 3) * (4 - 1)"), 15);
    assert_int_equal(value_of(*state, "20 - 5 - 3"), 12);
    assert_int_equal(value_of(*state, "-2 * -3 + !0 + !7"), 7);
    assert_int_equal(value_of(*state, "1 + 1 == 2 && 3 < 2 || 5 >= 5"), 1);
    assert_int_equal(value_of(*state, "1 || 0 && 0"), 1);
    assert_int_equal(value_of(*state, "3 > 2 > 1"), 0); // (3 > 2) > 1
}

static void division_rounds_down_and_the_remainder_has_the_sign_of_the_divisor(void **state)
{
    assert_int_equal(value_of(*state, "7 / 2"), 3);
    assert_int_equal(value_of(*state, "-7 / 2"), -4);
    assert_int_equal(value_of(*state, "-7 % 2"), 1);
    assert_int_equal(value_of(*state, "7 % -2"), -1);
    assert_int_equal(value_of(*state, "(-9223372036854775807 - 1) % -1"), 0);
}

// The remainder was taken as a - quotient * b, whose product is below the least integer here.
static void the_remainder_of_the_least_integer_does_not_overflow(void **state)
{
    assert_int_equal(value_of(*state, "(-9223372036854775807 - 1) % 3"), 1);
    assert_int_equal(value_of(*state, "(-9223372036854775807 - 1) / 3"), -3074457345618258603);
}

static void every_variable_has_its_name(void **state)
{
    assert_int_equal(value_of(*state, "p * 1000 + m * 10 + v"), 4122);
    assert_int_equal(value_of(*state, "r + s * 10 + k * 100"), 583);
    assert_int_equal(value_of(*state, "warmup + f * 10 + b * 100 + w * 1000"), 2671);
    assert_int_equal(value_of(*state, "min(m, 9, p, 6) + max(v, r)"), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(operators_bind_as_in_c),
        test_in_arena(division_rounds_down_and_the_remainder_has_the_sign_of_the_divisor),
        test_in_arena(the_remainder_of_the_least_integer_does_not_overflow),
        test_in_arena(every_variable_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
