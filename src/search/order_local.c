// SPDX-License-Identifier: Apache-2.0
//
// order_local.c: local search over the orders of a device's ops.
//
// One step takes an op, most often of a longest path, and moves it some places earlier or later on its device. Only a
// change there can shorten the longest path (as in job-shop search; van Laarhoven, Aarts, Lenstra, 1992). A step is
// accepted unless the value comes to lie above the best so far by more than a level (record-to-record travel; Dueck,
// 1993). Most good steps change nothing at first: the level is low, so that the search wanders over orders of about the
// same value until a way down opens. Each round starts from the best order so far, and its level falls to 0.
#include "search/order_local.h"

#include <string.h>

#include "base/rng.h"
#include "search/order_graph.h"
#include "search/order_move.h"

enum { ROUNDS = 4, POLL_STEPS = 256, LEVEL_PARTS = 20000 };

typedef struct local {
    const ps_order_problem *problem;
    ps_order_desk *desk;
    ps_order *order;
    ps_order_graph graph;
    int64_t *held; // [ops] where the graph does not serve
    bool quick;    // it serves
    ps_rng rng;
    int64_t record_ns; // the best value, of the desk's candidate
} local;

static int32_t draw(local *l, int64_t count)
{
    return (int32_t)ps_rng_range(&l->rng, 0, count - 1);
}

// Without tails all ops are alike.
static bool is_critical(const local *l, int32_t position)
{
    return !l->quick || l->desk->trial.start_ns[position] + l->graph.tail_ns[position] == l->order->value_ns;
}

// Where the graph does not serve: time the whole anew.
static bool move_slowly(local *l, int32_t from, int32_t to, int64_t limit_ns)
{
    int32_t at = ps_order_shift(l->order->op, from, to);
    int32_t low = at < from ? at : from;
    int32_t high = at < from ? from : at;
    l->desk->trial.visits++;
    if (at == from)
        return false;
    bool moved = ps_order_window_fits(l->problem, l->order, l->held, low, high) &&
                 ps_order_time(l->problem, l->order, &l->desk->trial, limit_ns);
    if (!moved)
        ps_order_shift(l->order->op, at, from);
    ps_order_settle(l->problem, l->order, l->desk->trial.position, l->held, low, high);
    return moved;
}

// One step; true when it was accepted.
static bool step(local *l, int64_t level_ns)
{
    enum { DRAWS = 4 };
    const ps_order_problem *problem = l->problem;
    int32_t from = draw(l, problem->first[problem->num_devices]);
    bool anywhere = draw(l, 8) == 0;
    for (int32_t i = 1; i < DRAWS && !anywhere && !is_critical(l, from); i++)
        from = draw(l, problem->first[problem->num_devices]);
    int32_t device = problem->stage[l->order->op[from].stage].device;
    int32_t distance = 1 + draw(l, draw(l, 4) ? 3 : 12);
    int32_t to = draw(l, 2) ? from + distance : from - distance;
    to = to < problem->first[device] ? problem->first[device] : to;
    to = to >= problem->first[device + 1] ? problem->first[device + 1] - 1 : to;
    if (!l->quick)
        return move_slowly(l, from, to, l->record_ns + level_ns);
    int64_t before = l->graph.visits;
    bool moved = ps_order_graph_move(&l->graph, from, to, l->record_ns + level_ns);
    l->desk->trial.visits += l->graph.visits - before;
    return moved;
}

static void copy_ops(const local *l, const ps_order *from, ps_order *to)
{
    memcpy(to->op, from->op, (size_t)l->problem->first[l->problem->num_devices] * sizeof *to->op);
}

static void keep_record(local *l)
{
    if (l->order->value_ns >= l->record_ns)
        return;
    l->record_ns = l->order->value_ns;
    copy_ops(l, l->order, &l->desk->candidate);
}

// Steps until `visits` are used up. The level falls with what is left of them.
static ps_code search_round(local *l, int64_t visits, int64_t level_ns)
{
    int64_t begun = l->desk->trial.visits;
    if (l->quick)
        ps_order_graph_set(&l->graph);
    else
        ps_order_hold(l->problem, l->order, l->held);
    for (int64_t count = 0; l->record_ns > l->desk->bound_ns; count++) {
        int64_t used = l->desk->trial.visits - begun;
        if (used >= visits)
            break;
        if (step(l, (int64_t)((double)level_ns * (1 - (double)used / (double)visits))))
            keep_record(l);
        if (count % POLL_STEPS == 0)
            PS_TRY(ps_order_poll(l->desk));
    }
    return PS_OK;
}

ps_code ps_order_local(ps_arena *arena, ps_order_desk *desk, int64_t visits, ps_order *order)
{
    const ps_order_problem *problem = desk->problem;
    local l = {.problem = problem, .desk = desk, .order = order, .rng = {1}, .record_ns = INT64_MAX};
    ps_code code = PS_OK;
    l.quick = ps_order_graph_serves(problem);
    if (l.quick)
        ps_order_graph_new(arena, problem, order, &desk->trial, &l.graph);
    else
        l.held = ps_new_raw(arena, int64_t, problem->first[problem->num_devices]);
    ps_order_time(problem, order, &desk->trial, INT64_MAX);
    keep_record(&l);
    for (int32_t round = 0; round < ROUNDS && code == PS_OK && l.record_ns > desk->bound_ns; round++) {
        int64_t gap = l.record_ns - desk->bound_ns;
        int64_t level = l.record_ns / LEVEL_PARTS;
        code = search_round(&l, visits / ROUNDS, level < gap ? level : gap);
        copy_ops(&l, &desk->candidate, order);
        ps_order_time(problem, order, &desk->trial, INT64_MAX);
    }
    return code;
}
