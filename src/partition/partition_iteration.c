// SPDX-License-Identifier: Apache-2.0
//
// partition_iteration.c: exact cuts with the least sum of stages + (m - 1) * largest stage, and the k best of them.
//
// L(T) is the list of the k cuts of least sum among those whose stages cost at most T; a dynamic program over states
// keeps k entries each. A cut that is not in L(T) has at least the sum S of the last cut in it. So after L(T) only cuts
// whose largest stage is below that of every listed cut, and small enough for S + (m - 1) * largest to beat the k-th
// best objective found, can still matter: T drops to that and the step repeats, down to the least possible largest
// stage. Sums are additive, so the order of entries (sum, then first layers and types) is that of ps_cut_compare()
// among cuts of one objective, and the k best are exact to the last tie. A step takes O(states * window * k).
#include "partition/partition_bound.h"
#include "partition/partition_engine.h"
#include "partition/partition_lattice.h"

#include <string.h>

typedef struct list_entry {
    int64_t sum_ns;
    int32_t end;
    int32_t arc;
    int32_t rank; // in the list of the state that the arc leads to
} list_entry;

typedef struct sum_lists {
    ps_lattice *lattice;
    int32_t top_k;
    int32_t *low;      // [max_stages + 1] first layers that rows are kept for
    int64_t *row;      // [nodes] state of the node's first layer `low`
    int32_t *count;    // [states]
    list_entry *entry; // [states][top_k]
} sum_lists;

// Rows for the bands of `most_ns` and of everything smaller.
static void allocate(ps_arena *arena, ps_lattice *lattice, int32_t top_k, int64_t most_ns, sum_lists *out)
{
    const ps_cut_view *view = lattice->view;
    *out = (sum_lists){.lattice = lattice, .top_k = top_k};
    out->low = ps_new(arena, int32_t, view->max_stages + 1);
    out->row = ps_new(arena, int64_t, lattice->num_nodes);
    ps_lattice_narrow(lattice, most_ns);
    memcpy(out->low, lattice->low, (size_t)(view->max_stages + 1) * sizeof *out->low);
    int64_t states = 0;
    for (int32_t node = 0; node < lattice->num_nodes; node++) {
        int32_t stage = lattice->stage[node];
        out->row[node] = states;
        if (stage >= 0 && stage < view->max_stages && lattice->high[stage] >= lattice->low[stage])
            states += lattice->high[stage] - lattice->low[stage] + 1;
    }
    out->count = ps_new(arena, int32_t, states);
    out->entry = ps_new_raw(arena, list_entry, states * top_k);
}

static int64_t state_of(const sum_lists *lists, int32_t node, int32_t first)
{
    return lists->row[node] + first - lists->low[lists->lattice->stage[node]];
}

// Equal sums keep their order of arrival. False when the list is full of entries at least as good.
static bool add_entry(const sum_lists *lists, int64_t state, list_entry entry)
{
    list_entry *list = lists->entry + state * lists->top_k;
    int32_t count = lists->count[state];
    if (count == lists->top_k && list[count - 1].sum_ns <= entry.sum_ns)
        return false;
    int32_t at = count < lists->top_k ? lists->count[state]++ : count - 1;
    for (; at > 0 && list[at - 1].sum_ns > entry.sum_ns; at--)
        list[at] = list[at - 1];
    list[at] = entry;
    return true;
}

static void extend(const sum_lists *lists, int64_t state, int32_t arc, int32_t end, int64_t cost)
{
    const ps_lattice *lattice = lists->lattice;
    int32_t next = lattice->arc_next[arc];
    if (end == lattice->view->layers) {
        if (ps_lattice_final(lattice, next))
            add_entry(lists, state, (list_entry){cost, end, arc, 0});
        return;
    }
    int32_t stage = lattice->stage[next];
    if (stage >= lattice->view->max_stages || end < lattice->low[stage] || end > lattice->high[stage])
        return;
    int64_t after = state_of(lists, next, end);
    for (int32_t rank = 0; rank < lists->count[after]; rank++) {
        int64_t sum = cost + lists->entry[after * lists->top_k + rank].sum_ns;
        if (!add_entry(lists, state, (list_entry){sum, end, arc, rank}))
            break;
    }
}

static void fill_state(const sum_lists *lists, int32_t node, int32_t first, int64_t most_ns)
{
    const ps_lattice *lattice = lists->lattice;
    const ps_cut_view *view = lattice->view;
    int64_t state = state_of(lists, node, first);
    int32_t stage = lattice->stage[node];
    int32_t last = 0;
    lists->count[state] = 0;
    if (!view->may_cut[first])
        return;
    for (int32_t arc = lattice->first_arc[node]; arc < lattice->first_arc[node + 1]; arc++) {
        int32_t end = ps_cut_end(view, lattice->arc_type[arc], stage, first);
        last = end > last ? end : last;
    }
    for (int32_t end = first + view->min_layers; end <= last; end++) {
        // Costs without cut prices only grow with the end.
        if (view->least_prefix_ns[end] - view->least_prefix_ns[first] > most_ns)
            break;
        if (!view->may_cut[end])
            continue;
        for (int32_t arc = lattice->first_arc[node]; arc < lattice->first_arc[node + 1]; arc++) {
            int32_t type = lattice->arc_type[arc];
            int64_t cost = ps_cut_cost(view, type, first, end);
            if (cost <= most_ns && ps_cut_end(view, type, stage, first) >= end)
                extend(lists, state, arc, end, cost);
        }
    }
}

