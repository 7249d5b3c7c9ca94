// SPDX-License-Identifier: Apache-2.0
//
// number.c: integers that cannot silently wrap.
#include "base/number.h"

#include <assert.h>
#include <math.h>

#include "base/text.h"

bool ps_add_checked(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

bool ps_multiply_checked(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

int64_t ps_add_saturating(int64_t a, int64_t b)
{
    assert(a >= 0 && b >= 0);
    int64_t sum = INT64_MAX;
    ps_add_checked(a, b, &sum);
    return sum;
}

int64_t ps_multiply_saturating(int64_t a, int64_t b)
{
    assert(a >= 0 && b >= 0);
    int64_t product = INT64_MAX;
    ps_multiply_checked(a, b, &product);
    return product;
}

static bool round_within(double value, int64_t max, int64_t *out)
{
    assert(max >= 0);
    if (!(value >= 0) || value >= 0x1p63) // NaN fails the first
        return false;
    int64_t rounded = llround(value);
    if (rounded > max)
        return false;
    *out = rounded;
    return true;
}

static const char *describe(double value, char text[32])
{
    if (isnan(value))
        return "not a number";
    if (isinf(value))
        return value > 0 ? "infinity" : "minus infinity";
    return ps_format_double(value, text);
}

ps_code ps_ns_from_seconds(double seconds, int64_t max_ns, int64_t *nanoseconds, ps_status *status)
{
    char got[32];
    char most[32];
    if (round_within(seconds * 1e9, max_ns, nanoseconds))
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "out-of-range", "a time must lie between 0 and %s, got %s%s",
                   ps_format_ns(max_ns, most), describe(seconds, got), isfinite(seconds) ? " s" : "");
}

ps_code ps_bytes_from_double(double bytes, int64_t max_bytes, int64_t *out, ps_status *status)
{
    char got[32];
    char most[32];
    if (round_within(bytes, max_bytes, out))
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "out-of-range", "a size must lie between 0 and %s, got %s%s",
                   ps_format_bytes(max_bytes, most), describe(bytes, got), isfinite(bytes) ? " B" : "");
}

int64_t ps_ceil_div(int64_t a, int64_t b)
{
    assert(a >= 0 && b > 0);
    return a / b + (a % b != 0);
}
