// SPDX-License-Identifier: Apache-2.0
//
// searched_layout.c: cuts from the named families, promises from the bound over orders within memory.
//
// A searched order fills whatever memory there is, so no depth is known when the layers are cut. Depths between one
// micro-batch at a time and 1F1B's give cuts that memory skews less or more; each named family of the same stages and
// ranks adds its best. What an order of a cut can reach at best (schedule_bound.c) says which of them to search.
#include "plan/searched_layout.h"

#include <string.h>

#include "pipesched/order_search.h"
#include "plan/pipeline_build.h"
#include "plan/rebalance.h"
#include "plan/split_order.h"

// Families that hold every micro-batch at once are no help where memory counts, and none where it does not.
static bool stands_in(const ps_schedule_family *family, const ps_layout *layout)
{
    ps_status status = {0};
    bool holds_all = family->kind == PS_SCHEDULE_GPIPE || family->kind == PS_SCHEDULE_LOOPED_BFS;
    bool placed = layout->vp == 1 || family->placement == layout->placement;
    return !holds_all && !family->needs_choices && !family->recomputes && placed &&
           family->legal(ps_layout_shape(layout), &status) == PS_OK;
}

// The pipeline as the search shall see it. A plan promises room for the largest transient beside the most activations,
// whenever either comes, so the transient is memory that is always taken.
static ps_pipeline with_constant_transients(ps_arena *arena, const ps_pipeline *pipeline)
{
    ps_pipeline out = *pipeline;
    int64_t *largest = ps_new(arena, int64_t, pipeline->num_devices);
    out.stage = ps_new_raw(arena, ps_stage, pipeline->num_stages);
    out.device = ps_new_raw(arena, ps_device, pipeline->num_devices);
    for (int32_t index = 0; index < pipeline->num_stages; index++) {
        ps_stage *stage = &out.stage[index];
        *stage = pipeline->stage[index];
        if (stage->transient > largest[stage->device])
            largest[stage->device] = stage->transient;
        stage->transient = 0;
    }
    for (int32_t device = 0; device < pipeline->num_devices; device++) {
        out.device[device] = pipeline->device[device];
        out.device[device].static_memory += largest[device];
    }
    return out;
}

// The fastest of the orders that need no search: one micro-batch at a time, and every family's, with whole backwards
// split.
static ps_code run_known(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                         const int32_t *first_layer, ps_run *best, ps_status *status)
{
    PS_TRY(ps_run_cut(scratch, context, candidate, first_layer, best, status));
    bool by_family = false;
    for (int32_t kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        ps_schedule order;
        ps_run run;
        if (!stands_in(family, &candidate->layout))
            continue;
        if (by_family && ps_plan_is_stopped(context))
            break;
        PS_TRY(ps_schedule_generate(scratch, family->kind, &best->pipeline, &order, status));
        if (!family->splits_backward)
            order = ps_order_split(scratch, &order);
        PS_TRY(ps_run_order(scratch, context, candidate, first_layer, &order, &run, status));
        by_family |= run.fits;
        bool faster = run.prediction.iteration_ns < best->prediction.iteration_ns;
        if (run.fits && (!best->fits || faster))
            *best = run;
    }
    return PS_OK;
}

static int64_t bound_of(ps_arena *arena, const ps_pipeline *pipeline, bool fused, bool barrier)
{
    ps_schedule_bound bound;
    if (pipeline->num_routes > 0)
        ps_schedule_bound_routed(arena, pipeline, fused, &bound);
    else
        ps_schedule_bound_compute(pipeline, fused, &bound);
    return barrier ? bound.makespan_ns : bound.span_ns;
}

int64_t ps_orders_bound(ps_arena *arena, const ps_pipeline *pipeline, bool barrier)
{
    ps_pipeline constant = with_constant_transients(arena, pipeline);
    int64_t split = bound_of(arena, &constant, false, barrier);
    int64_t fused = bound_of(arena, &constant, true, barrier);
    return split < fused ? split : fused;
}

