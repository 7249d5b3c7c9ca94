// SPDX-License-Identifier: Apache-2.0
//
// json_write.c: tokens to a stream, with the commas and line breaks between them.
#include "io/json_write.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "io/file.h"
#include "io/utf8.h"

static void put(ps_json_writer *writer, const char *text)
{
    fputs(text, writer->file);
}

static void break_line(ps_json_writer *writer)
{
    fprintf(writer->file, "\n%*s", (int)(2 * writer->depth), "");
}

// `size` bytes between quotes. What is no UTF-8 becomes U+FFFD, so that the output always is.
static void put_quoted(ps_json_writer *writer, const char *text)
{
    int64_t left = (int64_t)strlen(text);
    put(writer, "\"");
    while (left > 0) {
        int32_t length = ps_utf8_length(text, left);
        unsigned char byte = (unsigned char)*text;
        if (length == 0)
            put(writer, "\xEF\xBF\xBD");
        else if (byte == '"' || byte == '\\')
            fprintf(writer->file, "\\%c", byte);
        else if (byte == '\n')
            put(writer, "\\n");
        else if (byte == '\t')
            put(writer, "\\t");
        else if (byte < 0x20 || byte == 0x7F)
            fprintf(writer->file, "\\u%04x", (unsigned)byte);
        else
            fwrite(text, 1, (size_t)length, writer->file);
        text += length > 0 ? length : 1;
        left -= length > 0 ? length : 1;
    }
    put(writer, "\"");
}

// What comes before a value: the comma, the place and the key.
static void begin_value(ps_json_writer *writer, const char *key)
{
    int32_t level = writer->depth - 1;
    if (level >= 0) {
        assert((key == NULL) == writer->is_array[level]);
        if (writer->has_items[level])
            put(writer, writer->is_inline[level] ? ", " : ",");
        if (!writer->is_inline[level])
            break_line(writer);
        writer->has_items[level] = true;
    }
    if (key) {
        put_quoted(writer, key);
        put(writer, ": ");
    }
}

static void open_container(ps_json_writer *writer, const char *key, bool is_array, bool is_inline)
{
    assert(writer->depth < PS_MAX_JSON_DEPTH);
    begin_value(writer, key);
    put(writer, is_array ? "[" : "{");
    int32_t level = writer->depth++;
    writer->has_items[level] = false;
    writer->is_array[level] = is_array;
    writer->is_inline[level] = is_inline || (level > 0 && writer->is_inline[level - 1]);
}

void ps_json_begin(ps_json_writer *writer, FILE *file)
{
    *writer = (ps_json_writer){.file = file};
}

void ps_json_object(ps_json_writer *writer, const char *key)
{
    open_container(writer, key, false, false);
}

void ps_json_object_inline(ps_json_writer *writer, const char *key)
{
    open_container(writer, key, false, true);
}

void ps_json_array(ps_json_writer *writer, const char *key)
{
    open_container(writer, key, true, false);
}

void ps_json_array_inline(ps_json_writer *writer, const char *key)
{
    open_container(writer, key, true, true);
}

void ps_json_close(ps_json_writer *writer)
{
    assert(writer->depth > 0);
    int32_t level = --writer->depth;
    if (writer->has_items[level] && !writer->is_inline[level])
        break_line(writer);
    put(writer, writer->is_array[level] ? "]" : "}");
}

void ps_json_put_int(ps_json_writer *writer, const char *key, int64_t value)
{
    begin_value(writer, key);
    fprintf(writer->file, "%" PRId64, value);
}

void ps_json_put_double(ps_json_writer *writer, const char *key, double value)
{
    char text[32];
    begin_value(writer, key);
    assert(isfinite(value));
    put(writer, ps_format_double(value, text));
}

void ps_json_put_ms(ps_json_writer *writer, const char *key, int64_t nanoseconds)
{
    char text[32];
    begin_value(writer, key);
    put(writer, ps_format_ms(nanoseconds, text));
}

void ps_json_put_string(ps_json_writer *writer, const char *key, const char *value)
{
    begin_value(writer, key);
    if (value)
        put_quoted(writer, value);
    else
        put(writer, "null");
}

void ps_json_put_bool(ps_json_writer *writer, const char *key, bool value)
{
    begin_value(writer, key);
    put(writer, value ? "true" : "false");
}

void ps_json_put_null(ps_json_writer *writer, const char *key)
{
    begin_value(writer, key);
    put(writer, "null");
}

ps_code ps_json_write_end(ps_json_writer *writer, ps_status *status)
{
    assert(writer->depth == 0);
    put(writer, "\n");
    return ps_stream_flush(writer->file, status);
}

static const char *code_name(ps_code code)
{
    switch (code) {
    case PS_OK: return "ok";
    case PS_INFEASIBLE: return "infeasible";
    case PS_ILLEGAL: return "illegal";
    case PS_USAGE: return "usage";
    case PS_BAD_INPUT: return "bad-input";
    case PS_IO: return "io";
    case PS_TIME_LIMIT: return "time-limit";
    case PS_STOPPED: return "stopped";
    case PS_EXHAUSTED: return "exhausted";
    case PS_INTERNAL: break;
    }
    return "internal";
}

void ps_json_put_error(ps_json_writer *writer, const ps_status *error)
{
    ps_json_object(writer, NULL);
    ps_json_put_string(writer, "format", "pipesched/error/v1");
    ps_json_put_string(writer, "code", code_name(error->code));
    ps_json_put_string(writer, "rule", error->rule);
    ps_json_put_string(writer, "message", error->message);
    ps_json_put_string(writer, "source", error->source);
    if (error->line > 0) {
        ps_json_put_int(writer, "line", error->line);
        ps_json_put_int(writer, "column", error->column);
    }
    ps_json_put_string(writer, "pointer", error->pointer);
    ps_json_put_string(writer, "hint", error->hint);
    ps_json_close(writer);
}
