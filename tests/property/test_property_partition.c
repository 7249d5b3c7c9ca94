// SPDX-License-Identifier: Apache-2.0
//
// test_property_partition.c: every engine against enumeration of all cuts, on small random chains with every feature.
#include "support/cmocka_all.h"

#include <stdlib.h>

#include "base/rng.h"
#include "pipesched/partition.h"

enum { LAYERS = 10, STAGES = 4, TYPES = 3, TOP_K = 6, MAX_CUTS = 50000 };

typedef struct chain {
    ps_partition_problem problem;
    ps_device_type type[TYPES];
    int64_t cost[TYPES][LAYERS];
    const int64_t *cost_of[TYPES];
    int64_t cut[LAYERS];
    int64_t fixed[LAYERS];
    int64_t full[LAYERS];
    int64_t weight[LAYERS];
    int64_t transient[LAYERS];
    int64_t stage_fixed[STAGES];
    ps_depth_list depth;
    int32_t depth_first[STAGES + 1];
    ps_depth point[2 * STAGES];
    int32_t pin[LAYERS];
    bool keep[LAYERS];
} chain;

static bool chance(ps_rng *rng, int64_t percent)
{
    return ps_rng_range(rng, 1, 100) <= percent;
}

static void draw_memory(ps_rng *rng, chain *c)
{
    ps_partition_problem *problem = &c->problem;
    for (int32_t layer = 0; layer < problem->num_layers; layer++) {
        c->fixed[layer] = ps_rng_range(rng, 0, 9);
        c->full[layer] = ps_rng_range(rng, 0, 9);
        c->weight[layer] = ps_rng_range(rng, 0, 9);
        c->transient[layer] = ps_rng_range(rng, 0, 20);
    }
    problem->static_bytes = c->fixed;
    problem->held_full = c->full;
    problem->held_weight = chance(rng, 50) ? c->weight : NULL;
    problem->transient_bytes = chance(rng, 50) ? c->transient : NULL;
    for (int32_t type = 0; type < problem->num_types; type++)
        c->type[type].memory_limit = ps_rng_range(rng, 30, 160);
    if (problem->num_stages == 0 || chance(rng, 30))
        return;
    int32_t points = 0;
    for (int32_t stage = 0; stage < problem->num_stages; stage++) {
        c->depth_first[stage] = points;
        for (int64_t more = ps_rng_range(rng, 1, 2); more > 0; more--)
            c->point[points++] = (ps_depth){(int32_t)ps_rng_range(rng, 0, 4), (int32_t)ps_rng_range(rng, 0, 3)};
        c->stage_fixed[stage] = ps_rng_range(rng, 0, 15);
    }
    c->depth_first[problem->num_stages] = points;
    c->depth = (ps_depth_list){problem->num_stages, c->depth_first, c->point};
    problem->depth = &c->depth;
    problem->stage_static_bytes = chance(rng, 50) ? c->stage_fixed : NULL;
}

static void draw_rules(ps_rng *rng, chain *c)
{
    ps_partition_problem *problem = &c->problem;
    if (chance(rng, 30)) {
        problem->min_layers = (int32_t)ps_rng_range(rng, 0, 2);
        problem->max_layers = (int32_t)ps_rng_range(rng, 2, 7);
    }
    if (chance(rng, 30)) {
        for (int32_t layer = 0; layer < problem->num_layers; layer++)
            c->keep[layer] = chance(rng, 25);
        problem->keep_with_next = c->keep;
    }
    if (problem->num_stages > 0 && chance(rng, 30)) {
        for (int32_t layer = 0; layer < problem->num_layers; layer++) {
            int64_t near = (int64_t)layer * problem->num_stages / problem->num_layers;
            if (chance(rng, 20)) // often in contradiction to others
                near = ps_rng_range(rng, 0, problem->num_stages - 1);
            c->pin[layer] = chance(rng, 15) ? (int32_t)near : -1;
        }
        problem->pinned_stage = c->pin;
    }
}

