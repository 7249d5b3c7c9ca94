// SPDX-License-Identifier: Apache-2.0
#include "unit/model/models.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

// One line of the reference table: file, type, layers, hidden, embedding, head, final, least, most, total, active.
static void check_reference_row(ps_arena *arena, char *line, int32_t *checked)
{
    static const char *const types[] = {"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe", "gpt2"};
    char *field[11];
    int32_t fields = 0;
    for (char *word = strtok(line, "\t\n"); word && fields < 11; word = strtok(NULL, "\t\n"))
        field[fields++] = word;
    bool ours = false;
    for (size_t type = 0; fields == 11 && type < sizeof types / sizeof types[0]; type++)
        ours = ours || strcmp(field[1], types[type]) == 0;
    if (!ours)
        return;

    ps_model model = model_at(arena, ps_text_format(arena, "%s/hf/%s.json", reference_data(), field[0]));
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (int32_t layer = 1; layer < model.num_layers - 2; layer++) {
        int64_t parameters = model.layer[layer].parameters;
        least = parameters < least ? parameters : least;
        most = parameters > most ? parameters : most;
    }
    assert_int_equal(model.num_layers - 3, atoll(field[2]));
    assert_int_equal(model.layer[1].block->hidden_size, atoll(field[3]));
    assert_int_equal(model.layer[0].parameters, atoll(field[4]));
    assert_int_equal(model.layer[model.num_layers - 1].parameters, atoll(field[5]));
    assert_int_equal(model.layer[model.num_layers - 2].parameters, atoll(field[6]));
    assert_int_equal(least, atoll(field[7]));
    assert_int_equal(most, atoll(field[8]));
    assert_int_equal(model.parameters, atoll(field[9]));
    assert_int_equal(model.active_parameters, atoll(field[10]));
    (*checked)++;
}

static void every_reference_configuration_matches_to_the_last_parameter(void **state)
{
    FILE *table = fopen(ps_text_format(*state, "%s/hf/PARAMS.tsv", reference_data()), "r");
    assert_non_null(table);
    char line[1024];
    int32_t checked = 0;
    while (fgets(line, sizeof line, table))
        check_reference_row(*state, line, &checked);
    fclose(table);
    assert_in_range(checked, 16, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {test_in_arena(every_reference_configuration_matches_to_the_last_parameter)};
    return run_reference_tests(tests);
}