// What all that finds cuts of one layout shares.
typedef struct survey_work {
    ps_arena *scratch;
    const ps_plan_context *context;
    const ps_candidate *candidate;
    ps_survey *out;
} survey_work;

static size_t cut_bytes(const ps_candidate *candidate)
{
    return ((size_t)candidate->layout.pp * (size_t)candidate->layout.vp + 1) * sizeof(int32_t);
}

static bool is_listed(const survey_work *work, const int32_t *first_layer)
{
    for (int32_t index = 0; index < work->out->num_cuts; index++) {
        if (memcmp(work->out->cut[index].first_layer, first_layer, cut_bytes(work->candidate)) == 0)
            return true;
    }
    return false;
}

// No order holds less than all stages of one micro-batch at its turn.
static bool may_fit(ps_arena *scratch, const ps_pipeline *pipeline)
{
    int64_t *held = ps_new(scratch, int64_t, pipeline->num_devices);
    for (int32_t stage = 0; stage < pipeline->num_stages; stage++)
        held[pipeline->stage[stage].device] += pipeline->stage[stage].held_after_forward;
    for (int32_t device = 0; device < pipeline->num_devices; device++) {
        if (pipeline->device[device].static_memory + held[device] > pipeline->device[device].memory_limit)
            return false;
    }
    return true;
}

static int64_t pipeline_bound(const survey_work *work, const int32_t *first_layer, bool *fits)
{
    ps_pipeline pipeline;
    ps_pipeline_build(work->scratch, work->context, work->candidate, first_layer, &pipeline);
    pipeline = with_constant_transients(work->scratch, &pipeline);
    *fits = may_fit(work->scratch, &pipeline);
    return bound_of(work->scratch, &pipeline, false, work->context->job->optimizer_barrier);
}

static void put_cut(const survey_work *work, int32_t place, const int32_t *first_layer, int64_t promise_ns)
{
    ps_survey *out = work->out;
    ps_survey_cut cut = {.first_layer = out->cut[place].first_layer, .promise_ns = promise_ns};
    memcpy(cut.first_layer, first_layer, cut_bytes(work->candidate));
    for (; place > 0 && out->cut[place - 1].promise_ns > promise_ns; place--)
        out->cut[place] = out->cut[place - 1];
    out->cut[place] = cut;
}

// Keep a cut in its place by promise if it is new, something fits, and it is among the best, or has to stay.
static void add_cut(const survey_work *work, const int32_t *first_layer, bool must_stay)
{
    ps_survey *out = work->out;
    bool fits = false;
    if (is_listed(work, first_layer))
        return;
    int64_t promise_ns = pipeline_bound(work, first_layer, &fits);
    bool full = out->num_cuts == PS_SURVEY_CUTS;
    if (!fits || (full && !must_stay && promise_ns >= out->cut[PS_SURVEY_CUTS - 1].promise_ns))
        return;
    put_cut(work, full ? PS_SURVEY_CUTS - 1 : out->num_cuts++, first_layer, promise_ns);
}

// A refusal of one way to cut says nothing against the others.
static bool is_refusal(ps_code code, ps_status *status)
{
    bool refusal = code == PS_INFEASIBLE || code == PS_ILLEGAL || code == PS_BAD_INPUT;
    if (refusal)
        *status = (ps_status){0};
    return refusal;
}

static ps_code cut_for_depths(const survey_work *work, double share, int64_t stage_limit, ps_status *status)
{
    ps_depth_list depth;
    ps_partition_result result;
    ps_layout_depths(work->scratch, &work->candidate->layout, share, &depth);
    ps_code code = ps_layout_cut(work->scratch, work->context, work->candidate, &depth, stage_limit, &result, status);
    if (is_refusal(code, status))
        return PS_OK;
    if (code != PS_OK)
        return code;
    work->out->engine = result.engine;
    for (int32_t index = 0; index < result.count; index++)
        add_cut(work, result.partition[index].first_layer, false);
    int32_t *even = result.partition[0].first_layer;
    ps_cut_rebalance(work->scratch, work->context, work->candidate, even);
    add_cut(work, even, false);
    return PS_OK;
}