static void draw_chain(ps_rng *rng, int32_t types, chain *c)
{
    *c = (chain){0};
    ps_partition_problem *problem = &c->problem;
    problem->num_layers = (int32_t)ps_rng_range(rng, 1, LAYERS);
    problem->num_types = types;
    problem->num_stages = types > 1 && chance(rng, 50) ? 0 : (int32_t)ps_rng_range(rng, 1, STAGES);
    problem->objective = chance(rng, 50) ? PS_OBJECTIVE_ITERATION : PS_OBJECTIVE_BOTTLENECK;
    problem->num_microbatches = (int32_t)ps_rng_range(rng, 1, 12);
    problem->type = c->type;
    problem->cost_ns = c->cost_of;
    int64_t most = chance(rng, 30) ? 4 : 1000; // small costs make ties
    for (int32_t type = 0; type < types; type++) {
        c->type[type] = (ps_device_type){"gpu", types == 1 ? STAGES : (int32_t)ps_rng_range(rng, 0, 2), INT64_MAX};
        c->cost_of[type] = c->cost[type];
        for (int32_t layer = 0; layer < problem->num_layers; layer++)
            c->cost[type][layer] = ps_rng_range(rng, 0, most);
    }
    if (chance(rng, 60)) {
        for (int32_t layer = 0; layer < problem->num_layers; layer++)
            c->cut[layer] = ps_rng_range(rng, 0, most / 3);
        problem->cut_ns = c->cut;
    }
    if (chance(rng, 50))
        draw_memory(rng, c);
    draw_rules(rng, c);
}

// All cuts by recursion, from the definitions in partition.h. `path` is first_layer[1], type[0], first_layer[2],
// type[1],
// ...: cuts of one objective are ordered by it.
typedef struct found_cut {
    int64_t objective;
    int32_t stages;
    int32_t path[2 * LAYERS];
} found_cut;

typedef struct every_cut {
    const ps_partition_problem *problem;
    int32_t used[TYPES];
    int32_t path[2 * LAYERS];
    found_cut cut[MAX_CUTS];
    int64_t count;
} every_cut;

static int64_t memory_of(const ps_partition_problem *p, int32_t stage, int32_t i, int32_t j)
{
    int64_t fixed = p->stage_static_bytes ? p->stage_static_bytes[stage] : 0;
    int64_t held = 0;
    int64_t transient = 0;
    int32_t points = p->depth ? p->depth->first[stage + 1] - p->depth->first[stage] : 1;
    for (int32_t at = 0; at < points; at++) {
        ps_depth depth = p->depth ? p->depth->point[p->depth->first[stage] + at] : (ps_depth){1, 0};
        int64_t here = 0;
        for (int32_t layer = i; layer < j; layer++) {
            here += p->held_full ? depth.full * p->held_full[layer] : 0;
            here += p->held_weight ? depth.weight * p->held_weight[layer] : 0;
        }
        held = here > held ? here : held;
    }
    for (int32_t layer = i; layer < j; layer++) {
        fixed += p->static_bytes ? p->static_bytes[layer] : 0;
        if (p->transient_bytes && p->transient_bytes[layer] > transient)
            transient = p->transient_bytes[layer];
    }
    return fixed + held + transient;
}

static bool stage_is_legal(const ps_partition_problem *p, int32_t stage, int32_t i, int32_t j, int32_t type)
{
    if (j - i < p->min_layers || (p->max_layers > 0 && j - i > p->max_layers))
        return false;
    if (j < p->num_layers && p->keep_with_next && p->keep_with_next[j - 1])
        return false;
    for (int32_t layer = i; p->pinned_stage && layer < j; layer++) {
        if (p->pinned_stage[layer] >= 0 && p->pinned_stage[layer] != stage)
            return false;
    }
    return memory_of(p, stage, i, j) <= p->type[type].memory_limit;
}

