// SPDX-License-Identifier: Apache-2.0
//
// order_search.c: seeds, then local search, for a split and a fused backward.
//
// Seeds are one micro-batch after the other, which fits wherever anything does, every named family that is legal here
// and fits, patterns, rounds and the list scheduler. The best of them goes on to the local search, so the result is
// never worse than any named schedule that fits. Where there are many micro-batches, most of the work is done for
// fewer, and the order is extended: what is hard about an order is how it begins and ends.
#include "pipesched/order_search.h"

#include "search/order_cycle.h"
#include "search/order_extend.h"
#include "search/order_local.h"
#include "search/order_policy.h"
#include "search/order_rounds.h"

// Ops looked at, at effort 1: so many times the ops of the schedule, but no fewer than the second figure, which keeps
// small pipelines well below a tenth of a second.
typedef struct budget {
    int32_t rounds;
    int32_t least;
} budget;

// Of pipelines with one stage a device and with several, for which patterns and moves do more than rules.
static const budget CYCLES[] = {{20, 50000}, {40, 200000}};
static const budget POLICY[] = {{150, 250000}, {150, 300000}};
static const budget LOCAL[] = {{100, 300000}, {400, 1000000}};
static const budget LOCAL_EXTENDED[] = {{20, 50000}, {50, 100000}};

enum { LOST_PARTS = 1000 };

// The search among the orders of one problem.
typedef struct search {
    ps_arena *arena;
    const ps_order_options *options;
    int32_t microbatches; // of the whole
    ps_order_problem problem;
    ps_order_desk desk;
    ps_order best;
    const ps_schedule_family *named;
    int64_t named_ns;
    int64_t seed_ns;
} search;

static int64_t visits_of(const search *s, const budget *budgets)
{
    budget b = budgets[s->problem.num_stages > s->problem.num_devices];
    int64_t visits = (int64_t)b.rounds * s->problem.first[s->problem.num_devices];
    return (visits > b.least ? visits : b.least) * s->options->effort;
}

static bool done(const search *s)
{
    return s->best.value_ns <= s->desk.bound_ns;
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
    ps_order_time(problem, &s->best, &s->desk.trial, INT64_MAX);
}

static void seed_from_families(search *s)
{
    ps_order *candidate = &s->desk.candidate;
    for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        ps_status refusal = {0};
        ps_schedule schedule;
        if (family->splits_backward == s->problem.fused ||
            ps_schedule_generate(s->arena, family->kind, s->problem.pipeline, &schedule, &refusal) != PS_OK)
            continue;
        if (!ps_order_from_schedule(&s->problem, &schedule, candidate) ||
            !ps_order_time(&s->problem, candidate, &s->desk.trial, s->named_ns - 1))
            continue;
        s->named = family;
        s->named_ns = candidate->value_ns;
        if (candidate->value_ns < s->best.value_ns)
            ps_order_copy(&s->problem, candidate, &s->best);
    }
}

static void seed_from_start(search *s)
{
    ps_order *candidate = &s->desk.candidate;
    if (ps_order_from_schedule(&s->problem, s->options->start, candidate) &&
        ps_order_time(&s->problem, candidate, &s->desk.trial, s->best.value_ns - 1))
        ps_order_copy(&s->problem, candidate, &s->best);
}

// The problem with its first orders. PS_INFEASIBLE when nothing fits.
static ps_code begin(search *s, const ps_pipeline *pipeline, bool fused, ps_status *status)
{
    const char *by;
    ps_order_problem_set(s->arena, pipeline, fused, s->options->objective == PS_ORDER_SPAN, &s->problem);
    PS_TRY(ps_order_problem_fits(&s->problem, status));
    ps_order_new(s->arena, &s->problem, &s->best);
    ps_order_desk_new(s->arena, &s->problem, &s->desk);
    s->desk.bound_ns = ps_order_bound(pipeline, s->options, &by);
    s->desk.control = s->options->control;
    s->named_ns = INT64_MAX;
    seed_in_sequence(s);
    seed_from_families(s);
    if (s->options->start && pipeline->num_microbatches == s->microbatches)
        seed_from_start(s);
    s->seed_ns = s->best.value_ns;
    return PS_OK;
}

// Everything, on one problem. `steady` is its best pattern, improved, by what it takes with `more` micro-batches.
static ps_code improve(search *s, int32_t more, ps_order *steady)
{
    if (done(s))
        return PS_OK;
    PS_TRY(ps_order_cycles(s->arena, &s->desk, visits_of(s, CYCLES), more, steady));
    if (steady->value_ns < s->best.value_ns)
        ps_order_copy(&s->problem, steady, &s->best);
    PS_TRY(ps_order_rounds(s->arena, &s->desk, &s->best));
    PS_TRY(ps_order_policy(s->arena, &s->desk, visits_of(s, POLICY), &s->best));
    s->seed_ns = s->best.value_ns;
    if (more > 0 && steady->value_ns < INT64_MAX && !done(s)) {
        PS_TRY(ps_order_local(s->arena, &s->desk, visits_of(s, LOCAL) / 2, steady));
        if (steady->value_ns < s->best.value_ns)
            ps_order_copy(&s->problem, steady, &s->best);
    }
    return done(s) ? PS_OK : ps_order_local(s->arena, &s->desk, visits_of(s, LOCAL) / (more > 0 ? 2 : 1), &s->best);
}

