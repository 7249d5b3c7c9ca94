// SPDX-License-Identifier: Apache-2.0
//
// finding.c: the list of findings. The first PS_CHECK_MAX_FINDINGS are kept, all are counted.
#include "check/finding.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

enum { MESSAGE_BYTES = 512 };

static const char *place_text(ps_arena *arena, ps_place place)
{
    ps_text text = {.arena = arena};
    int index = 0;
    for (const char *at = place.pattern; *at; at++) {
        if (*at == '#')
            ps_text_addf(&text, "%" PRId64, place.index[index++]);
        else
            ps_text_add(&text, at, 1);
    }
    return text.data ? text.data : "";
}

void ps_check_find(ps_check *check, const char *rule, ps_place place, const char *format, ...)
{
    ps_check_result *result = check->result;
    result->total++;
    if (result->count == PS_CHECK_MAX_FINDINGS)
        return;
    if (!result->finding)
        result->finding = ps_new(check->arena, ps_finding, PS_CHECK_MAX_FINDINGS);

    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    result->finding[result->count++] = (ps_finding){
        .rule = rule, .pointer = place_text(check->arena, place), .message = ps_text_copy(check->arena, message)};
}

bool ps_check_equal(ps_check *check, const char *rule, ps_place place, int64_t says, int64_t should)
{
    if (says == should)
        return true;
    ps_check_find(check, rule, place, "plan says %" PRId64 ", should be %" PRId64, says, should);
    return false;
}

bool ps_check_equal_ns(ps_check *check, const char *rule, ps_place place, int64_t says, int64_t should)
{
    char a[32];
    char b[32];
    if (says == should)
        return true;
    ps_check_find(check, rule, place, "plan says %s ms, should be %s ms", ps_format_ms(says, a),
                  ps_format_ms(should, b));
    return false;
}

bool ps_check_equal_rate(ps_check *check, const char *rule, ps_place place, double says, double should)
{
    // Twenty-odd operations in double stay within this; one nanosecond in an hour does not.
    double allowed = 1e-13 * fmax(fabs(says), fabs(should)) + 1e-15;
    if (fabs(says - should) <= allowed)
        return true;
    ps_check_find(check, rule, place, "plan says %.17g, should be %.17g", says, should);
    return false;
}
