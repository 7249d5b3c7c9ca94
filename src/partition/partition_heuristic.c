// SPDX-License-Identifier: Apache-2.0
//
// partition_heuristic.c: greedy fill under a target, then local moves.
//
// For a target T every stage takes as many layers as it may; the least T that works is bisected, once for each of a few
// ways to choose device types. Then the largest stage is relieved: one of its ends moves by a layer (or to the next
// place where a cut is allowed), or it trades device types with another stage, as long as the objective falls.
// O(stages * log layers * log range) and O(stages) a move.
#include "partition/partition_bound.h"
#include "partition/partition_engine.h"
#include "partition/partition_lattice.h"

#include <string.h>

// A move costs O(stages), a round of trades O(stages^2).
enum { MAX_MOVES = 20000, MOVE_WORK = 20000000, MAX_TRADES = 1000 };

typedef enum type_choice { CHOOSE_FURTHEST, CHOOSE_NEAREST, CHOOSE_FIRST, CHOOSE_LAST, TYPE_CHOICES } type_choice;

typedef struct greedy_fill {
    const ps_cut_view *view;
    type_choice choice;
    int32_t *left; // [types] devices
    int32_t stages;
    int32_t *first_layer; // [max_stages + 1]
    int32_t *type;        // [max_stages]
} greedy_fill;

// Furthest legal end of a stage that costs at most T; `first` when there is none.
static int32_t furthest_end(const ps_cut_view *view, int32_t type, int32_t stage, int32_t first, int64_t most_ns)
{
    const int64_t *prefix = view->prefix_ns[type];
    int32_t low = first;
    int32_t high = ps_cut_end(view, type, stage, first);
    bool may_end = view->stages == 0 || stage == view->stages - 1;
    int32_t band = may_end ? view->layers : view->band_high[stage + 1];
    high = high < band ? high : band;
    while (low < high) {
        int32_t middle = low + (high - low + 1) / 2;
        if (prefix[middle] - prefix[first] <= most_ns)
            low = middle;
        else
            high = middle - 1;
    }
    for (; low >= first + view->min_layers; low--) {
        if (view->may_cut[low] && ps_cut_cost(view, type, first, low) <= most_ns)
            return view->stages > 0 && low < view->band_low[stage + 1] ? first : low;
    }
    return first;
}

static bool fill_greedily(void *context, int64_t most_ns)
{
    greedy_fill *fill = context;
    const ps_cut_view *view = fill->view;
    memcpy(fill->left, view->count, (size_t)view->types * sizeof *fill->left);
    fill->stages = 0;
    fill->first_layer[0] = 0;
    for (int32_t first = 0; first < view->layers;) {
        if (fill->stages == view->max_stages)
            return false;
        int32_t best = -1;
        int32_t best_end = first;
        for (int32_t type = 0; type < view->types; type++) {
            int32_t end = fill->left[type] > 0 ? furthest_end(view, type, fill->stages, first, most_ns) : first;
            bool better = best < 0 || fill->choice == CHOOSE_LAST ||
                          (fill->choice == CHOOSE_FURTHEST && end > best_end) ||
                          (fill->choice == CHOOSE_NEAREST && end < best_end);
            if (end > first && better) {
                best = type;
                best_end = end;
            }
        }
        if (best < 0)
            return false;
        fill->left[best]--;
        fill->type[fill->stages++] = best;
        fill->first_layer[fill->stages] = first = best_end;
    }
    return view->stages == 0 || fill->stages == view->stages;
}

// Whether a stage obeys every rule of its own.
static bool is_legal(const ps_cut_view *view, const ps_partition *cut, int32_t stage)
{
    int32_t first = cut->first_layer[stage];
    int32_t end = cut->first_layer[stage + 1];
    if (end - first < view->min_layers || ps_cut_end(view, cut->type[stage], stage, first) < end)
        return false;
    if (!view->may_cut[first] || !view->may_cut[end])
        return false;
    return view->stages == 0 || (first >= view->band_low[stage] && first <= view->band_high[stage]);
}

static int64_t measure(const ps_cut_view *view, ps_partition *cut)
{
    cut->sum_ns = 0;
    cut->bottleneck_ns = 0;
    for (int32_t stage = 0; stage < cut->num_stages; stage++) {
        int64_t cost = ps_cut_cost(view, cut->type[stage], cut->first_layer[stage], cut->first_layer[stage + 1]);
        cut->stage_ns[stage] = cost;
        cut->sum_ns += cost;
        cut->bottleneck_ns = cost > cut->bottleneck_ns ? cost : cut->bottleneck_ns;
    }
    cut->objective_ns = cut->bottleneck_ns;
    if (view->problem->objective == PS_OBJECTIVE_ITERATION)
        cut->objective_ns = cut->sum_ns + (int64_t)(view->problem->num_microbatches - 1) * cut->bottleneck_ns;
    return cut->objective_ns;
}