// The best cut of every family. That of the fastest split one stays whatever it promises, so that a searched order is
// never worse.
static ps_code cut_for_families(const survey_work *work, ps_status *status)
{
    int32_t layers = work->context->model->num_layers;
    int32_t *best = ps_new_raw(work->scratch, int32_t, layers + 1);
    int64_t best_ns = INT64_MAX;
    int32_t *room = ps_new_raw(work->scratch, int32_t, layers + 1);
    for (int32_t kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        ps_candidate as_named = *work->candidate;
        ps_evaluation found = {.first_layer = room};
        as_named.layout.schedule = (ps_schedule_kind)kind;
        if (!stands_in(family, &work->candidate->layout))
            continue;
        if (work->out->num_cuts > 0 && ps_plan_is_stopped(work->context))
            break;
        PS_TRY(ps_evaluate(work->scratch, work->context, &as_named, &found, status));
        if (!found.feasible)
            continue;
        work->out->engine = found.engine;
        add_cut(work, room, false);
        if (!family->splits_backward || found.iteration_ns >= best_ns)
            continue;
        best_ns = found.iteration_ns;
        memcpy(best, room, cut_bytes(work->candidate));
    }
    if (best_ns < INT64_MAX)
        add_cut(work, best, true);
    return PS_OK;
}

// What follows the ops at least, in whatever order these are: with a barrier the slowest rank counts. With several
// stages a rank a gather may hide behind the first forwards, which the order decides.
static int64_t least_after(const ps_run *run)
{
    const ps_pipeline *pipeline = &run->pipeline;
    int64_t most = 0;
    int64_t least = INT64_MAX;
    for (int32_t device = 0; device < pipeline->num_devices; device++) {
        int64_t after = run->step.optimizer_ns[device];
        if (pipeline->num_stages == pipeline->num_devices)
            after += run->tail.device[device].gather_exposed_ns;
        most = after > most ? after : most;
        least = after < least ? after : least;
    }
    return run->step.barrier ? run->step.barrier_ns + most : least;
}

// Complete the promises, drop what does not fit after all, and see how good orders are that need no search. A cut that
// promises no more than what is known already is left as it is.
static ps_code fill_known(const survey_work *work, ps_status *status)
{
    ps_survey *out = work->out;
    int32_t kept = 0;
    for (int32_t index = 0; index < out->num_cuts; index++) {
        ps_run known;
        ps_survey_cut cut = out->cut[index];
        int64_t to_beat = out->known_ns < out->limit_ns ? out->known_ns : out->limit_ns;
        cut.known_ns = INT64_MAX;
        if (cut.promise_ns >= to_beat) {
            out->cut[index] = out->cut[kept];
            out->cut[kept++] = cut;
            continue;
        }
        PS_TRY(run_known(work->scratch, work->context, work->candidate, cut.first_layer, &known, status));
        if (!known.fits)
            continue;
        cut.promise_ns += least_after(&known);
        cut.known_ns = known.prediction.iteration_ns;
        out->cut[index] = out->cut[kept]; // rooms change places, so that none is lost
        out->cut[kept++] = cut;
        if (cut.known_ns >= out->known_ns)
            continue;
        out->known_ns = cut.known_ns;
        out->known_peak = known.memory[known.fullest].total_peak;
    }
    out->num_cuts = kept;
    return PS_OK;
}

