// SPDX-License-Identifier: Apache-2.0
//
// order_search.c: seeds, then local search, for a split and a fused backward.
//
// Seeds are one micro-batch after the other, which fits wherever anything does, every named family that is legal here
// and fits, patterns, rounds and the list scheduler. The best of them goes on to the local search, so the result is
// never worse than any named schedule that fits. Where there are many micro-batches, most of the work is done for
// fewer, and the order is extended: what is hard about an order is how it begins and ends.
#include "pipesched/order_search.h"

#include <stddef.h>

#include "base/scratch.h"
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
static const budget CYCLES[] = {{15, 30000}, {40, 200000}};
static const budget POLICY[] = {{120, 200000}, {150, 300000}};
static const budget LOCAL[] = {{70, 150000}, {400, 1000000}};
static const budget LOCAL_EXTENDED[] = {{12, 30000}, {50, 100000}};

enum {
    LOST_PARTS = 1000,
    MOST_OPS_TO_MOVE = 1 << 17 // of an extended order, of which there is little to gain and much to keep in memory
};

// The search among the orders of one problem, in memory that lasts as long as it.
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

static void seed_from_family(search *s, const ps_schedule_family *family, const ps_schedule *schedule)
{
    ps_order *candidate = &s->desk.candidate;
    if (!ps_order_from_schedule(&s->problem, schedule, candidate) ||
        !ps_order_time(&s->problem, candidate, &s->desk.trial, s->named_ns - 1))
        return;
    s->named = family;
    s->named_ns = candidate->value_ns;
    if (candidate->value_ns < s->best.value_ns)
        ps_order_copy(&s->problem, candidate, &s->best);
}

static ps_code seed_from_families(void *context, ps_arena *scratch, ps_status *status)
{
    search *s = context;
    (void)status;
    for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        ps_status refusal = {0};
        ps_schedule schedule;
        if (family->splits_backward == s->problem.fused || family->recomputes)
            continue;
        if (ps_schedule_generate(scratch, family->kind, s->problem.pipeline, &schedule, &refusal) == PS_OK)
            seed_from_family(s, family, &schedule);
        ps_arena_reset(scratch);
    }
    return PS_OK;
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
    PS_TRY(ps_in_scratch(seed_from_families, s, status));
    if (s->options->start && pipeline->num_microbatches == s->microbatches)
        seed_from_start(s);
    s->seed_ns = s->best.value_ns;
    return PS_OK;
}

// One part of a search, in memory of its own.
typedef enum search_part { PATTERNS, ROUNDS, RULES, MOVES } search_part;

typedef struct part_call {
    search *s;
    search_part part;
    int64_t visits;
    int32_t more; // micro-batches that patterns count with
    ps_order *order;
} part_call;

static ps_code call_part(void *context, ps_arena *scratch, ps_status *status)
{
    part_call *call = context;
    ps_order_desk *desk = &call->s->desk;
    (void)status;
    switch (call->part) {
    case PATTERNS: return ps_order_cycles(scratch, desk, call->visits, call->more, call->order);
    case ROUNDS: return ps_order_rounds(scratch, desk, call->order);
    case RULES: return ps_order_policy(scratch, desk, call->visits, call->order);
    case MOVES: return ps_order_local(scratch, desk, call->visits, call->order);
    }
    return PS_OK;
}

static ps_code do_part(search *s, search_part part, const budget *budgets, int32_t divisor, ps_order *order,
                       ps_status *status)
{
    part_call call = {.s = s, .part = part, .visits = budgets ? visits_of(s, budgets) / divisor : 0, .order = order};
    return done(s) ? PS_OK : ps_in_scratch(call_part, &call, status);
}

static void take(search *s, const ps_order *order)
{
    if (order->value_ns < s->best.value_ns)
        ps_order_copy(&s->problem, order, &s->best);
}

// Everything, on one problem. `steady` is its best pattern, improved, by what it takes with `more` micro-batches.
static ps_code improve(search *s, int32_t more, ps_order *steady, ps_status *status)
{
    PS_TRY(do_part(s, ROUNDS, NULL, 1, &s->best, status));
    PS_TRY(do_part(s, RULES, POLICY, 1, &s->best, status));
    if (done(s))
        return PS_OK;
    part_call patterns = {.s = s, .part = PATTERNS, .visits = visits_of(s, CYCLES), .more = more, .order = steady};
    PS_TRY(ps_in_scratch(call_part, &patterns, status));
    take(s, steady);
    s->seed_ns = s->best.value_ns;
    if (more > 0 && steady->value_ns < INT64_MAX) {
        PS_TRY(do_part(s, MOVES, LOCAL, 2, steady, status));
        take(s, steady);
    }
    return do_part(s, MOVES, LOCAL, more > 0 ? 2 : 1, &s->best, status);
}

// How a search for fewer micro-batches went on with all of them.
typedef struct core_call {
    search *whole;
    int32_t microbatches;
    bool lost; // more for each further micro-batch than the fullest device needs
} core_call;

