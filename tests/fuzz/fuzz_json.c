// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include "io/json_read.h"

static void walk(ps_json value)
{
    ps_status status = {0};
    ps_json_fail(value, "walk", &status, "every place has a pointer and a line");
    if (!status.line)
        abort();
    for (ps_json child = ps_json_first(value); child.node; child = ps_json_next(child))
        walk(child);
}

ps_code fuzz_one(ps_arena *arena, const char *text, int64_t size, ps_status *status)
{
    ps_json root;
    PS_TRY(ps_json_parse(arena, "fuzz", text, size, &root, status));
    if (ps_json_count(root) <= 64)
        walk(root);
    return PS_OK;
}
