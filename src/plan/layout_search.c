// SPDX-License-Identifier: Apache-2.0
//
// layout_search.c: best-bound-first evaluation of candidates in fixed batches.
#include "plan/layout_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/text.h"
#include "plan/device_room.h"
#include "plan/layout_bound.h"
#include "plan/pipeline_build.h"
#include "plan/searched_phase.h"

enum { QUICK_CELLS = 1 << 17, BATCHES_FOR_ALTERNATIVES = 8 };

bool ps_layout_is_quick(const ps_layout *layout)
{
    return (int64_t)layout->pp * layout->vp * layout->num_microbatches <= QUICK_CELLS;
}

typedef struct search_state {
    ps_arena *arena;
    const ps_plan_context *context;
    ps_search_mode mode;
    const ps_control *control;
    ps_search_outcome *out;
    ps_ranked_candidate *order;
    int64_t count;             // of named families
    int64_t num_searched;      // layouts whose order is searched for, behind those in `order`
    int64_t next;              // first candidate not yet evaluated
    ps_evaluation *evaluation; // [PS_SEARCH_BATCH]
} search_state;

static bool is_searched(const ps_ranked_candidate *ranked)
{
    return ranked->candidate->layout.schedule == PS_SCHEDULE_ZB;
}

// Layouts whose order is searched for come last: the named families set what they have to beat.
static int by_key(const void *a, const void *b)
{
    const ps_ranked_candidate *x = a;
    const ps_ranked_candidate *y = b;
    if (is_searched(x) != is_searched(y))
        return is_searched(x) ? 1 : -1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static ps_code bound_one(void *context, int64_t index, ps_arena *scratch, ps_status *status)
{
    search_state *state = context;
    ps_ranked_candidate *ranked = &state->order[index];
    (void)status;
    ps_layout_bound_quick(scratch, state->context, ranked->candidate);
    ranked->memory = ps_layout_bound_memory(state->context, ranked->candidate);
    ranked->key = state->mode == PS_SEARCH_BEST ? ranked->candidate->bound_ns : ranked->memory;
    return PS_OK;
}

static void refuse_bound(search_state *state, const ps_ranked_candidate *ranked)
{
    char need[32];
    char have[32];
    ps_status status = {0};
    ps_fail(&status, PS_INFEASIBLE, "memory", "some pipeline rank needs at least %s, the GPU has %s",
            ps_format_bytes(ps_total_bytes(state->context->job, ranked->memory), need),
            ps_format_bytes(state->context->capacity_bytes, have));
    ps_candidates_reject(state->arena, &state->out->list, &status);
}

// Layouts whose states alone do not fit are ruled out before anything is cut.
static void drop_too_large(search_state *state)
{
    int64_t kept = 0;
    for (int64_t index = 0; index < state->count; index++) {
        const ps_ranked_candidate *ranked = &state->order[index];
        if (ranked->memory > state->context->room_bytes)
            refuse_bound(state, ranked);
        else if (state->mode == PS_SEARCH_BEST || ps_layout_is_quick(&ranked->candidate->layout))
            state->order[kept++] = *ranked;
    }
    state->count = kept;
}

static ps_code evaluate_one(void *context, int64_t index, ps_arena *scratch, ps_status *status)
{
    search_state *state = context;
    const ps_control *control = state->control;
    ps_code stop = control && control->should_stop ? control->should_stop(control->context) : PS_OK;
    if (stop == PS_STOPPED)
        return ps_fail(status, PS_STOPPED, "interrupted", "interrupted while layouts were evaluated");
    // A batch of layouts with millions of ops would outlast the limit by far. Its first one runs, so that there is a
    // best so far.
    state->evaluation[index].skipped = stop == PS_TIME_LIMIT && index > 0;
    if (state->evaluation[index].skipped)
        return PS_OK;
    const ps_ranked_candidate *ranked = &state->order[state->next + index];
    return ps_evaluate(scratch, state->context, ranked->candidate, &state->evaluation[index], status);
}

static bool found_before(const ps_found_layout *a, const ps_evaluation *b)
{
    return a->iteration_ns <= b->iteration_ns; // found earlier, so a tie goes to it
}

// Faster, or as fast in less memory.
static bool is_better(const ps_evaluation *a, const ps_found_layout *b)
{
    if (a->iteration_ns != b->iteration_ns)
        return a->iteration_ns < b->iteration_ns;
    return a->fullest.memory.total_peak < b->peak_bytes;
}

void ps_search_keep(ps_arena *arena, ps_search_outcome *out, const ps_candidate *candidate,
                    const ps_evaluation *evaluation)
{
    const ps_schedule_family *family = ps_schedule_family_at(candidate->layout.schedule);
    if (!family->splits_backward && (!out->whole.candidate || is_better(evaluation, &out->whole)))
        out->whole = (ps_found_layout){.candidate = candidate,
                                       .iteration_ns = evaluation->iteration_ns,
                                       .peak_bytes = evaluation->fullest.memory.total_peak};
    int32_t place = out->num_found;
    while (place > 0 && !found_before(&out->found[place - 1], evaluation))
        place--;
    if (place == PS_SEARCH_KEPT)
        return;
    int32_t last = out->num_found < PS_SEARCH_KEPT ? out->num_found++ : PS_SEARCH_KEPT - 1;
    memmove(&out->found[place + 1], &out->found[place], (size_t)(last - place) * sizeof out->found[0]);
    out->found[place] = (ps_found_layout){.candidate = candidate,
                                          .iteration_ns = evaluation->iteration_ns,
                                          .peak_bytes = evaluation->fullest.memory.total_peak,
                                          .engine = evaluation->engine,
                                          .order = evaluation->order};
    if (evaluation->first_layer) {
        int64_t boundaries = (int64_t)ps_layout_cuts(&candidate->layout) + 1;
        out->found[place].first_layer = ps_new_raw(arena, int32_t, boundaries);
        memcpy(out->found[place].first_layer, evaluation->first_layer, (size_t)boundaries * sizeof(int32_t));
    }
}

static void take_batch(search_state *state, int64_t count)
{
    for (int64_t index = 0; index < count; index++) {
        const ps_candidate *candidate = state->order[state->next + index].candidate;
        const ps_evaluation *evaluation = &state->evaluation[index];
        if (evaluation->skipped)
            continue;
        if (evaluation->feasible)
            ps_search_keep(state->arena, state->out, candidate, evaluation);
        else
            ps_candidates_reject(state->arena, &state->out->list, &evaluation->refusal);
        state->order[state->next + index].evaluated = true;
        state->order[state->next + index].impossible = evaluation->proven_infeasible;
        if (evaluation->feasible)
            state->out->evaluated++;
    }
    state->next += count;
}

// How many of the next candidates can still beat the incumbent, at most a batch.
static int64_t next_batch(const search_state *state)
{
    int64_t left = state->count - state->next;
    int64_t size = left < PS_SEARCH_BATCH ? left : PS_SEARCH_BATCH;
    if (state->out->num_found == 0)
        return size;
    if (state->mode == PS_SEARCH_ANY_FIT)
        return 0;
    int64_t count = 0;
    while (count < size && state->order[state->next + count].key < state->out->found[0].iteration_ns)
        count++;
    return count;
}

// The plan shows what other layouts lose by: when the bounds left fewer than that, a few more batches are looked at.
// None of them can beat the incumbent.
static int64_t batch_of_alternatives(const search_state *state, int32_t batches)
{
    int64_t left = state->count - state->next;
    if (state->mode != PS_SEARCH_BEST || state->out->num_found == PS_SEARCH_KEPT || batches >= BATCHES_FOR_ALTERNATIVES)
        return 0;
    return left < PS_SEARCH_BATCH ? left : PS_SEARCH_BATCH;
}

static void clear_batch(search_state *state, int64_t count)
{
    for (int64_t index = 0; index < count; index++) {
        int32_t *room = state->evaluation[index].first_layer;
        state->evaluation[index] = (ps_evaluation){.first_layer = room};
    }
}

static ps_code poll(const ps_control *control, search_state *state)
{
    if (control && control->progress)
        control->progress(control->context, "layouts", state->next, state->count);
    if (!control || !control->should_stop)
        return PS_OK;
    ps_code code = control->should_stop(control->context);
    state->out->limit_hit |= code == PS_TIME_LIMIT;
    return code;
}

static ps_code run_batches(search_state *state, const ps_control *control, ps_status *status)
{
    int32_t extra = 0; // batches that only look for alternatives
    for (;;) {
        ps_code stop = poll(control, state);
        if (stop == PS_STOPPED)
            return ps_fail(status, PS_STOPPED, "interrupted", "interrupted after %lld of %lld layouts",
                           (long long)state->next, (long long)state->count);
        int64_t count = stop == PS_OK ? next_batch(state) : 0;
        if (count == 0 && stop == PS_OK)
            count = batch_of_alternatives(state, extra++);
        if (count == 0)
            return PS_OK;
        clear_batch(state, count);
        PS_TRY(ps_parallel_for(count, state->context->job->threads, 0, evaluate_one, state, status));
        take_batch(state, count);
    }
}

// The least bound of some layouts not proven impossible. They stand in order of their closed forms, so only those whose
// closed form is below the least so far need the sharper bound over cuts, and those not evaluated need none: they were
// pruned because their closed form is no better than the incumbent.
static void lower_bound(const search_state *state, const ps_ranked_candidate *ranked, int64_t count, ps_arena *scratch)
{
    ps_search_outcome *out = state->out;
    for (int64_t index = 0; index < count && ranked[index].key < out->bound_ns; index++) {
        const char *by = ranked[index].candidate->limited_by;
        int64_t bound = ranked[index].key;
        if (ranked[index].impossible)
            continue;
        if (ranked[index].evaluated)
            bound = ps_layout_bound_sharp(scratch, state->context, ranked[index].candidate, out->bound_ns, &by);
        ps_arena_reset(scratch);
        if (bound < out->bound_ns) {
            out->bound_ns = bound;
            out->limited_by = by;
        }
    }
}

static void fill_bound(search_state *state, ps_arena *scratch)
{
    ps_search_outcome *out = state->out;
    for (int64_t index = 0; index < state->count + state->num_searched; index++)
        out->pruned += !state->order[index].evaluated;
    if (out->num_found == 0)
        return;
    out->bound_ns = out->found[0].iteration_ns;
    out->limited_by = out->found[0].candidate->limited_by;
    lower_bound(state, state->order, state->count, scratch);
    lower_bound(state, state->order + state->count, state->num_searched, scratch);
}

typedef struct bound_call {
    search_state *state;
    ps_arena *scratch;
} bound_call;

static ps_code fill_bound_guarded(void *context, ps_status *status)
{
    bound_call *call = context;
    (void)status;
    fill_bound(call->state, call->scratch);
    return PS_OK;
}

// The bound's tables live in an arena of their own, given back before the plan is filled.
static ps_code bound_search(search_state *state, ps_status *status)
{
    bound_call call = {.state = state, .scratch = ps_arena_new(0)};
    if (!call.scratch)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "no memory for the bound");
    ps_code code = ps_guard(fill_bound_guarded, &call, call.scratch, status);
    ps_arena_free(call.scratch);
    return code;
}

