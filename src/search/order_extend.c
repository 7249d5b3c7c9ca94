// SPDX-License-Identifier: Apache-2.0
//
// order_extend.c: an order for more micro-batches from one for fewer.
//
// Past its warm-up a good order repeats itself until the cool-down, however many micro-batches there are. The hard part
// is the ramps, and they are found at less cost where there is little between them. At the start and at the end of a
// stretch in which every kind of op of a device comes equally often, the device holds the same memory and waits for the
// same inputs, only later ones; so the stretch can be repeated.
#include "search/order_extend.h"

#include <string.h>

// Periods in micro-batches that divide PERIODS.
enum { PERIODS = 12, INSTANTS = 16 };
static const int32_t PERIOD[] = {1, 2, 3, 4, 6, 12};
enum { NUM_PERIODS = sizeof PERIOD / sizeof *PERIOD };

int32_t ps_order_core_microbatches(const ps_order_problem *problem)
{
    int64_t round_trip = 0;
    int64_t each = 1;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int64_t work = problem->work_ns[d] / problem->num_microbatches;
        each = work > each ? work : each;
    }
    for (int32_t s = 0; s < problem->num_stages; s++)
        for (int32_t step = 0; step < 2; step++)
            round_trip += problem->stage[s].duration_ns[step] + problem->stage[s].hop[step].occupy_ns +
                          problem->stage[s].hop[step].latency_ns;
    int64_t ramps = 3 * (round_trip / each + 1) + PERIODS;
    int64_t most = problem->num_microbatches;
    if (ramps + PERIODS > most)
        return 0;
    return (int32_t)(ramps + (most - ramps) % PERIODS);
}

typedef struct extension {
    const ps_order_problem *core;
    const ps_order *order;
    const int64_t *start_ns; // of its ops
    const ps_order_problem *problem;
    int32_t *count; // [3 stages] scratch
} extension;

// Does every kind of op come `period` times in the `length` positions from `at` on? Ops of a kind come in the order of
// micro-batches, so that this is so where none comes more often.
static bool repeats(const extension *e, int32_t at, int32_t end, int32_t length, int32_t period)
{
    const ps_order_op *op = e->order->op;
    int32_t i = at;
    if (at + length > end)
        return false;
    while (i < at + length && e->count[PS_STEPS * op[i].stage + op[i].step] < period) {
        e->count[PS_STEPS * op[i].stage + op[i].step]++;
        i++;
    }
    bool all = i == at + length;
    while (--i >= at)
        e->count[PS_STEPS * op[i].stage + op[i].step] = 0;
    return all;
}

// First position of a device whose op starts at `instant` or later.
static int32_t first_from(const int64_t *start_ns, int32_t low, int32_t high, int64_t instant)
{
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (start_ns[middle] < instant)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// A device with its stretch that begins about `instant` repeated. False: none begins within a period from there on.
static bool extend_device(const extension *e, int32_t d, int32_t period, int64_t instant, ps_order *out)
{
    const ps_order_problem *core = e->core;
    int32_t length = (core->first[d + 1] - core->first[d]) / core->num_microbatches * period;
    int32_t end = core->first[d + 1];
    int32_t more = e->problem->num_microbatches - core->num_microbatches;
    int32_t begin = first_from(e->start_ns, core->first[d], end, instant);
    int32_t latest = begin + length;
    while (begin <= latest && !repeats(e, begin, end, length, period))
        begin++;
    if (begin > latest)
        return false;
    int32_t at = e->problem->first[d];
    for (int32_t i = core->first[d]; i < begin + length; i++)
        out->op[at++] = e->order->op[i];
    for (int32_t shift = period; shift <= more; shift += period) {
        for (int32_t i = begin; i < begin + length; i++) {
            out->op[at] = e->order->op[i];
            out->op[at++].microbatch += shift;
        }
    }
    for (int32_t i = begin + length; i < end; i++) {
        out->op[at] = e->order->op[i];
        out->op[at++].microbatch += more;
    }
    return true;
}

static bool extend(const extension *e, int32_t period, int64_t instant, ps_order *out)
{
    for (int32_t d = 0; d < e->core->num_devices; d++)
        if (e->core->first[d] < e->core->first[d + 1] && !extend_device(e, d, period, instant, out))
            return false;
    return true;
}

// The starts of a core's order, timed at the desk of the whole, which has room for it.
static const int64_t *starts_of(ps_arena *arena, const ps_order_problem *core, ps_order *order, ps_order_trial *trial)
{
    int32_t ops = core->first[core->num_devices];
    int64_t *starts = ps_new_raw(arena, int64_t, ops);
    ps_order_time(core, order, trial, INT64_MAX);
    memcpy(starts, trial->start_ns, (size_t)ops * sizeof *starts);
    return starts;
}

void ps_order_extend(ps_arena *arena, const ps_order_problem *core, ps_order *core_order, ps_order_desk *desk,
                     ps_order *order)
{
    extension e = {.core = core,
                   .order = core_order,
                   .start_ns = starts_of(arena, core, core_order, &desk->trial),
                   .problem = desk->problem,
                   .count = ps_new(arena, int32_t, PS_STEPS * core->num_stages)};
    int64_t end = 0;
    for (int32_t d = 0; d < core->num_devices; d++)
        if (core->first[d] < core->first[d + 1] && e.start_ns[core->first[d + 1] - 1] > end)
            end = e.start_ns[core->first[d + 1] - 1];
    for (int32_t i = 0; i < NUM_PERIODS; i++) {
        for (int32_t part = 0; part < INSTANTS && order->value_ns > desk->bound_ns; part++) {
            int64_t instant = end / 4 + end / 2 / INSTANTS * part;
            if (extend(&e, PERIOD[i], instant, &desk->candidate) &&
                ps_order_time(desk->problem, &desk->candidate, &desk->trial, order->value_ns - 1))
                ps_order_copy(desk->problem, &desk->candidate, order);
        }
    }
}
