// SPDX-License-Identifier: Apache-2.0
//
// order_search.c: seeds, then local search, for a split and a fused backward.
//
// Seeds are one micro-batch after the other, which fits wherever anything does, every named family that is legal here
// and fits, and the list scheduler. The better of them goes on to the local search, so the result is never worse than
// any named schedule that fits.
#include "pipesched/order_search.h"

#include "search/order_cycle.h"
#include "search/order_local.h"
#include "search/order_policy.h"

// Ops placed and timed at effort 1: so many times the ops of the schedule, but no fewer than the second figure, which
// keeps small pipelines well below a tenth of a second.
enum { POLICY_ROUNDS = 300, LEAST_POLICY_VISITS = 450000, LOCAL_ROUNDS = 450, LEAST_LOCAL_VISITS = 1400000 };

typedef struct search {
    ps_arena *arena;
    const ps_order_options *options;
    ps_order_problem problem;
    ps_order best;
    ps_order_trial trial;
    int64_t bound_ns;
    const ps_schedule_family *named;
    int64_t named_ns;
    int64_t seed_ns;
} search;

static int64_t budget(const search *s, int64_t rounds, int64_t least)
{
    int64_t visits = rounds * s->problem.first[s->problem.num_devices];
    return (visits > least ? visits : least) * s->options->effort;
}

// One micro-batch after the other.
static void seed_in_sequence(search *s)
{
    const ps_order_problem *problem = &s->problem;
    int32_t *next = ps_new_raw(s->arena, int32_t, problem->num_devices);
    for (int32_t d = 0; d < problem->num_devices; d++)
        next[d] = problem->first[d];
    for (int32_t k = 0; k < problem->num_microbatches; k++) {
        for (int32_t i = 0; i < problem->num_stages; i++)
            s->best.op[next[problem->stage[i].device]++] = (ps_order_op){k, (uint16_t)i, PS_STEP_FORWARD};
        for (int32_t i = problem->num_stages - 1; i >= 0; i--) {
            int32_t *at = &next[problem->stage[i].device];
            s->best.op[(*at)++] = (ps_order_op){k, (uint16_t)i, PS_STEP_GRADIENT};
            if (!problem->fused)
                s->best.op[(*at)++] = (ps_order_op){k, (uint16_t)i, PS_STEP_WEIGHT};
        }
    }
    ps_order_time(problem, &s->best, &s->trial, INT64_MAX);
}

static void seed_from_families(search *s)
{
    ps_order candidate;
    ps_order_new(s->arena, &s->problem, &candidate);
    for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        ps_status refusal = {0};
        ps_schedule schedule;
        if (family->splits_backward == s->problem.fused || family->recomputes ||
            ps_schedule_generate(s->arena, family->kind, s->problem.pipeline, &schedule, &refusal) != PS_OK)
            continue;
        if (!ps_order_from_schedule(&s->problem, &schedule, &candidate) ||
            !ps_order_time(&s->problem, &candidate, &s->trial, s->named_ns - 1))
            continue;
        s->named = family;
        s->named_ns = candidate.value_ns;
        if (candidate.value_ns < s->best.value_ns)
            ps_order_copy(&s->problem, &candidate, &s->best);
    }
}

static ps_code search_kind(search *s, bool fused, const ps_pipeline *pipeline, ps_status *status)
{
    bool span = s->options->objective == PS_ORDER_SPAN;
    ps_order_problem_set(s->arena, pipeline, fused, span, &s->problem);
    PS_TRY(ps_order_problem_fits(&s->problem, status));
    ps_order_new(s->arena, &s->problem, &s->best);
    ps_order_trial_new(s->arena, &s->problem, &s->trial);
    s->named_ns = INT64_MAX;
    seed_in_sequence(s);
    seed_from_families(s);
    if (s->best.value_ns > s->bound_ns)
        ps_order_cycles(s->arena, &s->problem, &s->best, &s->trial);
    ps_policy_options policy = {.visits = budget(s, POLICY_ROUNDS, LEAST_POLICY_VISITS),
                                .bound_ns = s->bound_ns,
                                .control = s->options->control};
    ps_code code = ps_order_policy(s->arena, &s->problem, &policy, &s->best, &s->trial);
    s->seed_ns = s->best.value_ns;
    ps_local_options local = {
        .visits = budget(s, LOCAL_ROUNDS, LEAST_LOCAL_VISITS), .bound_ns = s->bound_ns, .control = s->options->control};
    if (code == PS_OK)
        code = ps_order_local(s->arena, &s->problem, &local, &s->best, &s->trial);
    return code;
}

