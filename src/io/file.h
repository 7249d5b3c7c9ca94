// SPDX-License-Identifier: Apache-2.0
//
// file.h: whole files in, whole files out.
#ifndef PS_IO_FILE_H
#define PS_IO_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

typedef struct ps_file_bytes {
    char *data; // terminated by a NUL that is not counted
    int64_t size;
    char sha256[65]; // hexadecimal
} ps_file_bytes;

// "-" is standard input. PS_IO with the system's words for what is missing, unreadable or a directory (rules
// file-missing, file-directory, file-read); PS_BAD_INPUT above `max_bytes` (rule file-too-large).
ps_code ps_file_read(ps_arena *arena, const char *path, int64_t max_bytes, ps_file_bytes *out, ps_status *status);
bool ps_file_exists(const char *path);
void ps_sha256(const void *data, int64_t size, char hexadecimal[65]);

// Output that appears whole or not at all: written to a temporary file beside `path`, moved over it by commit.
// "-" or NULL is standard output. The arena's end discards what was not committed.
typedef struct ps_output ps_output;
ps_code ps_output_open(ps_arena *arena, const char *path, ps_output **out, ps_status *status);
FILE *ps_output_file(ps_output *output);
// All of `data`. PS_IO (rule file-write) with the system's words otherwise.
ps_code ps_output_write(ps_output *output, const char *data, size_t size, ps_status *status);
// Flush, sync, check, rename. PS_IO (rule file-write) otherwise; nothing is left behind.
ps_code ps_output_commit(ps_output *output, ps_status *status);

// Flush a stream. PS_IO (rule file-write) when this or anything written earlier failed.
ps_code ps_stream_flush(FILE *file, ps_status *status);

#endif
