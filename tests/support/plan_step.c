// SPDX-License-Identifier: Apache-2.0
//
// plan_step.c: the end of a step, part after part over all ranks, with every stage asked for its own ops.
#include "support/plan_step.h"

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// Place of the op of a kind of stage and micro-batch; of the last in order with micro-batch -1, the first with -2.
static int32_t find(const ps_plan *plan, int32_t stage, bool forward, int32_t microbatch)
{
    int32_t rank = plan->stage[stage].pp_rank;
    int32_t found = -1;
    for (int32_t at = plan->schedule.first[rank]; at < plan->schedule.first[rank + 1]; at++) {
        ps_op op = plan->schedule.op[at];
        bool is = forward ? op.kind == PS_OP_FORWARD : op.kind == PS_OP_BACKWARD || op.kind == PS_OP_BACKWARD_WEIGHT;
        if (op.stage == stage && is && (microbatch < 0 || op.microbatch == microbatch)) {
            if (microbatch == -2 && found >= 0)
                continue;
            found = at;
        }
    }
    return found;
}

static int64_t part(int64_t whole, int32_t parts)
{
    return (whole + parts - 1) / parts;
}

// Reductions of a rank by the place of the op that starts each.
static int64_t reduce_all(const ps_plan *plan, int32_t rank, const int64_t *start, const int64_t *end)
{
    bool every = plan->layout.zero == 2;
    int64_t computed = end[plan->schedule.first[rank + 1] - 1];
    int64_t link = 0;
    for (int32_t at = plan->schedule.first[rank]; at < plan->schedule.first[rank + 1]; at++) {
        ps_op op = plan->schedule.op[at];
        const ps_plan_stage *stage = &plan->stage[op.stage];
        if (at != find(plan, op.stage, false, every ? op.microbatch : -1) || stage->grad_sync_ns == 0)
            continue;
        int64_t made = end[at] - (end[at] - start[at]) + (end[at] - start[at]) / stage->sync_buckets;
        if (!plan->inputs.job.overlap_grad_sync)
            made = computed;
        link = most(most(link, made) + stage->grad_sync_ns, end[at] + part(stage->grad_sync_ns, stage->sync_buckets));
    }
    return most(link, computed);
}

static void settle_syncs(ps_plan *plan, const int64_t *start, const int64_t *end, int64_t *synced)
{
    for (int32_t rank = 0; rank < plan->num_devices; rank++) {
        ps_plan_device *device = &plan->device[rank];
        int64_t computed = end[plan->schedule.first[rank + 1] - 1];
        synced[rank] = reduce_all(plan, rank, start, end);
        device->grad_sync_exposed_ns = synced[rank] - computed;
        device->grad_sync_ns = 0;
        for (int32_t stage = 0; stage < plan->num_stages; stage++) {
            if (plan->stage[stage].pp_rank != rank)
                continue;
            int32_t run = plan->layout.num_microbatches / (plan->layout.schedule == PS_SCHEDULE_DUALPIPE ? 2 : 1);
            device->grad_sync_ns += plan->stage[stage].grad_sync_ns * (plan->layout.zero == 2 ? run : 1);
        }
    }
    for (int32_t weight = 0; weight < plan->num_stages; weight++) {
        int64_t both = 0;
        for (int32_t pass = 0; pass < 2; pass++)
            for (int32_t stage = 0; stage < plan->num_stages; stage++) {
                int64_t tied = plan->stage[stage].tied_sync_ns;
                int32_t rank = plan->stage[stage].pp_rank;
                if (tied == 0 || plan->stage[stage].tied_to != weight)
                    continue;
                if (pass == 0) {
                    both = most(both, synced[rank]);
                    continue;
                }
                plan->device[rank].grad_sync_ns += tied;
                plan->device[rank].grad_sync_exposed_ns += tied;
                synced[rank] = both + tied;
            }
    }
    for (int32_t rank = 0; rank < plan->num_devices; rank++)
        plan->device[rank].grad_sync_hidden_ns =
            plan->device[rank].grad_sync_ns - plan->device[rank].grad_sync_exposed_ns;
}

