// SPDX-License-Identifier: Apache-2.0
//
// order_compact.c: idle time filled with ops from later on, at nobody's cost.
//
// An op whose input is there moves to the front of an idle interval that is long enough for the whole of it, so that no
// other op starts later. A pattern's warm-up and cool-down, in which the pattern keeps its pace without need, become
// short by that (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024, squeeze theirs so).
#include "search/order_compact.h"

#include <string.h>

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

typedef struct compaction {
    const ps_order_problem *problem;
    ps_order *order;
    int64_t *held;
    ps_order_trial *trial; // its times are the order's
    int32_t *seen;         // [3 stages] the gap for which an op of the kind was looked at last, counted on
    int32_t gaps;
} compaction;

// The first op behind a gap that fits into it as a whole; -1: none. Of every kind only the next can pass those before.
static int32_t find_filler(compaction *c, interval gap, int32_t last)
{
    int32_t d = c->problem->stage[c->order->op[gap.at].stage].device;
    int32_t kinds = PS_STEPS * (c->problem->first_stage[d + 1] - c->problem->first_stage[d]);
    c->gaps++;
    for (int32_t from = gap.at; from < last && from <= gap.at + AHEAD && kinds > 0; from++) {
        ps_order_op op = c->order->op[from];
        int32_t *seen = &c->seen[PS_STEPS * op.stage + op.step];
        if (*seen == c->gaps)
            continue;
        *seen = c->gaps;
        kinds--;
        int64_t there = input_there(c->problem, c->trial, op);
        int64_t start = there > gap.begin_ns ? there : gap.begin_ns;
        if (from > gap.at && start + duration(c->problem, op) <= gap.end_ns &&
            ps_order_may_jump(c->problem, c->order, c->held, from, gap.at))
            return from;
    }
    return -1;
}

// One device; true when some op was moved.
static bool compact_device(compaction *c, int32_t d)
{
    ps_order *order = c->order;
    int64_t *start_ns = c->trial->start_ns;
    int32_t first = c->problem->first[d];
    int32_t last = c->problem->first[d + 1];
    bool any = false;
    int64_t clock = last > first ? start_ns[first] : 0;
    for (int32_t at = first; at < last; at++) {
        interval gap = {.at = at, .begin_ns = clock, .end_ns = start_ns[at]};
        int32_t from = gap.end_ns > gap.begin_ns ? find_filler(c, gap, last) : -1;
        if (from >= 0) {
            int64_t there = input_there(c->problem, c->trial, order->op[from]);
            ps_order_jump(order, start_ns, from, at, there > clock ? there : clock);
            ps_order_settle(c->problem, order, c->trial->position, c->held, at, from);
            any = true;
        }
        clock = start_ns[at] + duration(c->problem, order->op[at]);
    }
    return any;
}

void ps_compact_scratch_new(ps_arena *arena, const ps_order_problem *problem, ps_compact_scratch *out)
{
    *out = (ps_compact_scratch){.held = ps_new_raw(arena, int64_t, problem->first[problem->num_devices]),
                                .seen = ps_new_raw(arena, int32_t, PS_STEPS * problem->num_stages)};
}

void ps_order_compact(const ps_order_problem *problem, ps_order *order, ps_compact_scratch *scratch,
                      ps_order_trial *trial)
{
    compaction c = {.problem = problem, .order = order, .held = scratch->held, .trial = trial, .seen = scratch->seen};
    memset(scratch->seen, 0, (size_t)PS_STEPS * (size_t)problem->num_stages * sizeof *scratch->seen);
    bool any = true;
    ps_order_hold(problem, order, scratch->held);
    // All devices are gone through with the times from before: what moves makes nothing later.
    for (int32_t pass = 0; pass < PASSES && any; pass++) {
        any = false;
        for (int32_t d = 0; d < problem->num_devices; d++)
            any = compact_device(&c, d) || any;
        if (any)
            ps_order_time(problem, order, trial, INT64_MAX);
    }
}
