// SPDX-License-Identifier: Apache-2.0
//
// order_cycle.c: orders that repeat one pattern every so often.
//
// Every micro-batch does as the one before, a cycle later (modulo scheduling; Rau, MICRO 1994; the building blocks of
// Qi et al., "Pipeline Parallelism with Controllable Memory", 2024, are such patterns). The ops of one micro-batch are
// placed one after the other, each as early as its device is free at that time of the cycle, or later by a delay of its
// own; then W's where room is left. Whether memory suffices can be told from the pattern. Patterns are made in the true
// times, and in a time in which all ops take as long and hops none, where they come to tile the cycle without rests.
// Only the order is kept: what can start earlier does, and the warm-up and the cool-down, in which the pattern keeps
// its pace without need, are made short (order_compact.h).
#include "search/order_cycle.h"

#include <string.h>

#include "base/rng.h"
#include "pipesched/limits.h"
#include "search/order_compact.h"

enum {
    LENGTHS = 12, // cycles of the grid, in steps of 1 / LENGTH_PARTS of the shortest
    LENGTH_PARTS = 24,
    MOST_STAGES = 16,      // of a device: merging more kinds of op would take longer than the rest of the search
    STRETCH = 12,          // micro-batches that a pace is taken from
    WORTH_COMPACTING = 32, // compact what is within this part of the best
    UNIT_NS = 1024         // of an op where all take as long
};

// When an op of micro-batch 0 runs, by 3 stage + step.
typedef struct pattern {
    const ps_order_problem *problem;
    ps_order_desk *desk;
    ps_order *best;
    int64_t best_ns; // what the best would take with all micro-batches
    int32_t more;
    int64_t *took_ns; // [3 stages] of the kinds of op: their own, or one for all
    int64_t *hop_ns;  // [3 stages] of what they send
    int64_t least_ns; // work of the fullest device in these times
    int64_t cycle_ns;
    int64_t *start_ns;
    int64_t *delay_ns;   // [3 stages] of the kinds of op
    int64_t *kept_ns;    // [3 stages] scratch: delays before a change
    int32_t *next;       // [3 stages] scratch: micro-batches written
    int32_t **placed;    // [devices] 3 stage + step of the ops placed on it
    int32_t *num_placed; // [devices]
    ps_compact_scratch compact;
    ps_rng rng;
} pattern;

static int64_t modulo(int64_t value, int64_t cycle)
{
    int64_t rest = value % cycle;
    return rest < 0 ? rest + cycle : rest;
}

// Place an op at `from` or later; false when its device is never free for so long.
static bool place(pattern *p, int32_t kind, int64_t from)
{
    int32_t d = p->problem->stage[kind / PS_STEPS].device;
    int64_t took = p->took_ns[kind];
    int64_t at = from;
    p->desk->trial.visits++;
    if (from > PS_MAX_TIME_NS / 2 || took > p->cycle_ns)
        return false;
    for (int32_t i = 0; i < p->num_placed[d];) {
        int32_t other = p->placed[d][i];
        int64_t length = p->took_ns[other];
        int64_t into = modulo(at - p->start_ns[other], p->cycle_ns);
        int64_t until = p->cycle_ns - into;
        if (into == 0 ? length == 0 || took == 0 : into >= length && until >= took) {
            i++;
            continue;
        }
        at += into < length ? length - into : until + length;
        if (at - from > p->cycle_ns)
            return false;
        i = 0;
    }
    p->start_ns[kind] = at;
    p->placed[d][p->num_placed[d]++] = kind;
    return true;
}

