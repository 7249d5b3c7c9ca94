// SPDX-License-Identifier: Apache-2.0
//
// check_step.c: the end of the step, from the plan's own figures: when gradients are reduced, ranks agree, step and
// gather, and what that adds to the iteration.
//
// A rank's gradients leave over one link, one stage after the other, each from its last weight gradient on (of every
// micro-batch with ZeRO-2). A reduction in k buckets has its first after a k-th of that op; its last leaves when the
// op has ended. A reduction is late by what remains when the rank computes no more.
#include <inttypes.h>

#include "check/check_parts.h"

enum { BUCKET_PARAMETERS = 40000000 };

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool ends_gradient(ps_op op)
{
    return op.kind == PS_OP_BACKWARD || op.kind == PS_OP_BACKWARD_WEIGHT;
}

static int64_t bucket_time(int64_t whole, int32_t buckets)
{
    return whole / buckets + (whole % buckets != 0);
}

static void check_buckets(ps_check *check)
{
    const ps_plan *plan = check->plan;
    const ps_job *job = &plan->inputs.job;
    int64_t bytes = BUCKET_PARAMETERS * (int64_t)(job->precision == PS_PRECISION_FP32 ? 4 : 2);
    bool parts = job->overlap_grad_sync && plan->layout.zero < 3;
    for (int32_t index = 0; index < plan->num_stages; index++) {
        const ps_plan_stage *stage = &plan->stage[index];
        int64_t buckets = parts ? larger(1, stage->parameter_bytes / bytes) : 1;
        ps_check_equal(check, "sync-buckets", PS_AT_1("/stages/#/sync_buckets", index), stage->sync_buckets, buckets);
    }
}

// The stages that have one weight name the first of them, take the same time and are of different ranks, at least two.
static void check_tied(ps_check *check)
{
    const ps_plan *plan = check->plan;
    int32_t *holders = ps_new(check->arena, int32_t, plan->num_stages);
    int32_t *last_first = ps_new(check->arena, int32_t, plan->num_devices); // 1 + the first stage of the last seen
    for (int32_t index = 0; index < plan->num_stages; index++) {
        const ps_plan_stage *stage = &plan->stage[index];
        const ps_plan_stage *first = &plan->stage[stage->tied_to];
        if (stage->tied_sync_ns == 0) {
            ps_check_equal(check, "tied-sync", PS_AT_1("/stages/#/tied_to", index), stage->tied_to, 0);
            continue;
        }
        if (stage->tied_to > index || first->tied_to != stage->tied_to || first->tied_sync_ns == 0) {
            ps_check_find(check, "tied-sync", PS_AT_1("/stages/#/tied_to", index),
                          "stage %" PRId32 " is not the first that has the weight", stage->tied_to);
            continue;
        }
        holders[stage->tied_to]++;
        ps_check_equal_ns(check, "tied-sync", PS_AT_1("/stages/#/tied_sync_ms", index), stage->tied_sync_ns,
                          first->tied_sync_ns);
        if (last_first[stage->pp_rank] == stage->tied_to + 1)
            ps_check_find(check, "tied-sync", PS_AT_1("/stages/#/tied_sync_ms", index),
                          "another stage of this rank already stands for the weight");
        last_first[stage->pp_rank] = stage->tied_to + 1;
    }
    for (int32_t index = 0; index < plan->num_stages; index++)
        if (holders[index] == 1)
            ps_check_find(check, "tied-sync", PS_AT_1("/stages/#/tied_sync_ms", index), "no other rank has the weight");
}

static void check_agreement(ps_check *check)
{
    const ps_plan *plan = check->plan;
    const ps_plan_prediction *prediction = &plan->prediction;
    int64_t slowest = 0;
    for (int32_t hop = 0; hop < plan->num_hops; hop++)
        slowest = larger(slowest, plan->hop[hop].latency_ns);
    bool barrier = plan->inputs.job.optimizer_barrier;
    ps_check_equal_ns(check, "validation-hop", PS_AT("/prediction/validation_hop_ms"), prediction->validation_hop_ns,
                      barrier ? 0 : slowest);
    if (!barrier)
        ps_check_equal_ns(check, "barrier-time", PS_AT("/prediction/barrier_ms"), prediction->barrier_ns, 0);
}

typedef struct step_check {
    ps_check *check;
    const ps_check_times *times;
    ps_check_step *out;
} step_check;

