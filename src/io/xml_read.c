// SPDX-License-Identifier: Apache-2.0
//
// xml_read.c: Expat behind two callbacks.
//
// A document type without entities, which every hwloc file has, is read over; nothing external is ever loaded. Declared
// entities are refused, and so are references to unknown ones, so that a text means what it says.
#include "io/xml_read.h"

#include <expat.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_DEPTH = 256, CHUNK_BYTES = 1 << 20 };

typedef struct xml_reader {
    XML_Parser parser;
    ps_arena *arena;
    const char *source;
    const ps_xml_handler *handler;
    int32_t depth;
    ps_code code; // the first failure
    ps_status *status;
} xml_reader;

static int32_t clamp(XML_Size value)
{
    return value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

// Note a failure whose status is filled; Expat may still call back, to no effect.
static void stop(xml_reader *reader, ps_code code)
{
    reader->code = code;
    if (reader->status->line == 0)
        ps_fail_at(reader->status, reader->source, clamp(XML_GetCurrentLineNumber(reader->parser)),
                   clamp(XML_GetCurrentColumnNumber(reader->parser) + 1), NULL);
    XML_StopParser(reader->parser, XML_FALSE);
}

// One call of a handler. It runs inside a guard, for a jump over Expat's frames would leave its tables half changed.
typedef struct xml_event {
    const ps_xml_handler *handler;
    const char *element;
    const char **attributes; // NULL: the end of the element
} xml_event;

static ps_code handle(void *context, ps_status *status)
{
    const xml_event *event = context;
    const ps_xml_handler *handler = event->handler;
    if (event->attributes && handler->start)
        return handler->start(handler->context, event->element, (const char *const *)event->attributes, status);
    if (!event->attributes && handler->end)
        return handler->end(handler->context, event->element, status);
    return PS_OK;
}

static void dispatch(xml_reader *reader, const char *element, const char **attributes)
{
    xml_event event = {.handler = reader->handler, .element = element, .attributes = attributes};
    ps_code code = ps_guard(handle, &event, reader->arena, reader->status);
    if (code != PS_OK)
        stop(reader, code);
}

static void on_start(void *context, const char *element, const char **attributes)
{
    xml_reader *reader = context;
    if (reader->code != PS_OK)
        return;
    if (++reader->depth > MOST_DEPTH)
        stop(reader, ps_fail(reader->status, PS_BAD_INPUT, "xml-depth", "elements are nested more than %d deep",
                             (int)MOST_DEPTH));
    else
        dispatch(reader, element, attributes);
}

static void on_end(void *context, const char *element)
{
    xml_reader *reader = context;
    if (reader->code != PS_OK)
        return;
    reader->depth--;
    dispatch(reader, element, NULL);
}

static void refuse_entity(xml_reader *reader, const char *what, const char *name)
{
    if (reader->code != PS_OK)
        return;
    ps_fail(reader->status, PS_BAD_INPUT, "xml-entity", "%s \"%.80s\" is not allowed", what, name);
    ps_fail_hint(reader->status, "write out what it stands for");
    stop(reader, PS_BAD_INPUT);
}

static void on_entity(void *context, const char *name, int is_parameter, const char *value, int value_length,
                      const char *base, const char *system_id, const char *public_id, const char *notation)
{
    (void)is_parameter, (void)value, (void)value_length, (void)base, (void)system_id, (void)public_id, (void)notation;
    refuse_entity(context, "the declaration of an entity", name);
}

static void on_skipped_entity(void *context, const char *name, int is_parameter)
{
    (void)is_parameter;
    refuse_entity(context, "the unknown entity", name);
}

static void feed(xml_reader *reader, const char *text, int64_t size)
{
    int64_t at = 0;
    do {
        int64_t chunk = size - at < CHUNK_BYTES ? size - at : CHUNK_BYTES;
        bool is_last = at + chunk == size;
        enum XML_Status result = XML_Parse(reader->parser, text + at, (int)chunk, is_last);
        if (reader->code != PS_OK)
            return;
        if (result != XML_STATUS_OK) {
            enum XML_Error error = XML_GetErrorCode(reader->parser);
            if (error == XML_ERROR_NO_MEMORY)
                ps_fail(reader->status, PS_EXHAUSTED, "out-of-memory", "memory ran out while reading the XML");
            else
                ps_fail(reader->status, PS_BAD_INPUT, "xml-syntax", "this is not well-formed XML: %s",
                        XML_ErrorString(error));
            stop(reader, reader->status->code);
            return;
        }
        at += chunk;
    } while (at < size);
}

ps_code ps_xml_parse(ps_arena *arena, const char *source, const char *text, int64_t size, const ps_xml_handler *handler,
                     ps_status *status)
{
    xml_reader reader = {.arena = arena, .source = source, .handler = handler, .status = status};
    reader.parser = XML_ParserCreate(NULL);
    if (!reader.parser)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "memory ran out before the XML was read");

    XML_SetUserData(reader.parser, &reader);
    XML_SetElementHandler(reader.parser, on_start, on_end);
    XML_SetEntityDeclHandler(reader.parser, on_entity);
    XML_SetSkippedEntityHandler(reader.parser, on_skipped_entity);
    feed(&reader, text, size);
    XML_ParserFree(reader.parser);
    return reader.code;
}

const char *ps_xml_library_version(void)
{
    const char *text = XML_ExpatVersion(); // "expat_2.5.0"
    const char *digits = strpbrk(text, "0123456789");
    return digits ? digits : text;
}
