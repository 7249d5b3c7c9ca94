// SPDX-License-Identifier: Apache-2.0
//
// partition_milp.c: the interval MILP. A binary column says "layers i .. j - 1 are one stage on type t".
//
//     minimise T,  for every layer l:  sum of columns over l = 1,  sum of cost * column over l <= T,
//     for every type: sum of its columns <= its devices;  sum of columns = number of stages, when it is given.
//
// Where a stage's number matters (memory depths, pins) columns carry it too: one column a stage, and for every stage
// and layer, the columns of stage s that end before the layer equal those of stage s + 1 that start at it.
//
// Proof in integers. Columns that cannot be part of a cut strictly better than the incumbent are dropped by integer
// comparison, so an exhausted tree without a solution proves the incumbent. When GLPK proves a bound, it holds to a
// relative 1e-7; we take off 1e-6. A largest stage is the cost of some column, so if no column costs between that and
// the incumbent, the incumbent is optimal; else the incumbent's columns are dropped and the search repeats. For the
// iteration objective every value is a multiple of the greatest common divisor of all costs, and the bound rounds up.
#include "partition/partition_bound.h"
#include "partition/partition_engine.h"
#include "partition/partition_lattice.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "base/number.h"
#include "base/vec.h"
#include "milp/milp.h"

#define MAX_ENTRIES (INT64_C(1) << 24) // of the matrix: about 1 GiB in the solver

static const double SOLVER_TOLERANCE = 1e-6;

typedef struct interval {
    int32_t stage; // 0 where the number does not matter
    int32_t type;
    int32_t first;
    int32_t end;
    int64_t cost_ns;
} interval;

typedef ps_vec(interval) interval_list;

typedef struct entry_list {
    ps_vec(int32_t) row;
    ps_vec(double) value;
} entry_list;

// Row numbers of the program.
typedef struct row_plan {
    int32_t cover; // + layer
    int32_t load;  // + layer
    int32_t type;  // + type
    int32_t total;
    int32_t stage; // + stage
    int32_t join;  // + stage * layers + layer: stage ends before, the next one starts at, the layer
    int32_t count;
} row_plan;

static bool stages_differ(const ps_cut_view *view)
{
    return view->stages > 0 && (view->num_classes > 1 || view->problem->pinned_stage);
}

// Columns with no stage above `most_ns`, in order of stage, type, first layer, end.
static void list_intervals(ps_arena *arena, const ps_cut_view *view, int64_t most_ns, interval_list *out)
{
    bool by_stage = stages_differ(view);
    out->count = 0;
    for (int32_t stage = 0; stage < (by_stage ? view->stages : 1); stage++) {
        for (int32_t type = 0; type < view->types; type++) {
            for (int32_t first = 0; view->count[type] > 0 && first < view->layers; first++) {
                bool in_band = !by_stage || (first >= view->band_low[stage] && first <= view->band_high[stage]);
                int32_t last = ps_cut_end(view, type, stage, first);
                for (int32_t end = first + view->min_layers; in_band && view->may_cut[first] && end <= last; end++) {
                    int64_t cost = ps_cut_cost(view, type, first, end);
                    if (by_stage && (end < view->band_low[stage + 1] || end > view->band_high[stage + 1]))
                        continue;
                    if (cost <= most_ns && view->may_cut[end])
                        *ps_vec_push(arena, out) = (interval){stage, type, first, end, cost};
                }
            }
        }
    }
}

int64_t ps_cut_milp_columns(const ps_cut_view *view)
{
    int64_t columns = 0;
    for (int32_t stage = 0; stage < (stages_differ(view) ? view->stages : 1); stage++) {
        for (int32_t type = 0; type < view->types; type++) {
            for (int32_t first = 0; first < view->layers; first++)
                columns += ps_cut_end(view, type, stage, first) - first;
        }
    }
    return columns;
}

