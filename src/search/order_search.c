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

// The search among the orders of one problem. The problem and the best order last as long as it; a desk, which is most
// of the memory, is there only while its orders are worked on.
typedef struct search {
    ps_arena *arena;
    const ps_order_options *options;
    int32_t microbatches; // of the whole
    ps_order_problem problem;
    ps_order_desk desk; // with what all desks have in common while there is none
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
static void seed_in_sequence(search *s, ps_arena *scratch)
{
    const ps_order_problem *problem = &s->problem;
    int32_t *next = ps_new_raw(scratch, int32_t, problem->num_devices);
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

// The problem, still without any order. PS_INFEASIBLE when nothing fits.
static ps_code begin(search *s, const ps_pipeline *pipeline, bool fused, ps_status *status)
{
    const char *by;
    ps_order_problem_set(s->arena, pipeline, fused, s->options->objective == PS_ORDER_SPAN, &s->problem);
    PS_TRY(ps_order_problem_fits(&s->problem, status));
    ps_order_new(s->arena, &s->problem, &s->best);
    s->desk.bound_ns = ps_order_bound(pipeline, s->options, &by);
    s->desk.control = s->options->control;
    s->named_ns = INT64_MAX;
    return PS_OK;
}

typedef struct desk_call {
    search *s;
    ps_scratch_fn work;
    void *context; // of the work
} desk_call;

static ps_code sit_down(void *context, ps_arena *scratch, ps_status *status)
{
    desk_call *call = context;
    ps_order_desk *desk = &call->s->desk;
    ps_order_desk fresh;
    ps_order_desk_new(scratch, &call->s->problem, &fresh);
    fresh.control = desk->control;
    fresh.bound_ns = desk->bound_ns;
    fresh.trial.visits = desk->trial.visits;
    *desk = fresh;
    return call->work(call->context, scratch, status);
}

// Work at a desk of its own.
static ps_code at_desk(search *s, ps_scratch_fn work, void *context, ps_status *status)
{
    desk_call call = {.s = s, .work = work, .context = context};
    return ps_in_scratch(sit_down, &call, status);
}

static void seed_from_start(search *s)
{
    ps_order *candidate = &s->desk.candidate;
    if (ps_order_from_schedule(&s->problem, s->options->start, &s->desk.trial, candidate) &&
        ps_order_time(&s->problem, candidate, &s->desk.trial, s->best.value_ns - 1))
        ps_order_copy(&s->problem, candidate, &s->best);
}

static ps_code seed_at_desk(void *context, ps_arena *scratch, ps_status *status)
{
    search *s = context;
    (void)status;
    seed_in_sequence(s, scratch);
    if (s->options->start && s->problem.num_microbatches == s->microbatches)
        seed_from_start(s);
    return PS_OK;
}

// A named family's schedule, which is made without a desk: some take as much memory.
typedef struct family_call {
    search *s;
    const ps_schedule_family *family;
    ps_schedule schedule;
} family_call;

static ps_code time_family(void *context, ps_arena *scratch, ps_status *status)
{
    family_call *call = context;
    search *s = call->s;
    ps_order *candidate = &s->desk.candidate;
    (void)scratch;
    (void)status;
    if (!ps_order_from_schedule(&s->problem, &call->schedule, &s->desk.trial, candidate) ||
        !ps_order_time(&s->problem, candidate, &s->desk.trial, s->named_ns - 1))
        return PS_OK;
    s->named = call->family;
    s->named_ns = candidate->value_ns;
    if (candidate->value_ns < s->best.value_ns)
        ps_order_copy(&s->problem, candidate, &s->best);
    return PS_OK;
}

// Nothing where the family is not legal here.
static ps_code seed_from_family(void *context, ps_arena *scratch, ps_status *status)
{
    family_call *call = context;
    const ps_pipeline *pipeline = call->s->problem.pipeline;
    ps_status refusal = {0};
    if (ps_schedule_generate(scratch, call->family->kind, pipeline, &call->schedule, &refusal) == PS_OK)
        return at_desk(call->s, time_family, call, status);
    if (refusal.code != PS_EXHAUSTED)
        return PS_OK;
    *status = refusal;
    return PS_EXHAUSTED;
}

// The first orders. PS_EXHAUSTED.
static ps_code seed(search *s, ps_status *status)
{
    PS_TRY(at_desk(s, seed_at_desk, s, status));
    for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        family_call call = {.s = s, .family = ps_schedule_family_at((ps_schedule_kind)kind)};
        if (call.family->splits_backward != s->problem.fused && !call.family->recomputes)
            PS_TRY(ps_in_scratch(seed_from_family, &call, status));
    }
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

// Patterns, by what they take with `more` micro-batches, and the best of them improved by moves where that differs from
// what it takes here.
static ps_code improve_patterns(search *s, int32_t more, ps_order *steady, ps_status *status)
{
    part_call patterns = {.s = s, .part = PATTERNS, .visits = visits_of(s, CYCLES), .more = more, .order = steady};
    PS_TRY(ps_in_scratch(call_part, &patterns, status));
    take(s, steady);
    s->seed_ns = s->best.value_ns;
    if (more == 0 || steady->value_ns == INT64_MAX)
        return PS_OK;
    PS_TRY(do_part(s, MOVES, LOCAL, 2, steady, status));
    take(s, steady);
    return PS_OK;
}

static ps_code try_patterns(void *context, ps_arena *scratch, ps_status *status)
{
    search *s = context;
    ps_order steady;
    ps_order_new(scratch, &s->problem, &steady);
    return improve_patterns(s, 0, &steady, status);
}

// Everything, on one problem that is searched as it is.
static ps_code search_whole(void *context, ps_arena *scratch, ps_status *status)
{
    search *s = context;
    (void)scratch;
    PS_TRY(do_part(s, ROUNDS, NULL, 1, &s->best, status));
    PS_TRY(do_part(s, RULES, POLICY, 1, &s->best, status));
    if (done(s))
        return PS_OK;
    PS_TRY(ps_in_scratch(try_patterns, s, status));
    return do_part(s, MOVES, LOCAL, 1, &s->best, status);
}

// A search for fewer micro-batches, and how it went on with all of them.
typedef struct core_search {
    search s;
    search *whole;
    ps_order steady;    // the best pattern, improved
    ps_order *extended; // of the two, the one at hand
} core_search;

static bool lost_pace(const core_search *core)
{
    const ps_order_problem *problem = &core->whole->problem;
    int64_t pace = 0;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int64_t each = problem->work_ns[d] / problem->num_microbatches;
        pace = each > pace ? each : pace;
    }
    int64_t expected = core->s.best.value_ns + pace * (problem->num_microbatches - core->s.problem.num_microbatches);
    return core->whole->best.value_ns - expected > expected / LOST_PARTS;
}

static ps_code improve_core(void *context, ps_arena *scratch, ps_status *status)
{
    core_search *core = context;
    search *s = &core->s;
    (void)scratch;
    PS_TRY(do_part(s, ROUNDS, NULL, 1, &s->best, status));
    PS_TRY(do_part(s, RULES, POLICY, 1, &s->best, status));
    if (done(s))
        return PS_OK;
    int32_t more = core->whole->problem.num_microbatches - s->problem.num_microbatches;
    PS_TRY(improve_patterns(s, more, &core->steady, status));
    return do_part(s, MOVES, LOCAL, 2, &s->best, status);
}

static ps_code extend_core(void *context, ps_arena *scratch, ps_status *status)
{
    core_search *core = context;
    (void)status;
    ps_order_extend(scratch, &core->s.problem, core->extended, &core->whole->desk, &core->whole->best);
    return PS_OK;
}

typedef struct core_call {
    search *whole;
    int32_t microbatches;
    bool lost; // more for each further micro-batch than the fullest device needs
} core_call;

// Solve for fewer micro-batches and extend what comes out, even where it was stopped.
static ps_code search_core(void *context, ps_arena *scratch, ps_status *status)
{
    core_call *call = context;
    search *whole = call->whole;
    ps_pipeline pipeline = *whole->problem.pipeline;
    core_search core = {
        .s = {.arena = scratch, .options = whole->options, .microbatches = whole->microbatches},
        .whole = whole,
    };
    pipeline.num_microbatches = call->microbatches;
    PS_TRY(begin(&core.s, &pipeline, whole->problem.fused, status));
    PS_TRY(seed(&core.s, status));
    ps_order_new(scratch, &core.s.problem, &core.steady);
    ps_code code = done(&core.s) ? PS_OK : at_desk(&core.s, improve_core, &core, status);
    if (code == PS_EXHAUSTED)
        return code;
    core.extended = &core.s.best;
    PS_TRY(at_desk(whole, extend_core, &core, status));
    core.extended = &core.steady;
    if (core.steady.value_ns < INT64_MAX)
        PS_TRY(at_desk(whole, extend_core, &core, status));
    whole->desk.trial.visits += core.s.desk.trial.visits;
    call->lost = lost_pace(&core);
    return code;
}

static ps_code improve_extended(void *context, ps_arena *scratch, ps_status *status)
{
    core_call *call = context;
    search *s = call->whole;
    (void)scratch;
    PS_TRY(do_part(s, ROUNDS, NULL, 1, &s->best, status));
    if (call->lost)
        PS_TRY(do_part(s, RULES, POLICY, 1, &s->best, status));
    s->seed_ns = s->best.value_ns;
    if (s->problem.first[s->problem.num_devices] > MOST_OPS_TO_MOVE)
        return PS_OK;
    return do_part(s, MOVES, LOCAL_EXTENDED, 1, &s->best, status);
}

static ps_code search_problem(search *s, ps_status *status)
{
    core_call core = {.whole = s, .microbatches = ps_order_core_microbatches(&s->problem)};
    PS_TRY(seed(s, status));
    if (done(s))
        return PS_OK;
    if (core.microbatches == 0)
        return at_desk(s, search_whole, s, status);
    PS_TRY(ps_in_scratch(search_core, &core, status));
    return at_desk(s, improve_extended, &core, status);
}

// The searches with a split and with a whole backward, and what came out.
typedef struct kinds_call {
    ps_arena *arena; // of the result
    const ps_pipeline *pipeline;
    const ps_order_options *options;
    ps_order_result *out;
    search kind[2];
    const search *best; // NULL: nothing fits
    ps_status *refusal; // [2]
} kinds_call;

static void keep(kinds_call *call, const search *s)
{
    ps_order_result *out = call->out;
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
    call->best = s;
}

static ps_code search_kind(kinds_call *call, search *s, bool fused, ps_status *status)
{
    PS_TRY(begin(s, call->pipeline, fused, status));
    ps_code code = search_problem(s, status);
    if (code == PS_OK || code == PS_TIME_LIMIT || code == PS_STOPPED) {
        call->out->limit_hit = code != PS_OK;
        keep(call, s);
        return PS_OK;
    }
    return code;
}

static ps_code give_schedule(void *context, ps_status *status)
{
    kinds_call *call = context;
    const ps_order_problem *problem = &call->best->problem;
    ps_schedule *out = &call->out->schedule;
    (void)status;
    out->num_devices = problem->num_devices;
    out->first = ps_new(call->arena, int32_t, problem->num_devices + 1);
    out->op = ps_new_raw(call->arena, ps_op, problem->first[problem->num_devices]);
    ps_order_to_schedule(problem, &call->best->best, out);
    return PS_OK;
}

// The schedule is made while the order is still there, in the arena of the result, whose exhaustion must not jump over
// the scratch memory.
static ps_code search_kinds(void *context, ps_arena *scratch, ps_status *status)
{
    kinds_call *call = context;
    for (int fused = 0; fused < 2 && !call->out->limit_hit; fused++) {
        if (call->options->backward == (fused ? PS_ORDER_SPLIT : PS_ORDER_FUSED))
            continue;
        search *s = &call->kind[fused];
        *s = (search){.arena = scratch, .options = call->options, .microbatches = call->pipeline->num_microbatches};
        // The other kind of backward may fit.
        if (search_kind(call, s, fused, &call->refusal[fused]) == PS_EXHAUSTED) {
            *status = call->refusal[fused];
            return PS_EXHAUSTED;
        }
    }
    return call->best ? ps_guard(give_schedule, call, call->arena, status) : PS_OK;
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
    ps_status refusal[2] = {{0}, {0}};
    kinds_call call = {.arena = arena, .pipeline = pipeline, .options = options, .out = out, .refusal = refusal};
    PS_TRY(ps_in_scratch(search_kinds, &call, status));
    if (out->value_ns == INT64_MAX) {
        *status = refusal[options->backward != PS_ORDER_SPLIT];
        return status->code;
    }
    out->proved = out->value_ns == out->bound_ns;
    out->limit_hit = out->limit_hit && !out->proved; // nothing was left to find
    return ps_simulate(arena, pipeline, &out->schedule, &out->timeline, status);
}
