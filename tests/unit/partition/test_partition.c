// SPDX-License-Identifier: Apache-2.0
#include "pipesched/partition.h"

#include "support/cmocka_all.h"

enum { MAX_LAYERS = 16 };

// A chain on identical devices without limits, to be changed by each test.
typedef struct fixture {
    ps_partition_problem problem;
    ps_device_type type[2];
    const int64_t *cost_of[2];
    int32_t depth_first[MAX_LAYERS + 1];
    ps_depth point[MAX_LAYERS];
    ps_depth_list depth;
} fixture;

static void make_fixture(fixture *f, const int64_t *cost, int32_t layers, int32_t stages)
{
    *f = (fixture){.type = {{"gpu", stages, INT64_MAX}}, .cost_of = {cost}};
    f->problem = (ps_partition_problem){
        .num_layers = layers, .num_stages = stages, .num_types = 1, .type = f->type, .cost_ns = f->cost_of};
}

// 1F1B: stage s of K holds K - s micro-batches.
static void add_falling_depths(fixture *f)
{
    int32_t stages = f->problem.num_stages;
    for (int32_t stage = 0; stage < stages; stage++) {
        f->depth_first[stage + 1] = stage + 1;
        f->point[stage] = (ps_depth){stages - stage, 0};
    }
    f->depth = (ps_depth_list){stages, f->depth_first, f->point};
    f->problem.depth = &f->depth;
}

static ps_partition_result solve_top(ps_arena *arena, const fixture *f, ps_engine engine, int32_t top_k)
{
    ps_partition_result result;
    ps_status status = {0};
    ps_partition_options options = {.engine = engine, .top_k = top_k};
    assert_ok(ps_partition_solve(arena, &f->problem, &options, &result, &status), &status);
    return result;
}

static ps_partition_result solve(ps_arena *arena, const fixture *f)
{
    return solve_top(arena, f, PS_ENGINE_AUTO, 1);
}

static void expect_failure(ps_arena *arena, const fixture *f, ps_code code, const char *rule, ps_status *status)
{
    ps_partition_result result;
    *status = (ps_status){0};
    assert_int_equal(ps_partition_solve(arena, &f->problem, &(ps_partition_options){0}, &result, status), code);
    assert_string_equal(status->rule, rule);
}

static void expect_cut(const ps_partition *cut, const int32_t *first_layer)
{
    for (int32_t stage = 0; stage <= cut->num_stages; stage++)
        assert_int_equal(cut->first_layer[stage], first_layer[stage]);
}

// Interface example: 3,1,4,1,5 into two is 3+1+4 | 1+5, largest 8.
static void five_weights_are_cut_into_two_stages(void **state)
{
    static const int64_t cost[] = {3, 1, 4, 1, 5};
    fixture f;
    make_fixture(&f, cost, 5, 2);
    ps_partition_result result = solve(*state, &f);
    expect_cut(&result.partition[0], (int32_t[]){0, 3, 5});
    assert_int_equal(result.partition[0].stage_ns[0], 8);
    assert_int_equal(result.partition[0].stage_ns[1], 6);
    assert_int_equal(result.partition[0].bottleneck_ns, 8);
    assert_int_equal(result.partition[0].sum_ns, 14);
    assert_string_equal(result.engine, "dp");
    assert_true(result.proved);
    assert_true(result.gap == 0);
}

static void every_engine_says_its_name_and_finds_the_cut(void **state)
{
    static const int64_t cost[] = {3, 1, 4, 1, 5};
    fixture f;
    make_fixture(&f, cost, 5, 2);
    static const ps_engine engine[] = {PS_ENGINE_DP, PS_ENGINE_MILP, PS_ENGINE_HEURISTIC};
    static const char *const name[] = {"dp", "milp", "heuristic"};
    for (int32_t index = 0; index < 3; index++) {
        ps_partition_result result = solve_top(*state, &f, engine[index], 1);
        assert_string_equal(result.engine, name[index]);
        assert_int_equal(result.partition[0].bottleneck_ns, 8);
        expect_cut(&result.partition[0], (int32_t[]){0, 3, 5});
    }
}

// Cuts of 6 equal layers into 3: 2|2|2, then those with a stage of 3, in the order of their first layers.
static void the_best_cuts_come_in_order_of_their_first_layers(void **state)
{
    static const int64_t cost[] = {1, 1, 1, 1, 1, 1};
    fixture f;
    make_fixture(&f, cost, 6, 3);
    ps_partition_result result = solve_top(*state, &f, PS_ENGINE_DP, 20);
    assert_int_equal(result.count, 10); // 5 choose 2
    expect_cut(&result.partition[0], (int32_t[]){0, 2, 4, 6});
    expect_cut(&result.partition[1], (int32_t[]){0, 1, 3, 6});
    expect_cut(&result.partition[2], (int32_t[]){0, 1, 4, 6});
    expect_cut(&result.partition[3], (int32_t[]){0, 2, 3, 6});
    assert_int_equal(result.partition[3].bottleneck_ns, 3);
    assert_int_equal(result.partition[9].bottleneck_ns, 4);
}

