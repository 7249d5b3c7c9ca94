// SPDX-License-Identifier: Apache-2.0
//
// searched_phase.c: many layouts are surveyed, few searched.
//
// A survey is about as dear as evaluating the named families of a layout; a search costs some thousand visits an op.
// Searches therefore have a budget of ops for the whole job, which goes to the layouts in the order of what they
// promise. Where it ends, a layout whose order without a search already beats the best plan is taken with that order:
// the plan is never worse than what any survey knew.
#include "plan/searched_phase.h"

#include <stdlib.h>

#include "base/parallel.h"
#include "plan/searched_layout.h"

// Ops of all searched layouts together at effort 1: some seconds when the job allows no named family. One layout is
// searched whatever its size when there is nothing else to show.
enum { SURVEY_BATCH = 8, SEARCH_BATCH = 4, OPS_ALONE = 1 << 16 };

typedef struct surveyed {
    ps_ranked_candidate *ranked;
    ps_survey survey;
    bool searched;
} surveyed;

typedef struct phase_state {
    ps_searched_phase *phase;
    surveyed *layout;
    int64_t count; // surveyed so far
    int64_t first; // of the batch
    int64_t known_ns;
    surveyed *batch[SEARCH_BATCH];
    ps_evaluation evaluation[SEARCH_BATCH];
    int64_t ops_left;
} phase_state;

static ps_code poll(const phase_state *state, const char *what, int64_t done, int64_t total)
{
    const ps_control *control = state->phase->control;
    if (control && control->progress)
        control->progress(control->context, what, done, total);
    return control && control->should_stop ? control->should_stop(control->context) : PS_OK;
}

static ps_code refuse_stop(ps_status *status)
{
    return ps_fail(status, PS_STOPPED, "interrupted", "interrupted while orders were searched for");
}

static int64_t incumbent(const phase_state *state)
{
    const ps_search_outcome *out = state->phase->out;
    return out->num_found > 0 ? out->found[0].iteration_ns : INT64_MAX;
}

static int64_t stages_of(const ps_candidate *candidate)
{
    return (int64_t)candidate->layout.pp * candidate->layout.vp;
}

static int64_t ops_of(const ps_candidate *candidate)
{
    return 3 * stages_of(candidate) * candidate->layout.num_microbatches;
}

static ps_code survey_one(void *context, int64_t index, ps_arena *scratch, ps_status *status)
{
    phase_state *state = context;
    surveyed *layout = &state->layout[state->first + index];
    const ps_control *control = state->phase->control;
    ps_code stop = control && control->should_stop ? control->should_stop(control->context) : PS_OK;
    if (stop == PS_STOPPED)
        return refuse_stop(status);
    layout->survey.skipped = stop == PS_TIME_LIMIT && (index > 0 || state->phase->out->num_found > 0);
    if (layout->survey.skipped)
        return PS_OK;
    return ps_survey_layout(scratch, state->phase->context, layout->ranked->candidate, &layout->survey, status);
}

static void take_surveys(phase_state *state)
{
    ps_search_outcome *out = state->phase->out;
    for (int64_t index = state->first; index < state->count; index++) {
        surveyed *layout = &state->layout[index];
        const ps_survey *survey = &layout->survey;
        if (survey->skipped) {
            out->limit_hit = true;
            continue;
        }
        layout->ranked->evaluated = true;
        layout->ranked->impossible = survey->proven_infeasible;
        if (survey->num_cuts == 0)
            ps_candidates_reject(state->phase->arena, &out->list, &survey->refusal);
        else
            out->evaluated++;
        if (survey->known_ns < state->known_ns)
            state->known_ns = survey->known_ns;
    }
}

static void give_room(phase_state *state, surveyed *layout, ps_ranked_candidate *ranked)
{
    int64_t limit = incumbent(state);
    *layout = (surveyed){.ranked = ranked, .survey.limit_ns = state->known_ns < limit ? state->known_ns : limit};
    for (int32_t cut = 0; cut < PS_SURVEY_CUTS; cut++)
        layout->survey.cut[cut].first_layer =
            ps_new_raw(state->phase->arena, int32_t, stages_of(ranked->candidate) + 1);
}

static ps_code survey_all(phase_state *state, ps_status *status)
{
    ps_searched_phase *phase = state->phase;
    while (state->count < phase->count) {
        ps_code stop = poll(state, "layouts surveyed", state->count, phase->count);
        if (stop == PS_STOPPED)
            return refuse_stop(status);
        phase->out->limit_hit |= stop == PS_TIME_LIMIT;
        int64_t limit = state->known_ns < incumbent(state) ? state->known_ns : incumbent(state);
        if (phase->out->limit_hit && limit < INT64_MAX)
            return PS_OK;
        state->first = state->count;
        while (state->count < phase->count && state->count - state->first < SURVEY_BATCH &&
               phase->ranked[state->count].key < limit) {
            give_room(state, &state->layout[state->count], &phase->ranked[state->count]);
            state->count++;
        }
        if (state->count == state->first)
            return PS_OK;
        PS_TRY(
            ps_parallel_for(state->count - state->first, phase->context->job->threads, 0, survey_one, state, status));
        take_surveys(state);
    }
    return PS_OK;
}

