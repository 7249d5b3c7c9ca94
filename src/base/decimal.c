// SPDX-License-Identifier: Apache-2.0
//
// decimal.c: decimal text to numbers, exactly or correctly rounded, in any locale.
//
// A decimal is read as digits * 10^exponent. Scaling is integer arithmetic in 128 bits. For doubles, up to 2^53 with a
// power of ten up to 10^22 one multiplication or division of exact doubles rounds once, hence correctly (Clinger, PLDI
// 1990); anything else goes to strtod() without a decimal point, which is all that a locale could change.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

__extension__ typedef unsigned __int128 wide;

enum {
    MOST_DIGITS = 19,           // fit a uint64
    MOST_SIGNIFICANT = 780,     // a double is decided by its first 767 digits and whether any follow
    LARGEST_EXPONENT = 1000000, // beyond, everything is 0 or infinite
};

typedef struct decimal {
    uint64_t digits;  // the first MOST_DIGITS significant ones
    int64_t exponent; // of the last of them
    bool more;        // nonzero digits follow
} decimal;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int64_t clamp_exponent(int64_t exponent)
{
    if (exponent > LARGEST_EXPONENT)
        return LARGEST_EXPONENT;
    return exponent < -LARGEST_EXPONENT ? -LARGEST_EXPONENT : exponent;
}

// The exponent part from `at` on, "e-12"; false when malformed. Nothing at all is 0.
static bool read_exponent(const char *text, int64_t size, int64_t at, int64_t *exponent)
{
    *exponent = 0;
    if (at == size)
        return true;
    if (text[at] != 'e' && text[at] != 'E')
        return false;
    at++;
    bool negative = at < size && text[at] == '-';
    if (at < size && (text[at] == '-' || text[at] == '+'))
        at++;
    if (at == size)
        return false;
    for (; at < size; at++) {
        if (!is_digit(text[at]))
            return false;
        *exponent = clamp_exponent(10 * *exponent + (text[at] - '0'));
    }
    if (negative)
        *exponent = -*exponent;
    return true;
}

// Split "12.5e3" after the mantissa; false when it is not digits with an optional fraction.
static bool find_mantissa(const char *text, int64_t size, int64_t *point, int64_t *end)
{
    int64_t at = 0;
    while (at < size && is_digit(text[at]))
        at++;
    if (at == 0)
        return false;
    *point = at;
    if (at < size && text[at] == '.') {
        at++;
        while (at < size && is_digit(text[at]))
            at++;
        if (at == *point + 1)
            return false;
    }
    *end = at;
    return true;
}

static bool read_decimal(const char *text, int64_t size, decimal *out)
{
    int64_t point;
    int64_t end;
    int64_t exponent;
    if (!find_mantissa(text, size, &point, &end) || !read_exponent(text, size, end, &exponent))
        return false;

    *out = (decimal){.exponent = exponent};
    int32_t kept = 0;
    for (int64_t at = 0; at < end; at++) {
        if (at == point)
            continue;
        if (kept < MOST_DIGITS) {
            out->digits = 10 * out->digits + (uint64_t)(text[at] - '0');
            kept += out->digits > 0;
            out->exponent -= at > point;
        } else {
            out->more |= text[at] != '0';
            out->exponent += at < point;
        }
    }
    return true;
}

static wide power_of_ten(int64_t exponent)
{
    wide power = 1;
    while (exponent-- > 0)
        power *= 10;
    return power;
}

bool ps_decimal_scaled(const char *text, int64_t size, int64_t factor, int64_t *out)
{
    decimal value;
    if (factor < 0 || !read_decimal(text, size, &value))
        return false;

    wide product = (wide)value.digits * (wide)factor; // below 10^19 * 2^63, hence below 2^127
    wide result = product;
    if (value.exponent < -38) {
        result = 0; // the product is below 2^127, hence the value below one half
    } else if (value.exponent < 0) {
        wide power = power_of_ten(-value.exponent);
        wide rest = product % power;
        result = product / power + (rest >= power - rest);
    } else {
        for (int64_t step = 0; step < value.exponent && result > 0; step++) {
            if (result > INT64_MAX)
                return false;
            result *= 10;
        }
    }
    if (result > INT64_MAX)
        return false;
    *out = (int64_t)result;
    return true;
}

// The digits without the point, and the exponent that makes up for it: nothing that depends on a locale.
static double convert_slowly(const char *text, int64_t size)
{
    char canonical[MOST_SIGNIFICANT + 32];
    int64_t point = size;
    int64_t end = size;
    int64_t exponent;
    find_mantissa(text, size, &point, &end);
    read_exponent(text, size, end, &exponent);

    int64_t kept = 0;
    bool more = false;
    for (int64_t at = 0; at < end; at++) {
        if (at == point || (kept == 0 && text[at] == '0')) {
            exponent -= at > point;
        } else if (kept < MOST_SIGNIFICANT) {
            canonical[kept++] = text[at];
            exponent -= at > point;
        } else {
            more |= text[at] != '0';
            exponent += at < point;
        }
    }
    if (kept == 0)
        return 0;
    if (more) {
        canonical[kept++] = '1';
        exponent--;
    }
    snprintf(canonical + kept, sizeof canonical - (size_t)kept, "e%lld", (long long)exponent);
    return strtod(canonical, NULL);
}

bool ps_decimal_double(const char *text, int64_t size, double *out)
{
    static const double exact_power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                         1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    bool negative = size > 0 && text[0] == '-';
    text += negative;
    size -= negative;

    decimal value;
    if (!read_decimal(text, size, &value))
        return false;

    double magnitude;
    if (!value.more && value.digits <= UINT64_C(1) << 53 && value.exponent >= -22 && value.exponent <= 22) {
        double power = exact_power[value.exponent < 0 ? -value.exponent : value.exponent];
        magnitude = (double)value.digits;
        magnitude = value.exponent < 0 ? magnitude / power : magnitude * power;
    } else {
        magnitude = convert_slowly(text, size);
    }
    if (magnitude > 0x1.fffffffffffffp1023)
        return false;
    *out = negative ? -magnitude : magnitude;
    return true;
}