static void split_off_searched(search_state *state)
{
    int64_t named = 0;
    while (named < state->count && !is_searched(&state->order[named]))
        named++;
    state->num_searched = state->count - named;
    state->count = named;
}

static ps_code search_orders(search_state *state, ps_status *status)
{
    ps_searched_phase phase = {.arena = state->arena,
                               .context = state->context,
                               .control = state->control,
                               .out = state->out,
                               .ranked = state->order + state->count,
                               .count = state->num_searched,
                               .alone = state->count == 0};
    return state->num_searched > 0 ? ps_searched_phase_run(&phase, status) : PS_OK;
}

static void allocate_batch(search_state *state)
{
    state->evaluation = ps_new(state->arena, ps_evaluation, PS_SEARCH_BATCH);
    for (int32_t index = 0; index < PS_SEARCH_BATCH; index++)
        state->evaluation[index].first_layer = ps_new_raw(state->arena, int32_t, state->context->model->num_layers + 1);
}

ps_code ps_layout_search(ps_arena *arena, const ps_plan_context *context, ps_search_mode mode,
                         const ps_control *control, ps_search_outcome *out, ps_status *status)
{
    *out = (ps_search_outcome){0};
    search_state state = {.arena = arena, .context = context, .mode = mode, .control = control, .out = out};

    ps_candidates_enumerate(arena, context, &out->list);
    state.count = out->list.candidate.count;
    out->enumerated = state.count;
    for (int64_t index = 0; index < out->list.rejection.count; index++)
        out->enumerated += out->list.rejection.data[index].count;
    state.order = ps_new(arena, ps_ranked_candidate, state.count);
    for (int64_t index = 0; index < state.count; index++)
        state.order[index] = (ps_ranked_candidate){.candidate = &out->list.candidate.data[index], .index = index};

    PS_TRY(ps_parallel_for(state.count, context->job->threads, 0, bound_one, &state, status));
    drop_too_large(&state);
    qsort(state.order, (size_t)state.count, sizeof *state.order, by_key);
    allocate_batch(&state);
    if (mode == PS_SEARCH_BEST)
        split_off_searched(&state);
    PS_TRY(run_batches(&state, control, status));
    if (mode == PS_SEARCH_BEST && (!out->limit_hit || out->num_found == 0))
        PS_TRY(search_orders(&state, status));
    return mode == PS_SEARCH_BEST ? bound_search(&state, status) : PS_OK;
}
