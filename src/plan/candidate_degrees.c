// SPDX-License-Identifier: Apache-2.0
//
// candidate_degrees.c: nested loops over tp, cp, pp, ep and micro-batch size.
#include <stdio.h>

#include "base/number.h"
#include "pipesched/limits.h"
#include "plan/candidate_walk.h"

// Micro-batch sizes tried when the job leaves them open: powers of two, since they map to GEMM tiles.
enum { MAX_AUTO_MICRO_BATCH = 32 };

bool ps_set_allows(const ps_int_set *set, int64_t value)
{
    if (set->count == 0)
        return true;
    for (int32_t index = 0; index < set->count; index++) {
        if (set->value[index] == value)
            return true;
    }
    return false;
}

void ps_walk_reject(ps_candidate_walk *walk, const ps_status *status)
{
    ps_candidates_reject(walk->arena, walk->list, status);
}

static void try_micro_batch(ps_candidate_walk *walk, int32_t size)
{
    const ps_job *job = walk->context->job;
    int64_t sequences = job->global_batch_size / walk->layout.dp; // of one replica; dp divides the batch here
    ps_status status = {0};

    if (sequences % size != 0) {
        ps_fail(&status, PS_ILLEGAL, "batch-divides",
                "global batch %lld / dp %d = %lld sequences a replica is no multiple of micro-batch size %d",
                (long long)job->global_batch_size, (int)walk->layout.dp, (long long)sequences, (int)size);
        ps_fail_hint(&status, "--global-batch-size %lld",
                     (long long)(ps_ceil_div(sequences, size) * size * walk->layout.dp));
        ps_walk_reject(walk, &status);
        return;
    }
    if (sequences / size > PS_MAX_MICROBATCHES) {
        ps_fail(&status, PS_ILLEGAL, "too-many-ops", "%lld micro-batches a replica, at most %d are planned",
                (long long)(sequences / size), (int)PS_MAX_MICROBATCHES);
        ps_walk_reject(walk, &status);
        return;
    }
    walk->layout.micro_batch_size = size;
    walk->layout.num_microbatches = (int32_t)(sequences / size);
    ps_walk_recompute(walk);
}

static void walk_micro_batches(ps_candidate_walk *walk)
{
    const ps_job *job = walk->context->job;
    if (job->micro_batch_size.count > 0) {
        for (int32_t index = 0; index < job->micro_batch_size.count; index++)
            try_micro_batch(walk, job->micro_batch_size.value[index]);
        return;
    }
    int64_t sequences = job->global_batch_size / walk->layout.dp;
    for (int32_t size = 1; size <= MAX_AUTO_MICRO_BATCH && sequences % size == 0; size *= 2)
        try_micro_batch(walk, size);
}

// Ranks of one pipeline rank among which experts are divided.
static int64_t expert_ranks(const ps_layout *layout)
{
    return (int64_t)layout->tp * layout->cp * layout->dp;
}

static void try_experts(ps_candidate_walk *walk, int64_t etp, int64_t ep)
{
    int64_t ranks = expert_ranks(&walk->layout);
    ps_status status = {0};

    if (ep > 1 && walk->experts == 0) {
        ps_fail(&status, PS_ILLEGAL, "ep-dense", "--ep %lld: the model has no experts to divide", (long long)ep);
        ps_fail_hint(&status, "--ep 1");
        ps_walk_reject(walk, &status);
        return;
    }
    if (ranks % (ep * etp) != 0) {
        ps_fail(&status, PS_ILLEGAL, "expert-degree",
                "ep %lld * etp %lld does not divide the tp * cp * dp = %lld ranks of a pipeline rank", (long long)ep,
                (long long)etp, (long long)ranks);
        ps_fail_hint(&status, "choose --ep and --etp so that their product divides %lld", (long long)ranks);
        ps_walk_reject(walk, &status);
        return;
    }
    walk->layout.ep = (int32_t)ep;
    walk->layout.etp = (int32_t)etp;
    walk_micro_batches(walk);
}

// Left open, experts are divided in every way that keeps them whole.
static void walk_ep(ps_candidate_walk *walk, int64_t etp)
{
    const ps_int_set *set = &walk->context->job->ep;
    int64_t ranks = expert_ranks(&walk->layout);

    for (int32_t index = 0; index < set->count; index++)
        try_experts(walk, etp, set->value[index]);
    if (set->count > 0)
        return;
    try_experts(walk, etp, 1);
    for (int64_t ep = 2; ep <= walk->experts && ep * etp <= ranks; ep++)
        if (walk->experts % ep == 0 && ranks % (ep * etp) == 0)
            try_experts(walk, etp, ep);
}

static void walk_etp(ps_candidate_walk *walk)
{
    const ps_int_set *set = &walk->context->job->etp;
    if (set->count == 0)
        walk_ep(walk, walk->layout.tp);
    for (int32_t index = 0; index < set->count; index++)
        walk_ep(walk, set->value[index]);
}

static const char *cp_text(const ps_candidate_walk *walk, char text[24])
{
    text[0] = '\0';
    if (walk->layout.cp > 1)
        snprintf(text, 24, " * cp %d", (int)walk->layout.cp);
    return text;
}

