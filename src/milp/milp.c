// SPDX-License-Identifier: Apache-2.0
//
// milp.c: the only file that knows GLPK.
//
// GLPK aborts the process when it meets an internal error or runs out of memory. Its error hook may not return, so the
// hook frees the whole environment (which owns every problem object of the thread) and jumps back here. Nothing of
// ours that needs cleaning lives across the jump: arrays come from the arena, objects from the environment.
#include "milp/milp.h"

#include <glpk.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

typedef struct solver_run {
    jmp_buf on_error;
    char error[256]; // first words that GLPK said about its failure
    const ps_milp_options *options;
    int64_t nodes;
    double bound;
    ps_code stopped;
    bool limit_hit;
} solver_run;

// GLPK turns its terminal on to report an error; nothing may reach the real one.
static int swallow_text(void *info, const char *text)
{
    solver_run *run = info;
    size_t used = strlen(run->error);
    snprintf(run->error + used, sizeof run->error - used, "%s", text);
    return 1;
}

static void leave_solver(void *info)
{
    solver_run *run = info;
    glp_free_env();
    longjmp(run->on_error, 1);
}

static void count_node(glp_tree *tree, void *info)
{
    solver_run *run = info;
    int made = 0;
    glp_ios_tree_size(tree, NULL, NULL, &made);
    run->nodes = made;
    if (glp_ios_reason(tree) != GLP_ISELECT)
        return;
    int best = glp_ios_best_node(tree);
    if (best)
        run->bound = glp_ios_node_bound(tree, best);
    const ps_control *control = run->options->control;
    if (control && control->should_stop)
        run->stopped = control->should_stop(control->context);
    if (run->stopped != PS_OK || (run->options->node_limit > 0 && run->nodes > run->options->node_limit)) {
        run->limit_hit = true;
        glp_ios_terminate(tree);
    }
}

static int bound_kind(double lower, double upper)
{
    if (isinf(lower) && isinf(upper))
        return GLP_FR;
    if (isinf(upper))
        return GLP_LO;
    if (isinf(lower))
        return GLP_UP;
    return lower < upper ? GLP_DB : GLP_FX;
}

static glp_prob *build(const ps_milp_problem *problem, int *row, double *value)
{
    glp_prob *lp = glp_create_prob();
    glp_set_obj_dir(lp, GLP_MIN);
    if (problem->num_rows > 0)
        glp_add_rows(lp, problem->num_rows);
    if (problem->num_columns > 0)
        glp_add_cols(lp, problem->num_columns);
    for (int32_t r = 0; r < problem->num_rows; r++) {
        double lower = problem->row_lower[r];
        double upper = problem->row_upper[r];
        glp_set_row_bnds(lp, r + 1, bound_kind(lower, upper), lower, upper);
    }
    for (int32_t c = 0; c < problem->num_columns; c++) {
        double lower = problem->column_lower[c];
        double upper = problem->column_upper[c];
        int64_t first = problem->first[c];
        int count = (int)(problem->first[c + 1] - first);
        for (int e = 0; e < count; e++) {
            row[e + 1] = problem->entry_row[first + e] + 1;
            value[e + 1] = problem->entry_value[first + e];
        }
        glp_set_col_kind(lp, c + 1, problem->is_integer[c] ? GLP_IV : GLP_CV);
        glp_set_col_bnds(lp, c + 1, bound_kind(lower, upper), lower, upper);
        glp_set_obj_coef(lp, c + 1, problem->objective[c]);
        glp_set_mat_col(lp, c + 1, count, row, value);
    }
    return lp;
}

