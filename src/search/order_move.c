// SPDX-License-Identifier: Apache-2.0
//
// order_move.c: ops moved about on their device.
#include "search/order_move.h"

#include <string.h>

bool ps_order_may_pass(ps_order_op earlier, ps_order_op later)
{
    if (earlier.stage != later.stage)
        return true;
    if (earlier.step == later.step)
        return false;
    return earlier.microbatch != later.microbatch || later.step != earlier.step + 1;
}

int32_t ps_order_shift(ps_order_op *op, int32_t from, int32_t to)
{
    ps_order_op moved = op[from];
    int32_t at = from;
    while (at < to && ps_order_may_pass(moved, op[at + 1])) {
        op[at] = op[at + 1];
        at++;
    }
    while (at > to && ps_order_may_pass(op[at - 1], moved)) {
        op[at] = op[at - 1];
        at--;
    }
    op[at] = moved;
    return at;
}

bool ps_order_window_fits(const ps_order_problem *problem, const ps_order *order, const int64_t *held, int32_t low,
                          int32_t high)
{
    int64_t room = problem->room[problem->stage[order->op[low].stage].device];
    int64_t now = held[low];
    for (int32_t i = low; i <= high; i++) {
        ps_order_op op = order->op[i];
        const ps_order_stage *stage = &problem->stage[op.stage];
        if (ps_order_held_within(stage, op.step, now) > room)
            return false;
        now = ps_order_held_after(stage, op.step, now);
    }
    return true;
}

bool ps_order_may_jump(const ps_order_problem *problem, const ps_order *order, const int64_t *held, int32_t from,
                       int32_t to)
{
    ps_order_op moved = order->op[from];
    const ps_order_stage *stage = &problem->stage[moved.stage];
    int64_t room = problem->room[stage->device];
    int64_t now = held[to];
    if (ps_order_held_within(stage, moved.step, now) > room)
        return false;
    now = ps_order_held_after(stage, moved.step, now);
    for (int32_t i = to; i < from; i++) {
        ps_order_op op = order->op[i];
        if (!ps_order_may_pass(op, moved) || ps_order_held_within(&problem->stage[op.stage], op.step, now) > room)
            return false;
        now = ps_order_held_after(&problem->stage[op.stage], op.step, now);
    }
    return true;
}

void ps_order_settle(const ps_order_problem *problem, const ps_order *order, int32_t *position, int64_t *held,
                     int32_t low, int32_t high)
{
    int64_t now = held[low];
    for (int32_t i = low; i <= high; i++) {
        ps_order_op op = order->op[i];
        held[i] = now;
        position[((int64_t)PS_STEPS * op.stage + op.step) * problem->num_microbatches + op.microbatch] = i;
        now = ps_order_held_after(&problem->stage[op.stage], op.step, now);
    }
}

void ps_order_jump(ps_order *order, int64_t *start_ns, int32_t from, int32_t to, int64_t at_ns)
{
    ps_order_op moved = order->op[from];
    memmove(order->op + to + 1, order->op + to, (size_t)(from - to) * sizeof *order->op);
    memmove(start_ns + to + 1, start_ns + to, (size_t)(from - to) * sizeof *start_ns);
    order->op[to] = moved;
    start_ns[to] = at_ns;
}
