// SPDX-License-Identifier: Apache-2.0
//
// json_scan.h: the strict pass in front of cJSON, used by json_read.c alone. It refuses what RFC 8259 does not allow
// and what cJSON would take for something else, and notes where every value starts.
#ifndef PS_IO_JSON_SCAN_H
#define PS_IO_JSON_SCAN_H

#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

typedef struct ps_json_input {
    const char *source; // name shown in errors
    const char *data;   // terminated by a NUL that is not counted
    int64_t size;
} ps_json_input;

typedef struct ps_json_scan {
    const uint32_t *offset; // [count], where each value starts, in document order: a container before what it holds
    int64_t count;
} ps_json_scan;

// PS_BAD_INPUT with line, column and one of the rules of ps_json_parse(). O(n log n) for n bytes.
ps_code ps_json_scan_text(ps_arena *arena, const ps_json_input *text, ps_json_scan *out, ps_status *status);

// Line and column, both from 1, of a byte. O(offset): for errors only.
void ps_json_locate(const ps_json_input *text, int64_t offset, int32_t *line, int32_t *column);

#endif