static bool place_all(pattern *p)
{
    const ps_order_problem *problem = p->problem;
    int64_t there = 0;
    for (int32_t d = 0; d < problem->num_devices; d++)
        p->num_placed[d] = 0;
    for (int32_t step = PS_STEP_FORWARD; step <= PS_STEP_GRADIENT; step++) {
        for (int32_t i = 0; i < problem->num_stages; i++) {
            int32_t s = step == PS_STEP_FORWARD ? i : problem->num_stages - 1 - i;
            int32_t kind = PS_STEPS * s + step;
            if (!place(p, kind, there + p->delay_ns[kind]))
                return false;
            there = p->start_ns[kind] + p->took_ns[kind] + p->hop_ns[kind];
        }
    }
    for (int32_t s = problem->num_stages - 1; s >= 0 && !problem->fused; s--) {
        int32_t gradient = PS_STEPS * s + PS_STEP_GRADIENT;
        if (!place(p, gradient + 1, p->start_ns[gradient] + p->took_ns[gradient] + p->delay_ns[gradient + 1]))
            return false;
    }
    return true;
}

// Micro-batches whose op of a kind has started before `at`, counted from that of micro-batch 0.
static int64_t started(const pattern *p, int32_t kind, int64_t at)
{
    int64_t since = at - p->start_ns[kind];
    return (since - modulo(since, p->cycle_ns)) / p->cycle_ns + (modulo(since, p->cycle_ns) > 0);
}

// Memory held before the op at `at` once the pattern has come to repeat itself.
static int64_t held_before(const pattern *p, int32_t d, int64_t at)
{
    const ps_order_problem *problem = p->problem;
    int64_t held = 0;
    for (int32_t i = problem->first_stage[d]; i < problem->first_stage[d + 1]; i++) {
        const ps_order_stage *stage = &problem->stage[problem->stage_of[i]];
        int32_t kind = PS_STEPS * problem->stage_of[i];
        int64_t gradients = started(p, kind + PS_STEP_GRADIENT, at);
        held += (started(p, kind, at) - gradients) * stage->held_forward;
        if (!problem->fused)
            held += (gradients - started(p, kind + PS_STEP_WEIGHT, at)) * stage->held_weight;
    }
    return held;
}

// Place all ops of the pattern; false where they do not fit into the cycle or into memory.
static bool make_pattern(pattern *p)
{
    const ps_order_problem *problem = p->problem;
    if (!place_all(p))
        return false;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        for (int32_t i = 0; i < p->num_placed[d] && problem->room[d] < INT64_MAX; i++) {
            int32_t kind = p->placed[d][i];
            int64_t held = held_before(p, d, p->start_ns[kind]);
            if (ps_order_held_within(&problem->stage[kind / PS_STEPS], kind % PS_STEPS, held) > problem->room[d])
                return false;
        }
    }
    return true;
}

// Each device merges its kinds of op by time.
static void write_order(pattern *p, ps_order *out)
{
    const ps_order_problem *problem = p->problem;
    for (int32_t kind = 0; kind < PS_STEPS * problem->num_stages; kind++)
        p->next[kind] = 0;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        for (int32_t at = problem->first[d]; at < problem->first[d + 1]; at++) {
            int32_t best = -1;
            int64_t best_ns = INT64_MAX;
            for (int32_t i = 0; i < p->num_placed[d]; i++) {
                int32_t kind = p->placed[d][i];
                int64_t start = p->start_ns[kind] + p->next[kind] * p->cycle_ns;
                if (p->next[kind] < problem->num_microbatches && start < best_ns) {
                    best = kind;
                    best_ns = start;
                }
            }
            out->op[at] = (ps_order_op){.microbatch = p->next[best]++,
                                        .stage = (uint16_t)(best / PS_STEPS),
                                        .step = (uint16_t)(best % PS_STEPS)};
        }
    }
}

static pattern new_pattern(ps_arena *arena, ps_order_desk *desk, ps_order *best)
{
    const ps_order_problem *problem = desk->problem;
    int32_t kinds = PS_STEPS * problem->num_stages;
    pattern p = {.problem = problem,
                 .desk = desk,
                 .best = best,
                 .best_ns = INT64_MAX,
                 .took_ns = ps_new(arena, int64_t, kinds),
                 .hop_ns = ps_new(arena, int64_t, kinds),
                 .start_ns = ps_new(arena, int64_t, kinds),
                 .delay_ns = ps_new(arena, int64_t, kinds),
                 .kept_ns = ps_new(arena, int64_t, kinds),
                 .next = ps_new(arena, int32_t, kinds),
                 .placed = ps_new(arena, int32_t *, problem->num_devices),
                 .num_placed = ps_new(arena, int32_t, problem->num_devices),
                 .rng = {3}};
    ps_compact_scratch_new(arena, problem, &p.compact);
    for (int32_t d = 0; d < problem->num_devices; d++)
        p.placed[d] = ps_new(arena, int32_t, PS_STEPS * (problem->first_stage[d + 1] - problem->first_stage[d]));
    return p;
}

