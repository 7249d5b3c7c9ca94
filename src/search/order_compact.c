// SPDX-License-Identifier: Apache-2.0
//
// order_compact.c: idle time filled with ops from later on, at nobody's cost.
//
// An op whose input is there moves to the front of an idle interval that is long enough for the whole of it, so that no
// other op starts later. A pattern's warm-up and cool-down, in which the pattern keeps its pace without need, become
// short by that (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024, squeeze theirs so).
#include "search/order_compact.h"

#include "search/order_move.h"

// How far ahead an op may be, and how often all devices are gone through.
enum { AHEAD = 64, PASSES = 4 };

static int64_t duration(const ps_order_problem *problem, ps_order_op op)
{
    return problem->stage[op.stage].duration_ns[op.step];
}

// When an op could start, whatever runs on its device, by the last timing; ops it needs on its own device are behind
// it.
static int64_t input_there(const ps_order_problem *problem, const ps_order_trial *trial, ps_order_op op)
{
    if (op.step == PS_STEP_WEIGHT || op.stage == (op.step == PS_STEP_FORWARD ? 0 : problem->num_stages - 1))
        return 0;
    return trial->arrival_ns[(2 * (int64_t)op.stage + op.step) * problem->num_microbatches + op.microbatch];
}

// An idle interval before the op at a position.
typedef struct interval {
    int32_t at;
    int64_t begin_ns;
    int64_t end_ns;
} interval;

// The first op behind a gap that fits into it as a whole; -1: none.
static int32_t find_filler(const ps_order_problem *problem, const ps_order *order, const ps_order_trial *trial,
                           interval gap, int32_t last)
{
    for (int32_t from = gap.at + 1; from < last && from <= gap.at + AHEAD; from++) {
        ps_order_op op = order->op[from];
        int64_t there = input_there(problem, trial, op);
        int64_t start = there > gap.begin_ns ? there : gap.begin_ns;
        if (start + duration(problem, op) <= gap.end_ns && ps_order_may_jump(problem, order, from, gap.at))
            return from;
    }
    return -1;
}

// One device; true when some op was moved.
static bool compact_device(const ps_order_problem *problem, ps_order *order, const ps_order_trial *trial, int32_t d)
{
    int32_t last = problem->first[d + 1];
    bool any = false;
    int64_t clock = last > problem->first[d] ? order->start_ns[problem->first[d]] : 0;
    for (int32_t at = problem->first[d]; at < last; at++) {
        interval gap = {.at = at, .begin_ns = clock, .end_ns = order->start_ns[at]};
        int32_t from = gap.end_ns > gap.begin_ns ? find_filler(problem, order, trial, gap, last) : -1;
        if (from >= 0) {
            int64_t there = input_there(problem, trial, order->op[from]);
            ps_order_jump(problem, order, from, at, there > clock ? there : clock);
            any = true;
        }
        clock = order->start_ns[at] + duration(problem, order->op[at]);
    }
    return any;
}

void ps_order_compact(const ps_order_problem *problem, ps_order *order, ps_order_trial *trial)
{
    // All devices are gone through with the times from before: what moves makes nothing later.
    bool any = true;
    for (int32_t pass = 0; pass < PASSES && any; pass++) {
        any = false;
        for (int32_t d = 0; d < problem->num_devices; d++)
            any = compact_device(problem, order, trial, d) || any;
        if (any)
            ps_order_time(problem, order, trial, INT64_MAX);
    }
}