static void enumerate(every_cut *all, int32_t stage, int32_t i, int64_t sum, int64_t largest)
{
    const ps_partition_problem *p = all->problem;
    if (i == p->num_layers) {
        if (p->num_stages == 0 || stage == p->num_stages) {
            assert_true(all->count < MAX_CUTS);
            bool iteration = p->objective == PS_OBJECTIVE_ITERATION;
            found_cut *cut = &all->cut[all->count++];
            *cut = (found_cut){iteration ? sum + (p->num_microbatches - 1) * largest : largest, stage, {0}};
            memcpy(cut->path, all->path, (size_t)(2 * stage) * sizeof all->path[0]);
        }
        return;
    }
    if (p->num_stages > 0 && stage == p->num_stages)
        return;
    for (int32_t type = 0; type < p->num_types; type++) {
        if (all->used[type] == p->type[type].count)
            continue;
        int64_t cost = i > 0 && p->cut_ns ? p->cut_ns[i - 1] : 0;
        for (int32_t j = i + 1; j <= p->num_layers; j++) {
            cost += p->cost_ns[type][j - 1];
            int64_t here = cost + (j < p->num_layers && p->cut_ns ? p->cut_ns[j - 1] : 0);
            if (!stage_is_legal(p, stage, i, j, type))
                continue;
            all->used[type]++;
            all->path[2 * stage] = j;
            all->path[2 * stage + 1] = type;
            enumerate(all, stage + 1, j, sum + here, here > largest ? here : largest);
            all->used[type]--;
        }
    }
}

static int compare_found(const void *a, const void *b)
{
    const found_cut *x = a;
    const found_cut *y = b;
    if (x->objective != y->objective)
        return x->objective < y->objective ? -1 : 1;
    for (int32_t at = 0; at < 2 * LAYERS; at++) {
        if (x->path[at] != y->path[at])
            return x->path[at] < y->path[at] ? -1 : 1;
    }
    return 0;
}

static bool is_same_cut(const ps_partition *a, const ps_partition *b)
{
    return a->num_stages == b->num_stages &&
           memcmp(a->first_layer, b->first_layer, (size_t)a->num_stages * sizeof(int32_t)) == 0 &&
           memcmp(a->type, b->type, (size_t)a->num_stages * sizeof(int32_t)) == 0;
}

static void check_top(const ps_partition_result *result, const every_cut *all)
{
    assert_int_equal(result->count, all->count < TOP_K ? all->count : TOP_K);
    for (int32_t index = 0; index < result->count; index++) {
        const ps_partition *cut = &result->partition[index];
        assert_int_equal(cut->objective_ns, all->cut[index].objective);
        assert_int_equal(cut->num_stages, all->cut[index].stages);
        for (int32_t stage = 0; stage < cut->num_stages; stage++) {
            assert_int_equal(cut->first_layer[stage + 1], all->cut[index].path[2 * stage]);
            assert_int_equal(cut->type[stage], all->cut[index].path[2 * stage + 1]);
        }
    }
    assert_true(result->proved);
    assert_int_equal(result->bound_ns, all->cut[0].objective);
}

static every_cut *enumerate_all(const ps_partition_problem *problem)
{
    static every_cut all;
    all.problem = problem;
    all.count = 0;
    memset(all.used, 0, sizeof all.used);
    enumerate(&all, 0, 0, 0, 0);
    qsort(all.cut, (size_t)all.count, sizeof all.cut[0], compare_found);
    return &all;
}

static int32_t compare_with_enumeration(ps_arena *arena, const chain *c)
{
    const every_cut *all = enumerate_all(&c->problem);
    ps_partition_result result;
    ps_status status = {0};
    ps_partition_options options = {.engine = PS_ENGINE_DP, .top_k = TOP_K};
    ps_code code = ps_partition_solve(arena, &c->problem, &options, &result, &status);
    if (all->count == 0) {
        assert_int_equal(code, PS_INFEASIBLE);
        assert_true(status.rule[0] != '\0');
        return 0;
    }
    assert_ok(code, &status);
    check_top(&result, all);

    options = (ps_partition_options){.engine = PS_ENGINE_HEURISTIC};
    assert_ok(ps_partition_solve(arena, &c->problem, &options, &result, &status), &status);
    assert_true(result.bound_ns <= all->cut[0].objective);
    assert_true(result.partition[0].objective_ns >= all->cut[0].objective);
    options = (ps_partition_options){.engine = PS_ENGINE_MILP};
    assert_ok(ps_partition_solve(arena, &c->problem, &options, &result, &status), &status);
    assert_int_equal(result.partition[0].objective_ns, all->cut[0].objective);
    assert_true(result.bound_ns <= all->cut[0].objective);
    assert_false(result.limit_hit);
    if (c->problem.objective == PS_OBJECTIVE_BOTTLENECK)
        assert_true(result.proved);
    return 1;
}

