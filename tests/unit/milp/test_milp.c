// SPDX-License-Identifier: Apache-2.0
#include "milp/milp.h"

#include "support/cmocka_all.h"

#include <math.h>

#include "base/parallel.h"

enum { ITEMS = 15 };

// A program of 0-1 columns and one row.
typedef struct small_program {
    ps_milp_problem problem;
    double row_lower[1];
    double row_upper[1];
    double column_lower[ITEMS];
    double column_upper[ITEMS];
    double objective[ITEMS];
    bool is_integer[ITEMS];
    int64_t first[ITEMS + 1];
    int32_t entry_row[ITEMS];
    double entry_value[ITEMS];
} small_program;

static void make_program(small_program *p, int32_t columns, double row_lower, double row_upper)
{
    *p = (small_program){.row_lower = {row_lower}, .row_upper = {row_upper}};
    for (int32_t column = 0; column < columns; column++) {
        p->column_upper[column] = 1;
        p->is_integer[column] = true;
        p->first[column + 1] = column + 1;
    }
    p->problem = (ps_milp_problem){.num_rows = 1,
                                   .num_columns = columns,
                                   .row_lower = p->row_lower,
                                   .row_upper = p->row_upper,
                                   .column_lower = p->column_lower,
                                   .column_upper = p->column_upper,
                                   .objective = p->objective,
                                   .is_integer = p->is_integer,
                                   .first = p->first,
                                   .entry_row = p->entry_row,
                                   .entry_value = p->entry_value};
}

// Values 60, 100, 120 of weights 10, 20, 30 in a sack of 50: the second and third item, 220.
static void make_knapsack(small_program *p)
{
    static const double value[] = {60, 100, 120};
    static const double weight[] = {10, 20, 30};
    make_program(p, 3, -INFINITY, 50);
    for (int32_t item = 0; item < 3; item++) {
        p->objective[item] = -value[item];
        p->entry_value[item] = weight[item];
    }
}

// 2 (x1 + ... + x15) = 15 has fractional solutions down to deep nodes and no integer one (Jeroslow 1974): branch and
// bound alone needs thousands of nodes.
static void make_parity(small_program *p)
{
    make_program(p, ITEMS, 15, 15);
    for (int32_t item = 0; item < ITEMS; item++) {
        p->objective[item] = 1;
        p->entry_value[item] = 2;
    }
}

static void a_knapsack_is_filled_with_the_best_items(void **state)
{
    small_program p;
    make_knapsack(&p);
    ps_milp_result result;
    ps_status status = {0};
    assert_ok(ps_milp_solve(*state, &p.problem, &(ps_milp_options){0}, &result, &status), &status);
    assert_int_equal(result.outcome, PS_MILP_OPTIMAL);
    assert_true(fabs(result.objective + 220) < 1e-6);
    assert_true(fabs(result.bound + 220) < 1e-6);
    assert_true(result.value[0] < 0.5 && result.value[1] > 0.5 && result.value[2] > 0.5);
}

static void a_program_without_a_solution_is_called_infeasible(void **state)
{
    small_program p;
    make_knapsack(&p);
    p.row_lower[0] = p.row_upper[0] = 61; // more than all items
    ps_milp_result result;
    ps_status status = {0};
    assert_ok(ps_milp_solve(*state, &p.problem, &(ps_milp_options){0}, &result, &status), &status);
    assert_int_equal(result.outcome, PS_MILP_INFEASIBLE);
    assert_null(result.value);
}

static void a_program_with_only_fractional_solutions_is_called_infeasible(void **state)
{
    small_program p;
    make_knapsack(&p);
    p.row_lower[0] = p.row_upper[0] = 45;
    ps_milp_result result;
    ps_status status = {0};
    assert_ok(ps_milp_solve(*state, &p.problem, &(ps_milp_options){0}, &result, &status), &status);
    assert_int_equal(result.outcome, PS_MILP_INFEASIBLE);
}