static void find_bound(const ps_pipeline *pipeline, const ps_order_options *options, ps_order_result *out)
{
    out->bound_ns = INT64_MAX;
    for (int fused = 0; fused < 2; fused++) {
        if (options->backward == (fused ? PS_ORDER_SPLIT : PS_ORDER_FUSED))
            continue;
        ps_schedule_bound bound;
        ps_schedule_bound_compute(pipeline, fused, &bound);
        bool span = options->objective == PS_ORDER_SPAN;
        int64_t value = span ? bound.span_ns : bound.makespan_ns;
        if (value >= out->bound_ns)
            continue;
        out->bound_ns = value;
        out->bound_by = span ? bound.span_by : bound.makespan_by;
    }
}

static void keep(const search *s, ps_order_result *out)
{
    out->visits += s->trial.visits;
    if (s->named_ns < out->named_ns) {
        out->named = s->named;
        out->named_ns = s->named_ns;
    }
    if (s->best.value_ns >= out->value_ns)
        return;
    out->fused = s->problem.fused;
    out->value_ns = s->best.value_ns;
    out->seed_ns = s->seed_ns;
    ps_order_to_schedule(s->arena, &s->problem, &s->best, &out->schedule);
}

// Several orders are kept at a time, at some hundred bytes an op.
static ps_code check_size(const ps_pipeline *pipeline, ps_status *status)
{
    int64_t ops = 3 * (int64_t)pipeline->num_stages * pipeline->num_microbatches;
    if (ops <= PS_ORDER_MAX_OPS)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "too-many-ops-to-search",
            "%d stages * %d micro-batches * 3 ops (F, I, W) = %lld ops, at most %d are searched",
            (int)pipeline->num_stages, (int)pipeline->num_microbatches, (long long)ops, (int)PS_ORDER_MAX_OPS);
    return ps_fail_hint(status, "use a named schedule, or at most %d micro-batches",
                        (int)(PS_ORDER_MAX_OPS / 3 / pipeline->num_stages));
}

// F, I, W and B are moved; where R stands is a choice of its own.
static ps_code check_recompute(const ps_pipeline *pipeline, ps_status *status)
{
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        if (pipeline->stage[s].duration_ns[PS_OP_RECOMPUTE] == 0)
            continue;
        ps_fail(status, PS_ILLEGAL, "recompute-not-searched",
                "stage %d recomputes by an op R, which the search does not place", (int)s);
        return ps_fail_hint(status, "use gpipe-recompute or rules with R, or count the recompute in B or I");
    }
    return PS_OK;
}

ps_code ps_order_search(ps_arena *arena, const ps_pipeline *pipeline, const ps_order_options *options,
                        ps_order_result *out, ps_status *status)
{
    *out = (ps_order_result){.value_ns = INT64_MAX, .named_ns = INT64_MAX};
    PS_TRY(check_size(pipeline, status));
    PS_TRY(check_recompute(pipeline, status));
    find_bound(pipeline, options, out);
    ps_status refusal[2] = {{0}, {0}};
    for (int fused = 0; fused < 2 && !out->limit_hit; fused++) {
        if (options->backward == (fused ? PS_ORDER_SPLIT : PS_ORDER_FUSED))
            continue;
        search s = {.arena = arena, .options = options, .bound_ns = out->bound_ns};
        ps_code code = search_kind(&s, fused, pipeline, &refusal[fused]);
        if (code != PS_OK && code != PS_TIME_LIMIT && code != PS_STOPPED)
            continue; // the other kind of backward may fit
        out->limit_hit = code != PS_OK;
        keep(&s, out);
    }
    if (out->value_ns == INT64_MAX) {
        *status = refusal[options->backward != PS_ORDER_SPLIT];
        return status->code;
    }
    out->proved = out->value_ns == out->bound_ns;
    return ps_simulate(arena, pipeline, &out->schedule, &out->timeline, status);
}
