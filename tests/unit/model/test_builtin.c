// SPDX-License-Identifier: Apache-2.0
#include "support/cmocka_all.h"

#include <stdio.h>

#include "io/builtin.h"
#include "io/file.h"
#include "pipesched/limits.h"

static void every_kind_lists_its_names_in_order(void **state)
{
    for (int kind = PS_BUILTIN_MODEL; kind <= PS_BUILTIN_RULES; kind++) {
        int32_t count;
        const char *const *names = ps_builtin_names(*state, (ps_builtin_kind)kind, &count);
        assert_in_range(count, 1, 1000);
        for (int32_t index = 1; index < count; index++)
            assert_true(strcmp(names[index - 1], names[index]) < 0);
    }
}

static void a_name_is_found_only_under_its_kind(void **state)
{
    (void)state;
    assert_non_null(ps_builtin_find(PS_BUILTIN_MODEL, "gpt2"));
    assert_null(ps_builtin_find(PS_BUILTIN_CLUSTER, "gpt2"));
    assert_null(ps_builtin_find(PS_BUILTIN_MODEL, "GPT2"));
    assert_non_null(ps_builtin_find(PS_BUILTIN_CATALOG, "gpus"));
}

static void the_bytes_are_those_of_the_files(void **state)
{
    for (int32_t row = 0; row < ps_builtin_table_count; row++) {
        const ps_builtin *builtin = &ps_builtin_table[row];
        char path[1024];
        snprintf(path, sizeof path, "%s/../%s", PS_TESTS_DIR, builtin->path);
        ps_file_bytes bytes;
        ps_status status = {0};
        assert_ok(ps_file_read(*state, path, PS_MAX_FILE_BYTES, &bytes, &status), &status);
        assert_int_equal(bytes.size, builtin->size);
        assert_memory_equal(bytes.data, builtin->data, (size_t)bytes.size + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(every_kind_lists_its_names_in_order),
        cmocka_unit_test(a_name_is_found_only_under_its_kind),
        test_in_arena(the_bytes_are_those_of_the_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