// Move the first layer of `stage` to the next place in `direction`; keeps it when the objective falls.
static bool shift(const ps_cut_view *view, ps_partition *cut, int32_t stage, int32_t direction)
{
    if (stage <= 0 || stage >= cut->num_stages)
        return false;
    int64_t before = cut->objective_ns;
    int32_t old = cut->first_layer[stage];
    int32_t moved = old + direction;
    while (moved > 0 && moved < view->layers && !view->may_cut[moved])
        moved += direction;
    if (moved <= cut->first_layer[stage - 1] || moved >= cut->first_layer[stage + 1])
        return false;
    cut->first_layer[stage] = moved;
    if (is_legal(view, cut, stage - 1) && is_legal(view, cut, stage) && measure(view, cut) < before)
        return true;
    cut->first_layer[stage] = old;
    measure(view, cut);
    return false;
}

static bool trade(const ps_cut_view *view, ps_partition *cut, int32_t stage, int32_t other)
{
    int64_t before = cut->objective_ns;
    int32_t type = cut->type[stage];
    if (type == cut->type[other])
        return false;
    cut->type[stage] = cut->type[other];
    cut->type[other] = type;
    if (is_legal(view, cut, stage) && is_legal(view, cut, other) && measure(view, cut) < before)
        return true;
    cut->type[other] = cut->type[stage];
    cut->type[stage] = type;
    measure(view, cut);
    return false;
}

static bool improve_once(const ps_cut_view *view, ps_partition *cut)
{
    int32_t worst = 0;
    for (int32_t stage = 1; stage < cut->num_stages; stage++) {
        if (cut->stage_ns[stage] > cut->stage_ns[worst])
            worst = stage;
    }
    if (shift(view, cut, worst, 1) || shift(view, cut, worst + 1, -1))
        return true;
    for (int32_t other = 0; view->types > 1 && other < cut->num_stages && other < MAX_TRADES; other++) {
        if (trade(view, cut, worst, other))
            return true;
    }
    return false;
}

// Without any greedy cut: the first cut that memory and the other rules allow, found exactly.
static ps_code any_cut(ps_arena *arena, const ps_cut_view *view, ps_partition **out, ps_status *status)
{
    if (ps_lattice_states(view) > PS_LATTICE_MAX_STATES) {
        ps_fail(status, PS_ILLEGAL, "engine-cannot",
                "the heuristic found no cut, which does not prove that none exists");
        return ps_fail_hint(status, "use fewer device types, or the milp engine");
    }
    ps_lattice lattice;
    ps_lattice_all(arena, view, &lattice);
    if (!ps_lattice_probe(&lattice, ps_cut_most_ns(view)))
        return ps_cut_explain_infeasible(arena, view->problem, status);
    *out = ps_lattice_first_cut(arena, &lattice, ps_cut_most_ns(view));
    return PS_OK;
}

ps_code ps_cut_heuristic(ps_arena *arena, const ps_cut_request *request, ps_cut_answer *out, ps_status *status)
{
    const ps_cut_view *view = request->view;
    greedy_fill fill = {.view = view,
                        .left = ps_new(arena, int32_t, view->types),
                        .first_layer = ps_new(arena, int32_t, view->max_stages + 1),
                        .type = ps_new(arena, int32_t, view->max_stages)};
    int64_t least_ns = ps_cut_bound_bottleneck(arena, view);
    ps_span span = {least_ns, ps_cut_most_ns(view)};
    ps_partition *best = NULL;
    *out = (ps_cut_answer){.bound_ns = ps_cut_bound_objective(arena, view, least_ns)};
    for (int32_t choice = 0; choice < (view->types > 1 ? TYPE_CHOICES : 1); choice++) {
        fill.choice = (type_choice)choice;
        int64_t target = ps_lattice_least(fill_greedily, &fill, span, request->control, &out->stopped);
        if (!fill_greedily(&fill, target))
            continue;
        ps_partition *cut = ps_cut_new(arena, fill.stages, fill.first_layer, fill.type);
        measure(view, cut);
        int32_t moves = MOVE_WORK / cut->num_stages < MAX_MOVES ? MOVE_WORK / cut->num_stages : MAX_MOVES;
        for (int32_t move = 0; move < moves && improve_once(view, cut); move++)
            out->nodes++;
        if (!best || ps_cut_compare(cut, best) < 0)
            best = cut;
    }
    if (!best)
        PS_TRY(any_cut(arena, view, &best, status));
    PS_TRY(ps_cut_evaluate(view->problem, best, status));
    out->cut = ps_new(arena, ps_partition *, 1);
    out->cut[out->count++] = best;
    out->limit_hit = out->stopped != PS_OK;
    return PS_OK;
}
