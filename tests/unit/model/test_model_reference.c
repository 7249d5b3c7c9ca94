// SPDX-License-Identifier: Apache-2.0
#include "unit/model/models.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

// One line of the reference table: file, type, layers, hidden, embedding, head, final, least, most, total, active.
// A file that the table does not count has fewer fields, and is only loaded.
static void check_reference_row(ps_arena *arena, char *line, int32_t *checked)
{
    char *field[11];
    int32_t fields = 0;
    for (char *word = strtok(line, "\t\n"); word && fields < 11; word = strtok(NULL, "\t\n"))
        field[fields++] = word;
    if (fields == 0 || strcmp(field[0], "file") == 0)
        return;

    ps_model model = model_at(arena, ps_text_format(arena, "%s/hf/%s.json", reference_data(), field[0]));
    if (fields < 11)
        return;
    int32_t blocks = 0;
    for (int32_t layer = 0; layer < model.num_layers; layer++)
        blocks += model.layer[layer].class_ == PS_LAYER_DECODER || model.layer[layer].class_ == PS_LAYER_MAMBA;
    assert_int_equal(blocks, atoll(field[2]));
    assert_int_equal(model.layer[1].block->hidden_size, atoll(field[3]));
    assert_int_equal(model.layer[0].parameters, atoll(field[4]));
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
    assert_in_range(checked, 32, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {test_in_arena(every_reference_configuration_matches_to_the_last_parameter)};
    return run_reference_tests(tests);
}
