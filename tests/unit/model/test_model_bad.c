// SPDX-License-Identifier: Apache-2.0
#include "unit/model/bad_files.h"

#include "pipesched/model.h"

static ps_code load_model(ps_arena *arena, const char *path, ps_status *status)
{
    ps_model model;
    return ps_model_load(arena, path, &model, status);
}

static void every_malformed_model_fails_with_its_rule_and_place(void **state)
{
    (void)state;
    each_bad_file_fails_by_its_name(PS_TESTS_DIR "/bad/model", load_model, 80);
}

// Cutting a good file short anywhere is a syntax error, never a crash or a model.
static void every_truncation_of_a_model_is_refused(void **state)
{
    const char *text = "{\"format\": \"pipesched/model/v1\", \"layers\": [{\"name\": \"a\", \"forward_ms\": 1, "
                       "\"backward_input_ms\": 2, \"backward_weight_ms\": 3, \"output_bytes\": \"8MiB\"}]}";
    for (int64_t size = 0; size < (int64_t)strlen(text); size++) {
        ps_model model;
        ps_status status = {0};
        assert_int_equal(ps_model_parse(*state, "cut.json", text, size, &model, &status), PS_BAD_INPUT);
        assert_int_equal(strncmp(status.rule, "json-", 5), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_malformed_model_fails_with_its_rule_and_place),
        test_in_arena(every_truncation_of_a_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
