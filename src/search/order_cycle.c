// SPDX-License-Identifier: Apache-2.0
//
// order_cycle.c: orders that repeat one pattern every so often.
//
// Every micro-batch does as the one before, a cycle later (modulo scheduling; Rau, MICRO 1994; the building blocks of
// Qi et al., "Pipeline Parallelism with Controllable Memory", 2024, are such patterns). The ops of one micro-batch are
// placed one after the other, each as early as its device is free at that time of the cycle; then W's where room is
// left. The shorter the cycle, the more micro-batches are in flight; so cycles are tried from the work of the fullest
// device on upwards, until some orders have fitted. Only the order is kept: what can start earlier does.
#include "search/order_cycle.h"

#include "pipesched/limits.h"

enum { CYCLES = 64, ENOUGH = 6, PARTS = 32 };

// When an op of micro-batch 0 runs, by 3 stage + step.
typedef struct pattern {
    const ps_order_problem *problem;
    int64_t cycle_ns;
    int64_t *start_ns;
    int32_t *next;       // [3 stages] scratch: micro-batches written
    int32_t **placed;    // [devices] 3 stage + step of the ops placed on it
    int32_t *num_placed; // [devices]
} pattern;

static int64_t duration(const pattern *p, int32_t kind)
{
    return p->problem->stage[kind / PS_STEPS].duration_ns[kind % PS_STEPS];
}

static int64_t modulo(int64_t value, int64_t cycle)
{
    int64_t rest = value % cycle;
    return rest < 0 ? rest + cycle : rest;
}

// Place an op at `from` or later; false when its device is never free for so long.
static bool place(pattern *p, int32_t kind, int64_t from)
{
    int32_t d = p->problem->stage[kind / PS_STEPS].device;
    int64_t took = duration(p, kind);
    int64_t at = from;
    if (from > PS_MAX_TIME_NS / 2)
        return false;
    for (int32_t i = 0; i < p->num_placed[d];) {
        int32_t other = p->placed[d][i];
        int64_t length = duration(p, other);
        int64_t into = modulo(at - p->start_ns[other], p->cycle_ns);
        int64_t until = modulo(p->start_ns[other] - at, p->cycle_ns);
        if (into >= length && (until >= took || length == 0)) {
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
    return took <= p->cycle_ns;
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
            if (!place(p, kind, there))
                return false;
            const ps_order_hop *hop = &problem->stage[s].hop[step];
            there = p->start_ns[kind] + duration(p, kind) + hop->occupy_ns + hop->latency_ns;
        }
    }
    for (int32_t s = problem->num_stages - 1; s >= 0 && !problem->fused; s--) {
        int32_t gradient = PS_STEPS * s + PS_STEP_GRADIENT;
        if (!place(p, PS_STEPS * s + PS_STEP_WEIGHT, p->start_ns[gradient] + duration(p, gradient)))
            return false;
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

static pattern new_pattern(ps_arena *arena, const ps_order_problem *problem)
{
    pattern p = {.problem = problem,
                 .start_ns = ps_new(arena, int64_t, PS_STEPS * problem->num_stages),
                 .next = ps_new(arena, int32_t, PS_STEPS * problem->num_stages),
                 .placed = ps_new(arena, int32_t *, problem->num_devices),
                 .num_placed = ps_new(arena, int32_t, problem->num_devices)};
    for (int32_t d = 0; d < problem->num_devices; d++)
        p.placed[d] = ps_new(arena, int32_t, PS_STEPS * (problem->first_stage[d + 1] - problem->first_stage[d]));
    return p;
}

void ps_order_cycles(ps_arena *arena, const ps_order_problem *problem, ps_order *order, ps_order_trial *trial)
{
    enum { MOST_STAGES = 16 };
    pattern p = new_pattern(arena, problem);
    ps_order candidate;
    ps_order_new(arena, problem, &candidate);
    int64_t least = 1;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int64_t each = problem->work_ns[d] / problem->num_microbatches;
        least = each > least ? each : least;
        if (problem->first_stage[d + 1] - problem->first_stage[d] > MOST_STAGES)
            return; // merging so many would take longer than the rest of the search
        if (problem->work_ns[d] > PS_MAX_TIME_NS / 8)
            return; // the longest cycles would overflow
    }
    int32_t fitted = 0;
    for (int32_t i = 0; i < CYCLES && fitted < ENOUGH; i++) {
        p.cycle_ns = least + least / PARTS * i;
        if (!place_all(&p))
            continue;
        write_order(&p, &candidate);
        trial->visits += problem->first[problem->num_devices];
        if (!ps_order_time(problem, &candidate, trial, INT64_MAX))
            continue;
        fitted++;
        if (candidate.value_ns < order->value_ns)
            ps_order_copy(problem, &candidate, order);
    }
}