static void settle_agreement(ps_plan *plan, const int64_t *synced)
{
    int32_t ranks = plan->num_devices;
    ps_plan_prediction *prediction = &plan->prediction;
    int64_t known = 0;
    prediction->barrier_ns = plan->inputs.job.optimizer_barrier ? 2500 : 0;
    prediction->validation_hop_ns = 0;
    for (int32_t hop = 0; hop < plan->num_hops && prediction->barrier_ns == 0; hop++)
        prediction->validation_hop_ns = most(prediction->validation_hop_ns, plan->hop[hop].latency_ns);
    for (int32_t rank = 0; rank < ranks; rank++)
        known = most(known, synced[rank] + (ranks - 1 - rank) * prediction->validation_hop_ns);
    for (int32_t rank = 0; rank < ranks; rank++)
        plan->device[rank].validated_ns =
            known + prediction->barrier_ns + (ranks - 1 - rank) * prediction->validation_hop_ns;
}

// By how much the first forward of a rank has to come later so that each stage's parameters are there in time.
static void settle_gathers(ps_plan *plan, const int64_t *start)
{
    for (int32_t rank = 0; rank < plan->num_devices; rank++) {
        ps_plan_device *device = &plan->device[rank];
        int32_t first = plan->schedule.first[rank];
        device->param_gather_ns = device->param_gather_exposed_ns = 0;
        for (int32_t at = first; at < plan->schedule.first[rank + 1]; at++) {
            ps_op op = plan->schedule.op[at];
            const ps_plan_stage *stage = &plan->stage[op.stage];
            if (op.kind != PS_OP_FORWARD || at != find(plan, op.stage, true, -2))
                continue;
            int64_t forward = stage->forward_ns + stage->op_overhead_ns;
            int64_t beside = forward - forward / stage->sync_buckets;
            int64_t usable = most(stage->param_gather_ns - beside, part(stage->param_gather_ns, stage->sync_buckets));
            int64_t late = device->param_gather_ns + usable - (start[at] - start[first]);
            device->param_gather_ns += stage->param_gather_ns;
            if (!plan->inputs.job.overlap_grad_sync)
                late = device->param_gather_ns;
            if (stage->param_gather_ns > 0)
                device->param_gather_exposed_ns = most(device->param_gather_exposed_ns, late);
        }
    }
}

void settle_step(ps_arena *arena, ps_plan *plan, const int64_t *start, const int64_t *end)
{
    bool barrier = plan->inputs.job.optimizer_barrier;
    int64_t *synced = ps_new(arena, int64_t, plan->num_devices);
    int64_t reached[4] = {0};
    settle_syncs(plan, start, end, synced);
    settle_agreement(plan, synced);
    settle_gathers(plan, start);
    for (int32_t rank = 0; rank < plan->num_devices; rank++) {
        ps_plan_device *device = &plan->device[rank];
        int64_t from = barrier ? 0 : start[plan->schedule.first[rank]];
        int64_t computed = end[plan->schedule.first[rank + 1] - 1];
        int64_t stepped = (barrier ? device->validated_ns : synced[rank]) + device->optimizer_ns;
        device->done_ns =
            computed + device->grad_sync_exposed_ns + device->optimizer_ns + device->param_gather_exposed_ns;
        reached[0] = most(reached[0], computed - from);
        reached[1] = most(reached[1], synced[rank] - from);
        reached[2] = most(reached[2], stepped - from);
        reached[3] = most(reached[3], stepped + device->param_gather_exposed_ns - from);
    }
    plan->prediction.grad_sync_exposed_ns = reached[1] - reached[0];
    plan->prediction.optimizer_ns = reached[2] - reached[1];
    plan->prediction.param_gather_exposed_ns = reached[3] - reached[2];
}