// The cheap place to cut is worth a larger stage: 10 + 1 | 1 + 20 costs 21, the even cut 15 + 8 | 8 + 15 costs 23.
static void a_dear_cut_is_avoided(void **state)
{
    static const int64_t cost[] = {10, 5, 15};
    static const int64_t cut[] = {1, 8};
    fixture f;
    make_fixture(&f, cost, 3, 2);
    f.problem.cut_ns = cut;
    ps_partition_result result = solve(*state, &f);
    expect_cut(&result.partition[0], (int32_t[]){0, 1, 3});
    assert_int_equal(result.partition[0].stage_ns[0], 11);
    assert_int_equal(result.partition[0].stage_ns[1], 21);
}

// Few micro-batches favour a small sum, many a small largest stage.
static void the_iteration_objective_weighs_the_sum_by_the_number_of_microbatches(void **state)
{
    static const int64_t cost[] = {10, 10, 10, 10};
    static const int64_t cut[] = {0, 6, 0};
    fixture f;
    make_fixture(&f, cost, 4, 2);
    f.problem.cut_ns = cut;
    f.problem.objective = PS_OBJECTIVE_ITERATION;
    f.problem.num_microbatches = 2; // 40 + 30 beats 52 + 26
    assert_int_equal(solve(*state, &f).partition[0].objective_ns, 70);
    f.problem.num_microbatches = 5; // 52 + 4 * 26 beats 40 + 4 * 30
    ps_partition_result result = solve(*state, &f);
    assert_int_equal(result.partition[0].objective_ns, 156);
    expect_cut(&result.partition[0], (int32_t[]){0, 2, 4});
    assert_true(result.proved);
}

