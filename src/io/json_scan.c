// SPDX-License-Identifier: Apache-2.0
//
// json_scan.c: recursive descent over RFC 8259, at most PS_MAX_JSON_DEPTH deep.
//
// Keys of the objects that are open lie on one stack; closing an object sorts its keys and looks for equal neighbours,
// so a hostile object of n keys costs O(n log n).
#include "io/json_scan.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "io/utf8.h"
#include "pipesched/limits.h"

enum { LONGEST_NUMBER = 63 }; // cJSON copies a number into 64 bytes and drops what does not fit

static const double largest_exact_integer = 0x1p53;

typedef struct json_key {
    const char *name; // escapes decoded
    int64_t size;
    int64_t offset;
} json_key;

typedef struct scanner {
    ps_arena *arena;
    const ps_json_input *text;
    int64_t at;
    ps_vec(uint32_t) values;
    ps_vec(json_key) keys;
    ps_text decoded; // of the string just scanned, when it is a key with escapes
    ps_status *status;
} scanner;

static ps_code scan_value(scanner *scan, int32_t depth);

void ps_json_locate(const ps_json_input *text, int64_t offset, int32_t *line, int32_t *column)
{
    int64_t lines = 1;
    int64_t start = 0;
    for (int64_t at = 0; at < offset; at++) {
        if (text->data[at] == '\n') {
            lines++;
            start = at + 1;
        }
    }
    int64_t columns = offset - start + 1;
    *line = lines > INT32_MAX ? INT32_MAX : (int32_t)lines;
    *column = columns > INT32_MAX ? INT32_MAX : (int32_t)columns;
}

static ps_code place(scanner *scan, int64_t offset)
{
    int32_t line;
    int32_t column;
    ps_json_locate(scan->text, offset, &line, &column);
    return ps_fail_at(scan->status, scan->text->source, line, column, NULL);
}

static ps_code fail(scanner *scan, int64_t offset, const char *rule, const char *message)
{
    ps_fail(scan->status, PS_BAD_INPUT, rule, "%s", message);
    return place(scan, offset);
}

static ps_code fail_hint(scanner *scan, int64_t offset, const char *rule, const char *message, const char *hint)
{
    fail(scan, offset, rule, message);
    return ps_fail_hint(scan->status, "%s", hint);
}

