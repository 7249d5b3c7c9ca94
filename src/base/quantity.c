// SPDX-License-Identifier: Apache-2.0
//
// quantity.c: sizes, rates, durations and bare numbers as users write them.
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "pipesched/limits.h"

typedef struct unit {
    const char *name;
    int64_t factor; // bytes, bits per second or nanoseconds
} unit;

enum { MOST_UNITS = 32 };

typedef struct quantity {
    const char *expected; // "bytes such as \"80GiB\""
    int64_t max;
    const char *max_text;
    const unit *units;
    int32_t count;
} quantity;

#define KILO INT64_C(1000)
#define MEGA INT64_C(1000000)
#define GIGA INT64_C(1000000000)
#define TERA INT64_C(1000000000000)
#define PETA INT64_C(1000000000000000)
#define EXA INT64_C(1000000000000000000)

static const unit byte_units[] = {
    {"B", 1},
    {"kB", KILO},
    {"KB", KILO},
    {"MB", MEGA},
    {"GB", GIGA},
    {"TB", TERA},
    {"PB", PETA},
    {"EB", EXA},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {"TiB", INT64_C(1) << 40},
    {"PiB", INT64_C(1) << 50},
    {"EiB", INT64_C(1) << 60},
};

static const unit rate_units[] = {
    // In bits per second, so that every factor is whole.
    {"b/s", 1},
    {"kb/s", KILO},
    {"Kb/s", KILO},
    {"Mb/s", MEGA},
    {"Gb/s", GIGA},
    {"Tb/s", TERA},
    {"Pb/s", PETA},
    {"B/s", 8},
    {"kB/s", 8 * KILO},
    {"KB/s", 8 * KILO},
    {"MB/s", 8 * MEGA},
    {"GB/s", 8 * GIGA},
    {"TB/s", 8 * TERA},
    {"PB/s", 8 * PETA},
    {"KiB/s", INT64_C(8) << 10},
    {"MiB/s", INT64_C(8) << 20},
    {"GiB/s", INT64_C(8) << 30},
    {"TiB/s", INT64_C(8) << 40},
};

static const unit time_units[] = {
    {"ns", 1}, {"us", KILO}, {"ms", MEGA}, {"s", GIGA}, {"min", 60 * GIGA}, {"h", 3600 * GIGA},
};

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof *(array)))

static const quantity sizes = {"bytes such as \"80GiB\"", PS_MAX_BYTES, "1EiB", byte_units, COUNT(byte_units)};
static const quantity rates = {"a rate such as \"400Gb/s\" or \"25GB/s\"", INT64_MAX, "1.15EB/s", rate_units,
                               COUNT(rate_units)};
static const quantity times = {"a time such as \"3.2ms\"", PS_MAX_TIME_NS, "146 years", time_units, COUNT(time_units)};

static ps_code fail_expected(const char *expected, const char *text, ps_status *status)
{
    return ps_fail(status, PS_BAD_INPUT, "bad-quantity", "expected %s, got \"%.80s\"", expected, text);
}

static ps_code fail_unit(const quantity *kind, const char *text, int64_t digits, const char *name, ps_status *status)
{
    const char *names[MOST_UNITS];
    for (int32_t index = 0; index < kind->count; index++)
        names[index] = kind->units[index].name;

    fail_expected(kind->expected, text, status);
    const char *near = digits > 0 && digits < 40 ? ps_text_nearest(name, names, kind->count) : NULL;
    if (near)
        return ps_fail_hint(status, "did you mean \"%.*s%s\"?", (int)digits, text, near);
    if (digits > 0 && name[0] == '\0')
        return ps_fail_hint(status, "add a unit");
    return status->code;
}

// "3.2ms" to 3.2 times the factor of ms, exactly, rounded half away from zero.
static ps_code parse_quantity(const quantity *kind, const char *text, int64_t *value, ps_status *status)
{
    int64_t digits = (int64_t)strspn(text, "0123456789.");
    const char *name = text + digits;
    if (digits > 0 && name[0] == ' ')
        name++;

    int64_t factor = strcmp(text, "0") == 0;
    for (int32_t index = 0; index < kind->count; index++)
        if (strcmp(name, kind->units[index].name) == 0)
            factor = kind->units[index].factor;

    if (factor == 0)
        return fail_unit(kind, text, digits, name, status);
    double any;
    if (!ps_decimal_double(text, digits, &any))
        return fail_expected(kind->expected, text, status);

    int64_t scaled;
    if (!ps_decimal_scaled(text, digits, factor, &scaled) || scaled > kind->max)
        return ps_fail(status, PS_BAD_INPUT, "bad-quantity", "expected %s, at most %s, got \"%.80s\"", kind->expected,
                       kind->max_text, text);
    *value = scaled;
    return PS_OK;
}

ps_code ps_parse_bytes(const char *text, int64_t *bytes, ps_status *status)
{
    return parse_quantity(&sizes, text, bytes, status);
}

ps_code ps_parse_rate(const char *text, double *bytes_per_second, ps_status *status)
{
    int64_t bits_per_second;
    PS_TRY(parse_quantity(&rates, text, &bits_per_second, status));
    *bytes_per_second = (double)bits_per_second / 8;
    return PS_OK;
}

ps_code ps_parse_duration(const char *text, int64_t *nanoseconds, ps_status *status)
{
    return parse_quantity(&times, text, nanoseconds, status);
}

// Digits with an optional '-', within int64.
static bool read_int(const char *text, int64_t *value)
{
    bool negative = text[0] == '-';
    const char *digit = text + negative;
    int64_t total = 0; // kept negative, so that INT64_MIN fits
    if (digit[0] == '\0')
        return false;
    for (; *digit; digit++) {
        if (*digit < '0' || *digit > '9')
            return false;
        if (__builtin_mul_overflow(total, 10, &total) || __builtin_sub_overflow(total, *digit - '0', &total))
            return false;
    }
    if (!negative && total == INT64_MIN)
        return false;
    *value = negative ? total : -total;
    return true;
}

ps_code ps_parse_int(const char *text, int64_t min, int64_t max, int64_t *value, ps_status *status)
{
    int64_t number;
    if (read_int(text, &number) && number >= min && number <= max) {
        *value = number;
        return PS_OK;
    }
    if (max == INT64_MAX)
        return ps_fail(status, PS_BAD_INPUT, "bad-quantity",
                       "expected a whole number of at least %" PRId64 ", got \"%.80s\"", min, text);
    return ps_fail(status, PS_BAD_INPUT, "bad-quantity",
                   "expected a whole number from %" PRId64 " to %" PRId64 ", got \"%.80s\"", min, max, text);
}

ps_code ps_parse_double(const char *text, double min, double max, double *value, ps_status *status)
{
    double number;
    if (ps_decimal_double(text, (int64_t)strlen(text), &number) && number >= min && number <= max) {
        *value = number;
        return PS_OK;
    }
    char least[32];
    char most[32];
    if (!(max < 0x1.fffffffffffffp1023))
        return ps_fail(status, PS_BAD_INPUT, "bad-quantity", "expected a number of at least %s, got \"%.80s\"",
                       ps_format_double(min, least), text);
    return ps_fail(status, PS_BAD_INPUT, "bad-quantity", "expected a number from %s to %s, got \"%.80s\"",
                   ps_format_double(min, least), ps_format_double(max, most), text);
}
