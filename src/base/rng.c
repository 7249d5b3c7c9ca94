// SPDX-License-Identifier: Apache-2.0
//
// rng.c: splitmix64.
#include "base/rng.h"

#include <assert.h>

uint64_t ps_rng_next(ps_rng *rng)
{
    rng->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = rng->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t ps_rng_range(ps_rng *rng, int64_t low, int64_t high)
{
    assert(low <= high);
    uint64_t count = (uint64_t)high - (uint64_t)low + 1; // 0: all 2^64 values
    uint64_t drawn = ps_rng_next(rng);
    if (count != 0) {
        uint64_t incomplete = (UINT64_MAX - count + 1) % count; // 2^64 mod count: the values that would bias
        while (drawn < incomplete)
            drawn = ps_rng_next(rng);
        drawn %= count;
    }
    // Unsigned addition wraps into the signed range on every two's complement machine.
    return (int64_t)((uint64_t)low + drawn);
}
