// SPDX-License-Identifier: Apache-2.0
//
// csv_text.h: schedules as the bytes of a PyTorch CSV, and back.
#ifndef PS_TESTS_SUPPORT_CSV_TEXT_H
#define PS_TESTS_SUPPORT_CSV_TEXT_H

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "pipesched/torch_csv.h"
#include "support/cmocka_all.h"

// Lives in the arena. `slot` and `num_slots` as ps_torch_csv_write().
static inline char *csv_text_in_slots(ps_arena *arena, const ps_actions *actions, const int64_t *slot,
                                      int64_t num_slots)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&bytes, &size);
    assert_non_null(file);
    ps_torch_csv_write(file, actions, slot, num_slots);
    assert_int_equal(fclose(file), 0);
    char *text = ps_text_copy_n(arena, bytes, (int64_t)size);
    free(bytes);
    return text;
}

static inline char *csv_text(ps_arena *arena, const ps_actions *actions)
{
    return csv_text_in_slots(arena, actions, NULL, 0);
}

// A text that must be a whole schedule.
static inline ps_torch_csv csv_read(ps_arena *arena, const char *text)
{
    ps_torch_csv csv;
    ps_status status = {0};
    assert_ok(ps_torch_csv_read(arena, "text.csv", text, (int64_t)strlen(text), &csv, &status), &status);
    return csv;
}

// Cells alone.
static inline ps_torch_csv csv_parse(ps_arena *arena, const char *text)
{
    ps_torch_csv csv;
    ps_status status = {0};
    assert_ok(ps_torch_csv_parse(arena, "text.csv", text, (int64_t)strlen(text), &csv, &status), &status);
    return csv;
}

#endif
