// SPDX-License-Identifier: Apache-2.0
//
// format.c: numbers for people and for files, the same in every locale.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

__extension__ typedef unsigned __int128 wide;

enum { TEXT_SIZE = 32 };

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

// value / factor with three significant digits; false when it rounds up to `next` or more of this unit.
static bool print_three_digits(char *text, const char *sign, uint64_t value, uint64_t factor, uint64_t next,
                               const char *unit)
{
    uint64_t scale = factor == 1 || value / factor >= 100 ? 1 : value / factor >= 10 ? 10 : 100;
    uint64_t rounded = (uint64_t)(((wide)value * scale + factor / 2) / factor);
    if (scale > 1 && rounded >= 1000) { // 9.996 has become 10.00
        scale /= 10;
        rounded = (uint64_t)(((wide)value * scale + factor / 2) / factor);
    }
    if (next > 0 && rounded / scale >= next)
        return false;
    if (scale == 1)
        snprintf(text, TEXT_SIZE, "%s%" PRIu64 " %s", sign, rounded, unit);
    else
        snprintf(text, TEXT_SIZE, "%s%" PRIu64 ".%0*" PRIu64 " %s", sign, rounded / scale, scale == 10 ? 1 : 2,
                 rounded % scale, unit);
    return true;
}

const char *ps_format_bytes(int64_t bytes, char text[32])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    const int last = 6;
    for (int index = 0; index <= last; index++)
        if (print_three_digits(text, bytes < 0 ? "-" : "", magnitude(bytes), UINT64_C(1) << (10 * index),
                               index < last ? 1024 : 0, unit[index]))
            break;
    return text;
}

const char *ps_format_ns(int64_t nanoseconds, char text[32])
{
    static const struct {
        const char *name;
        uint64_t factor;
        uint64_t next; // 0: the largest unit
    } unit[] = {
        {"ns", 1, 1000},
        {"us", 1000, 1000},
        {"ms", 1000000, 1000},
        {"s", 1000000000, 120},
        {"min", UINT64_C(60000000000), 120},
        {"h", UINT64_C(3600000000000), 72},
        {"days", UINT64_C(86400000000000), 0},
    };
    for (size_t index = 0; index < sizeof unit / sizeof *unit; index++)
        if (print_three_digits(text, nanoseconds < 0 ? "-" : "", magnitude(nanoseconds), unit[index].factor,
                               unit[index].next, unit[index].name))
            break;
    return text;
}

const char *ps_format_count(int64_t count, char text[32])
{
    char digits[TEXT_SIZE];
    int size = snprintf(digits, sizeof digits, "%" PRIu64, magnitude(count));
    char *to = text;
    if (count < 0)
        *to++ = '-';
    for (int index = 0; index < size; index++) {
        if (index > 0 && (size - index) % 3 == 0)
            *to++ = ',';
        *to++ = digits[index];
    }
    *to = '\0';
    return text;
}

const char *ps_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

const char *ps_format_ms(int64_t nanoseconds, char text[32])
{
    uint64_t ns = magnitude(nanoseconds);
    int size =
        snprintf(text, TEXT_SIZE, "%s%" PRIu64 ".%06" PRIu64, nanoseconds < 0 ? "-" : "", ns / 1000000, ns % 1000000);
    while (text[size - 1] == '0')
        size--;
    if (text[size - 1] == '.')
        size--;
    text[size] = '\0';
    return text;
}

// Put back the point that the locale, possibly in several bytes, replaced.
static void restore_point(char *text)
{
    char *wrong = text + strspn(text, "+-0123456789");
    size_t width = strcspn(wrong, "+-0123456789e");
    if (width == 0 || wrong[0] == 'e')
        return;
    wrong[0] = '.';
    memmove(wrong + 1, wrong + width, strlen(wrong + width) + 1);
}

const char *ps_format_double(double value, char text[32])
{
    assert(isfinite(value));
    if (fabs(value) < 0x1p53 && value == (double)(int64_t)value && !(value == 0 && signbit(value))) {
        snprintf(text, TEXT_SIZE, "%" PRId64, (int64_t)value);
        return text;
    }
    // Any decimal of 15 digits or fewer survives a normal double, so %.15g, which drops trailing zeros, finds the
    // shortest if there is one; subnormal doubles are coarser.
    int digits = fabs(value) < 0x1p-1022 ? 1 : 15;
    bool fits;
    do
        fits = snprintf(text, TEXT_SIZE, "%.*g", digits, value) < TEXT_SIZE;
    while (fits && strtod(text, NULL) != value && ++digits <= 17);
    restore_point(text);
    if (!strpbrk(text, ".e")) // from 2^53 on, as a whole number it would be taken for an integer and refused
        memcpy(text + strlen(text), ".0", 3);
    return text;
}