static const char *over_cp_text(const ps_candidate_walk *walk, char text[24])
{
    text[0] = '\0';
    if (walk->layout.cp > 1)
        snprintf(text, 24, " / cp %d", (int)walk->layout.cp);
    return text;
}

static void try_pp(ps_candidate_walk *walk, int64_t pp)
{
    const ps_plan_context *context = walk->context;
    int64_t shard = (int64_t)walk->layout.tp * walk->layout.cp;
    int64_t dp = context->num_gpus / (shard * pp);
    ps_status status = {0};
    char text[24];

    if (!ps_set_allows(&context->job->dp, dp)) {
        ps_fail(&status, PS_ILLEGAL, "gpus-used", "tp %d%s * pp %lld * dp would use %lld GPUs only with dp %lld",
                (int)walk->layout.tp, cp_text(walk, text), (long long)pp, (long long)context->num_gpus, (long long)dp);
        ps_fail_hint(&status, "leave one of --tp, --pp and --dp open, or let their product be %lld",
                     (long long)(context->num_gpus / walk->layout.cp));
        ps_walk_reject(walk, &status);
        return;
    }
    if (context->job->global_batch_size % dp != 0) {
        ps_fail(&status, PS_ILLEGAL, "batch-divides", "global batch %lld is no multiple of dp %lld",
                (long long)context->job->global_batch_size, (long long)dp);
        ps_fail_hint(&status, "--global-batch-size %lld",
                     (long long)(ps_ceil_div(context->job->global_batch_size, dp) * dp));
        ps_walk_reject(walk, &status);
        return;
    }
    walk->layout.pp = (int32_t)pp;
    walk->layout.dp = (int32_t)dp;
    walk_etp(walk);
}

// Degrees that do not divide the GPUs are ruled out by name only when the user asked for them.
static void walk_pp(ps_candidate_walk *walk)
{
    const ps_plan_context *context = walk->context;
    const ps_int_set *set = &context->job->pp;
    int64_t ranks = context->num_gpus / ((int64_t)walk->layout.tp * walk->layout.cp);
    char text[24];

    if (set->count > 0) {
        for (int32_t index = 0; index < set->count; index++) {
            if (ranks % set->value[index] == 0) {
                try_pp(walk, set->value[index]);
                continue;
            }
            ps_status status = {0};
            ps_fail(&status, PS_ILLEGAL, "gpus-used", "%lld GPUs / tp %d%s = %lld is no multiple of pp %d",
                    (long long)context->num_gpus, (int)walk->layout.tp, over_cp_text(walk, text), (long long)ranks,
                    (int)set->value[index]);
            ps_fail_hint(&status, "choose --pp among the divisors of %lld", (long long)ranks);
            ps_walk_reject(walk, &status);
        }
        return;
    }
    for (int64_t pp = 1; pp <= ranks && pp <= context->model->num_layers; pp++) {
        if (ranks % pp == 0)
            try_pp(walk, pp);
    }
}

static void walk_cp(ps_candidate_walk *walk)
{
    const ps_plan_context *context = walk->context;
    const ps_int_set *set = &context->job->cp;
    int64_t ranks = context->num_gpus / walk->layout.tp;

    walk->layout.cp = 1;
    if (set->count == 0)
        walk_pp(walk);
    for (int32_t index = 0; index < set->count; index++) {
        walk->layout.cp = set->value[index];
        if (ranks % walk->layout.cp == 0) {
            walk_pp(walk);
            continue;
        }
        ps_status status = {0};
        ps_fail(&status, PS_ILLEGAL, "gpus-used", "%lld GPUs / tp %d = %lld is no multiple of cp %d",
                (long long)context->num_gpus, (int)walk->layout.tp, (long long)ranks, (int)walk->layout.cp);
        ps_fail_hint(&status, "choose --cp among the divisors of %lld", (long long)ranks);
        ps_walk_reject(walk, &status);
    }
}

static void try_tp(ps_candidate_walk *walk, int64_t tp)
{
    const ps_plan_context *context = walk->context;
    int64_t domain = ps_group_domain_gpus(context->group);
    ps_status status = {0};

    if (domain % tp != 0 || context->num_gpus % tp != 0) {
        ps_fail(&status, PS_ILLEGAL, "tp-in-node", "tp %lld does not divide the %lld GPUs that one fast fabric joins",
                (long long)tp, (long long)domain);
        ps_fail_hint(&status, "choose --tp among the divisors of %lld", (long long)domain);
        ps_walk_reject(walk, &status);
        return;
    }
    walk->layout.tp = (int32_t)tp;
    walk_cp(walk);
}

void ps_candidates_enumerate(ps_arena *arena, const ps_plan_context *context, ps_candidate_list *out)
{
    ps_candidate_walk walk = {
        .arena = arena, .context = context, .list = out, .experts = ps_model_experts(context->model)};
    const ps_int_set *set = &context->job->tp;

    for (int32_t layer = 0; layer < context->model->num_layers; layer++)
        walk.has_parts = walk.has_parts || context->model->layer[layer].block;
    walk.layout.zero = context->job->zero;
    if (set->count > 0) {
        for (int32_t index = 0; index < set->count; index++)
            try_tp(&walk, set->value[index]);
        return;
    }
    for (int64_t tp = 1; tp <= context->group->gpus_per_node; tp++) {
        if (context->group->gpus_per_node % tp == 0)
            try_tp(&walk, tp);
    }
}
