// SPDX-License-Identifier: Apache-2.0
//
// Every file of tests/bad/csv is named after the rule that refuses it.
#include "unit/model/bad_files.h"

#include "io/file.h"
#include "pipesched/torch_csv.h"

static ps_code load_csv(ps_arena *arena, const char *path, ps_status *status)
{
    ps_file_bytes bytes;
    ps_torch_csv csv;
    PS_TRY(ps_file_read(arena, path, 1 << 20, &bytes, status));
    return ps_torch_csv_read(arena, path, bytes.data, bytes.size, &csv, status);
}

static void every_malformed_schedule_fails_with_its_rule_row_and_column(void **state)
{
    (void)state;
    each_bad_file_fails_by_its_name(PS_TESTS_DIR "/bad/csv", load_csv, 70);
}

// Cutting a schedule short anywhere leaves ops out, and that is seen whatever the cut leaves of the last cell.
static void every_truncation_of_a_schedule_is_refused(void **state)
{
    static const char text[] = "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,";
    const char *last = strrchr(text, ',');
    for (int64_t size = 0; size < last - text; size++) {
        ps_torch_csv csv;
        ps_status status = {0};
        ps_code code = ps_torch_csv_read(*state, "cut.csv", text, size, &csv, &status);
        bool first_row = size == 17 || size == 18; // a whole schedule of one stage
        assert_int_equal(code, first_row ? PS_OK : PS_BAD_INPUT);
        assert_true(first_row || (status.line > 0 && status.column > 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_malformed_schedule_fails_with_its_rule_row_and_column),
        test_in_arena(every_truncation_of_a_schedule_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
