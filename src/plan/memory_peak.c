// SPDX-License-Identifier: Apache-2.0
//
// memory_peak.c: the ops of a device, walked for what its micro-batches hold.
#include "plan/memory_peak.h"

#include <string.h>

static int64_t held_bytes(const ps_plan *plan, const ps_memory_holding *holding)
{
    const ps_plan_stage *stage = &plan->stage[holding->stage];
    return holding->after_forward * stage->held_after_forward_bytes +
           holding->recomputed * stage->added_by_recompute_bytes +
           holding->after_backward_input * stage->held_after_backward_input_bytes;
}

static void count_op(ps_memory_holding *holding, ps_op_kind kind, bool recomputes)
{
    switch (kind) {
    case PS_OP_FORWARD: holding->after_forward++; break;
    case PS_OP_RECOMPUTE: holding->recomputed++; break;
    case PS_OP_BACKWARD_INPUT: holding->after_backward_input++; // fallthrough
    case PS_OP_BACKWARD:
        holding->after_forward--;
        holding->recomputed -= recomputes;
        break;
    case PS_OP_BACKWARD_WEIGHT: holding->after_backward_input--; break;
    case PS_OP_KINDS: break;
    }
}

static ps_memory_holding *holding_of(ps_memory_holding *holding, int32_t stage)
{
    while (holding->stage != stage)
        holding++;
    return holding;
}

// The first op with which most is held.
static void walk_ops(ps_arena *arena, const ps_memory_source *source, ps_memory_terms *out)
{
    const ps_plan *plan = source->plan;
    const ps_schedule *schedule = &plan->schedule;
    size_t size = (size_t)out->num_holdings * sizeof *out->holding;
    ps_memory_holding *now = ps_new(arena, ps_memory_holding, out->num_holdings);
    bool recomputes = ps_schedule_family_at(plan->layout.schedule)->recomputes;
    int64_t held = 0;
    int64_t most = -1;
    memcpy(now, out->holding, size);
    for (int32_t at = schedule->first[out->device]; at < schedule->first[out->device + 1]; at++) {
        ps_memory_holding *changed = holding_of(now, schedule->op[at].stage);
        held -= held_bytes(plan, changed);
        count_op(changed, (ps_op_kind)schedule->op[at].kind, recomputes);
        held += held_bytes(plan, changed);
        if (held <= most)
            continue;
        most = held;
        memcpy(out->holding, now, size);
        out->peak = schedule->op[at];
        out->peak_start_ns = source->timeline->start_ns[at];
        out->peak_end_ns = source->timeline->end_ns[at];
    }
}

void ps_memory_find_peak(ps_arena *arena, const ps_memory_source *source, ps_memory_terms *out)
{
    const ps_plan *plan = source->plan;
    out->holding = ps_new(arena, ps_memory_holding, plan->num_stages);
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        if (plan->stage[stage].pp_rank == out->device)
            out->holding[out->num_holdings++].stage = stage;
    walk_ops(arena, source, out);
}
