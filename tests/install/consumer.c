// SPDX-License-Identifier: Apache-2.0
//
// consumer.c: a program that uses an installed libpipesched: cuts seven layers into three stages.
#include <inttypes.h>
#include <stdio.h>

#include <pipesched/partition.h>
#include <pipesched/version.h>

static ps_code cut(void *arena, ps_status *status)
{
    const int64_t cost[] = {7000000, 4000000, 2000000, 7000000, 4000000, 2000000, 1000000};
    const int64_t *const row[] = {cost};
    const ps_device_type type = {.name = "any", .count = 3, .memory_limit = INT64_MAX};
    const ps_partition_problem problem = {
        .num_layers = 7, .num_stages = 3, .num_types = 1, .type = &type, .cost_ns = row};
    ps_partition_result result;
    PS_TRY(ps_partition_solve(arena, &problem, &(ps_partition_options){0}, &result, status));
    printf("%s: bottleneck %" PRId64 " ns\n", PS_VERSION, result.partition->bottleneck_ns);
    return PS_OK;
}

int main(void)
{
    ps_arena *arena = ps_arena_new(0);
    ps_status status = {0};
    ps_code code = ps_guard(cut, arena, arena, &status);
    ps_arena_free(arena);
    return ps_exit_status(code);
}