static ps_code check_size(const interval_list *list, ps_status *status)
{
    int64_t entries = 0;
    for (int64_t column = 0; column < list->count; column++)
        entries += 2 * (int64_t)(list->data[column].end - list->data[column].first) + 5;
    if (entries <= MAX_ENTRIES)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "engine-cannot",
            "the MILP has %lld columns with %lld entries, the most is %lld entries", (long long)list->count,
            (long long)entries, (long long)MAX_ENTRIES);
    return ps_fail_hint(status, "use --engine dp or heuristic");
}

static row_plan plan_rows(const ps_cut_view *view)
{
    row_plan rows = {.cover = 0, .load = view->layers, .type = 2 * view->layers};
    rows.total = rows.type + view->types;
    rows.stage = rows.total + 1;
    rows.join = rows.stage + (stages_differ(view) ? view->stages : 0);
    rows.count = rows.join + (stages_differ(view) ? view->stages * view->layers : 0);
    return rows;
}

static void set_rows(ps_arena *arena, const ps_cut_view *view, const row_plan *rows, ps_milp_problem *program)
{
    double *lower = ps_new(arena, double, rows->count);
    double *upper = ps_new(arena, double, rows->count);
    for (int32_t layer = 0; layer < view->layers; layer++) {
        lower[rows->cover + layer] = upper[rows->cover + layer] = 1;
        lower[rows->load + layer] = -INFINITY;
    }
    for (int32_t type = 0; type < view->types; type++) {
        lower[rows->type + type] = -INFINITY;
        upper[rows->type + type] = view->count[type];
    }
    lower[rows->total] = view->stages > 0 ? view->stages : 1;
    upper[rows->total] = view->max_stages;
    for (int32_t row = rows->stage; row < rows->join; row++)
        lower[row] = upper[row] = 1;
    program->num_rows = rows->count;
    program->row_lower = lower;
    program->row_upper = upper;
}

static void put_entry(ps_arena *arena, entry_list *entries, int32_t row, double value)
{
    if (value == 0)
        return;
    *ps_vec_push(arena, &entries->row) = row;
    *ps_vec_push(arena, &entries->value) = value;
}

static void put_interval(ps_arena *arena, const ps_cut_view *view, const row_plan *rows, const interval *column,
                         double scale, entry_list *entries)
{
    for (int32_t layer = column->first; layer < column->end; layer++) {
        put_entry(arena, entries, rows->cover + layer, 1);
        put_entry(arena, entries, rows->load + layer, (double)column->cost_ns / scale);
    }
    put_entry(arena, entries, rows->type + column->type, 1);
    put_entry(arena, entries, rows->total, 1);
    if (!stages_differ(view))
        return;
    put_entry(arena, entries, rows->stage + column->stage, 1);
    if (column->end < view->layers)
        put_entry(arena, entries, rows->join + column->stage * view->layers + column->end, 1);
    if (column->first > 0)
        put_entry(arena, entries, rows->join + (column->stage - 1) * view->layers + column->first, -1);
}

// Costs are divided by `scale`, so that they are of the order of 1. The last column is T.
static ps_milp_problem build(ps_arena *arena, const ps_cut_view *view, const interval_list *list, ps_span span,
                             double scale)
{
    row_plan rows = plan_rows(view);
    int32_t columns = (int32_t)list->count + 1;
    int32_t last = columns - 1;
    bool iteration = view->problem->objective == PS_OBJECTIVE_ITERATION;
    double *lower = ps_new(arena, double, columns);
    double *upper = ps_new(arena, double, columns);
    double *objective = ps_new(arena, double, columns);
    bool *is_integer = ps_new(arena, bool, columns);
    int64_t *first = ps_new(arena, int64_t, columns + 1);
    entry_list entries = {{0}, {0}};
    for (int32_t column = 0; column < last; column++) {
        upper[column] = 1;
        is_integer[column] = true;
        objective[column] = iteration ? (double)list->data[column].cost_ns / scale : 0;
        put_interval(arena, view, &rows, &list->data[column], scale, &entries);
        first[column + 1] = entries.row.count;
    }
    for (int32_t layer = 0; layer < view->layers; layer++)
        put_entry(arena, &entries, rows.load + layer, -1);
    first[columns] = entries.row.count;
    lower[last] = (double)span.low_ns / scale * (1 - 1e-9);
    upper[last] = (double)span.high_ns / scale * (1 + 1e-9);
    objective[last] = iteration ? view->problem->num_microbatches - 1 : 1;
    ps_milp_problem program = {.num_columns = columns,
                               .column_lower = lower,
                               .column_upper = upper,
                               .objective = objective,
                               .is_integer = is_integer,
                               .first = first,
                               .entry_row = entries.row.data,
                               .entry_value = entries.value.data};
    set_rows(arena, view, &rows, &program);
    return program;
}

