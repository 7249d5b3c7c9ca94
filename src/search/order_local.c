// SPDX-License-Identifier: Apache-2.0
//
// order_local.c: local search over the orders of a device's ops.
//
// One step takes an op, most often of the critical path, and moves it some places earlier or later on its device. Only
// a change there can shorten the longest path (as in job-shop search; van Laarhoven, Aarts, Lenstra, 1992). A step that
// lengthens it by less than a threshold is accepted; the threshold is drawn below a level that falls to 0 over a round
// (threshold accepting; Dueck, Scheuer, 1990), and each round starts from the best order so far.
#include "search/order_local.h"

#include "base/rng.h"

enum { ROUNDS = 4, POLL_STEPS = 256 };

typedef struct local {
    const ps_order_problem *problem;
    ps_order *order;
    ps_order_trial *trial;
    ps_rng rng;
    int32_t *critical; // positions of the ops of one longest path
    int32_t num_critical;
} local;

static int64_t end_of(const local *l, int32_t position)
{
    ps_order_op op = l->order->op[position];
    return l->order->start_ns[position] + l->problem->stage[op.stage].duration_ns[op.step];
}

static int32_t device_of(const local *l, int32_t position)
{
    return l->problem->stage[l->order->op[position].stage].device;
}

// The last op of a device whose time is the value.
static int32_t last_critical(const local *l)
{
    const ps_order_problem *problem = l->problem;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int32_t first = problem->first[d];
        int32_t end = problem->first[d + 1];
        if (first == end)
            continue;
        int64_t begin = problem->span ? l->order->start_ns[first] : 0;
        if (end_of(l, end - 1) - begin == l->order->value_ns)
            return end - 1;
    }
    return problem->first[problem->num_devices] - 1;
}

// The op whose end an op waited for: the one before it on the device, or the one that sent its input. -1: none.
static int32_t waited_for(const local *l, int32_t position)
{
    const ps_order_problem *problem = l->problem;
    ps_order_op op = l->order->op[position];
    int32_t first = problem->first[device_of(l, position)];
    if (position > first && end_of(l, position - 1) == l->order->start_ns[position])
        return position - 1;
    int32_t sender = op.step == PS_STEP_FORWARD ? op.stage - 1 : op.stage + 1;
    if (op.step == PS_STEP_WEIGHT || sender < 0 || sender >= problem->num_stages)
        return -1;
    return l->order->position[((int64_t)PS_STEPS * sender + op.step) * problem->num_microbatches + op.microbatch];
}

static void find_critical(local *l)
{
    l->num_critical = 0;
    for (int32_t at = last_critical(l); at >= 0; at = waited_for(l, at))
        l->critical[l->num_critical++] = at;
}

// An op never passes another of its own kind, which would be the same order, nor one that it depends on or that depends
// on it.
static bool may_pass(ps_order_op earlier, ps_order_op later)
{
    if (earlier.stage != later.stage)
        return true;
    if (earlier.step == later.step)
        return false;
    return earlier.microbatch != later.microbatch || later.step != earlier.step + 1;
}

// Move the op at `from` towards `to` as far as it may go; returns where it ends.
static int32_t shift_op(ps_order_op *op, int32_t from, int32_t to)
{
    ps_order_op moved = op[from];
    int32_t at = from;
    while (at < to && may_pass(moved, op[at + 1])) {
        op[at] = op[at + 1];
        at++;
    }
    while (at > to && may_pass(op[at - 1], moved)) {
        op[at] = op[at - 1];
        at--;
    }
    op[at] = moved;
    return at;
}

static bool window_fits(const local *l, int32_t low, int32_t high)
{
    int64_t room = l->problem->room[device_of(l, low)];
    int64_t held = l->order->held[low];
    for (int32_t i = low; i <= high; i++) {
        ps_order_op op = l->order->op[i];
        const ps_order_stage *stage = &l->problem->stage[op.stage];
        if (ps_order_held_within(stage, op.step, held) > room)
            return false;
        held = ps_order_held_after(stage, op.step, held);
    }
    return true;
}

static int32_t draw(local *l, int64_t count)
{
    return (int32_t)ps_rng_range(&l->rng, 0, count - 1);
}

// One step; true when it was accepted.
static bool step(local *l, int64_t slack_ns)
{
    const ps_order_problem *problem = l->problem;
    bool anywhere = draw(l, 8) == 0;
    int32_t from = anywhere ? draw(l, problem->first[problem->num_devices]) : l->critical[draw(l, l->num_critical)];
    int32_t device = device_of(l, from);
    int32_t distance = 1 + draw(l, draw(l, 4) ? 3 : 12);
    int32_t to = draw(l, 2) ? from + distance : from - distance;
    to = to < problem->first[device] ? problem->first[device] : to;
    to = to >= problem->first[device + 1] ? problem->first[device + 1] - 1 : to;
    int32_t at = shift_op(l->order->op, from, to);
    l->trial->visits++;
    if (at == from)
        return false;
    int32_t low = at < from ? at : from;
    int32_t high = at < from ? from : at;
    int64_t limit = l->order->value_ns + (slack_ns > 0 ? ps_rng_range(&l->rng, 0, slack_ns) : 0);
    if (window_fits(l, low, high) && ps_order_retime(problem, l->order, l->trial, low, limit)) {
        ps_order_accept(problem, l->order, l->trial);
        ps_order_settle(problem, l->order, low, high + 1);
        return true;
    }
    shift_op(l->order->op, at, from);
    return false;
}

static ps_code poll(const ps_control *control)
{
    return control && control->should_stop ? control->should_stop(control->context) : PS_OK;
}

// Steps until `visits` are used up. The level of the threshold falls with what is left of them.
static ps_code search_round(local *l, const ps_local_options *options, int64_t visits, int64_t level_ns, ps_order *best)
{
    int64_t begun = l->trial->visits;
    find_critical(l);
    for (int64_t count = 0; l->trial->visits - begun < visits && best->value_ns > options->bound_ns; count++) {
        double left = 1 - (double)(l->trial->visits - begun) / (double)visits;
        if (step(l, (int64_t)((double)level_ns * left))) {
            find_critical(l);
            if (l->order->value_ns < best->value_ns)
                ps_order_copy(l->problem, l->order, best);
        }
        if (count % POLL_STEPS == 0) {
            ps_code code = poll(options->control);
            if (code != PS_OK)
                return code;
        }
    }
    return PS_OK;
}

ps_code ps_order_local(ps_arena *arena, const ps_order_problem *problem, const ps_local_options *options,
                       ps_order *order, ps_order_trial *trial)
{
    local l = {.problem = problem, .order = order, .trial = trial, .rng = {1}};
    ps_order best;
    ps_order_new(arena, problem, &best);
    ps_order_copy(problem, order, &best);
    l.critical = ps_new_raw(arena, int32_t, problem->first[problem->num_devices]);
    ps_code code = PS_OK;
    for (int32_t round = 0; round < ROUNDS && code == PS_OK && best.value_ns > options->bound_ns; round++) {
        int64_t gap = best.value_ns - options->bound_ns;
        int64_t level = best.value_ns / 500 < gap ? best.value_ns / 500 : gap;
        code = search_round(&l, options, options->visits / ROUNDS, level, &best);
        ps_order_copy(problem, &best, order);
    }
    return code;
}
