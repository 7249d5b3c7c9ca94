// SPDX-License-Identifier: Apache-2.0
//
// text.c: strings on an arena, and the nearest known name for a typo.
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// Room for `more` bytes and the NUL.
static void reserve(ps_text *text, int64_t more)
{
    assert(more >= 0 && more < INT64_MAX / 4);
    if (text->capacity - text->size > more)
        return;
    int64_t capacity = 2 * text->capacity > text->size + more + 1 ? 2 * text->capacity : text->size + more + 1;
    if (capacity < 64)
        capacity = 64;
    char *moved = ps_new_raw(text->arena, char, capacity);
    if (text->size > 0)
        memcpy(moved, text->data, (size_t)text->size);
    text->data = moved;
    text->capacity = capacity;
}

void ps_text_add(ps_text *text, const char *bytes, int64_t size)
{
    reserve(text, size);
    if (size > 0)
        memcpy(text->data + text->size, bytes, (size_t)size);
    text->size += size;
    text->data[text->size] = '\0';
}

static void add_formatted(ps_text *text, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));
static void add_formatted(ps_text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int needed = vsnprintf(NULL, 0, format, arguments);
    assert(needed >= 0);
    reserve(text, needed);
    vsnprintf(text->data + text->size, (size_t)needed + 1, format, again);
    va_end(again);
    text->size += needed;
}

void ps_text_addf(ps_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_formatted(text, format, arguments);
    va_end(arguments);
}

char *ps_text_copy(ps_arena *arena, const char *text)
{
    return ps_text_copy_n(arena, text, (int64_t)strlen(text));
}

char *ps_text_copy_n(ps_arena *arena, const char *bytes, int64_t size)
{
    char *copy = ps_new_raw(arena, char, size + 1);
    if (size > 0)
        memcpy(copy, bytes, (size_t)size);
    copy[size] = '\0';
    return copy;
}

char *ps_text_format(ps_arena *arena, const char *format, ...)
{
    ps_text text = {.arena = arena};
    va_list arguments;
    va_start(arguments, format);
    add_formatted(&text, format, arguments);
    va_end(arguments);
    return text.data;
}

enum { LONGEST_NAME = 64, MOST_EDITS = 4 };

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

// Insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string alignment), in three
// rows of the usual table. O(|a||b|).
static int32_t edit_distance(const char *a, int32_t a_size, const char *b, int32_t b_size)
{
    int32_t rows[3][LONGEST_NAME + 1];
    int32_t *before = rows[0];
    int32_t *above = rows[1];
    int32_t *row = rows[2];

    for (int32_t column = 0; column <= b_size; column++)
        above[column] = before[column] = column;
    for (int32_t i = 1; i <= a_size; i++) {
        row[0] = i;
        for (int32_t j = 1; j <= b_size; j++) {
            int32_t best = above[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        int32_t *free_row = before;
        before = above;
        above = row;
        row = free_row;
    }
    return above[b_size];
}

const char *ps_text_nearest(const char *word, const char *const *names, int32_t count)
{
    size_t word_size = strlen(word);
    if (word_size == 0 || word_size > LONGEST_NAME)
        return NULL;

    // A third of the letters may be wrong, but not all of a short word.
    int32_t allowed = (int32_t)word_size / 3;
    if (allowed < 1)
        allowed = word_size > 1;
    if (allowed > MOST_EDITS)
        allowed = MOST_EDITS;

    const char *nearest = NULL;
    for (int32_t name = 0; name < count; name++) {
        size_t name_size = strlen(names[name]);
        if (name_size > LONGEST_NAME)
            continue;
        int32_t distance = edit_distance(word, (int32_t)word_size, names[name], (int32_t)name_size);
        if (distance <= allowed) {
            nearest = names[name];
            allowed = distance - 1; // from now on only a nearer one
        }
    }
    return nearest;
}
