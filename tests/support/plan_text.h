// SPDX-License-Identifier: Apache-2.0
//
// plan_text.h: a plan as the bytes of its file.
#ifndef PS_TESTS_SUPPORT_PLAN_TEXT_H
#define PS_TESTS_SUPPORT_PLAN_TEXT_H

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "pipesched/plan.h"
#include "support/cmocka_all.h"

// Lives in the arena.
static inline char *plan_text(ps_arena *arena, const ps_plan *plan, const ps_timeline *timeline)
{
    char *bytes = NULL;
    size_t size = 0;
    ps_status status = {0};
    FILE *file = open_memstream(&bytes, &size);
    assert_non_null(file);
    assert_ok(ps_plan_write_json(plan, timeline, file, &status), &status);
    fclose(file);
    char *text = ps_text_copy_n(arena, bytes, (int64_t)size);
    free(bytes);
    return text;
}

#endif
