// SPDX-License-Identifier: Apache-2.0
//
// bench_partition.c: exact cuts of large chains with memory and cut costs, beside a plain O(stages * layers^2) program.
//
// Prints times and optima, which must agree where both ran; asserts no time. Best of a few rounds.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "pipesched/partition.h"

enum { ROUNDS = 5 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct bench_case {
    const char *what;
    int32_t layers;
    int32_t stages;
    int32_t microbatches; // 0: the bottleneck objective
    int32_t top_k;
    bool any_memory; // no limit: nothing shortens the stages that must be looked at
} bench_case;

// Layers that differ, 1F1B depths and a memory limit that binds on the first stages.
static void make_chain(ps_arena *arena, const bench_case *c, ps_partition_problem *out)
{
    int32_t layers = c->layers;
    int32_t stages = c->stages;
    ps_rng rng = {7};
    int64_t *cost = ps_new(arena, int64_t, layers);
    int64_t *cut = ps_new(arena, int64_t, layers);
    int64_t *fixed = ps_new(arena, int64_t, layers);
    int64_t *held = ps_new(arena, int64_t, layers);
    int64_t *transient = ps_new(arena, int64_t, layers);
    for (int32_t layer = 0; layer < layers; layer++) {
        cost[layer] = ps_rng_range(&rng, 2000000, 9000000);
        cut[layer] = ps_rng_range(&rng, 100000, 900000);
        fixed[layer] = ps_rng_range(&rng, 100, 300);
        held[layer] = ps_rng_range(&rng, 5, 15);
        transient[layer] = ps_rng_range(&rng, 0, 200);
    }
    int32_t *first = ps_new(arena, int32_t, stages + 1);
    ps_depth *point = ps_new(arena, ps_depth, stages);
    for (int32_t stage = 0; stage < stages; stage++) {
        first[stage + 1] = stage + 1;
        point[stage] = (ps_depth){stages - stage, 0};
    }
    ps_depth_list *depth = ps_new(arena, ps_depth_list, 1);
    *depth = (ps_depth_list){stages, first, point};
    ps_device_type *type = ps_new(arena, ps_device_type, 1);
    *type = (ps_device_type){"gpu", stages, ((int64_t)layers / stages + 1) * (200 + 9 * stages)};
    if (c->any_memory)
        type->memory_limit = INT64_MAX;
    const int64_t **cost_of = ps_new(arena, const int64_t *, 1);
    cost_of[0] = cost;
    *out = (ps_partition_problem){.num_layers = layers,
                                  .num_stages = stages,
                                  .num_types = 1,
                                  .type = type,
                                  .cost_ns = cost_of,
                                  .cut_ns = cut,
                                  .static_bytes = fixed,
                                  .held_full = held,
                                  .transient_bytes = transient,
                                  .depth = depth,
                                  .num_microbatches = c->microbatches,
                                  .objective = c->microbatches > 0 ? PS_OBJECTIVE_ITERATION : PS_OBJECTIVE_BOTTLENECK};
}

// The recurrence as textbooks write it: f[s][j] = min over i of max(f[s - 1][i], cost(i, j)).
static int64_t solve_plainly(const ps_partition_problem *p)
{
    int32_t n = p->num_layers;
    int64_t *before = malloc((size_t)(n + 1) * sizeof *before);
    int64_t *after = malloc((size_t)(n + 1) * sizeof *after);
    if (!before || !after)
        exit(70);
    for (int32_t j = 0; j <= n; j++)
        before[j] = j == 0 ? 0 : INT64_MAX;
    for (int32_t stage = 0; stage < p->num_stages; stage++) {
        int64_t full = p->depth->point[stage].full;
        for (int32_t j = 0; j <= n; j++) {
            int64_t cost = j > 0 && j < n ? p->cut_ns[j - 1] : 0;
            int64_t memory = 0;
            int64_t transient = 0;
            after[j] = INT64_MAX;
            for (int32_t i = j - 1; i >= 0; i--) {
                cost += p->cost_ns[0][i];
                memory += p->static_bytes[i] + full * p->held_full[i];
                transient = p->transient_bytes[i] > transient ? p->transient_bytes[i] : transient;
                if (memory + transient > p->type[0].memory_limit)
                    break;
                int64_t here = cost + (i > 0 ? p->cut_ns[i - 1] : 0);
                here = before[i] > here ? before[i] : here;
                after[j] = here < after[j] ? here : after[j];
            }
        }
        int64_t *swap = before;
        before = after;
        after = swap;
    }
    int64_t best = before[n];
    free(before);
    free(after);
    return best;
}

static void bench(const bench_case *c)
{
    double best_s = 1e9;
    ps_partition_result result;
    ps_status status = {0};
    ps_arena *arena = ps_arena_new(0);
    ps_partition_problem problem;
    for (int32_t round = 0; round < ROUNDS; round++) {
        ps_arena_reset(arena);
        make_chain(arena, c, &problem);
        ps_partition_options options = {.engine = PS_ENGINE_DP, .top_k = c->top_k};
        double start = now_s();
        if (ps_partition_solve(arena, &problem, &options, &result, &status) != PS_OK) {
            printf("%-46s %s\n", c->what, status.message);
            ps_arena_free(arena);
            return;
        }
        double took = now_s() - start;
        best_s = took < best_s ? took : best_s;
    }
    printf("%-46s %9.3f ms %6.1f MiB  optimum %.6f ms", c->what, best_s * 1e3, (double)ps_arena_used(arena) / 1048576,
           (double)result.partition[0].objective_ns * 1e-6);
    if (c->microbatches == 0 && c->layers <= 3000) {
        double start = now_s();
        int64_t plain = solve_plainly(&problem);
        double plain_s = now_s() - start;
        printf("  plain %9.3f ms, %.1f times, %s", plain_s * 1e3, plain_s / best_s,
               plain == result.partition[0].objective_ns ? "equal" : "DIFFERENT");
    }
    printf("\n");
    ps_arena_free(arena);
}

int main(void)
{
    static const bench_case cases[] = {
        {"1000 layers, 64 stages, bottleneck", 1000, 64, 0, 1, false},
        {"1000 layers, 64 stages, top 10", 1000, 64, 0, 10, false},
        {"1000 layers, 64 stages, no memory limit", 1000, 64, 0, 1, true},
        {"1000 layers, 64 stages, iteration of 256", 1000, 64, 256, 1, false},
        {"1000 layers, 64 stages, iteration of 256, top 10", 1000, 64, 256, 10, false},
        {"1000 layers, 64 stages, iteration of 8, no limit", 1000, 64, 8, 1, true},
        {"1000 layers, 64 stages, iteration of 2, no limit", 1000, 64, 2, 1, true},
        {"3000 layers, 64 stages, no memory limit", 3000, 64, 0, 1, true},
        {"10000 layers, 128 stages, bottleneck", 10000, 128, 0, 1, false},
        {"10000 layers, 128 stages, iteration of 512", 10000, 128, 512, 1, false},
    };
    for (size_t index = 0; index < sizeof cases / sizeof cases[0]; index++)
        bench(&cases[index]);
    return 0;
}