static void the_node_limit_ends_a_search_with_its_bound(void **state)
{
    small_program p;
    make_parity(&p);
    ps_milp_result result;
    ps_status status = {0};
    assert_ok(ps_milp_solve(*state, &p.problem, &(ps_milp_options){.node_limit = 50}, &result, &status), &status);
    assert_int_equal(result.outcome, PS_MILP_LIMIT);
    assert_in_range(result.nodes, 50, 60);
    assert_int_equal(result.stopped, PS_OK);
    // The root relaxation is 7.5; as the objective counts whole items, it may be rounded up.
    assert_true(result.bound > 7.5 - 1e-6 && result.bound < 8 + 1e-6);
}

typedef struct stop_after {
    int32_t polls;
} stop_after;

static ps_code stop_at_third_poll(void *context)
{
    stop_after *after = context;
    return ++after->polls < 3 ? PS_OK : PS_TIME_LIMIT;
}

static void the_caller_can_stop_a_search(void **state)
{
    small_program p;
    make_parity(&p);
    stop_after after = {0};
    ps_control control = {.should_stop = stop_at_third_poll, .context = &after};
    ps_milp_result result;
    ps_status status = {0};
    assert_ok(ps_milp_solve(*state, &p.problem, &(ps_milp_options){.control = &control}, &result, &status), &status);
    assert_int_equal(result.outcome, PS_MILP_LIMIT);
    assert_int_equal(result.stopped, PS_TIME_LIMIT);
    assert_int_equal(after.polls, 3);
}

// GLPK aborts the process on malformed input unless it is caught.
static void a_solver_error_becomes_a_status_and_the_solver_goes_on(void **state)
{
    small_program p;
    ps_milp_result result;
    for (int32_t round = 0; round < 3; round++) {
        ps_status status = {0};
        make_knapsack(&p);
        p.entry_row[1] = 98;
        assert_int_equal(ps_milp_solve(*state, &p.problem, &(ps_milp_options){0}, &result, &status), PS_INTERNAL);
        assert_string_equal(status.rule, "milp-solver");
        assert_non_null(strstr(status.message, "row index out of range"));

        ps_status none = {0};
        make_knapsack(&p);
        assert_ok(ps_milp_solve(*state, &p.problem, &(ps_milp_options){0}, &result, &none), &none);
        assert_true(fabs(result.objective + 220) < 1e-6);
    }
}

static ps_code solve_on_a_thread(void *context, int64_t index, ps_arena *scratch, ps_status *status)
{
    double *objective = context;
    small_program p;
    ps_milp_result result;
    make_knapsack(&p);
    if (index % 3 == 2) { // errors on one thread leave the others alone
        ps_status expected = {0};
        p.entry_row[0] = 7;
        ps_code code = ps_milp_solve(scratch, &p.problem, &(ps_milp_options){0}, &result, &expected);
        objective[index] = code == PS_INTERNAL ? -220 : 0;
        return PS_OK;
    }
    PS_TRY(ps_milp_solve(scratch, &p.problem, &(ps_milp_options){0}, &result, status));
    objective[index] = result.objective;
    return PS_OK;
}

static void several_threads_solve_at_once(void **state)
{
    (void)state;
    double objective[60] = {0};
    ps_status status = {0};
    assert_ok(ps_parallel_for(60, 4, 0, solve_on_a_thread, objective, &status), &status);
    for (int32_t index = 0; index < 60; index++)
        assert_true(fabs(objective[index] + 220) < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(a_knapsack_is_filled_with_the_best_items),
        test_in_arena(a_program_without_a_solution_is_called_infeasible),
        test_in_arena(a_program_with_only_fractional_solutions_is_called_infeasible),
        test_in_arena(the_node_limit_ends_a_search_with_its_bound),
        test_in_arena(the_caller_can_stop_a_search),
        test_in_arena(a_solver_error_becomes_a_status_and_the_solver_goes_on),
        test_in_arena(several_threads_solve_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