static void engines_agree_with_enumeration_on_identical_devices(void **state)
{
    ps_rng rng = {1};
    int32_t feasible = 0;
    for (int32_t round = 0; round < 1000; round++) {
        chain c;
        draw_chain(&rng, 1, &c);
        feasible += compare_with_enumeration(*state, &c);
        ps_arena_reset(*state);
    }
    assert_in_range(feasible, 400, 1000); // the draw must not make most of the rounds empty
}

static void engines_agree_with_enumeration_on_mixed_devices(void **state)
{
    ps_rng rng = {2};
    int32_t feasible = 0;
    for (int32_t round = 0; round < 600; round++) {
        chain c;
        draw_chain(&rng, 2 + round % 2, &c);
        feasible += compare_with_enumeration(*state, &c);
        ps_arena_reset(*state);
    }
    assert_in_range(feasible, 200, 600);
}

// Chains of the size of a real model, where greedy cuts are seldom the best.
enum { LONG = 26, LONG_STAGES = 6 };

typedef struct long_chain {
    ps_partition_problem problem;
    ps_device_type type[TYPES];
    int64_t cost[TYPES][LONG];
    const int64_t *cost_of[TYPES];
    int64_t cut[LONG];
    int64_t fixed[LONG];
    int64_t held[LONG];
    int32_t depth_first[LONG_STAGES + 1];
    ps_depth point[LONG_STAGES];
    ps_depth_list depth;
} long_chain;

static void draw_long_chain(ps_rng *rng, bool with_memory, bool with_depths, long_chain *c)
{
    *c = (long_chain){0};
    for (int32_t layer = 0; layer < LONG; layer++) {
        c->cut[layer] = ps_rng_range(rng, 0, 300000);
        c->fixed[layer] = ps_rng_range(rng, 50, 100);
        c->held[layer] = ps_rng_range(rng, 5, 15);
        for (int32_t type = 0; type < TYPES; type++)
            c->cost[type][layer] = ps_rng_range(rng, 500000, 1500000) * (type + 2);
    }
    for (int32_t type = 0; type < TYPES; type++) {
        c->cost_of[type] = c->cost[type];
        c->type[type] = (ps_device_type){"gpu", 2, 420 + 100 * type + (with_depths ? 250 : 0)};
    }
    c->problem = (ps_partition_problem){.num_layers = LONG,
                                        .num_types = TYPES,
                                        .type = c->type,
                                        .cost_ns = c->cost_of,
                                        .cut_ns = c->cut,
                                        .static_bytes = with_memory ? c->fixed : NULL,
                                        .held_full = c->held};
    if (!with_depths)
        return;
    for (int32_t stage = 0; stage < LONG_STAGES; stage++) {
        c->depth_first[stage + 1] = stage + 1;
        c->point[stage] = (ps_depth){LONG_STAGES - stage, 0};
    }
    c->depth = (ps_depth_list){LONG_STAGES, c->depth_first, c->point};
    c->problem.num_stages = LONG_STAGES;
    c->problem.depth = &c->depth;
}

static ps_partition_result solve(ps_arena *arena, const ps_partition_problem *problem, ps_engine engine)
{
    ps_partition_result result;
    ps_status status = {0};
    ps_partition_options options = {.engine = engine};
    assert_ok(ps_partition_solve(arena, problem, &options, &result, &status), &status);
    return result;
}

// Two exact methods that share no search.
static void milp_and_dp_agree_on_larger_chains_of_mixed_devices(void **state)
{
    ps_rng rng = {5};
    int32_t improved = 0;
    for (int32_t round = 0; round < 60; round++) {
        long_chain c;
        draw_long_chain(&rng, round % 3 != 0, round % 3 == 2, &c);
        ps_partition_result dp = solve(*state, &c.problem, PS_ENGINE_DP);
        ps_partition_result milp = solve(*state, &c.problem, PS_ENGINE_MILP);
        ps_partition_result heuristic = solve(*state, &c.problem, PS_ENGINE_HEURISTIC);
        assert_int_equal(milp.partition[0].bottleneck_ns, dp.partition[0].bottleneck_ns);
        assert_true(milp.proved);
        assert_true(heuristic.bound_ns <= dp.partition[0].bottleneck_ns);
        assert_true(heuristic.partition[0].bottleneck_ns >= dp.partition[0].bottleneck_ns);
        improved += heuristic.partition[0].bottleneck_ns > dp.partition[0].bottleneck_ns;
        ps_arena_reset(*state);
    }
    assert_in_range(improved, 10, 60); // else the search had nothing to do
}