static void fill(const sum_lists *lists, int64_t most_ns)
{
    ps_lattice *lattice = lists->lattice;
    ps_lattice_narrow(lattice, most_ns);
    for (int32_t node = 0; node < lattice->num_nodes; node++) {
        int32_t stage = lattice->stage[node];
        if (stage < 0 || stage >= lattice->view->max_stages)
            continue;
        for (int32_t first = lattice->low[stage]; first <= lattice->high[stage]; first++) {
            fill_state(lists, node, first, most_ns);
            lattice->states++;
        }
    }
}

static ps_partition *read_cut(ps_arena *arena, const sum_lists *lists, int32_t rank)
{
    const ps_lattice *lattice = lists->lattice;
    int32_t *first_layer = ps_new(arena, int32_t, lattice->view->max_stages + 1);
    int32_t *type = ps_new(arena, int32_t, lattice->view->max_stages);
    int32_t node = lattice->start;
    int32_t stage = 0;
    while (first_layer[stage] < lattice->view->layers) {
        int64_t state = state_of(lists, node, first_layer[stage]);
        list_entry entry = lists->entry[state * lists->top_k + rank];
        type[stage] = lattice->arc_type[entry.arc];
        first_layer[++stage] = entry.end;
        node = lattice->arc_next[entry.arc];
        rank = entry.rank;
    }
    return ps_cut_new(arena, stage, first_layer, type);
}

// Insert a cut into the answer, best first, at most top_k; cuts already there are left out.
static void keep(ps_cut_answer *out, int32_t top_k, ps_partition *cut)
{
    int32_t at = 0;
    while (at < out->count && ps_cut_compare(out->cut[at], cut) < 0)
        at++;
    if (at == top_k || (at < out->count && ps_cut_compare(out->cut[at], cut) == 0))
        return;
    int32_t last = out->count < top_k ? out->count++ : top_k - 1;
    for (; last > at; last--)
        out->cut[last] = out->cut[last - 1];
    out->cut[at] = cut;
}

typedef struct list_summary {
    int32_t count;
    int64_t last_sum_ns;
    int64_t largest_ns; // largest stage of any listed cut
} list_summary;

static ps_code keep_list(ps_arena *arena, const sum_lists *lists, ps_cut_answer *out, list_summary *summary,
                         ps_status *status)
{
    const ps_lattice *lattice = lists->lattice;
    int64_t state = state_of(lists, lattice->start, 0);
    *summary = (list_summary){.count = lists->count[state]};
    for (int32_t rank = 0; rank < summary->count; rank++) {
        ps_partition *cut = read_cut(arena, lists, rank);
        PS_TRY(ps_cut_evaluate(lattice->view->problem, cut, status));
        summary->last_sum_ns = cut->sum_ns;
        summary->largest_ns = cut->bottleneck_ns > summary->largest_ns ? cut->bottleneck_ns : summary->largest_ns;
        keep(out, lists->top_k, cut);
    }
    return PS_OK;
}

// The greatest largest stage with which a cut of at least sum_ns can still enter the answer. Negative: none.
static int64_t still_useful(const ps_cut_request *request, const ps_cut_answer *out, int64_t sum_ns)
{
    int64_t waits = request->view->problem->num_microbatches - 1;
    if (out->count < request->top_k)
        return ps_cut_most_ns(request->view);
    int64_t spare = out->cut[out->count - 1]->objective_ns - sum_ns;
    if (spare < 0)
        return -1;
    return waits > 0 ? spare / waits : ps_cut_most_ns(request->view);
}

ps_code ps_cut_dp_iteration(ps_arena *arena, const ps_cut_request *request, int64_t least_ns, ps_cut_answer *out,
                            ps_status *status)
{
    const ps_cut_view *view = request->view;
    const ps_control *control = request->control;
    ps_lattice lattice;
    ps_lattice_all(arena, view, &lattice);
    sum_lists lists;
    list_summary summary;
    allocate(arena, &lattice, request->top_k, least_ns, &lists);
    fill(&lists, least_ns);
    PS_TRY(keep_list(arena, &lists, out, &summary, status));

    int64_t most_ns = still_useful(request, out, ps_cut_bound_sum(arena, view));
    if (most_ns > ps_cut_most_ns(view))
        most_ns = ps_cut_most_ns(view);
    if (most_ns > least_ns)
        allocate(arena, &lattice, request->top_k, most_ns, &lists);
    while (most_ns > least_ns) {
        if (control && control->should_stop)
            out->stopped = control->should_stop(control->context);
        if (out->stopped != PS_OK)
            return PS_OK;
        fill(&lists, most_ns);
        PS_TRY(keep_list(arena, &lists, out, &summary, status));
        if (summary.count < request->top_k || view->problem->num_microbatches == 1)
            break; // every cut was listed, or the sum alone decides
        int64_t next_ns = still_useful(request, out, summary.last_sum_ns);
        most_ns = next_ns < summary.largest_ns ? next_ns : summary.largest_ns - 1;
    }
    out->nodes += lattice.states;
    out->bound_ns = out->cut[0]->objective_ns;
    return PS_OK;
}
