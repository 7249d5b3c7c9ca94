// SPDX-License-Identifier: Apache-2.0
//
// json_read.c: cJSON behind cursors.
//
// cJSON nodes keep no position. After the parse every node is numbered in document order, the order of the scan's table
// of offsets, and the number is kept in the node's `valueint`, which nothing here needs: numbers are read from the text
// itself, exactly. Document order also makes a pointer easy: the child that holds node n is the last one numbered at
// most n.
#include "io/json_read.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/json_scan.h"

struct ps_json_doc {
    ps_json_input text;
    ps_json_scan scan;
    cJSON *root;
};

static const cJSON *node_of(ps_json value)
{
    return value.node;
}

static ps_json cursor(ps_json value, const cJSON *node)
{
    return (ps_json){.doc = value.doc, .node = node};
}

static void free_tree(void *root)
{
    cJSON_Delete(root);
}

// Number the nodes below and with `node`; recursion is as deep as the text, PS_MAX_JSON_DEPTH at most.
static int number_nodes(cJSON *node, int next)
{
    node->valueint = next++;
    for (cJSON *child = node->child; child; child = child->next)
        next = number_nodes(child, next);
    return next;
}

ps_code ps_json_parse(ps_arena *arena, const char *source, const char *text, int64_t size, ps_json *root,
                      ps_status *status)
{
    ps_json_doc *doc = ps_new(arena, ps_json_doc, 1);
    doc->text = (ps_json_input){
        .source = ps_text_copy(arena, source),
        .data = ps_text_copy_n(arena, text, size),
        .size = size,
    };
    PS_TRY(ps_json_scan_text(arena, &doc->text, &doc->scan, status));

    doc->root = cJSON_ParseWithLengthOpts(doc->text.data, (size_t)size + 1, NULL, 0);
    if (!doc->root) // the scan has found no fault, so that cJSON can only have run out of memory
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "memory ran out while reading %s", source);
    ps_arena_defer(arena, free_tree, doc->root);

    int numbered = number_nodes(doc->root, 0);
    if (numbered != doc->scan.count) {
        ps_fail(status, PS_INTERNAL, "json-count", "cJSON found %d values where there are %lld", numbered,
                (long long)doc->scan.count);
        return ps_fail_at(status, source, 0, 0, NULL);
    }
    *root = (ps_json){.doc = doc, .node = doc->root};
    return PS_OK;
}

ps_json_type ps_json_type_of(ps_json value)
{
    const cJSON *node = node_of(value);
    if (cJSON_IsBool(node))
        return PS_JSON_BOOL;
    if (cJSON_IsNumber(node))
        return PS_JSON_NUMBER;
    if (cJSON_IsString(node))
        return PS_JSON_STRING;
    if (cJSON_IsArray(node))
        return PS_JSON_ARRAY;
    return cJSON_IsObject(node) ? PS_JSON_OBJECT : PS_JSON_NULL;
}

bool ps_json_is(ps_json value, ps_json_type type)
{
    return value.node && ps_json_type_of(value) == type;
}

ps_json ps_json_member(ps_json object, const char *key)
{
    const cJSON *node = node_of(object);
    return cursor(object, cJSON_IsObject(node) ? cJSON_GetObjectItemCaseSensitive(node, key) : NULL);
}

int64_t ps_json_count(ps_json value)
{
    int64_t count = 0;
    for (ps_json element = ps_json_first(value); element.node; element = ps_json_next(element))
        count++;
    return count;
}

ps_json ps_json_first(ps_json value)
{
    const cJSON *node = node_of(value);
    return cursor(value, node ? node->child : NULL);
}

ps_json ps_json_next(ps_json element)
{
    const cJSON *node = node_of(element);
    return cursor(element, node ? node->next : NULL);
}

const char *ps_json_key(ps_json member)
{
    const cJSON *node = node_of(member);
    return node && node->string ? node->string : "";
}

const char *ps_json_text(ps_json value)
{
    return ps_json_is(value, PS_JSON_STRING) ? node_of(value)->valuestring : "";
}

const char *ps_json_raw(ps_json value, int64_t *size)
{
    *size = 0;
    if (!value.node)
        return "";
    const ps_json_input *text = &value.doc->text;
    int64_t start = value.doc->scan.offset[node_of(value)->valueint];
    const char *raw = text->data + start;
    switch (ps_json_type_of(value)) {
    case PS_JSON_NULL:
    case PS_JSON_BOOL:
    case PS_JSON_NUMBER: *size = (int64_t)strcspn(raw, " \t\r\n,]}"); break;
    case PS_JSON_STRING:
        for (*size = 1; raw[*size] != '"'; ++*size)
            *size += raw[*size] == '\\';
        ++*size;
        break;
    case PS_JSON_ARRAY:
    case PS_JSON_OBJECT: break;
    }
    return raw;
}

double ps_json_number(ps_json value)
{
    double number = 0;
    int64_t size;
    const char *raw = ps_json_raw(value, &size);
    if (ps_json_is(value, PS_JSON_NUMBER))
        ps_decimal_double(raw, size, &number);
    return number;
}

bool ps_json_bool(ps_json value)
{
    return cJSON_IsTrue(node_of(value));
}

// Append to a buffer of `size`, cutting what does not fit.
static void append(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

// "/key", with ~ and / escaped as RFC 6901 says.
static void append_key(char *text, size_t size, const char *key)
{
    append(text, size, "/");
    for (; *key; key++) {
        char byte[2] = {*key, '\0'};
        append(text, size, *key == '~' ? "~0" : *key == '/' ? "~1" : byte);
    }
}

static void make_pointer(ps_json at, char *text, size_t size)
{
    const cJSON *target = node_of(at);
    const cJSON *node = at.doc->root;
    text[0] = '\0';
    while (node != target) {
        const cJSON *child = node->child;
        long long index = 0;
        for (; child->next && child->next->valueint <= target->valueint; child = child->next)
            index++;
        if (cJSON_IsObject(node)) {
            append_key(text, size, child->string);
        } else {
            char number[32];
            snprintf(number, sizeof number, "/%lld", index);
            append(text, size, number);
        }
        node = child;
    }
}

ps_code ps_json_fail_place(ps_json at, ps_status *status)
{
    if (!at.doc)
        return status->code;
    if (!at.node)
        return ps_fail_at(status, at.doc->text.source, 0, 0, NULL);
    char pointer[sizeof status->pointer];
    int32_t line;
    int32_t column;
    make_pointer(at, pointer, sizeof pointer);
    ps_json_locate(&at.doc->text, at.doc->scan.offset[node_of(at)->valueint], &line, &column);
    return ps_fail_at(status, at.doc->text.source, line, column, pointer);
}

ps_code ps_json_fail(ps_json at, const char *rule, ps_status *status, const char *format, ...)
{
    char message[sizeof status->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    ps_fail(status, PS_BAD_INPUT, rule, "%s", message);
    return ps_json_fail_place(at, status);
}

const char *ps_json_source(ps_json value)
{
    return value.doc ? value.doc->text.source : "";
}

const char *ps_json_library_version(void)
{
    return cJSON_Version();
}