// The longest cycles must not overflow.
static bool in_range(const ps_order_problem *problem)
{
    for (int32_t d = 0; d < problem->num_devices; d++)
        if (problem->first_stage[d + 1] - problem->first_stage[d] > MOST_STAGES ||
            problem->work_ns[d] > PS_MAX_TIME_NS / 8)
            return false;
    return true;
}

// Durations of the ops as they are, or all the same and hops of no time.
static void set_durations(pattern *p, bool same)
{
    const ps_order_problem *problem = p->problem;
    p->least_ns = 1;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int64_t work = 0;
        for (int32_t i = problem->first_stage[d]; i < problem->first_stage[d + 1]; i++) {
            int32_t s = problem->stage_of[i];
            for (int32_t step = 0; step < (problem->fused ? PS_STEP_WEIGHT : PS_STEPS); step++) {
                int32_t kind = PS_STEPS * s + step;
                const ps_order_hop *hop = &problem->stage[s].hop[step % 2];
                p->took_ns[kind] = same ? UNIT_NS : problem->stage[s].duration_ns[step];
                p->hop_ns[kind] = same || step == PS_STEP_WEIGHT ? 0 : hop->occupy_ns + hop->latency_ns;
                work += p->took_ns[kind];
            }
        }
        p->least_ns = work > p->least_ns ? work : p->least_ns;
    }
}

// The same delay for all stages of one turn through the devices, forth and back, of each direction: a digit of `code`.
static void set_delays(pattern *p, int32_t code)
{
    const ps_order_problem *problem = p->problem;
    static const int32_t power[] = {1, 3, 9, 27};
    memset(p->delay_ns, 0, (size_t)PS_STEPS * (size_t)problem->num_stages * sizeof *p->delay_ns);
    for (int32_t s = 0; s < problem->num_stages; s++)
        for (int32_t step = PS_STEP_FORWARD; step <= PS_STEP_GRADIENT; step++)
            p->delay_ns[PS_STEPS * s + step] =
                code / power[2 * (s / problem->num_devices % 2) + step] % 3 * (p->least_ns / (2 * PS_STEPS));
}

// What the order, which was timed last, would take with all micro-batches, going on at the pace of its middle.
static int64_t estimate(const pattern *p, const ps_order *order)
{
    const ps_order_problem *problem = p->problem;
    const ps_order_trial *trial = &p->desk->trial;
    if (p->more == 0)
        return order->value_ns;
    int32_t from = (problem->num_microbatches - STRETCH) / 2;
    int64_t slowest = 0;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        if (problem->first_stage[d] == problem->first_stage[d + 1])
            continue;
        int32_t kind = PS_STEPS * problem->stage_of[problem->first_stage[d]] + PS_STEP_GRADIENT;
        const int32_t *position = trial->position + (int64_t)kind * problem->num_microbatches;
        int64_t took = trial->start_ns[position[from + STRETCH]] - trial->start_ns[position[from]];
        slowest = took > slowest ? took : slowest;
    }
    return order->value_ns + slowest / STRETCH * p->more;
}

// What the pattern at hand comes to; INT64_MAX when it is no use.
static int64_t try_pattern(pattern *p)
{
    ps_order *candidate = &p->desk->candidate;
    if (!make_pattern(p))
        return INT64_MAX;
    write_order(p, candidate);
    if (!ps_order_time(p->problem, candidate, &p->desk->trial, INT64_MAX))
        return INT64_MAX;
    int64_t value = estimate(p, candidate);
    if (p->best_ns == INT64_MAX || value - p->best_ns < p->best_ns / WORTH_COMPACTING) {
        ps_order_compact(p->problem, candidate, &p->compact, &p->desk->trial);
        value = estimate(p, candidate);
    }
    if (value < p->best_ns) {
        p->best_ns = value;
        ps_order_copy(p->problem, candidate, p->best);
    }
    return value;
}

