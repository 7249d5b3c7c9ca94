// SPDX-License-Identifier: Apache-2.0
//
// test_csv_read.c: cells with their places, whatever ends the rows.
#include "io/csv_read.h"

#include <stdio.h>

#include "support/cmocka_all.h"

// All cells as "row.number@column:text", a bar after each row; or the rule and place of the refusal.
static const char *cells_of(const char *bytes, int64_t size, char text[256])
{
    ps_csv_reader reader;
    ps_csv_cell cell;
    ps_status status = {0};
    size_t used = 0;
    text[0] = '\0';
    ps_code code = ps_csv_begin(&reader, "a.csv", bytes, size, &status);
    while (code == PS_OK && !ps_csv_done(&reader)) {
        code = ps_csv_next(&reader, &cell, &status);
        if (code == PS_OK)
            used += (size_t)snprintf(text + used, 256 - used, "%d.%d@%d:%.*s%s", (int)cell.row, (int)cell.number,
                                     (int)cell.column, (int)cell.size, cell.text, cell.ends_row ? "|" : " ");
    }
    if (code != PS_OK) {
        assert_int_equal(code, PS_BAD_INPUT);
        assert_string_equal(status.source, "a.csv");
        snprintf(text, 256, "%s %d:%d", status.rule, (int)status.line, (int)status.column);
    }
    return text;
}

#define assert_cells(literal, want)                                                                                    \
    do {                                                                                                               \
        char text[256];                                                                                                \
        assert_string_equal(cells_of((literal), (int64_t)sizeof(literal) - 1, text), (want));                          \
    } while (0)

static void cells_have_row_number_and_column(void **state)
{
    (void)state;
    assert_cells("a,bc\nd\n", "1.1@1:a 1.2@3:bc|2.1@1:d|");
}

static void the_last_row_needs_no_line_end(void **state)
{
    (void)state;
    assert_cells("a,b", "1.1@1:a 1.2@3:b|");
    assert_cells("a,", "1.1@1:a 1.2@3:|");
    assert_cells(",", "1.1@1: 1.2@2:|");
}

static void carriage_returns_before_line_feeds_are_no_text(void **state)
{
    (void)state;
    assert_cells("a,b\r\nc,\r\n", "1.1@1:a 1.2@3:b|2.1@1:c 2.2@3:|");
}

static void blanks_around_a_cell_are_left_out_and_count_for_its_column(void **state)
{
    (void)state;
    assert_cells(" a ,\tb c\t\n", "1.1@2:a 1.2@6:b c|");
    assert_cells("   ,b\n", "1.1@4: 1.2@5:b|");
}

static void an_empty_line_is_one_empty_cell(void **state)
{
    (void)state;
    assert_cells("\n\na\n", "1.1@1:|2.1@1:|3.1@1:a|");
}

static void what_is_no_plain_csv_is_refused_at_its_place(void **state)
{
    (void)state;
    assert_cells("", "csv-empty 1:1");
    assert_cells("\xEF\xBB\xBF"
                 "a\n",
                 "csv-bom 1:1");
    assert_cells("a,\"b\"\n", "csv-quote 1:3");
    assert_cells("a\nb,c\rd\n", "csv-line-end 2:4");
    assert_cells("a\nb\r", "csv-line-end 2:2");
    assert_cells("a,b\0c\n", "csv-character 1:4");
    assert_cells("a\n\xC3\xBC\n", "csv-character 2:1");
    assert_cells("a\x7f\n", "csv-character 1:2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_have_row_number_and_column),
        cmocka_unit_test(the_last_row_needs_no_line_end),
        cmocka_unit_test(carriage_returns_before_line_feeds_are_no_text),
        cmocka_unit_test(blanks_around_a_cell_are_left_out_and_count_for_its_column),
        cmocka_unit_test(an_empty_line_is_one_empty_cell),
        cmocka_unit_test(what_is_no_plain_csv_is_refused_at_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