static void a_milp_cut_short_by_its_node_limit_claims_no_more_than_it_knows(void **state)
{
    ps_rng rng = {6};
    int32_t limited = 0;
    for (int32_t round = 0; round < 60; round++) {
        long_chain c;
        draw_long_chain(&rng, round % 3 != 0, false, &c);
        c.problem.objective = round % 2 ? PS_OBJECTIVE_ITERATION : PS_OBJECTIVE_BOTTLENECK;
        c.problem.num_microbatches = 8;
        ps_partition_result dp = solve(*state, &c.problem, PS_ENGINE_DP);
        ps_partition_result milp;
        ps_status status = {0};
        ps_partition_options options = {.engine = PS_ENGINE_MILP, .node_limit = 1};
        assert_ok(ps_partition_solve(*state, &c.problem, &options, &milp, &status), &status);
        assert_true(milp.bound_ns <= dp.partition[0].objective_ns);
        assert_true(milp.partition[0].objective_ns >= dp.partition[0].objective_ns);
        assert_true(milp.proved == (milp.bound_ns == milp.partition[0].objective_ns));
        limited += milp.limit_hit;
        ps_arena_reset(*state);
    }
    assert_in_range(limited, 10, 60);
}

// A cut list must not depend on how long it is asked to be.
static void a_shorter_list_is_the_start_of_a_longer_one(void **state)
{
    ps_rng rng = {3};
    for (int32_t round = 0; round < 300; round++) {
        chain c;
        draw_chain(&rng, 1 + round % 2, &c);
        ps_partition_result longer;
        ps_partition_result shorter;
        ps_status status = {0};
        ps_partition_options options = {.engine = PS_ENGINE_DP, .top_k = 9};
        if (ps_partition_solve(*state, &c.problem, &options, &longer, &status) != PS_OK)
            continue;
        options.top_k = 1 + round % 4;
        assert_ok(ps_partition_solve(*state, &c.problem, &options, &shorter, &status), &status);
        for (int32_t index = 0; index < shorter.count; index++)
            assert_true(is_same_cut(&shorter.partition[index], &longer.partition[index]));
        ps_arena_reset(*state);
    }
}

static void times_that_double_double_the_optimum(void **state)
{
    ps_rng rng = {4};
    for (int32_t round = 0; round < 300; round++) {
        chain c;
        draw_chain(&rng, 1 + round % 2, &c);
        ps_partition_result before;
        ps_partition_result after;
        ps_status status = {0};
        ps_partition_options options = {.engine = PS_ENGINE_DP};
        if (ps_partition_solve(*state, &c.problem, &options, &before, &status) != PS_OK)
            continue;
        for (int32_t layer = 0; layer < c.problem.num_layers; layer++) {
            c.cut[layer] *= 2;
            for (int32_t type = 0; type < c.problem.num_types; type++)
                c.cost[type][layer] *= 2;
        }
        assert_ok(ps_partition_solve(*state, &c.problem, &options, &after, &status), &status);
        assert_int_equal(after.partition[0].objective_ns, 2 * before.partition[0].objective_ns);
        assert_true(is_same_cut(&before.partition[0], &after.partition[0]));
        ps_arena_reset(*state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(engines_agree_with_enumeration_on_identical_devices),
        test_in_arena(engines_agree_with_enumeration_on_mixed_devices),
        test_in_arena(milp_and_dp_agree_on_larger_chains_of_mixed_devices),
        test_in_arena(a_milp_cut_short_by_its_node_limit_claims_no_more_than_it_knows),
        test_in_arena(a_shorter_list_is_the_start_of_a_longer_one),
        test_in_arena(times_that_double_double_the_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