static int32_t draw(pattern *p, int32_t low, int32_t high)
{
    return (int32_t)ps_rng_range(&p->rng, low, high);
}

// Change the cycle a little, or the delays of one kind of op at a stage or at some in a row.
static void change(pattern *p)
{
    int32_t what = draw(p, 0, 7);
    int64_t unit = p->least_ns / LENGTH_PARTS;
    if (what == 0) {
        p->cycle_ns += unit / 4 * draw(p, -2, 2);
        p->cycle_ns = p->cycle_ns < p->least_ns ? p->least_ns : p->cycle_ns;
        return;
    }
    int32_t low = draw(p, 0, p->problem->num_stages - 1);
    int32_t high = what < 4 ? low : draw(p, low, p->problem->num_stages - 1);
    int32_t step = draw(p, PS_STEP_FORWARD, p->problem->fused ? PS_STEP_GRADIENT : PS_STEP_WEIGHT);
    int64_t by = unit * draw(p, -4, 4);
    for (int32_t s = low; s <= high; s++) {
        int64_t *delay = &p->delay_ns[PS_STEPS * s + step];
        *delay = *delay + by < 0 ? 0 : *delay + by;
    }
}

// Random changes to the pattern at hand, which comes to `value_ns`; those that do not make it worse are kept.
static ps_code climb(pattern *p, int64_t value_ns, int64_t visits)
{
    size_t size = (size_t)PS_STEPS * (size_t)p->problem->num_stages * sizeof *p->delay_ns;
    int64_t begun = p->desk->trial.visits;
    while (p->desk->trial.visits - begun < visits && p->best->value_ns > p->desk->bound_ns) {
        int64_t cycle = p->cycle_ns;
        memcpy(p->kept_ns, p->delay_ns, size);
        change(p);
        int64_t value = try_pattern(p);
        if (value <= value_ns) {
            value_ns = value;
        } else {
            p->cycle_ns = cycle;
            memcpy(p->delay_ns, p->kept_ns, size);
        }
        PS_TRY(ps_order_poll(p->desk));
    }
    return PS_OK;
}

// The grid, with the best of it at hand afterwards; what that comes to.
static ps_code try_grid(pattern *p, int64_t *value_ns)
{
    int32_t codes = p->problem->num_stages > p->problem->num_devices ? 81 : 9;
    int64_t cycle = 0;
    int32_t best = 0;
    *value_ns = INT64_MAX;
    for (int32_t length = 0; length < LENGTHS; length++) {
        for (int32_t code = 0; code < codes; code++) {
            p->cycle_ns = p->least_ns + p->least_ns / LENGTH_PARTS * length;
            set_delays(p, code);
            int64_t value = try_pattern(p);
            if (value < *value_ns) {
                *value_ns = value;
                cycle = p->cycle_ns;
                best = code;
            }
        }
        PS_TRY(ps_order_poll(p->desk));
    }
    p->cycle_ns = cycle;
    set_delays(p, best);
    return PS_OK;
}

ps_code ps_order_cycles(ps_arena *arena, ps_order_desk *desk, int64_t visits, int32_t more, ps_order *out)
{
    out->value_ns = INT64_MAX;
    if (!in_range(desk->problem))
        return PS_OK;
    pattern p = new_pattern(arena, desk, out);
    p.more = desk->problem->num_microbatches > STRETCH ? more : 0;
    for (int32_t same = 0; same < 2 && out->value_ns > desk->bound_ns; same++) {
        int64_t value = 0;
        set_durations(&p, same);
        PS_TRY(try_grid(&p, &value));
        if (value < INT64_MAX)
            PS_TRY(climb(&p, value, visits / 2));
    }
    return PS_OK;
}