// Equal layers, but stage 0 of 1F1B holds as many micro-batches as there are stages.
static void early_stages_get_fewer_layers_when_memory_is_tight(void **state)
{
    static const int64_t cost[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t held[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    fixture f;
    make_fixture(&f, cost, 10, 4);
    f.problem.held_full = held;
    add_falling_depths(&f);
    f.type[0].memory_limit = 6; // 1, 2, 3 and 6 layers fit
    ps_partition_result result = solve(*state, &f);
    expect_cut(&result.partition[0], (int32_t[]){0, 1, 3, 6, 10});
    assert_int_equal(result.partition[0].bottleneck_ns, 4);
    result = solve_top(*state, &f, PS_ENGINE_MILP, 1);
    expect_cut(&result.partition[0], (int32_t[]){0, 1, 3, 6, 10});
    assert_true(result.proved);
}

static void pinned_layers_go_to_their_stage_and_kept_layers_stay_together(void **state)
{
    static const int64_t cost[] = {1, 1, 1, 1, 1, 1};
    static const int32_t pin[] = {-1, -1, -1, 0, -1, -1};
    static const bool keep[] = {false, false, false, true, false};
    fixture f;
    make_fixture(&f, cost, 6, 2);
    f.problem.pinned_stage = pin;
    expect_cut(&solve(*state, &f).partition[0], (int32_t[]){0, 4, 6});
    f.problem.keep_with_next = keep;
    expect_cut(&solve(*state, &f).partition[0], (int32_t[]){0, 5, 6});
    expect_cut(&solve_top(*state, &f, PS_ENGINE_MILP, 1).partition[0], (int32_t[]){0, 5, 6});
    expect_cut(&solve_top(*state, &f, PS_ENGINE_HEURISTIC, 1).partition[0], (int32_t[]){0, 5, 6});
}

// Type b is twice as slow; with one of each, a takes four of six layers, at either end.
static void a_slow_gpu_gets_fewer_layers(void **state)
{
    static const int64_t fast[] = {1, 1, 1, 1, 1, 1};
    static const int64_t slow[] = {2, 2, 2, 2, 2, 2};
    fixture f;
    make_fixture(&f, fast, 6, 0);
    f.cost_of[1] = slow;
    f.type[0] = (ps_device_type){"a", 1, INT64_MAX};
    f.type[1] = (ps_device_type){"b", 1, INT64_MAX};
    f.problem.num_types = 2;
    static const ps_engine engine[] = {PS_ENGINE_DP, PS_ENGINE_MILP, PS_ENGINE_HEURISTIC};
    for (int32_t index = 0; index < 3; index++) {
        ps_partition_result result = solve_top(*state, &f, engine[index], 1);
        assert_int_equal(result.partition[0].num_stages, 2);
        assert_int_equal(result.partition[0].bottleneck_ns, 4);
    }
    ps_partition_result both = solve_top(*state, &f, PS_ENGINE_DP, 2);
    assert_int_equal(both.count, 2);
    assert_int_equal(both.partition[0].type[0], 1); // b first: its first cut is earlier
    assert_int_equal(both.partition[1].type[0], 0);
}

static void more_stages_than_layers_are_refused_with_the_most_that_works(void **state)
{
    static const int64_t cost[] = {1, 1, 1};
    fixture f;
    ps_status status;
    make_fixture(&f, cost, 3, 4);
    expect_failure(*state, &f, PS_INFEASIBLE, "fewer-layers-than-stages", &status);
    assert_non_null(strstr(status.hint, "3 stages or fewer"));
    f.problem.num_stages = 2;
    f.problem.min_layers = 2;
    expect_failure(*state, &f, PS_INFEASIBLE, "fewer-layers-than-stages", &status);
    assert_string_equal(status.hint, "use 1 stage");
}

static void more_stages_than_devices_are_refused(void **state)
{
    static const int64_t cost[] = {1, 1, 1};
    fixture f;
    ps_status status;
    make_fixture(&f, cost, 3, 3);
    f.type[0].count = 2;
    expect_failure(*state, &f, PS_INFEASIBLE, "fewer-devices-than-stages", &status);
}

static void a_layer_that_fits_nowhere_is_named_with_need_and_have(void **state)
{
    static const int64_t cost[] = {1, 1, 1};
    static const int64_t fixed[] = {5, 70, 5};
    fixture f;
    ps_status status;
    make_fixture(&f, cost, 3, 2);
    f.problem.static_bytes = fixed;
    f.type[0].memory_limit = 60;
    expect_failure(*state, &f, PS_INFEASIBLE, "memory", &status);
    assert_non_null(strstr(status.message, "layer 1 alone needs 70"));
    assert_non_null(strstr(status.message, "60"));
    assert_non_null(strstr(status.hint, "70"));
}

// Every layer fits by itself, no cut does: 4 + 4 | 4 + 4 needs 8.
static void a_chain_that_fits_in_no_cut_says_how_much_is_missing(void **state)
{
    static const int64_t cost[] = {1, 1, 1, 1};
    static const int64_t fixed[] = {4, 4, 4, 4};
    fixture f;
    ps_status status;
    make_fixture(&f, cost, 4, 2);
    f.problem.static_bytes = fixed;
    f.type[0].memory_limit = 7;
    expect_failure(*state, &f, PS_INFEASIBLE, "memory", &status);
    assert_non_null(strstr(status.message, "needs 8"));
    assert_non_null(strstr(status.hint, "1 more"));
    assert_null(strstr(status.message, " B")); // a unit of the caller's own
    f.problem.memory_is_bytes = true;
    expect_failure(*state, &f, PS_INFEASIBLE, "memory", &status);
    assert_non_null(strstr(status.message, "needs 8 B of memory, a device of type"));
    assert_non_null(strstr(status.hint, "1 B (1B) more"));
    f.type[0].memory_limit = 8;
    expect_cut(&solve(*state, &f).partition[0], (int32_t[]){0, 2, 4});
}

static void rules_that_exclude_every_cut_are_named(void **state)
{
    static const int64_t cost[] = {1, 1, 1, 1};
    static const int32_t pin[] = {1, -1, -1, 0};
    static const bool keep[] = {true, true, true};
    fixture f;
    ps_status status;
    make_fixture(&f, cost, 4, 2);
    f.problem.pinned_stage = pin;
    expect_failure(*state, &f, PS_INFEASIBLE, "pins", &status);
    f.problem.pinned_stage = NULL;
    f.problem.keep_with_next = keep;
    expect_failure(*state, &f, PS_INFEASIBLE, "keep-with-next", &status);
    assert_non_null(strstr(status.hint, "use 1 stage, or"));
    f.problem.keep_with_next = NULL;
    f.problem.max_layers = 1;
    expect_failure(*state, &f, PS_INFEASIBLE, "max-layers", &status);
}

static void amounts_out_of_range_are_bad_input(void **state)
{
    int64_t cost[] = {1, -1, 1};
    fixture f;
    ps_status status;
    make_fixture(&f, cost, 3, 2);
    expect_failure(*state, &f, PS_BAD_INPUT, "out-of-range", &status);
    assert_non_null(strstr(status.message, "layer 1"));
    cost[1] = INT64_MAX - 1;
    expect_failure(*state, &f, PS_BAD_INPUT, "out-of-range", &status);
    cost[1] = INT64_C(1) << 50;
    f.problem.objective = PS_OBJECTIVE_ITERATION;
    f.problem.num_microbatches = 1 << 20;
    expect_failure(*state, &f, PS_BAD_INPUT, "out-of-range", &status);
    f.problem.num_microbatches = 0;
    expect_failure(*state, &f, PS_BAD_INPUT, "out-of-range", &status);
}

// Depth times memory may exceed any integer; it then fits where no limit is set, and nowhere else.
static void memory_beyond_all_integers_does_not_wrap_around(void **state)
{
    static const int64_t cost[] = {1, 1};
    static const int64_t held[] = {INT64_C(1) << 58, INT64_C(1) << 58};
    fixture f;
    ps_status status;
    make_fixture(&f, cost, 2, 2);
    f.problem.held_full = held;
    add_falling_depths(&f);
    f.point[0].full = 1 << 20;
    assert_int_equal(solve(*state, &f).partition[0].bottleneck_ns, 1);
    f.type[0].memory_limit = INT64_C(1) << 60;
    expect_failure(*state, &f, PS_INFEASIBLE, "memory", &status);
}

static void an_engine_asked_for_beyond_its_reach_is_refused(void **state)
{
    enum { TYPES = 12 };
    static const int64_t cost[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    ps_device_type type[TYPES];
    const int64_t *cost_of[TYPES];
    fixture f;
    make_fixture(&f, cost, 16, 0);
    for (int32_t index = 0; index < TYPES; index++) {
        type[index] = (ps_device_type){"gpu", 9, INT64_MAX};
        cost_of[index] = cost;
    }
    f.problem.num_types = TYPES;
    f.problem.type = type;
    f.problem.cost_ns = cost_of;
    ps_partition_result result;
    ps_status status = {0};
    ps_partition_options options = {.engine = PS_ENGINE_DP};
    assert_int_equal(ps_partition_solve(*state, &f.problem, &options, &result, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "engine-cannot");
    result = solve(*state, &f);
    assert_string_equal(result.engine, "milp");
    assert_int_equal(result.partition[0].bottleneck_ns, 1);
}

static ps_code stop_at_once(void *context)
{
    (void)context;
    return PS_TIME_LIMIT;
}

static void a_stopped_search_gives_a_cut_with_an_honest_bound(void **state)
{
    static const int64_t cost[] = {9, 2, 7, 3, 8, 1, 6, 4, 5};
    fixture f;
    make_fixture(&f, cost, 9, 4);
    ps_control control = {.should_stop = stop_at_once};
    ps_partition_options options = {.engine = PS_ENGINE_DP, .control = &control};
    ps_partition_result result;
    ps_status status = {0};
    assert_ok(ps_partition_solve(*state, &f.problem, &options, &result, &status), &status);
    assert_true(result.limit_hit);
    assert_false(result.proved);
    int64_t optimum = solve(*state, &f).partition[0].bottleneck_ns;
    assert_true(result.bound_ns <= optimum);
    assert_true(result.partition[0].bottleneck_ns >= optimum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(five_weights_are_cut_into_two_stages),
        test_in_arena(every_engine_says_its_name_and_finds_the_cut),
        test_in_arena(the_best_cuts_come_in_order_of_their_first_layers),
        test_in_arena(a_dear_cut_is_avoided),
        test_in_arena(the_iteration_objective_weighs_the_sum_by_the_number_of_microbatches),
        test_in_arena(early_stages_get_fewer_layers_when_memory_is_tight),
        test_in_arena(pinned_layers_go_to_their_stage_and_kept_layers_stay_together),
        test_in_arena(a_slow_gpu_gets_fewer_layers),
        test_in_arena(more_stages_than_layers_are_refused_with_the_most_that_works),
        test_in_arena(more_stages_than_devices_are_refused),
        test_in_arena(a_layer_that_fits_nowhere_is_named_with_need_and_have),
        test_in_arena(a_chain_that_fits_in_no_cut_says_how_much_is_missing),
        test_in_arena(rules_that_exclude_every_cut_are_named),
        test_in_arena(amounts_out_of_range_are_bad_input),
        test_in_arena(memory_beyond_all_integers_does_not_wrap_around),
        test_in_arena(an_engine_asked_for_beyond_its_reach_is_refused),
        test_in_arena(a_stopped_search_gives_a_cut_with_an_honest_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
