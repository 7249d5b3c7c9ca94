// SPDX-License-Identifier: Apache-2.0
//
// text.h: strings that grow on an arena, quantities with units, and the nearest known name for a typo.
#ifndef PS_BASE_TEXT_H
#define PS_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

typedef struct ps_text {
    ps_arena *arena;
    char *data; // always terminated once anything was added; NULL before
    int64_t size;
    int64_t capacity;
} ps_text;

void ps_text_add(ps_text *text, const char *bytes, int64_t size);
void ps_text_addf(ps_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

char *ps_text_copy(ps_arena *arena, const char *text);
char *ps_text_copy_n(ps_arena *arena, const char *bytes, int64_t size);
char *ps_text_format(ps_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The closest of `names` by edit distance with transpositions when it is near enough to be a typo, else NULL. Case is
// ignored. Ties go to the earlier name.
const char *ps_text_nearest(const char *word, const char *const *names, int32_t count);

// Quantities as users write them; `text` must be used up entirely. All are refused when negative, NaN, infinite or out
// of range, with rule "bad-quantity", what was expected and what was got. The caller adds the place. Independent of the
// locale. GB is 10^9, GiB 2^30, b is bit, B is byte; one blank may stand before the unit, and 0 needs none.
ps_code ps_parse_bytes(const char *text, int64_t *bytes, ps_status *status);          // "80GiB", "2TB", "512B"
ps_code ps_parse_rate(const char *text, double *bytes_per_second, ps_status *status); // "400Gb/s", "25GB/s"
ps_code ps_parse_duration(const char *text, int64_t *nanoseconds, ps_status *status); // "3.2ms", "5us", "1s"
// Bare decimal numbers, strict: digits only, no hexadecimal, no blanks, no leading '+'.
ps_code ps_parse_int(const char *text, int64_t min, int64_t max, int64_t *value, ps_status *status);
ps_code ps_parse_double(const char *text, double min, double max, double *value, ps_status *status);

// The decimal in text[0..size), digits with an optional fraction and exponent as in JSON, leading zeros allowed.
// Scaled: times `factor`, exactly, then rounded half away from zero; false when negative, beyond INT64_MAX or no
// decimal. Double: the nearest one, a leading '-' allowed; false when it would be infinite or is no decimal.
bool ps_decimal_scaled(const char *text, int64_t size, int64_t factor, int64_t *out);
bool ps_decimal_double(const char *text, int64_t size, double *out);

// For people, three significant digits: "79.1 GiB", "12.3 ms". Written into buffers of 32.
const char *ps_format_bytes(int64_t bytes, char text[32]);
const char *ps_format_ns(int64_t nanoseconds, char text[32]);
// A count with thousands separated by commas: "70,553,706,496".
const char *ps_format_count(int64_t count, char text[32]);
// "" for one and "s" for any other number: "%d layer%s".
const char *ps_plural(int64_t count);
// Milliseconds with as few decimals as read back exactly, at most six: 1331210000 -> "1331.21".
const char *ps_format_ms(int64_t nanoseconds, char text[32]);
// Shortest decimal that reads back as the same double, locale-independent; NaN and infinities are a programmer error.
const char *ps_format_double(double value, char text[32]);

#endif
