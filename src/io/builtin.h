// SPDX-License-Identifier: Apache-2.0
//
// builtin.h: the files of configs/, compiled in: models, clusters, jobs, rules and the catalog of GPUs. They are read
// by the same loaders as a user's files, so nothing about them is special but where their bytes come from.
#ifndef PS_IO_BUILTIN_H
#define PS_IO_BUILTIN_H

#include <stdint.h>

#include "pipesched/arena.h"

typedef enum ps_builtin_kind {
    PS_BUILTIN_MODEL,
    PS_BUILTIN_CLUSTER,
    PS_BUILTIN_JOB,
    PS_BUILTIN_CATALOG, // one file: "gpus"
    PS_BUILTIN_RULES
} ps_builtin_kind;

typedef struct ps_builtin {
    ps_builtin_kind kind;
    const char *name; // file name without its ending: "llama-3.1-8b"
    const char *path; // from the root of the sources: what errors show
    const char *data; // terminated by a NUL that is not counted
    int64_t size;
} ps_builtin;

// The generated table (cmake/Embed.cmake): kinds together, names ascending within a kind.
extern const ps_builtin ps_builtin_table[];
extern const int32_t ps_builtin_table_count;

const ps_builtin *ps_builtin_find(ps_builtin_kind kind, const char *name); // NULL: none of that name
// Names of one kind in order; *count may be 0.
const char *const *ps_builtin_names(ps_arena *arena, ps_builtin_kind kind, int32_t *count);

#endif
