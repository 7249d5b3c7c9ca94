// SPDX-License-Identifier: Apache-2.0
//
// partition_dp.c: exact cuts with the least largest stage, and the k best of them.
//
// The least T that a probe passes is found by doubling and bisection: O(arcs * layers * log range), with bands around
// the first layers that shrink with T. For the k best, the least T_k that at least k cuts pass is found the same way by
// counting paths; then all cuts below T_k are listed (fewer than k), and those with a stage of exactly T_k in order
// until k are reached.
#include "partition/partition_bound.h"
#include "partition/partition_engine.h"
#include "partition/partition_lattice.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"

typedef struct path_tables {
    ps_lattice *lattice;
    int32_t enough;
    int32_t *paths; // [nodes][layers + 1] cuts of the rest within T, at most `enough`
    uint8_t *exact; // [nodes][layers + 1] some cut of the rest has a stage of exactly T
} path_tables;

int64_t ps_cut_dp_states(const ps_cut_view *view, int32_t top_k)
{
    // Lists of the iteration objective keep k entries of 24 bytes a state, counting paths keeps 5 bytes.
    bool lists = view->problem->objective == PS_OBJECTIVE_ITERATION;
    int64_t each = lists ? 8 * (int64_t)top_k : (top_k > 1 ? 5 : 1);
    return ps_multiply_saturating(ps_lattice_states(view), each);
}

static int32_t last_end(const ps_lattice *lattice, int32_t arc, int32_t stage, int32_t first)
{
    return ps_cut_end(lattice->view, lattice->arc_type[arc], stage, first);
}

// Paths and exactness of one state; the probe has said that at least one path exists.
static void count_state(path_tables *tables, int32_t node, int32_t first, int64_t most_ns)
{
    const ps_lattice *lattice = tables->lattice;
    const ps_cut_view *view = lattice->view;
    int64_t width = view->layers + 1;
    int32_t stage = lattice->stage[node];
    int64_t paths = 0;
    uint8_t exact = 0;
    for (int32_t arc = lattice->first_arc[node]; arc < lattice->first_arc[node + 1]; arc++) {
        int64_t next = lattice->arc_next[arc] * width;
        int32_t last = last_end(lattice, arc, stage, first);
        for (int32_t end = first + view->min_layers; end <= last && (paths < tables->enough || !exact); end++) {
            int64_t cost = ps_cut_cost(view, lattice->arc_type[arc], first, end);
            if (cost > most_ns || !ps_lattice_open(lattice, arc, stage, end))
                continue;
            bool all = end == view->layers;
            paths += all ? 1 : tables->paths[next + end];
            exact |= (uint8_t)(cost == most_ns || (!all && tables->exact[next + end]));
        }
    }
    tables->paths[node * width + first] = paths < tables->enough ? (int32_t)paths : tables->enough;
    tables->exact[node * width + first] = exact;
}

static bool count_paths(void *context, int64_t most_ns)
{
    path_tables *tables = context;
    ps_lattice *lattice = tables->lattice;
    if (!ps_lattice_probe(lattice, most_ns))
        return false;
    int64_t width = lattice->view->layers + 1;
    for (int32_t node = 0; node < lattice->num_nodes; node++) {
        int32_t stage = lattice->stage[node];
        if (stage < 0 || stage >= lattice->view->max_stages)
            continue;
        for (int32_t first = lattice->low[stage]; first <= lattice->high[stage]; first++) {
            if (lattice->can[node * width + first])
                count_state(tables, node, first, most_ns);
        }
    }
    return tables->paths[lattice->start * width] >= tables->enough;
}

typedef struct list_step {
    int32_t node;
    int32_t end; // where to go on looking
    int32_t arc;
    bool hit; // a stage so far costs exactly T
} list_step;

typedef struct cut_lister {
    const path_tables *tables;
    int64_t most_ns;
    bool exactly; // only cuts with a stage of exactly most_ns
    list_step *step;
    int32_t *first_layer;
    int32_t *type;
} cut_lister;

static bool may_take(const cut_lister *lister, int32_t stage, int32_t arc, int32_t end)
{
    const ps_lattice *lattice = lister->tables->lattice;
    const ps_cut_view *view = lattice->view;
    int32_t first = lister->first_layer[stage];
    if (last_end(lattice, arc, stage, first) < end || !ps_lattice_open(lattice, arc, stage, end))
        return false;
    int64_t cost = ps_cut_cost(view, lattice->arc_type[arc], first, end);
    if (cost > lister->most_ns)
        return false;
    if (!lister->exactly || lister->step[stage].hit || cost == lister->most_ns)
        return true;
    int64_t row = (int64_t)lattice->arc_next[arc] * (view->layers + 1);
    return end < view->layers && lister->tables->exact[row + end];
}

// Move the step of `stage` to its next arc and end, in the order of ps_cut_compare(). False: none is left.
static bool advance(cut_lister *lister, int32_t stage)
{
    const ps_lattice *lattice = lister->tables->lattice;
    list_step *step = &lister->step[stage];
    for (; step->end <= lattice->view->layers; step->end++) {
        while (++step->arc < lattice->first_arc[step->node + 1]) {
            if (may_take(lister, stage, step->arc, step->end))
                return true;
        }
        step->arc = lattice->first_arc[step->node] - 1;
    }
    return false;
}