static bool lost_pace(const search *whole, const search *core)
{
    const ps_order_problem *problem = &whole->problem;
    int64_t pace = 0;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int64_t each = problem->work_ns[d] / problem->num_microbatches;
        pace = each > pace ? each : pace;
    }
    int64_t expected = core->best.value_ns + pace * (problem->num_microbatches - core->problem.num_microbatches);
    return whole->best.value_ns - expected > expected / LOST_PARTS;
}

// Solve for fewer micro-batches and extend what comes out.
static ps_code search_core(void *context, ps_arena *scratch, ps_status *status)
{
    core_call *call = context;
    search *s = call->whole;
    ps_pipeline pipeline = *s->problem.pipeline;
    search core = {.arena = scratch, .options = s->options, .microbatches = s->microbatches};
    ps_order steady;
    pipeline.num_microbatches = call->microbatches;
    PS_TRY(begin(&core, &pipeline, s->problem.fused, status));
    ps_order_new(scratch, &core.problem, &steady);
    ps_code code = improve(&core, s->problem.num_microbatches - call->microbatches, &steady, status);
    ps_order_extend(scratch, &core.problem, &core.best, &s->desk, &s->best);
    if (steady.value_ns < INT64_MAX)
        ps_order_extend(scratch, &core.problem, &steady, &s->desk, &s->best);
    s->desk.trial.visits += core.desk.trial.visits;
    call->lost = lost_pace(s, &core);
    return code;
}

static ps_code search_problem(search *s, ps_status *status)
{
    if (done(s))
        return PS_OK;
    core_call core = {.whole = s, .microbatches = ps_order_core_microbatches(&s->problem)};
    if (core.microbatches == 0) {
        ps_order steady;
        ps_order_new(s->arena, &s->problem, &steady);
        return improve(s, 0, &steady, status);
    }
    PS_TRY(ps_in_scratch(search_core, &core, status));
    PS_TRY(do_part(s, ROUNDS, NULL, 1, &s->best, status));
    if (core.lost)
        PS_TRY(do_part(s, RULES, POLICY, 1, &s->best, status));
    s->seed_ns = s->best.value_ns;
    if (s->problem.first[s->problem.num_devices] > MOST_OPS_TO_MOVE)
        return PS_OK;
    return do_part(s, MOVES, LOCAL_EXTENDED, 1, &s->best, status);
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
    ps_order_to_schedule(&s->problem, &s->best, &out->schedule);
}

typedef struct kind_call {
    const ps_pipeline *pipeline;
    const ps_order_options *options;
    ps_order_result *out; // whose schedule has room for any order
    bool fused;
} kind_call;

// With a whole or a split backward.
static ps_code search_kind(void *context, ps_arena *scratch, ps_status *status)
{
    kind_call *call = context;
    search s = {.arena = scratch, .options = call->options, .microbatches = call->pipeline->num_microbatches};
    PS_TRY(begin(&s, call->pipeline, call->fused, status));
    ps_code code = search_problem(&s, status);
    if (code == PS_OK || code == PS_TIME_LIMIT || code == PS_STOPPED) {
        call->out->limit_hit = code != PS_OK;
        keep(&s, call->out);
        return PS_OK;
    }
    return code;
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

ps_code ps_order_searchable(const ps_pipeline *pipeline, ps_status *status)
{
    if (pipeline->num_routes > 0)
        return ps_fail(status, PS_ILLEGAL, "routes-not-searched",
                       "orders are searched for where every micro-batch visits all stages, the pipeline has %d routes",
                       (int)pipeline->num_routes);
    PS_TRY(check_recompute(pipeline, status));
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
    out->schedule.num_devices = pipeline->num_devices;
    out->schedule.first = ps_new(arena, int32_t, pipeline->num_devices + 1);
    out->schedule.op = ps_new_raw(arena, ps_op, 3 * (int64_t)pipeline->num_stages * pipeline->num_microbatches);
    ps_status refusal[2] = {{0}, {0}};
    for (int fused = 0; fused < 2 && !out->limit_hit; fused++) {
        if (options->backward == (fused ? PS_ORDER_SPLIT : PS_ORDER_FUSED))
            continue;
        kind_call call = {.pipeline = pipeline, .options = options, .out = out, .fused = fused};
        // The other kind of backward may fit.
        if (ps_in_scratch(search_kind, &call, &refusal[fused]) == PS_EXHAUSTED) {
            *status = refusal[fused];
            return PS_EXHAUSTED;
        }
    }
    if (out->value_ns == INT64_MAX) {
        *status = refusal[options->backward != PS_ORDER_SPLIT];
        return status->code;
    }
    out->proved = out->value_ns == out->bound_ns;
    out->limit_hit = out->limit_hit && !out->proved; // nothing was left to find
    return ps_simulate(arena, pipeline, &out->schedule, &out->timeline, status);
}