// Starts and ends of every reduction of a rank, in turn.
static void reduce_rank(const step_check *run, int32_t rank)
{
    const ps_plan *plan = run->check->plan;
    bool every = plan->layout.zero == 2;
    int64_t computed = run->times->device[rank].last_end_ns;
    int64_t link = 0;
    int64_t total = 0;
    for (int32_t at = plan->schedule.first[rank]; at < plan->schedule.first[rank + 1]; at++) {
        ps_op op = plan->schedule.op[at];
        const ps_plan_stage *stage = &plan->stage[op.stage];
        if (!ends_gradient(op) || stage->grad_sync_ns == 0 || !(every || run->out->last_gradient[op.stage] == at))
            continue;
        int64_t takes = ps_check_duration(plan, stage, (ps_op_kind)op.kind);
        int64_t made = run->times->start_ns[at] + takes / stage->sync_buckets;
        int64_t whole = run->times->start_ns[at] + takes;
        int64_t begin = larger(link, plan->inputs.job.overlap_grad_sync ? made : computed);
        link = larger(begin + stage->grad_sync_ns, whole + bucket_time(stage->grad_sync_ns, stage->sync_buckets));
        total += stage->grad_sync_ns;
        if (run->out->reduce_start_ns) {
            run->out->reduce_start_ns[at] = begin;
            run->out->reduce_end_ns[at] = link;
        }
    }
    ps_check_rank_step *out = &run->out->rank[rank];
    out->sync_ns = total;
    out->exposed_ns = link > computed ? link - computed : 0;
    out->synced_ns = computed + out->exposed_ns;
}

// The stages with each weight: those of weight w are the result's first[w] up to first[w + 1].
static int32_t *holders_by_weight(const step_check *run, int32_t *first)
{
    const ps_plan *plan = run->check->plan;
    int32_t *holder = ps_new(run->check->arena, int32_t, plan->num_stages);
    int32_t *filled = ps_new(run->check->arena, int32_t, plan->num_stages);
    for (int32_t index = 0; index < plan->num_stages; index++)
        if (plan->stage[index].tied_sync_ns > 0)
            first[plan->stage[index].tied_to + 1]++;
    for (int32_t weight = 0; weight < plan->num_stages; weight++)
        first[weight + 1] += first[weight];
    for (int32_t index = 0; index < plan->num_stages; index++) {
        int32_t weight = plan->stage[index].tied_to;
        if (plan->stage[index].tied_sync_ns > 0)
            holder[first[weight] + filled[weight]++] = index;
    }
    return holder;
}

// Weight by weight, in the order of the first stages that have them.
static void reduce_tied(const step_check *run)
{
    const ps_plan *plan = run->check->plan;
    int32_t *first = ps_new(run->check->arena, int32_t, plan->num_stages + 1);
    const int32_t *holder = holders_by_weight(run, first);
    for (int32_t weight = 0; weight < plan->num_stages; weight++) {
        int64_t begin = 0;
        for (int32_t at = first[weight]; at < first[weight + 1]; at++)
            begin = larger(begin, run->out->rank[plan->stage[holder[at]].pp_rank].synced_ns);
        for (int32_t at = first[weight]; at < first[weight + 1]; at++) {
            const ps_plan_stage *stage = &plan->stage[holder[at]];
            ps_check_rank_step *out = &run->out->rank[stage->pp_rank];
            run->out->tied_start_ns[holder[at]] = begin;
            out->sync_ns += stage->tied_sync_ns;
            out->exposed_ns += stage->tied_sync_ns;
            out->synced_ns = begin + stage->tied_sync_ns;
        }
    }
}

// With a barrier at the last rank to have its gradients; else the state goes down to the last rank and up again.
static void agree(const step_check *run)
{
    const ps_plan *plan = run->check->plan;
    ps_check_rank_step *rank = run->out->rank;
    int64_t known = 0;
    for (int32_t index = 0; index < plan->num_devices; index++)
        known = larger(known + (index > 0 ? plan->prediction.validation_hop_ns : 0), rank[index].synced_ns);
    if (plan->inputs.job.optimizer_barrier)
        known += plan->prediction.barrier_ns;
    for (int32_t index = plan->num_devices - 1; index >= 0; index--) {
        rank[index].validated_ns = known + (plan->num_devices - 1 - index) * plan->prediction.validation_hop_ns;
        rank[index].steps_ns = plan->inputs.job.optimizer_barrier ? known : rank[index].synced_ns;
    }
}

// A gather in k buckets lets the stage's first forward begin with the first and follow the others; the forward would
// begin `wanted` after the rank's first one.
static void gather_rank(const step_check *run, int32_t rank)
{
    const ps_plan *plan = run->check->plan;
    ps_check_rank_step *out = &run->out->rank[rank];
    bool *met = run->out->met;
    int64_t first_start = run->times->device[rank].first_start_ns;
    int64_t stepped = out->steps_ns + plan->device[rank].optimizer_ns;
    for (int32_t at = plan->schedule.first[rank]; at < plan->schedule.first[rank + 1]; at++) {
        ps_op op = plan->schedule.op[at];
        const ps_plan_stage *stage = &plan->stage[op.stage];
        if (op.kind != PS_OP_FORWARD || met[op.stage])
            continue;
        met[op.stage] = true;
        run->out->gather_start_ns[op.stage] = stepped + out->gather_ns;
        if (stage->param_gather_ns > 0 && plan->inputs.job.overlap_grad_sync) {
            int64_t takes = ps_check_duration(plan, stage, PS_OP_FORWARD);
            int64_t beside = takes - takes / stage->sync_buckets;
            int64_t wait =
                larger(bucket_time(stage->param_gather_ns, stage->sync_buckets), stage->param_gather_ns - beside);
            int64_t wanted = run->times->start_ns[at] - first_start;
            out->late_ns = larger(out->late_ns, out->gather_ns + wait - wanted);
        }
        out->gather_ns += stage->param_gather_ns;
    }
    if (!plan->inputs.job.overlap_grad_sync)
        out->late_ns = out->gather_ns;
    out->ready_ns = stepped + out->late_ns;
}

