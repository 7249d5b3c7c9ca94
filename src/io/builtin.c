// SPDX-License-Identifier: Apache-2.0
//
// builtin.c: look-ups in the table of compiled-in files. A dozen rows: linear.
#include "io/builtin.h"

#include <string.h>

const ps_builtin *ps_builtin_find(ps_builtin_kind kind, const char *name)
{
    for (int32_t row = 0; row < ps_builtin_table_count; row++)
        if (ps_builtin_table[row].kind == kind && strcmp(ps_builtin_table[row].name, name) == 0)
            return &ps_builtin_table[row];
    return NULL;
}

const char *const *ps_builtin_names(ps_arena *arena, ps_builtin_kind kind, int32_t *count)
{
    const char **names = ps_new(arena, const char *, ps_builtin_table_count);
    *count = 0;
    for (int32_t row = 0; row < ps_builtin_table_count; row++)
        if (ps_builtin_table[row].kind == kind)
            names[(*count)++] = ps_builtin_table[row].name;
    return names;
}
