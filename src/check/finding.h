// SPDX-License-Identifier: Apache-2.0
//
// finding.h: how the parts of the checker say what they found.
//
// A place is written as a pattern whose #'s stand for indices, so that a check that holds costs no text.
#ifndef PS_CHECK_FINDING_H
#define PS_CHECK_FINDING_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/check.h"

typedef struct ps_place {
    const char *pattern; // "/stages/#/layer_ids/#"
    int64_t index[2];
} ps_place;

typedef struct ps_check {
    ps_arena *arena;
    const ps_plan *plan;
    ps_check_result *result;
} ps_check;

void ps_check_find(ps_check *check, const char *rule, ps_place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Findings "plan says X, should be Y" unless both are the same; true when they are. Times are shown in ms. Rates may
// differ by the rounding of a few operations, no more.
bool ps_check_equal(ps_check *check, const char *rule, ps_place place, int64_t says, int64_t should);
bool ps_check_equal_ns(ps_check *check, const char *rule, ps_place place, int64_t says, int64_t should);
bool ps_check_equal_rate(ps_check *check, const char *rule, ps_place place, double says, double should);

#define PS_AT(path) ((ps_place){.pattern = (path)})
#define PS_AT_1(path, a) ((ps_place){.pattern = (path), .index = {(a)}})
#define PS_AT_2(path, a, b) ((ps_place){.pattern = (path), .index = {(a), (b)}})

#endif
