// SPDX-License-Identifier: Apache-2.0
//
// partition_lattice.c: builds the lattice, and probes it for cuts whose stages cost at most T.
//
// A probe runs from the last stage to the first. A stage from layer i to j is allowed when B(j) - A(i) <= T with
// B(j) = P[j] + c(j) and A(i) = P[i] - c(i), and j lies in a window that moves down with i. So i works exactly when the
// least B(j) over the window's j from which the rest can be cut is at most T + A(i): a sliding minimum. The price of
// cuts makes costs non-monotone in the length of a stage; this needs no monotony.
#include "partition/partition_lattice.h"

#include <assert.h>
#include <string.h>

#include "base/number.h"

int64_t ps_lattice_states(const ps_cut_view *view)
{
    int64_t nodes = view->types == 1 ? (int64_t)view->max_stages + 1 : 1;
    for (int32_t type = 0; view->types > 1 && type < view->types; type++)
        nodes = ps_multiply_saturating(nodes, (int64_t)view->count[type] + 1);
    return ps_multiply_saturating(ps_multiply_saturating(nodes, view->types), (int64_t)view->layers + 1);
}

static void allocate(ps_arena *arena, const ps_cut_view *view, ps_lattice *out, int32_t nodes, int64_t arcs)
{
    *out = (ps_lattice){.view = view,
                        .num_nodes = nodes,
                        .start = nodes - 1,
                        .stage = ps_new(arena, int32_t, nodes),
                        .first_arc = ps_new(arena, int32_t, nodes + 1),
                        .arc_type = ps_new(arena, int32_t, arcs + 1),
                        .arc_next = ps_new(arena, int32_t, arcs + 1),
                        .low = ps_new(arena, int32_t, view->max_stages + 1),
                        .high = ps_new(arena, int32_t, view->max_stages + 1),
                        .can = ps_new_raw(arena, uint8_t, (int64_t)nodes * (view->layers + 1)),
                        .queue = ps_new_raw(arena, int32_t, view->layers + 1)};
}

// Nodes are the vectors of devices left in mixed radix, the first type fastest, so taking a device lowers the number.
void ps_lattice_all(ps_arena *arena, const ps_cut_view *view, ps_lattice *out)
{
    int32_t *count = view->count;
    if (view->types == 1) {
        count = ps_new(arena, int32_t, 1);
        count[0] = view->max_stages;
    }
    int32_t nodes = 1;
    int32_t devices = 0;
    for (int32_t type = 0; type < view->types; type++) {
        nodes *= count[type] + 1;
        devices += count[type];
    }
    allocate(arena, view, out, nodes, (int64_t)nodes * view->types);
    int32_t arcs = 0;
    for (int32_t node = 0; node < nodes; node++) {
        int32_t left = 0;
        int32_t rest = node;
        for (int32_t type = 0; type < view->types; type++) {
            left += rest % (count[type] + 1);
            rest /= count[type] + 1;
        }
        int32_t stage = devices - left;
        out->stage[node] = stage <= view->max_stages ? stage : -1;
        out->first_arc[node] = arcs;
        rest = node;
        int32_t step = 1;
        for (int32_t type = 0; stage < view->max_stages && type < view->types; type++) {
            if (rest % (count[type] + 1) > 0) {
                out->arc_type[arcs] = type;
                out->arc_next[arcs++] = node - step;
            }
            rest /= count[type] + 1;
            step *= count[type] + 1;
        }
    }
    out->first_arc[nodes] = arcs;
}

void ps_lattice_fixed(ps_arena *arena, const ps_cut_view *view, const int32_t *sequence, int32_t stages,
                      ps_lattice *out)
{
    allocate(arena, view, out, stages + 1, stages);
    for (int32_t node = 0; node <= stages; node++) {
        out->stage[node] = stages - node;
        out->first_arc[node] = node > 0 ? node - 1 : 0;
        if (node > 0) {
            out->arc_type[node - 1] = sequence[stages - node];
            out->arc_next[node - 1] = node - 1;
        }
    }
    out->first_arc[stages + 1] = stages;
}

// Furthest and nearest first layers by a greedy fill that knows only each layer's cost on its fastest type and memory
// on the roomiest: a relaxation, so nothing that a cut needs is lost. Ends never move back as starts move on.
void ps_lattice_narrow(ps_lattice *lattice, int64_t most_ns)
{
    const ps_cut_view *view = lattice->view;
    const int64_t *prefix = view->least_prefix_ns;
    int32_t reach = 0;
    int32_t stages = view->max_stages;
    lattice->low[0] = lattice->high[0] = 0;
    for (int32_t stage = 0; stage < stages; stage++) {
        int32_t furthest = reach;
        for (int32_t type = 0; type < view->types; type++) {
            int32_t end = ps_cut_end(view, type, stage, reach);
            furthest = end > furthest ? end : furthest;
        }
        int32_t from = reach;
        while (reach < furthest && prefix[reach + 1] - prefix[from] <= most_ns)
            reach++;
        int32_t high = view->band_high[stage + 1];
        lattice->high[stage + 1] = reach < high ? reach : high;
        reach = lattice->high[stage + 1];
    }
    int32_t start = view->layers;
    for (int32_t stage = stages; stage > 0; stage--) {
        lattice->low[stage] = start > view->band_low[stage] ? start : view->band_low[stage];
        int32_t end = lattice->low[stage];
        start = end;
        while (start > 0 && prefix[end] - prefix[start - 1] <= most_ns) {
            bool fits = false;
            for (int32_t type = 0; !fits && type < view->types; type++)
                fits = ps_cut_end(view, type, stage - 1, start - 1) >= end;
            if (!fits)
                break;
            start--;
        }
    }
    lattice->low[0] = start;
}