// The solver's columns in order of their layers, costed anew in integers; then the first cut in the order of
// ps_cut_compare() with the same types and no larger stage, so that equal answers read equal.
static ps_code read_cut(ps_arena *arena, const ps_cut_view *view, const interval_list *list, const double *value,
                        ps_partition **out, ps_status *status)
{
    int32_t *first_layer = ps_new(arena, int32_t, view->max_stages + 1);
    int32_t *type = ps_new(arena, int32_t, view->max_stages);
    int32_t stage = 0;
    while (stage < view->max_stages && first_layer[stage] < view->layers) {
        int32_t end = 0;
        for (int64_t column = 0; column < list->count; column++) {
            if (value[column] > 0.5 && list->data[column].first == first_layer[stage]) {
                end = list->data[column].end;
                type[stage] = list->data[column].type;
            }
        }
        if (end == 0)
            return ps_fail(status, PS_INTERNAL, "milp-answer", "no stage of the solver's answer starts at layer %d",
                           (int)first_layer[stage]);
        first_layer[++stage] = end;
    }
    *out = ps_cut_new(arena, stage, first_layer, type);
    PS_TRY(ps_cut_evaluate(view->problem, *out, status));
    if (view->problem->objective == PS_OBJECTIVE_ITERATION)
        return PS_OK;
    ps_lattice lattice;
    ps_lattice_fixed(arena, view, type, stage, &lattice);
    int64_t most_ns = (*out)->bottleneck_ns;
    if (!ps_lattice_probe(&lattice, most_ns))
        return ps_fail(status, PS_INTERNAL, "milp-answer", "the solver's answer is not among the cuts of its types");
    *out = ps_lattice_first_cut(arena, &lattice, most_ns);
    return ps_cut_evaluate(view->problem, *out, status);
}

static int64_t divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t common_divisor(const ps_cut_view *view)
{
    int64_t common = 0;
    for (int32_t layer = 0; layer < view->layers; layer++) {
        common = divisor(view->cut_ns[layer], common);
        for (int32_t type = 0; type < view->types; type++)
            common = divisor(view->problem->cost_ns[type][layer], common);
    }
    return common > 0 ? common : 1;
}

// The least objective that a cut better than the incumbent can have, given the solver's bound.
static int64_t round_bound(const ps_cut_view *view, const interval_list *list, double bound_ns, int64_t incumbent_ns)
{
    double low = bound_ns * (1 - SOLVER_TOLERANCE) - 1;
    if (!(low > 0))
        return 0;
    if (low >= (double)incumbent_ns)
        return incumbent_ns;
    int64_t low_ns = (int64_t)low;
    int64_t least = incumbent_ns;
    if (view->problem->objective == PS_OBJECTIVE_ITERATION) {
        int64_t common = common_divisor(view);
        int64_t rounded = ps_ceil_div(low_ns, common) * common;
        return rounded < least ? rounded : least;
    }
    for (int64_t column = 0; column < list->count; column++) {
        int64_t cost = list->data[column].cost_ns;
        if (cost >= low_ns && cost < least)
            least = cost;
    }
    return least;
}

