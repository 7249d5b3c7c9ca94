// SPDX-License-Identifier: Apache-2.0
//
// status.c: filling and printing a status. Everything that ends up in it may come from a hostile file, so control
// characters are replaced (a terminal would obey them) and text is cut only between UTF-8 characters.
#include "pipesched/status.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void clean(char *text, size_t size)
{
    size_t length = strlen(text);
    if (length + 1 == size) { // probably cut: drop the continuation bytes of a character that lost its end
        size_t start = length;
        while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
            start--;
        unsigned char lead = start > 0 ? (unsigned char)text[start - 1] : 0;
        size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
        if (need > 1 && length - (start - 1) < need)
            text[start - 1] = '\0';
    }
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7F)
            *at = '?';
}

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
    clean(to, size);
}

ps_code ps_fail(ps_status *status, ps_code code, const char *rule, const char *format, ...)
{
    assert(code != PS_OK);
    *status = (ps_status){.code = code};
    copy_text(status->rule, sizeof status->rule, rule);

    va_list arguments;
    va_start(arguments, format);
    vsnprintf(status->message, sizeof status->message, format, arguments);
    va_end(arguments);
    clean(status->message, sizeof status->message);
    return code;
}

ps_code ps_fail_at(ps_status *status, const char *source, int32_t line, int32_t column, const char *pointer)
{
    if (source)
        copy_text(status->source, sizeof status->source, source);
    if (pointer)
        copy_text(status->pointer, sizeof status->pointer, pointer);
    if (line > 0)
        status->line = line;
    if (column > 0)
        status->column = column;
    return status->code;
}

ps_code ps_fail_hint(ps_status *status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(status->hint, sizeof status->hint, format, arguments);
    va_end(arguments);
    clean(status->hint, sizeof status->hint);
    return status->code;
}

int32_t ps_status_format(const ps_status *status, char *text, int32_t size)
{
    char place[32] = "";
    if (status->line > 0 && status->column > 0)
        snprintf(place, sizeof place, ":%d:%d", (int)status->line, (int)status->column);
    else if (status->line > 0)
        snprintf(place, sizeof place, ":%d", (int)status->line);
    return snprintf(text, (size_t)size, "%s%s%s%s%s%s", status->source, status->source[0] ? place : "",
                    status->source[0] ? ": " : "", status->pointer, status->pointer[0] ? ": " : "", status->message);
}

int32_t ps_exit_status(ps_code code)
{
    switch (code) {
    case PS_OK: return 0;
    case PS_INFEASIBLE:
    case PS_ILLEGAL: return 1;
    case PS_USAGE: return 2;
    case PS_BAD_INPUT: return 3;
    case PS_IO: return 4;
    case PS_TIME_LIMIT:
    case PS_STOPPED: return 5;
    case PS_EXHAUSTED:
    case PS_INTERNAL: break;
    }
    return 70;
}