static void open_stage(ps_lattice *lattice, int32_t node, int32_t arc, int64_t most_ns)
{
    const ps_cut_view *view = lattice->view;
    int32_t stage = lattice->stage[node];
    int32_t type = lattice->arc_type[arc];
    int32_t next = lattice->arc_next[arc];
    int64_t width = view->layers + 1;
    uint8_t *can = lattice->can + node * width;
    const uint8_t *can_next = lattice->can + next * width;
    const int64_t *prefix = view->prefix_ns[type];
    const int32_t *end_of = view->end[(int64_t)type * view->num_classes + view->stage_class[stage]];
    int32_t low_end = lattice->low[stage + 1];
    int32_t end = lattice->high[stage + 1];
    bool final = ps_lattice_final(lattice, next);
    // An end at the last layer is always open to a final node, even where the band of first layers excludes it.
    if (final)
        end = view->layers;
    int32_t *queue = lattice->queue;
    int32_t head = 0;
    int32_t tail = 0;
    for (int32_t first = lattice->high[stage]; first >= lattice->low[stage]; first--) {
        for (; end >= first + view->min_layers && end >= low_end; end--) {
            if (!(end == view->layers ? final : end <= lattice->high[stage + 1] && can_next[end]))
                continue;
            int64_t at_end = prefix[end] + view->cut_ns[end];
            while (tail > head && prefix[queue[tail - 1]] + view->cut_ns[queue[tail - 1]] >= at_end)
                tail--;
            queue[tail++] = end;
        }
        while (head < tail && queue[head] > end_of[first])
            head++;
        if (head < tail && view->may_cut[first] &&
            prefix[queue[head]] + view->cut_ns[queue[head]] <= most_ns + prefix[first] - view->cut_ns[first])
            can[first] = 1;
    }
    if (lattice->high[stage] >= lattice->low[stage])
        lattice->states += lattice->high[stage] - lattice->low[stage] + 1;
}

bool ps_lattice_probe(void *context, int64_t most_ns)
{
    ps_lattice *lattice = context;
    const ps_cut_view *view = lattice->view;
    ps_lattice_narrow(lattice, most_ns);
    for (int32_t node = 0; node < lattice->num_nodes; node++) {
        int32_t stage = lattice->stage[node];
        if (stage < 0 || stage >= view->max_stages || lattice->low[stage] > lattice->high[stage])
            continue;
        int64_t row = (int64_t)node * (view->layers + 1);
        memset(lattice->can + row + lattice->low[stage], 0, (size_t)(lattice->high[stage] - lattice->low[stage] + 1));
        for (int32_t arc = lattice->first_arc[node]; arc < lattice->first_arc[node + 1]; arc++)
            open_stage(lattice, node, arc, most_ns);
    }
    bool reached = lattice->low[0] <= 0 && lattice->high[0] >= 0;
    return reached && lattice->can[(int64_t)lattice->start * (view->layers + 1)] != 0;
}

static bool poll(const ps_control *control, ps_code *stopped)
{
    if (control && control->should_stop)
        *stopped = control->should_stop(control->context);
    return *stopped != PS_OK;
}

// Doubling steps from the lower bound keep T, and with it the bands, small; then bisection.
int64_t ps_lattice_least(ps_lattice_test test, void *context, ps_span span, const ps_control *control, ps_code *stopped)
{
    int64_t low_ns = span.low_ns;
    int64_t high_ns = span.high_ns;
    int64_t step = low_ns / 256 + 1;
    int64_t low = low_ns; // nothing below it succeeds
    int64_t high = high_ns;
    for (int64_t at = low; at < high_ns;) {
        if (poll(control, stopped))
            return high;
        if (test(context, at)) {
            high = at;
            break;
        }
        low = at + 1;
        at = step < high_ns - low ? low + step : high_ns;
        step = step < high_ns / 2 ? 2 * step : high_ns;
    }
    while (low < high && !poll(control, stopped)) {
        int64_t middle = low + (high - low) / 2;
        if (test(context, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

ps_partition *ps_lattice_first_cut(ps_arena *arena, const ps_lattice *lattice, int64_t most_ns)
{
    const ps_cut_view *view = lattice->view;
    int32_t *first_layer = ps_new(arena, int32_t, view->max_stages + 1);
    int32_t *type = ps_new(arena, int32_t, view->max_stages);
    int32_t node = lattice->start;
    int32_t stage = 0;
    int32_t first = 0;
    while (first < view->layers) {
        int32_t taken = -1;
        int32_t end = first + view->min_layers;
        if (end < lattice->low[stage + 1])
            end = lattice->low[stage + 1];
        for (; taken < 0 && end <= view->layers; end++) {
            for (int32_t arc = lattice->first_arc[node]; taken < 0 && arc < lattice->first_arc[node + 1]; arc++) {
                if (ps_lattice_open(lattice, arc, stage, end) &&
                    ps_cut_end(view, lattice->arc_type[arc], stage, first) >= end &&
                    ps_cut_cost(view, lattice->arc_type[arc], first, end) <= most_ns)
                    taken = arc;
            }
        }
        assert(taken >= 0);
        type[stage] = lattice->arc_type[taken];
        node = lattice->arc_next[taken];
        first = first_layer[++stage] = end - 1;
    }
    return ps_cut_new(arena, stage, first_layer, type);
}
