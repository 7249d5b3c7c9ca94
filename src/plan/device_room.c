// SPDX-License-Identifier: Apache-2.0
//
// device_room.c: exact in integers, so that what fits and what is told to fit cannot differ.
#include "plan/device_room.h"

#include "base/number.h"

enum { MILLION = 1000000 };

int64_t ps_fragmentation_bytes(const ps_job *job, int64_t allocated_bytes)
{
    int64_t ppm = job->memory_fragmentation_ppm;
    return allocated_bytes / MILLION * ppm + allocated_bytes % MILLION * ppm / MILLION;
}

int64_t ps_total_bytes(const ps_job *job, int64_t model_bytes)
{
    int64_t allocated = ps_add_saturating(model_bytes, job->memory_framework_bytes);
    int64_t reserved = ps_add_saturating(allocated, ps_fragmentation_bytes(job, allocated));
    return ps_add_saturating(reserved, job->memory_reserve_bytes);
}

int64_t ps_room_bytes(const ps_job *job, int64_t capacity_bytes)
{
    int64_t reserved = capacity_bytes - job->memory_reserve_bytes;
    int64_t whole = MILLION + job->memory_fragmentation_ppm;
    if (reserved < 0)
        return reserved - job->memory_framework_bytes;
    // Too low by less than two, since both divisions round down.
    int64_t allocated = reserved / whole * MILLION + reserved % whole * MILLION / whole;
    while (allocated + 1 + ps_fragmentation_bytes(job, allocated + 1) <= reserved)
        allocated++;
    return allocated - job->memory_framework_bytes;
}