// The byte at `at`; NUL at the end, which no JSON holds elsewhere.
static char peek(const scanner *scan)
{
    return scan->at < scan->text->size ? scan->text->data[scan->at] : '\0';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// isalpha() would ask the locale.
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void skip_blanks(scanner *scan)
{
    while (is_blank(peek(scan)))
        scan->at++;
}

static ps_code fail_expected(scanner *scan, const char *expected)
{
    if (scan->at >= scan->text->size) {
        ps_fail(scan->status, PS_BAD_INPUT, "json-syntax", "the text ends where %s is expected", expected);
        ps_fail_hint(scan->status, "the file may be cut off");
        return place(scan, scan->at);
    }
    unsigned char byte = (unsigned char)scan->text->data[scan->at];
    if (byte > 0x20 && byte < 0x7F)
        ps_fail(scan->status, PS_BAD_INPUT, "json-syntax", "expected %s, got '%c'", expected, byte);
    else
        ps_fail(scan->status, PS_BAD_INPUT, "json-syntax", "expected %s, got byte 0x%02x", expected, (unsigned)byte);
    if (byte == '/' || byte == '#')
        ps_fail_hint(scan->status, "JSON has no comments; a key that begins with _ may hold one");
    if (byte == '\'')
        ps_fail_hint(scan->status, "JSON strings stand in double quotes");
    return place(scan, scan->at);
}

// The 4 digits behind \u; -1 when they are not.
static int32_t read_hex(const scanner *scan, int64_t at)
{
    int32_t value = 0;
    for (int64_t digit = at; digit < at + 4; digit++) {
        if (digit >= scan->text->size ||
            !(is_digit(scan->text->data[digit]) || strchr("abcdefABCDEF", scan->text->data[digit])))
            return -1;
        char c = scan->text->data[digit];
        value = 16 * value + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

static ps_code scan_unicode_escape(scanner *scan)
{
    int64_t start = scan->at; // at the backslash
    int32_t unit = read_hex(scan, start + 2);
    if (unit < 0)
        return fail(scan, start, "json-syntax", "\\u must be followed by four hexadecimal digits");
    if (unit == 0)
        return fail(scan, start, "json-syntax", "\\u0000 is not allowed in a string");
    scan->at += 6;

    uint32_t character = (uint32_t)unit;
    if (unit >= 0xD800 && unit <= 0xDFFF) {
        bool pair = scan->at + 1 < scan->text->size && memcmp(scan->text->data + scan->at, "\\u", 2) == 0;
        int32_t low = pair ? read_hex(scan, scan->at + 2) : -1;
        if (unit >= 0xDC00 || low < 0xDC00 || low > 0xDFFF)
            return fail(scan, start, "json-utf8", "a surrogate must be one of a pair, high before low");
        character = 0x10000 + (((uint32_t)unit - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
        scan->at += 6;
    }
    char bytes[4];
    ps_text_add(&scan->decoded, bytes, ps_utf8_encode(character, bytes));
    return PS_OK;
}

static ps_code scan_escape(scanner *scan)
{
    static const char escape[] = "\"\\/bfnrt";
    static const char meaning[] = "\"\\/\b\f\n\r\t";
    char letter = scan->at + 1 < scan->text->size ? scan->text->data[scan->at + 1] : '\0';
    if (letter == 'u')
        return scan_unicode_escape(scan);
    const char *known = letter ? strchr(escape, letter) : NULL;
    if (!known)
        return fail_hint(scan, scan->at, "json-syntax", "unknown escape in a string",
                         "a backslash itself is written \\\\");
    ps_text_add(&scan->decoded, &meaning[known - escape], 1);
    scan->at += 2;
    return PS_OK;
}

// From the opening quote to behind the closing one. When `key` is given it receives the decoded text.
static ps_code scan_string(scanner *scan, json_key *key)
{
    int64_t start = scan->at++;
    int64_t plain = scan->at; // start of the bytes not yet copied to `decoded`
    bool escaped = false;
    scan->decoded.size = 0;
    for (;;) {
        if (scan->at >= scan->text->size)
            return fail_hint(scan, start, "json-syntax", "a string that starts here does not end",
                             "the file may be cut off, or a quote is missing");
        const char *here = scan->text->data + scan->at;
        if (*here == '"')
            break;
        if (*here == '\\') {
            ps_text_add(&scan->decoded, scan->text->data + plain, scan->at - plain);
            PS_TRY(scan_escape(scan));
            plain = scan->at;
            escaped = true;
            continue;
        }
        if ((unsigned char)*here < 0x20)
            return fail_hint(scan, scan->at, "json-syntax", "a raw control character stands in a string",
                             "write \\n for a line break and \\t for a tab");
        int32_t length = ps_utf8_length(here, scan->text->size - scan->at);
        if (length == 0)
            return fail(scan, scan->at, "json-utf8", "the string is not valid UTF-8");
        scan->at += length;
    }
    if (key) {
        *key = (json_key){.name = scan->text->data + plain, .size = scan->at - plain, .offset = start};
        if (escaped) {
            ps_text_add(&scan->decoded, key->name, key->size);
            key->name = ps_text_copy_n(scan->arena, scan->decoded.data, scan->decoded.size);
            key->size = scan->decoded.size;
        }
    }
    scan->at++;
    return PS_OK;
}

static int64_t skip_digits(const scanner *scan, int64_t at)
{
    while (at < scan->text->size && is_digit(scan->text->data[at]))
        at++;
    return at;
}

// End of the number at scan->at by the grammar of RFC 8259, or -1.
static int64_t match_number(const scanner *scan, bool *is_integer)
{
    const char *data = scan->text->data; // the NUL behind the text ends every look ahead
    int64_t at = scan->at + (data[scan->at] == '-');
    int64_t digits = skip_digits(scan, at) - at;
    if (digits == 0 || (digits > 1 && data[at] == '0'))
        return -1;
    at += digits;
    *is_integer = data[at] != '.' && (data[at] | 0x20) != 'e';
    if (data[at] == '.') {
        int64_t end = skip_digits(scan, at + 1);
        if (end == at + 1)
            return -1;
        at = end;
    }
    if ((data[at] | 0x20) == 'e') {
        at += data[at + 1] == '+' || data[at + 1] == '-' ? 2 : 1;
        int64_t end = skip_digits(scan, at);
        if (end == at)
            return -1;
        at = end;
    }
    return is_digit(data[at]) || is_letter(data[at]) || (data[at] && strchr(".+-", data[at])) ? -1 : at;
}

static ps_code scan_number(scanner *scan)
{
    int64_t start = scan->at;
    bool is_integer = false;
    int64_t end = match_number(scan, &is_integer);
    if (end < 0)
        return fail_hint(scan, start, "json-number", "this is not a number as JSON writes them",
                         "no leading + or 0, digits on both sides of the point, and no NaN or Infinity");
    if (end - start > LONGEST_NUMBER)
        return fail_hint(scan, start, "json-number", "a number is longer than 63 characters",
                         "17 significant digits tell any two numbers apart");
    double value;
    if (!ps_decimal_double(scan->text->data + start, end - start, &value))
        return fail(scan, start, "json-number", "the number is too large");
    if (is_integer &&
        (value > largest_exact_integer || value < -largest_exact_integer ||
         // 2^53 + 1 becomes 2^53 when read
         ((value == largest_exact_integer || value == -largest_exact_integer) && scan->text->data[end - 1] != '2')))
        return fail_hint(scan, start, "json-number",
                         "the integer is beyond 2^53, where JSON numbers are no longer exact",
                         "write a size with a unit, such as \"16PiB\"");
    scan->at = end;
    return PS_OK;
}

static ps_code scan_word(scanner *scan)
{
    static const char *const words[] = {"true", "false", "null"};
    int64_t end = scan->at;
    while (end < scan->text->size && (is_letter(scan->text->data[end]) || is_digit(scan->text->data[end])))
        end++;
    char word[32];
    snprintf(word, sizeof word, "%.*s", end - scan->at > 31 ? 31 : (int)(end - scan->at), scan->text->data + scan->at);
    for (int32_t known = 0; known < 3; known++) {
        if (strcmp(word, words[known]) == 0) {
            scan->at = end;
            return PS_OK;
        }
    }
    if (strcmp(word, "NaN") == 0 || strcmp(word, "Infinity") == 0 || strcmp(word, "inf") == 0 ||
        strcmp(word, "nan") == 0)
        return fail_hint(scan, scan->at, "json-number", "JSON has no NaN and no Infinity", "leave the key out");

    ps_fail(scan->status, PS_BAD_INPUT, "json-syntax", "expected a value, got \"%s\"", word);
    const char *near = ps_text_nearest(word, words, 3);
    if (near)
        ps_fail_hint(scan->status, "did you mean %s?", near);
    else
        ps_fail_hint(scan->status, "strings stand in double quotes");
    return place(scan, scan->at);
}

static int compare_keys(const void *left, const void *right)
{
    const json_key *a = left;
    const json_key *b = right;
    int order = memcmp(a->name, b->name, (size_t)(a->size < b->size ? a->size : b->size));
    if (order != 0)
        return order;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

// The keys of the object just closed lie on the stack from `first` on. Fails at the first key that repeats another.
static ps_code check_duplicates(scanner *scan, int64_t first)
{
    json_key *keys = scan->keys.data + first;
    int64_t count = scan->keys.count - first;
    scan->keys.count = first;
    if (count < 2)
        return PS_OK;
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);

    const json_key *repeated = NULL;
    const json_key *earlier = NULL;
    for (int64_t key = 1; key < count; key++) {
        if (keys[key].size != keys[key - 1].size ||
            memcmp(keys[key].name, keys[key - 1].name, (size_t)keys[key].size) != 0)
            continue;
        if (!repeated || keys[key].offset < repeated->offset) {
            repeated = &keys[key];
            earlier = &keys[key - 1];
        }
    }
    if (!repeated)
        return PS_OK;
    int32_t line;
    int32_t column;
    ps_json_locate(scan->text, earlier->offset, &line, &column);
    ps_fail(scan->status, PS_BAD_INPUT, "json-duplicate-key", "the object has the key \"%.*s\" twice",
            (int)(repeated->size > 80 ? 80 : repeated->size), repeated->name);
    ps_fail_hint(scan->status, "the first is at line %d, column %d", (int)line, (int)column);
    return place(scan, repeated->offset);
}

static ps_code scan_member(scanner *scan, int32_t depth)
{
    if (peek(scan) != '"')
        return fail_expected(scan, "a key in double quotes");
    json_key key;
    PS_TRY(scan_string(scan, &key));
    *ps_vec_push(scan->arena, &scan->keys) = key;
    skip_blanks(scan);
    if (peek(scan) != ':')
        return fail_expected(scan, "':' behind the key");
    scan->at++;
    return scan_value(scan, depth);
}

// What stands between the brackets of an array or object, up to and with the closing one.
static ps_code scan_container(scanner *scan, int32_t depth)
{
    bool is_object = peek(scan) == '{';
    char closing = is_object ? '}' : ']';
    int64_t first_key = scan->keys.count;
    if (depth > PS_MAX_JSON_DEPTH) {
        ps_fail(scan->status, PS_BAD_INPUT, "json-depth", "arrays and objects are nested more than %d deep",
                (int)PS_MAX_JSON_DEPTH);
        return place(scan, scan->at);
    }
    scan->at++;
    skip_blanks(scan);
    if (peek(scan) == closing) {
        scan->at++;
        return PS_OK;
    }
    for (;;) {
        skip_blanks(scan);
        PS_TRY(is_object ? scan_member(scan, depth) : scan_value(scan, depth));
        skip_blanks(scan);
        if (peek(scan) == closing)
            break;
        if (peek(scan) != ',')
            return fail_expected(scan, is_object ? "',' or '}'" : "',' or ']'");
        int64_t comma = scan->at++;
        skip_blanks(scan);
        if (peek(scan) == closing)
            return fail_hint(scan, comma, "json-syntax", "a comma stands behind the last element", "remove it");
    }
    scan->at++;
    return is_object ? check_duplicates(scan, first_key) : PS_OK;
}

static ps_code scan_value(scanner *scan, int32_t depth)
{
    skip_blanks(scan);
    if (scan->values.count == INT32_MAX)
        return fail(scan, scan->at, "json-syntax", "the text holds more values than can be counted");
    *ps_vec_push(scan->arena, &scan->values) = (uint32_t)scan->at;
    char first = peek(scan);
    if (first == '{' || first == '[')
        return scan_container(scan, depth + 1);
    if (first == '"')
        return scan_string(scan, NULL);
    if (first && (is_digit(first) || strchr("-+.", first)))
        return scan_number(scan);
    if (is_letter(first))
        return scan_word(scan);
    return fail_expected(scan, "a value");
}

// Files that are something else altogether deserve a better word than "expected a value".
static ps_code check_encoding(scanner *scan)
{
    const char *data = scan->text->data;
    int64_t size = scan->text->size;
    if (size >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0)
        return fail_hint(scan, 0, "json-utf8", "the text begins with a byte order mark",
                         "save it as UTF-8 without BOM");
    if (size >= 2 && (memcmp(data, "\xFF\xFE", 2) == 0 || memcmp(data, "\xFE\xFF", 2) == 0))
        return fail_hint(scan, 0, "json-utf8", "the text is UTF-16", "save it as UTF-8 without BOM");
    const char *nul = memchr(data, '\0', (size_t)size);
    if (nul)
        return fail_hint(scan, nul - data, "json-syntax", "the text holds a NUL byte", "it seems to be a binary file");
    return PS_OK;
}

ps_code ps_json_scan_text(ps_arena *arena, const ps_json_input *text, ps_json_scan *out, ps_status *status)
{
    scanner scan = {.arena = arena, .text = text, .decoded = {.arena = arena}, .status = status};
    if (text->size > UINT32_MAX)
        return fail(&scan, 0, "json-syntax", "the text is longer than 4 GiB");
    PS_TRY(check_encoding(&scan));
    skip_blanks(&scan);
    if (scan.at == text->size)
        return fail(&scan, scan.at, "json-empty", "the text is empty");
    PS_TRY(scan_value(&scan, 0));
    skip_blanks(&scan);
    if (scan.at < text->size)
        return fail_hint(&scan, scan.at, "json-trailing", "more text follows the JSON value", "one value a file");
    *out = (ps_json_scan){.offset = scan.values.data, .count = scan.values.count};
    return PS_OK;
}