// Solve for fewer micro-batches and extend what comes out. `*lost`: that took more for each further micro-batch than
// the fullest device needs.
static ps_code search_core(search *s, int32_t microbatches, bool *lost, ps_status *status)
{
    ps_pipeline pipeline = *s->problem.pipeline;
    search core = {.arena = s->arena, .options = s->options, .microbatches = s->microbatches};
    ps_order steady;
    pipeline.num_microbatches = microbatches;
    PS_TRY(begin(&core, &pipeline, s->problem.fused, status));
    ps_order_new(s->arena, &core.problem, &steady);
    steady.value_ns = INT64_MAX;
    ps_code code = improve(&core, s->problem.num_microbatches - microbatches, &steady);
    ps_order_extend(s->arena, &core.problem, &core.best, &s->desk, &s->best);
    if (steady.value_ns < INT64_MAX)
        ps_order_extend(s->arena, &core.problem, &steady, &s->desk, &s->best);
    s->desk.trial.visits += core.desk.trial.visits;
    int64_t pace = 0;
    for (int32_t d = 0; d < s->problem.num_devices; d++) {
        int64_t each = s->problem.work_ns[d] / s->problem.num_microbatches;
        pace = each > pace ? each : pace;
    }
    int64_t expected = core.best.value_ns + pace * (s->problem.num_microbatches - microbatches);
    *lost = s->best.value_ns - expected > expected / LOST_PARTS;
    return code;
}

static ps_code search_kind(search *s, bool fused, const ps_pipeline *pipeline, ps_status *status)
{
    PS_TRY(begin(s, pipeline, fused, status));
    if (done(s))
        return PS_OK;
    int32_t core = ps_order_core_microbatches(&s->problem);
    if (core == 0) {
        ps_order steady;
        ps_order_new(s->arena, &s->problem, &steady);
        return improve(s, 0, &steady);
    }
    bool lost = false;
    PS_TRY(search_core(s, core, &lost, status));
    PS_TRY(ps_order_rounds(s->arena, &s->desk, &s->best));
    if (lost && !done(s))
        PS_TRY(ps_order_policy(s->arena, &s->desk, visits_of(s, POLICY), &s->best));
    s->seed_ns = s->best.value_ns;
    return done(s) ? PS_OK : ps_order_local(s->arena, &s->desk, visits_of(s, LOCAL_EXTENDED), &s->best);
}

static void keep(const search *s, ps_order_result *out)
{
    out->visits += s->desk.trial.visits;
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
ps_code ps_order_searchable(const ps_pipeline *pipeline, ps_status *status)
{
    if (pipeline->num_routes > 0)
        return ps_fail(status, PS_ILLEGAL, "routes-not-searched",
                       "orders are searched for where every micro-batch visits all stages, the pipeline has %d routes",
                       (int)pipeline->num_routes);
    int64_t ops = 3 * (int64_t)pipeline->num_stages * pipeline->num_microbatches;
    if (ops <= PS_ORDER_MAX_OPS)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "too-many-ops-to-search",
            "%d stages * %d micro-batches * 3 ops (F, I, W) = %lld ops, at most %d are searched",
            (int)pipeline->num_stages, (int)pipeline->num_microbatches, (long long)ops, (int)PS_ORDER_MAX_OPS);
    return ps_fail_hint(status, "use a named schedule, or at most %d micro-batches",
                        (int)(PS_ORDER_MAX_OPS / 3 / pipeline->num_stages));
}

ps_code ps_order_search(ps_arena *arena, const ps_pipeline *pipeline, const ps_order_options *options,
                        ps_order_result *out, ps_status *status)
{
    *out = (ps_order_result){.value_ns = INT64_MAX, .named_ns = INT64_MAX};
    PS_TRY(ps_order_searchable(pipeline, status));
    out->bound_ns = ps_order_bound(pipeline, options, &out->bound_by);
    ps_status refusal[2] = {{0}, {0}};
    for (int fused = 0; fused < 2 && !out->limit_hit; fused++) {
        if (options->backward == (fused ? PS_ORDER_SPLIT : PS_ORDER_FUSED))
            continue;
        search s = {.arena = arena, .options = options, .microbatches = pipeline->num_microbatches};
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