ps_code ps_survey_layout(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                         ps_survey *out, ps_status *status)
{
    static const double shares[] = {0, 0.25, 0.5, 0.75, 1};
    survey_work work = {.scratch = scratch, .context = context, .candidate = candidate, .out = out};
    int64_t limit = context->room_bytes;
    int32_t vp = candidate->layout.vp;
    out->known_ns = INT64_MAX;
    for (size_t index = 0; index < sizeof shares / sizeof *shares; index++)
        PS_TRY(cut_for_depths(&work, shares[index], limit / vp, status));
    if (vp > 1) // the limit is the device's, which even stages may keep without a limit of their own
        PS_TRY(cut_for_depths(&work, 0, INT64_MAX, status));
    PS_TRY(cut_for_families(&work, status));
    bool hopeless = out->num_cuts > 0 && out->cut[0].promise_ns >= out->limit_ns;
    if (!hopeless)
        PS_TRY(fill_known(&work, status));
    if (out->num_cuts > 0)
        return PS_OK;

    ps_evaluation alone = {.first_layer = ps_new_raw(scratch, int32_t, context->model->num_layers + 1)};
    PS_TRY(ps_evaluate(scratch, context, candidate, &alone, status)); // says why
    out->refusal = alone.refusal;
    out->proven_infeasible = alone.proven_infeasible;
    return PS_OK;
}

static void keep_run(const ps_candidate *candidate, const ps_run *run, const int32_t *first_layer, ps_evaluation *out)
{
    if (!run->fits || (out->feasible && run->prediction.iteration_ns >= out->iteration_ns))
        return;
    size_t stages = (size_t)candidate->layout.pp * (size_t)candidate->layout.vp;
    out->feasible = true;
    out->iteration_ns = run->prediction.iteration_ns;
    out->fullest = (ps_device_memory){.device = run->fullest, .memory = run->memory[run->fullest]};
    memcpy(out->first_layer, first_layer, (stages + 1) * sizeof *first_layer);
    const ps_schedule *order = &run->schedule;
    out->order->num_devices = order->num_devices;
    memcpy(out->order->first, order->first, ((size_t)order->num_devices + 1) * sizeof *order->first);
    memcpy(out->order->op, order->op, (size_t)order->first[order->num_devices] * sizeof *order->op);
}

// `options` NULL: only orders that need no search.
static ps_code search_cut(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                          const ps_order_options *options, const int32_t *first_layer, ps_evaluation *out,
                          ps_status *status)
{
    ps_run run;
    ps_order_result result;
    PS_TRY(run_known(scratch, context, candidate, first_layer, &run, status));
    keep_run(candidate, &run, first_layer, out);
    if (!options)
        return PS_OK;
    ps_pipeline pipeline = with_constant_transients(scratch, &run.pipeline);
    ps_code code = ps_order_search(scratch, &pipeline, options, &result, status);
    if (is_refusal(code, status))
        return PS_OK; // a cut on which nothing fits
    if (code != PS_OK)
        return code;
    out->limit_hit |= result.limit_hit;
    PS_TRY(ps_run_order(scratch, context, candidate, first_layer, &result.schedule, &run, status));
    keep_run(candidate, &run, first_layer, out);
    return PS_OK;
}

ps_code ps_search_layout(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                         const ps_survey *survey, const ps_control *control, ps_evaluation *out, ps_status *status)
{
    ps_control poll = control ? *control : (ps_control){0};
    poll.progress = NULL; // workers do not report
    ps_order_options options = {.objective = context->job->optimizer_barrier ? PS_ORDER_MAKESPAN : PS_ORDER_SPAN,
                                .backward = PS_ORDER_SPLIT,
                                .effort = context->job->effort,
                                .control = &poll};
    out->engine = survey->engine;
    for (int32_t index = 0; index < survey->num_cuts; index++) {
        const ps_survey_cut *cut = &survey->cut[index];
        bool among_best = index <= context->job->effort || cut->known_ns == survey->known_ns;
        if (!among_best || (out->feasible && cut->promise_ns >= out->iteration_ns))
            continue;
        PS_TRY(search_cut(scratch, context, candidate, survey->known_only ? NULL : &options, cut->first_layer, out,
                          status));
    }
    return PS_OK;
}
