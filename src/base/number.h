// SPDX-License-Identifier: Apache-2.0
//
// number.h: checked integer arithmetic, and the only two ways by which a real becomes an integer time or size.
#ifndef PS_BASE_NUMBER_H
#define PS_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/status.h"

// False on overflow; *out is then unchanged.
bool ps_add_checked(int64_t a, int64_t b, int64_t *out);
bool ps_multiply_checked(int64_t a, int64_t b, int64_t *out);

// a + b and a * b that stick at INT64_MAX instead of overflowing; operands must not be negative.
int64_t ps_add_saturating(int64_t a, int64_t b);
int64_t ps_multiply_saturating(int64_t a, int64_t b);

// Round half away from zero. PS_BAD_INPUT (rule out-of-range) for NaN, negatives and values beyond `max`.
ps_code ps_ns_from_seconds(double seconds, int64_t max_ns, int64_t *nanoseconds, ps_status *status);
ps_code ps_bytes_from_double(double bytes, int64_t max_bytes, int64_t *out, ps_status *status);

int64_t ps_ceil_div(int64_t a, int64_t b); // a >= 0, b > 0

#endif
