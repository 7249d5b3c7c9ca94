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

typedef struct golden_row {
    ps_arena *arena;
    const char *name;
    int64_t parameters;
    bool found;
} golden_row;

static void check_golden(const published_model *row, void *context)
{
    golden_row *golden = context;
    if (strcmp(row->name, golden->name) != 0)
        return;
    golden->found = true;
    assert_int_equal(model_of(golden->arena, row->config).parameters, golden->parameters);
}

// The count by formula where the two that the reference has disagree: it says so, and its configuration bears it out.
static void every_golden_count_is_met(void **state)
{
    FILE *table = fopen(ps_text_format(*state, "%s/golden_params.csv", reference_data()), "r");
    assert_non_null(table);
    char line[1024];
    int32_t found = 0;
    while (fgets(line, sizeof line, table)) {
        char *field[5];
        if (!split_csv_line(line, field, 5) || strcmp(field[0], "model") == 0)
            continue;
        golden_row row = {.arena = *state, .name = field[0], .parameters = atoll(field[2])};
        each_published_model(PS_TESTS_DIR "/data/published-models.tsv", check_golden, &row);
        if (!row.found)
            print_message("no sizes for %s\n", row.name);
        found += row.found;
    }
    fclose(table);
    assert_in_range(found, 49, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {test_in_arena(every_reference_configuration_matches_to_the_last_parameter),
                                       test_in_arena(every_golden_count_is_met)};
    return run_reference_tests(tests);
}
