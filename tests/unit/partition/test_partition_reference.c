// SPDX-License-Identifier: Apache-2.0
//
// test_partition_reference.c: chains of real models whose optima two independent solvers found.
#include "support/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "io/file.h"
#include "io/json_read.h"
#include "pipesched/limits.h"
#include "pipesched/partition.h"

static ps_json read_json(ps_arena *arena, const char *path)
{
    ps_status status = {0};
    ps_file_bytes file;
    ps_json root;
    assert_ok(ps_file_read(arena, path, PS_MAX_FILE_BYTES, &file, &status), &status);
    assert_ok(ps_json_parse(arena, path, file.data, file.size, &root, &status), &status);
    return root;
}

static char *read_text(ps_arena *arena, const char *path)
{
    ps_status status = {0};
    ps_file_bytes file;
    assert_ok(ps_file_read(arena, path, PS_MAX_FILE_BYTES, &file, &status), &status);
    return file.data;
}

static const char *instance_path(ps_arena *arena, const char *name)
{
    return ps_text_format(arena, "%s/instances/%s", reference_data(), name);
}

// Times of a chain in ns; the file gives ms.
static int64_t *read_chain(ps_arena *arena, const char *name, int32_t *layers)
{
    ps_json weights =
        ps_json_member(read_json(arena, instance_path(arena, ps_text_format(arena, "chains/%s.json", name))), "w");
    int64_t *cost = ps_new(arena, int64_t, ps_json_count(weights));
    *layers = 0;
    for (ps_json weight = ps_json_first(weights); weight.node; weight = ps_json_next(weight))
        cost[(*layers)++] = llround(ps_json_number(weight) * 1e6);
    return cost;
}

static ps_partition_result solve(ps_arena *arena, const ps_partition_problem *problem, ps_engine engine)
{
    ps_partition_result result;
    ps_status status = {0};
    ps_partition_options options = {.engine = engine};
    assert_ok(ps_partition_solve(arena, problem, &options, &result, &status), &status);
    assert_true(result.proved);
    assert_int_equal(result.bound_ns, result.partition[0].bottleneck_ns);
    return result;
}

// Each time is rounded to a whole ns by itself, so a sum may be off by half a ns a layer, and the table prints a
// microsecond's thousandth.
static void assert_is_optimum(int64_t found_ns, double optimum_ms, int32_t layers)
{
    if (fabs((double)found_ns - optimum_ms * 1e6) > 1 + 0.5 * layers)
        fail_msg("found %.6f ms, the optimum is %.6f ms", (double)found_ns * 1e-6, optimum_ms);
}

// Whether the row was checked.
static bool check_chain_row(ps_arena *arena, const char *name, int32_t stages, double optimum_ms, bool with_milp)

{
    int32_t layers;
    int64_t *cost = read_chain(arena, name, &layers);
    const int64_t *cost_of[] = {cost};
    ps_device_type type = {"gpu", stages, INT64_MAX};
    ps_partition_problem problem = {
        .num_layers = layers, .num_stages = stages, .num_types = 1, .type = &type, .cost_ns = cost_of};
    if (with_milp && (layers > 60 || stages > 8))
        return false;
    ps_partition_result result = solve(arena, &problem, with_milp ? PS_ENGINE_MILP : PS_ENGINE_DP);
    assert_is_optimum(result.partition[0].bottleneck_ns, optimum_ms, layers);
    return true;
}

// OPTIMA.csv: instance,n,K,optimum_ms,...
static int32_t check_all_chains(ps_arena *arena, bool with_milp)
{
    int32_t rows = 0;
    char *rest = NULL;
    char *line = strtok_r(read_text(arena, instance_path(arena, "chains/OPTIMA.csv")), "\n", &rest);
    while ((line = strtok_r(NULL, "\n", &rest))) {
        char name[128];
        int layers;
        int stages;
        double optimum_ms;
        assert_int_equal(sscanf(line, "%127[^,],%d,%d,%lf", name, &layers, &stages, &optimum_ms), 4);
        rows += check_chain_row(arena, name, stages, optimum_ms, with_milp);
    }
    return rows;
}

static void dp_finds_every_known_optimum(void **state)
{
    assert_in_range(check_all_chains(*state, false), 200, 1000);
}

static void milp_proves_every_known_optimum_up_to_60_layers_and_8_stages(void **state)
{
    assert_in_range(check_all_chains(*state, true), 100, 1000);
}

// Forward and backward of a profile at micro-batch size 1 without tensor parallelism; the file gives seconds.
static const int64_t *read_profile(ps_arena *arena, const char *gpu, int32_t *layers)
{
    const char *name = ps_text_format(arena, "sailor/profiles/OPT-350/%s.json", gpu);
    ps_json profile = ps_json_member(ps_json_member(read_json(arena, instance_path(arena, name)), "1"), "1");
    *layers = (int32_t)ps_json_count(profile);
    int64_t *cost = ps_new(arena, int64_t, *layers);
    for (int32_t layer = 0; layer < *layers; layer++) {
        char key[16];
        snprintf(key, sizeof key, "%d", (int)layer);
        ps_json forward = ps_json_first(ps_json_member(profile, key));
        cost[layer] = llround((ps_json_number(forward) + ps_json_number(ps_json_next(forward))) * 1e9);
    }
    return cost;
}

// OPTIMA_HET.csv: instance,A|B,count|count,optimum_ms,...
static void check_all_mixed(ps_arena *arena, ps_engine engine)
{
    int32_t rows = 0;
    char *rest = NULL;
    char *line = strtok_r(read_text(arena, instance_path(arena, "chains/OPTIMA_HET.csv")), "\n", &rest);
    while ((line = strtok_r(NULL, "\n", &rest))) {
        char gpu[2][64];
        int count[2];
        double optimum_ms;
        assert_int_equal(
            sscanf(line, "OPT-350,%63[^|]|%63[^,],%d|%d,%lf", gpu[0], gpu[1], &count[0], &count[1], &optimum_ms), 5);
        int32_t layers;
        const int64_t *cost[2] = {read_profile(arena, gpu[0], &layers), read_profile(arena, gpu[1], &layers)};
        ps_device_type type[2] = {{gpu[0], count[0], INT64_MAX}, {gpu[1], count[1], INT64_MAX}};
        ps_partition_problem problem = {.num_layers = layers, .num_types = 2, .type = type, .cost_ns = cost};
        ps_partition_result result = solve(arena, &problem, engine);
        assert_is_optimum(result.partition[0].bottleneck_ns, optimum_ms, layers);
        rows++;
    }
    assert_in_range(rows, 3, 100);
}

static void dp_over_counts_finds_the_optima_of_mixed_gpus(void **state)
{
    check_all_mixed(*state, PS_ENGINE_DP);
}

static void milp_proves_the_optima_of_mixed_gpus(void **state)
{
    check_all_mixed(*state, PS_ENGINE_MILP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(dp_finds_every_known_optimum),
        test_in_arena(milp_proves_every_known_optimum_up_to_60_layers_and_8_stages),
        test_in_arena(dp_over_counts_finds_the_optima_of_mixed_gpus),
        test_in_arena(milp_proves_the_optima_of_mixed_gpus),
    };
    return run_reference_tests(tests);
}