// The root relaxation, then the tree without GLPK's presolver, so that node bounds are those of the caller's problem.
// Returns what glp_simplex or glp_intopt returned.
static int solve(glp_prob *lp, solver_run *run, bool *infeasible)
{
    glp_smcp simplex;
    glp_init_smcp(&simplex);
    simplex.msg_lev = GLP_MSG_OFF;
    glp_scale_prob(lp, GLP_SF_AUTO);
    glp_adv_basis(lp, 0);
    int answer = glp_simplex(lp, &simplex);
    if (answer != 0)
        return answer;
    *infeasible = glp_get_status(lp) == GLP_NOFEAS;
    if (glp_get_status(lp) != GLP_OPT)
        return 0;
    run->bound = glp_get_obj_val(lp);

    glp_iocp search;
    glp_init_iocp(&search);
    search.msg_lev = GLP_MSG_OFF;
    search.br_tech = GLP_BR_DTH;
    search.bt_tech = GLP_BT_BLB;
    search.mip_gap = run->options->relative_gap;
    search.cb_func = count_node;
    search.cb_info = run;
    answer = glp_intopt(lp, &search);
    return answer == GLP_ESTOP || answer == GLP_EMIPGAP ? 0 : answer;
}

static void read_answer(glp_prob *lp, const solver_run *run, bool infeasible, ps_milp_result *out)
{
    int status = infeasible ? GLP_NOFEAS : glp_mip_status(lp);
    out->nodes = run->nodes;
    out->stopped = run->stopped;
    out->objective = INFINITY;
    out->bound = run->bound;
    if (status == GLP_NOFEAS) {
        out->outcome = PS_MILP_INFEASIBLE;
        out->bound = INFINITY;
    } else if (status == GLP_OPT || status == GLP_FEAS) {
        out->objective = glp_mip_obj_val(lp);
        for (int c = 0; c < glp_get_num_cols(lp); c++)
            out->value[c] = glp_mip_col_val(lp, c + 1);
        bool whole_tree = status == GLP_OPT && !run->limit_hit && run->options->relative_gap <= 0;
        out->outcome = run->limit_hit ? PS_MILP_FEASIBLE : PS_MILP_OPTIMAL;
        if (whole_tree || out->bound > out->objective)
            out->bound = out->objective;
    } else {
        out->outcome = PS_MILP_LIMIT;
    }
    if (out->outcome == PS_MILP_INFEASIBLE || out->outcome == PS_MILP_LIMIT)
        out->value = NULL;
}

ps_code ps_milp_solve(ps_arena *arena, const ps_milp_problem *problem, const ps_milp_options *options,
                      ps_milp_result *out, ps_status *status)
{
    int64_t longest = 0;
    for (int32_t c = 0; c < problem->num_columns; c++) {
        int64_t count = problem->first[c + 1] - problem->first[c];
        longest = count > longest ? count : longest;
    }
    // Everything is allocated before setjmp: exhaustion of the arena must not jump out of a live GLPK environment.
    int *row = ps_new_raw(arena, int, longest + 1);
    double *value = ps_new_raw(arena, double, longest + 1);
    solver_run *run = ps_new(arena, solver_run, 1);
    run->options = options;
    run->bound = -INFINITY;
    *out = (ps_milp_result){.value = ps_new(arena, double, problem->num_columns + 1)};

    // The first call of a thread would abort, hook or not, when the environment itself cannot be had.
    enum { NO_MEMORY = 2 };
    if (glp_init_env() == NO_MEMORY)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "no memory for the MILP solver");
    if (setjmp(run->on_error)) {
        run->error[strcspn(run->error, "\n")] = '\0';
        return ps_fail(status, PS_INTERNAL, "milp-solver", "the MILP solver failed: %s", run->error);
    }
    glp_term_hook(swallow_text, run);
    glp_error_hook(leave_solver, run);
    glp_term_out(GLP_OFF);
    bool infeasible = false;
    glp_prob *lp = build(problem, row, value);
    int answer = solve(lp, run, &infeasible);
    if (answer == 0)
        read_answer(lp, run, infeasible, out);
    glp_delete_prob(lp);
    glp_free_env();
    if (answer != 0)
        return ps_fail(status, PS_INTERNAL, "milp-solver", "the MILP solver gave up with code %d", answer);
    return PS_OK;
}

const char *ps_milp_library_version(void)
{
    return glp_version();
}