// All cuts in order, until the answer holds `limit`. Every prefix that is taken leads to a cut, so a cut takes at most
// O(stages * ends * arcs).
static void list_cuts(ps_arena *arena, cut_lister *lister, int32_t limit, ps_cut_answer *out)
{
    const ps_lattice *lattice = lister->tables->lattice;
    const ps_cut_view *view = lattice->view;
    int32_t stage = 0;
    lister->first_layer[0] = 0;
    lister->step[0] =
        (list_step){.node = lattice->start, .end = view->min_layers, .arc = lattice->first_arc[lattice->start] - 1};
    while (stage >= 0 && out->count < limit) {
        if (!advance(lister, stage)) {
            stage--;
            continue;
        }
        list_step *step = &lister->step[stage];
        lister->type[stage] = lattice->arc_type[step->arc];
        lister->first_layer[stage + 1] = step->end;
        if (step->end == view->layers) {
            out->cut[out->count++] = ps_cut_new(arena, stage + 1, lister->first_layer, lister->type);
            continue;
        }
        int64_t cost = ps_cut_cost(view, lister->type[stage], lister->first_layer[stage], step->end);
        int32_t next = lattice->arc_next[step->arc];
        lister->step[stage + 1] = (list_step){.node = next,
                                              .end = step->end + view->min_layers,
                                              .arc = lattice->first_arc[next] - 1,
                                              .hit = step->hit || cost == lister->most_ns};
        stage++;
    }
}

static int compare_cuts(const void *a, const void *b)
{
    return ps_cut_compare(*(ps_partition *const *)a, *(ps_partition *const *)b);
}

static ps_code list_best(ps_arena *arena, const ps_cut_request *request, ps_lattice *lattice, int64_t least_ns,
                         ps_cut_answer *out, ps_status *status)
{
    const ps_cut_view *view = request->view;
    int64_t states = (int64_t)lattice->num_nodes * (view->layers + 1);
    path_tables tables = {.lattice = lattice, .enough = request->top_k};
    tables.paths = ps_new_raw(arena, int32_t, states);
    tables.exact = ps_new_raw(arena, uint8_t, states);
    ps_span span = {least_ns, ps_cut_most_ns(view)};
    int64_t last_ns = ps_lattice_least(count_paths, &tables, span, request->control, &out->stopped);
    cut_lister lister = {.tables = &tables, .most_ns = last_ns - 1};
    lister.step = ps_new(arena, list_step, view->max_stages + 1);
    lister.first_layer = ps_new(arena, int32_t, view->max_stages + 1);
    lister.type = ps_new(arena, int32_t, view->max_stages);
    if (out->stopped != PS_OK)
        lister.most_ns = least_ns;
    if (lister.most_ns >= least_ns && ps_lattice_probe(lattice, lister.most_ns))
        list_cuts(arena, &lister, request->top_k, out);
    if (out->stopped == PS_OK) {
        count_paths(&tables, last_ns);
        lister.most_ns = last_ns;
        lister.exactly = true;
        list_cuts(arena, &lister, request->top_k, out);
    }
    for (int32_t index = 0; index < out->count; index++)
        PS_TRY(ps_cut_evaluate(view->problem, out->cut[index], status));
    qsort(out->cut, (size_t)out->count, sizeof(ps_partition *), compare_cuts);
    return PS_OK;
}

ps_code ps_cut_dp(ps_arena *arena, const ps_cut_request *request, ps_cut_answer *out, ps_status *status)
{
    const ps_cut_view *view = request->view;
    ps_lattice lattice;
    ps_lattice_all(arena, view, &lattice);
    int64_t most_ns = ps_cut_most_ns(view);
    *out = (ps_cut_answer){.cut = ps_new(arena, ps_partition *, request->top_k)};
    if (!ps_lattice_probe(&lattice, most_ns))
        return ps_cut_explain_infeasible(arena, view->problem, status);

    int64_t bound_ns = ps_cut_bound_bottleneck(arena, view);
    ps_span span = {bound_ns, most_ns};
    int64_t least_ns = ps_lattice_least(ps_lattice_probe, &lattice, span, request->control, &out->stopped);
    if (out->stopped == PS_OK)
        bound_ns = least_ns;
    out->bound_ns = ps_cut_bound_objective(arena, view, bound_ns);
    ps_code code = PS_OK;
    if (view->problem->objective == PS_OBJECTIVE_ITERATION && out->stopped == PS_OK) {
        code = ps_cut_dp_iteration(arena, request, least_ns, out, status);
    } else if (request->top_k > 1 && out->stopped == PS_OK) {
        code = list_best(arena, request, &lattice, least_ns, out, status);
    } else {
        ps_lattice_probe(&lattice, least_ns);
        out->cut[out->count++] = ps_lattice_first_cut(arena, &lattice, least_ns);
        code = ps_cut_evaluate(view->problem, out->cut[0], status);
    }
    out->nodes += lattice.states;
    out->limit_hit = out->stopped != PS_OK;
    return code;
}
