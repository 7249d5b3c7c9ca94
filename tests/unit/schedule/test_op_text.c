// SPDX-License-Identifier: Apache-2.0
#include "pipesched/schedule.h"

#include "support/cmocka_all.h"

static void a_cell_is_stage_letter_micro_batch(void **state)
{
    (void)state;
    char text[32];
    int32_t length = ps_op_format((ps_op){.microbatch = 12, .stage = 0, .kind = PS_OP_FORWARD}, text);
    assert_string_equal(text, "0F12");
    assert_int_equal(length, 4);
    ps_op_format((ps_op){.microbatch = 0, .stage = 7, .kind = PS_OP_BACKWARD_WEIGHT}, text);
    assert_string_equal(text, "7W0");
    assert_int_equal(ps_op_letter(PS_OP_BACKWARD), 'B');
    assert_int_equal(ps_op_letter(PS_OP_BACKWARD_INPUT), 'I');
}

static void every_cell_reads_back(void **state)
{
    (void)state;
    const int32_t stages[] = {0, 1, 9, 10, 255, 65535};
    const int32_t microbatches[] = {0, 1, 9, 10, 1023, INT32_MAX};
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) {
            for (int kind = 0; kind < PS_OP_KINDS; kind++) {
                ps_op op = {.microbatch = microbatches[j], .stage = (uint16_t)stages[i], .kind = (uint8_t)kind};
                ps_op back = {0};
                char text[32];
                assert_true(ps_op_format(op, text) < 32);
                assert_true(ps_op_parse(text, &back));
                assert_int_equal(back.stage, op.stage);
                assert_int_equal(back.microbatch, op.microbatch);
                assert_int_equal(back.kind, op.kind);
            }
        }
    }
}

static void what_is_almost_a_cell_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",     "0",    "F0",   "0F",   "0Q1",  "0f1",  "0F0junk", " 0F0",    "0F0 ",         "0 F0",
        "+0F0", "0F-1", "0F+1", "00F1", "0F01", "0FF1", "0F1F",    "65536F0", "0F2147483648", "99999999999999999999F0",
        "0F0,", "-1F0", "0x1F0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ps_op op;
        if (ps_op_parse(wrong[i], &op))
            fail_msg("'%s' was taken for a cell", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_is_stage_letter_micro_batch),
        cmocka_unit_test(every_cell_reads_back),
        cmocka_unit_test(what_is_almost_a_cell_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
