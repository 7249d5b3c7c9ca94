// SPDX-License-Identifier: Apache-2.0
//
// partition.c: checks the problem, picks an engine, and says which ran and what it proved.
//
// `auto` takes the dynamic program where its states are affordable: identical devices, and mixed ones as long as the
// product of the counts is small. Beyond that the MILP, and beyond that the heuristic with its bound.
#include "pipesched/partition.h"

#include <stddef.h>

#include "partition/partition_engine.h"
#include "partition/partition_lattice.h"

// A probe takes about 10 ns a state and type, a solve some 30 probes: beyond a second the MILP is the better bet.
#define MIXED_DP_STATES (INT64_C(1) << 22)
#define MILP_COLUMNS 20000
#define MILP_NODES 20000

static ps_engine pick_engine(const ps_cut_view *view, const ps_partition_options *options)
{
    if (options->engine != PS_ENGINE_AUTO)
        return options->engine;
    int64_t limit = view->types == 1 ? PS_LATTICE_MAX_STATES : MIXED_DP_STATES;
    if (ps_cut_dp_states(view, options->top_k > 1 ? options->top_k : 1) <= limit)
        return PS_ENGINE_DP;
    return ps_cut_milp_columns(view) <= MILP_COLUMNS ? PS_ENGINE_MILP : PS_ENGINE_HEURISTIC;
}

static ps_code check_engine(const ps_cut_request *request, ps_engine engine, ps_status *status)
{
    const ps_cut_view *view = request->view;
    if (engine == PS_ENGINE_DP && ps_cut_dp_states(view, request->top_k) > PS_LATTICE_MAX_STATES) {
        ps_fail(status, PS_ILLEGAL, "engine-cannot",
                "dp would need more than %lld states for %d layers, %d stages and %d types",
                (long long)PS_LATTICE_MAX_STATES, (int)view->layers, (int)view->max_stages, (int)view->types);
        return ps_fail_hint(status, "use --engine milp or heuristic, or ask for fewer cuts");
    }
    if (engine == PS_ENGINE_MILP && ps_cut_milp_columns(view) > 10 * MILP_COLUMNS) {
        ps_fail(status, PS_ILLEGAL, "engine-cannot", "milp would need %lld columns, the most is %d",
                (long long)ps_cut_milp_columns(view), 10 * MILP_COLUMNS);
        return ps_fail_hint(status, "use --engine dp or heuristic");
    }
    return PS_OK;
}

static void set_proof(ps_partition_result *out)
{
    int64_t objective = out->partition[0].objective_ns;
    out->proved = objective == out->bound_ns;
    out->gap = 0; // and 1 over a bound of 0, where no ratio exists
    if (!out->proved)
        out->gap = out->bound_ns > 0 ? (double)(objective - out->bound_ns) / (double)out->bound_ns : 1;
}

static void fill_result(ps_arena *arena, const ps_cut_answer *answer, ps_partition_result *out)
{
    out->count = answer->count;
    out->partition = ps_new(arena, ps_partition, answer->count);
    for (int32_t index = 0; index < answer->count; index++)
        out->partition[index] = *answer->cut[index];
    out->bound_ns = answer->bound_ns;
    out->nodes = answer->nodes;
    out->limit_hit = answer->limit_hit;
    set_proof(out);
}

static ps_code solve(ps_arena *arena, const ps_partition_problem *problem, const ps_partition_options *options,
                     ps_partition_result *out, ps_status *status)
{
    ps_cut_view view;
    PS_TRY(ps_cut_view_build(arena, problem, &view, status));
    ps_cut_request request = {.view = &view,
                              .top_k = options->top_k > 1 ? options->top_k : 1,
                              .node_limit = options->node_limit > 0 ? options->node_limit : MILP_NODES,
                              .control = options->control};
    ps_engine engine = pick_engine(&view, options);
    PS_TRY(check_engine(&request, engine, status));
    ps_cut_answer answer = {0};
    *out = (ps_partition_result){0};
    switch (engine) {
    case PS_ENGINE_MILP:
        out->engine = "milp";
        PS_TRY(ps_cut_milp(arena, &request, &answer, status));
        break;
    case PS_ENGINE_HEURISTIC:
        out->engine = "heuristic";
        PS_TRY(ps_cut_heuristic(arena, &request, &answer, status));
        break;
    case PS_ENGINE_AUTO:
    case PS_ENGINE_DP:
        out->engine = "dp";
        PS_TRY(ps_cut_dp(arena, &request, &answer, status));
        break;
    }
    if (answer.count == 0)
        return ps_fail(status, answer.stopped != PS_OK ? answer.stopped : PS_INFEASIBLE, "no-cut-yet",
                       "the search was cut short before it found any cut; that none exists is not proved");
    fill_result(arena, &answer, out);
    return PS_OK;
}

// On identical devices without cut costs every cut has the same sum, so the iteration objective is the bottleneck one,
// scaled and shifted. (With one micro-batch it is constant, and all cuts are equal.)
static bool sum_is_constant(const ps_partition_problem *problem)
{
    if (problem->objective != PS_OBJECTIVE_ITERATION || problem->num_types != 1 || problem->num_microbatches < 2)
        return false;
    for (int32_t layer = 0; problem->cut_ns && layer + 1 < problem->num_layers; layer++) {
        if (problem->cut_ns[layer] != 0)
            return false;
    }
    return true;
}

ps_code ps_partition_solve(ps_arena *arena, const ps_partition_problem *problem, const ps_partition_options *options,
                           ps_partition_result *out, ps_status *status)
{
    if (!sum_is_constant(problem))
        return solve(arena, problem, options, out, status);
    ps_cut_view view; // refuses figures that the iteration objective takes out of range
    PS_TRY(ps_cut_view_build(arena, problem, &view, status));
    ps_partition_problem bottleneck = *problem;
    int64_t waits = problem->num_microbatches - 1;
    bottleneck.objective = PS_OBJECTIVE_BOTTLENECK;
    PS_TRY(solve(arena, &bottleneck, options, out, status));
    for (int32_t index = 0; index < out->count; index++) {
        ps_partition *cut = &out->partition[index];
        cut->objective_ns = cut->sum_ns + waits * cut->bottleneck_ns;
    }
    out->bound_ns = out->partition[0].sum_ns + waits * out->bound_ns;
    set_proof(out);
    return PS_OK;
}
