// SPDX-License-Identifier: Apache-2.0
//
// json_write.h: JSON out, streaming, in fixed order, with exact numbers. Writes to a FILE; errors of the stream are
// sticky and reported by ps_json_write_end(). Objects are indented by two blanks; an array or object opened as
// `inline` stays on one line.
#ifndef PS_IO_JSON_WRITE_H
#define PS_IO_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipesched/limits.h"
#include "pipesched/status.h"

typedef struct ps_json_writer {
    FILE *file;
    int32_t depth;
    bool has_items[PS_MAX_JSON_DEPTH];
    bool is_inline[PS_MAX_JSON_DEPTH];
    bool is_array[PS_MAX_JSON_DEPTH];
} ps_json_writer;

void ps_json_begin(ps_json_writer *writer, FILE *file);
// `key` is NULL inside an array and at the top.
void ps_json_object(ps_json_writer *writer, const char *key);
void ps_json_object_inline(ps_json_writer *writer, const char *key);
void ps_json_array(ps_json_writer *writer, const char *key);
void ps_json_array_inline(ps_json_writer *writer, const char *key);
void ps_json_close(ps_json_writer *writer); // the innermost open object or array

void ps_json_put_int(ps_json_writer *writer, const char *key, int64_t value);
void ps_json_put_double(ps_json_writer *writer, const char *key, double value);      // shortest that reads back; finite
void ps_json_put_ms(ps_json_writer *writer, const char *key, int64_t nanoseconds);   // exact, at most six decimals
void ps_json_put_string(ps_json_writer *writer, const char *key, const char *value); // NULL writes null
void ps_json_put_bool(ps_json_writer *writer, const char *key, bool value);
void ps_json_put_null(ps_json_writer *writer, const char *key);

// Final newline and flush. PS_IO with errno's text when anything could not be written.
ps_code ps_json_write_end(ps_json_writer *writer, ps_status *status);

// pipesched/error/v1 {code, rule, message, source, pointer, hint} for a failed run in JSON mode.
void ps_json_put_error(ps_json_writer *writer, const ps_status *error);

#endif
