// SPDX-License-Identifier: Apache-2.0
//
// rng.h: our own seeded generator (splitmix64; Steele, Lea, Flood, OOPSLA 2014), the same on every machine.
#ifndef PS_BASE_RNG_H
#define PS_BASE_RNG_H

#include <stdint.h>

typedef struct ps_rng {
    uint64_t state;
} ps_rng;

uint64_t ps_rng_next(ps_rng *rng);
int64_t ps_rng_range(ps_rng *rng, int64_t low, int64_t high); // low <= value <= high, unbiased

#endif