static int64_t promise_of(const surveyed *layout)
{
    return layout->survey.num_cuts > 0 ? layout->survey.cut[0].promise_ns : INT64_MAX;
}

static int by_promise(const void *a, const void *b)
{
    const surveyed *x = a;
    const surveyed *y = b;
    if (promise_of(x) != promise_of(y))
        return promise_of(x) < promise_of(y) ? -1 : 1;
    return x->ranked->index < y->ranked->index ? -1 : x->ranked->index > y->ranked->index;
}

// The next layouts that promise to beat the best plan, as many as the budget allows.
static int32_t next_batch(phase_state *state)
{
    int32_t size = 0;
    bool nothing_yet = incumbent(state) == INT64_MAX;
    for (int64_t index = 0; index < state->count && size < SEARCH_BATCH; index++) {
        surveyed *layout = &state->layout[index];
        if (promise_of(layout) >= incumbent(state))
            break;
        int64_t ops = ops_of(layout->ranked->candidate);
        if (layout->searched || (ops > state->ops_left && !(nothing_yet && size == 0)))
            continue;
        state->ops_left -= ops;
        layout->searched = true;
        state->batch[size++] = layout;
    }
    return size;
}

// With the budget spent: the layout whose order without a search is the best of all, if it beats the best plan.
static int32_t next_known(phase_state *state)
{
    surveyed *best = NULL;
    int64_t limit = incumbent(state);
    for (int64_t index = 0; index < state->count; index++) {
        surveyed *layout = &state->layout[index];
        if (layout->searched || layout->survey.num_cuts == 0 || layout->survey.known_ns >= limit)
            continue;
        best = layout;
        limit = layout->survey.known_ns;
    }
    if (!best)
        return 0;
    best->searched = true;
    best->survey.known_only = true;
    state->batch[0] = best;
    return 1;
}

static void give_order_room(phase_state *state, int32_t size)
{
    for (int32_t index = 0; index < size; index++) {
        const ps_candidate *candidate = state->batch[index]->ranked->candidate;
        ps_arena *arena = state->phase->arena;
        ps_schedule *order = ps_new(arena, ps_schedule, 1);
        order->first = ps_new_raw(arena, int32_t, candidate->layout.pp + 1);
        order->op = ps_new_raw(arena, ps_op, ops_of(candidate));
        state->evaluation[index] =
            (ps_evaluation){.first_layer = ps_new_raw(arena, int32_t, stages_of(candidate) + 1), .order = order};
    }
}

static ps_code search_one(void *context, int64_t index, ps_arena *scratch, ps_status *status)
{
    phase_state *state = context;
    const surveyed *layout = state->batch[index];
    return ps_search_layout(scratch, state->phase->context, layout->ranked->candidate, &layout->survey,
                            state->phase->control, &state->evaluation[index], status);
}

static ps_code search_all(phase_state *state, ps_status *status)
{
    ps_searched_phase *phase = state->phase;
    int64_t done = 0;
    for (;;) {
        ps_code stop = poll(state, "layouts searched for an order", done, 0);
        if (stop == PS_STOPPED)
            return refuse_stop(status);
        phase->out->limit_hit |= stop == PS_TIME_LIMIT;
        int32_t size = phase->out->limit_hit ? 0 : next_batch(state);
        if (size == 0)
            size = next_known(state);
        if (size == 0)
            return PS_OK;
        give_order_room(state, size);
        PS_TRY(ps_parallel_for(size, phase->context->job->threads, 0, search_one, state, status));
        if (poll(state, "layouts searched for an order", done, 0) == PS_STOPPED)
            return refuse_stop(status);
        for (int32_t index = 0; index < size; index++) {
            phase->out->limit_hit |= state->evaluation[index].limit_hit;
            ps_search_keep(phase->arena, phase->out, state->batch[index]->ranked->candidate, &state->evaluation[index]);
        }
        done += size;
    }
}

// Layouts that were not searched are plans too, in the best order that needs no search; none is faster than the best.
static void keep_known(phase_state *state)
{
    for (int64_t index = 0; index < state->count; index++) {
        const surveyed *layout = &state->layout[index];
        if (layout->searched || layout->survey.num_cuts == 0)
            continue;
        ps_evaluation known = {.feasible = true,
                               .iteration_ns = layout->survey.known_ns,
                               .fullest.memory.total_peak = layout->survey.known_peak,
                               .engine = layout->survey.engine};
        ps_search_keep(state->phase->arena, state->phase->out, layout->ranked->candidate, &known);
    }
}

ps_code ps_searched_phase_run(ps_searched_phase *phase, ps_status *status)
{
    int64_t ops = phase->alone ? OPS_ALONE : PS_SEARCHED_OPS_BESIDE_FAMILIES;
    phase_state *state = ps_new(phase->arena, phase_state, 1);
    *state = (phase_state){.phase = phase,
                           .layout = ps_new(phase->arena, surveyed, phase->count),
                           .known_ns = INT64_MAX,
                           .ops_left = ops * phase->context->job->effort};
    PS_TRY(survey_all(state, status));
    qsort(state->layout, (size_t)state->count, sizeof *state->layout, by_promise);
    PS_TRY(search_all(state, status));
    if (phase->alone)
        keep_known(state);
    return PS_OK;
}