static void compare_ranks(const step_check *run)
{
    ps_check *check = run->check;
    for (int32_t index = 0; index < check->plan->num_devices; index++) {
        const ps_plan_device *device = &check->plan->device[index];
        const ps_check_rank_step *should = &run->out->rank[index];
        ps_check_equal_ns(check, "grad-sync", PS_AT_1("/devices/#/grad_sync_ms", index), device->grad_sync_ns,
                          should->sync_ns);
        ps_check_equal_ns(check, "grad-sync", PS_AT_1("/devices/#/grad_sync_exposed_ms", index),
                          device->grad_sync_exposed_ns, should->exposed_ns);
        ps_check_equal_ns(check, "grad-sync", PS_AT_1("/devices/#/grad_sync_hidden_ms", index),
                          device->grad_sync_hidden_ns, should->sync_ns - should->exposed_ns);
        ps_check_equal_ns(check, "param-gather", PS_AT_1("/devices/#/param_gather_ms", index), device->param_gather_ns,
                          should->gather_ns);
        ps_check_equal_ns(check, "param-gather", PS_AT_1("/devices/#/param_gather_exposed_ms", index),
                          device->param_gather_exposed_ns, should->late_ns);
        ps_check_equal_ns(check, "validated", PS_AT_1("/devices/#/validated_ms", index), device->validated_ns,
                          should->validated_ns);
        ps_check_equal_ns(check, "device-done", PS_AT_1("/devices/#/done_ms", index), device->done_ns,
                          run->times->device[index].last_end_ns + should->exposed_ns + device->optimizer_ns +
                              should->late_ns);
    }
}

// From the first start of all to the last of each part, or without a barrier the longest of the ranks' own.
static void compare_prediction(const step_check *run)
{
    ps_check *check = run->check;
    const ps_plan *plan = check->plan;
    const ps_plan_prediction *prediction = &plan->prediction;
    int64_t begin = run->times->last_end_ns - run->times->makespan_ns;
    int64_t synced = 0;
    int64_t stepped = 0;
    int64_t ready = 0;
    for (int32_t index = 0; index < plan->num_devices; index++) {
        const ps_check_rank_step *rank = &run->out->rank[index];
        int64_t from = plan->inputs.job.optimizer_barrier ? begin : run->times->device[index].first_start_ns;
        synced = larger(synced, rank->synced_ns - from);
        stepped = larger(stepped, rank->steps_ns + plan->device[index].optimizer_ns - from);
        ready = larger(ready, rank->ready_ns - from);
    }
    int64_t ops = plan->inputs.job.optimizer_barrier ? run->times->makespan_ns : run->times->span_ns;
    ps_check_equal_ns(check, "grad-sync", PS_AT("/prediction/grad_sync_exposed_ms"), prediction->grad_sync_exposed_ns,
                      synced - ops);
    ps_check_equal_ns(check, "optimizer-time", PS_AT("/prediction/optimizer_ms"), prediction->optimizer_ns,
                      stepped - synced);
    ps_check_equal_ns(check, "param-gather", PS_AT("/prediction/param_gather_exposed_ms"),
                      prediction->param_gather_exposed_ns, ready - stepped);
}

void ps_check_step_compute(ps_check *check, const ps_check_times *times, ps_check_step *out)
{
    const ps_plan *plan = check->plan;
    int64_t ops = plan->schedule.first[plan->num_devices];
    *out = (ps_check_step){.rank = ps_new(check->arena, ps_check_rank_step, plan->num_devices),
                           .last_gradient = ps_new(check->arena, int32_t, plan->num_stages),
                           .tied_start_ns = ps_new(check->arena, int64_t, plan->num_stages),
                           .gather_start_ns = ps_new(check->arena, int64_t, plan->num_stages),
                           .met = ps_new(check->arena, bool, plan->num_stages)};
    if (plan->has_timeline) {
        out->reduce_start_ns = ps_new(check->arena, int64_t, ops);
        out->reduce_end_ns = ps_new(check->arena, int64_t, ops);
    }
    step_check run = {.check = check, .times = times, .out = out};
    for (int64_t at = 0; at < ops; at++)
        if (ends_gradient(plan->schedule.op[at]))
            out->last_gradient[plan->schedule.op[at].stage] = (int32_t)at;
    check_buckets(check);
    check_tied(check);
    check_agreement(check);
    for (int32_t rank = 0; rank < plan->num_devices; rank++)
        reduce_rank(&run, rank);
    reduce_tied(&run);
    agree(&run);
    for (int32_t rank = 0; rank < plan->num_devices; rank++)
        gather_rank(&run, rank);
    compare_ranks(&run);
    compare_prediction(&run);
}
