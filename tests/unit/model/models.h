// SPDX-License-Identifier: Apache-2.0
//
// models.h: what tests of models share.
#ifndef PS_TESTS_MODELS_H
#define PS_TESTS_MODELS_H

#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

#include "pipesched/model.h"

static inline ps_code parse_text(ps_arena *arena, const char *text, ps_model *out, ps_status *status)
{
    return ps_model_parse(arena, "test.json", text, (int64_t)strlen(text), out, status);
}

// The text is a model; the test fails otherwise.
static inline ps_model model_of(ps_arena *arena, const char *text)
{
    ps_model model;
    ps_status status = {0};
    assert_ok(parse_text(arena, text, &model, &status), &status);
    return model;
}

// A built-in name or a path from the root of the sources.
static inline ps_model model_at(ps_arena *arena, const char *name)
{
    ps_model model;
    ps_status status = {0};
    assert_ok(ps_model_load(arena, name, &model, &status), &status);
    return model;
}

// One line of tests/data/published-models.tsv, cut in place.
typedef struct published_model {
    const char *name;
    int64_t parameters;
    const char *config;
} published_model;

// Call `each` for every line.
static inline void each_published_model(const char *path, void (*each)(const published_model *, void *), void *context)
{
    static char line[4096];
    FILE *table = fopen(path, "r");
    assert_non_null(table);
    while (fgets(line, sizeof line, table)) {
        if (line[0] == '#')
            continue;
        published_model row = {.name = strtok(line, "\t")};
        row.parameters = atoll(strtok(NULL, "\t"));
        row.config = strtok(NULL, "\n");
        each(&row, context);
    }
    fclose(table);
}

#endif