// The largest stage that a cut better than `objective_ns` may have.
static int64_t largest_useful(const ps_cut_view *view, int64_t objective_ns, int64_t sum_ns)
{
    if (view->problem->objective == PS_OBJECTIVE_BOTTLENECK)
        return objective_ns - 1;
    int64_t waits = view->problem->num_microbatches - 1;
    int64_t spare_ns = objective_ns - 1 - sum_ns;
    if (spare_ns < 0)
        return -1;
    return waits > 0 ? spare_ns / waits : objective_ns - 1;
}

typedef struct milp_search {
    const ps_cut_request *request;
    interval_list list;
    int64_t least_ns; // bound on the largest stage
    int64_t sum_ns;   // bound on the sum
    ps_partition *best;
    bool done;
} milp_search;

// One solve with only the columns that can improve on the incumbent.
static ps_code search_once(ps_arena *arena, milp_search *search, ps_cut_answer *out, ps_status *status)
{
    const ps_cut_view *view = search->request->view;
    int64_t most_ns = ps_cut_most_ns(view);
    int64_t incumbent_ns = search->best ? search->best->objective_ns : INT64_MAX;
    if (search->best) {
        int64_t useful = largest_useful(view, incumbent_ns, search->sum_ns);
        most_ns = useful < most_ns ? useful : most_ns;
    }
    search->done = true;
    list_intervals(arena, view, most_ns, &search->list);
    PS_TRY(check_size(&search->list, status));
    double scale = most_ns > 0 ? (double)most_ns : 1;
    ps_milp_result result = {.outcome = PS_MILP_INFEASIBLE};
    if (most_ns >= search->least_ns && search->list.count > 0) {
        ps_milp_problem program = build(arena, view, &search->list, (ps_span){search->least_ns, most_ns}, scale);
        ps_milp_options options = {.node_limit = search->request->node_limit - out->nodes,
                                   .control = search->request->control};
        PS_TRY(ps_milp_solve(arena, &program, &options, &result, status));
    }
    out->nodes += result.nodes;
    out->stopped = result.stopped;
    out->limit_hit = result.outcome == PS_MILP_FEASIBLE || result.outcome == PS_MILP_LIMIT;
    if (result.outcome == PS_MILP_INFEASIBLE) {
        out->bound_ns = search->best ? incumbent_ns : 0;
        return PS_OK;
    }
    if (result.value) {
        ps_partition *cut = NULL;
        PS_TRY(read_cut(arena, view, &search->list, result.value, &cut, status));
        assert(cut);
        if (cut->objective_ns < incumbent_ns) {
            search->best = cut;
            incumbent_ns = cut->objective_ns;
            search->done = false;
        }
    }
    int64_t bound_ns = round_bound(view, &search->list, result.bound * scale, incumbent_ns);
    out->bound_ns = bound_ns > out->bound_ns ? bound_ns : out->bound_ns;
    search->done =
        search->done || out->limit_hit || out->nodes >= search->request->node_limit || out->bound_ns == incumbent_ns;
    return PS_OK;
}

ps_code ps_cut_milp(ps_arena *arena, const ps_cut_request *request, ps_cut_answer *out, ps_status *status)
{
    const ps_cut_view *view = request->view;
    milp_search search = {
        .request = request, .least_ns = ps_cut_bound_bottleneck(arena, view), .sum_ns = ps_cut_bound_sum(arena, view)};
    ps_cut_answer start;
    ps_status unused = {0};
    if (ps_cut_heuristic(arena, request, &start, &unused) == PS_OK)
        search.best = start.cut[0];
    *out = (ps_cut_answer){.cut = ps_new(arena, ps_partition *, 1)};
    out->bound_ns = ps_cut_bound_objective(arena, view, search.least_ns);
    while (!search.done)
        PS_TRY(search_once(arena, &search, out, status));
    if (search.best)
        out->cut[out->count++] = search.best;
    else if (!out->limit_hit)
        return ps_cut_explain_infeasible(arena, view->problem, status);
    return PS_OK;
}
