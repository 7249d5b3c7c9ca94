// SPDX-License-Identifier: Apache-2.0
//
// searched_layout.c: cuts from the named families, promises from the bound over orders within memory.
//
// A searched order fills whatever memory there is, so no depth is known when the layers are cut. Each named family of
// the same stages and ranks has one, and its best cut is taken; the cut for one micro-batch at a time is the least
// skewed by memory. What an order of a cut can reach at best (schedule_bound.c) says which of them to search.
#include "plan/searched_layout.h"

#include <string.h>

#include "pipesched/order_search.h"
#include "plan/pipeline_build.h"
#include "plan/split_order.h"

// Families that hold every micro-batch at once are no help where memory counts, and none where it does not.
static bool stands_in(const ps_schedule_family *family, const ps_layout *layout)
{
    ps_status status = {0};
    bool holds_all = family->kind == PS_SCHEDULE_GPIPE || family->kind == PS_SCHEDULE_LOOPED_BFS;
    bool placed = layout->vp == 1 || family->placement == layout->placement;
    return !holds_all && !family->needs_choices && placed && family->legal(ps_layout_shape(layout), &status) == PS_OK;
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
// split. False when none fits.
static ps_code run_known(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                         const int32_t *first_layer, ps_run *best, ps_status *status)
{
    PS_TRY(ps_run_cut(scratch, context, candidate, first_layer, best, status));
    for (int32_t kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        ps_schedule order;
        ps_run run;
        if (!stands_in(family, &candidate->layout))
            continue;
        PS_TRY(ps_schedule_generate(scratch, family->kind, &best->pipeline, &order, status));
        if (!family->splits_backward)
            order = ps_order_split(scratch, &order);
        PS_TRY(ps_run_order(scratch, context, candidate, first_layer, &order, &run, status));
        bool faster = run.prediction.iteration_ns < best->prediction.iteration_ns;
        if (run.fits && (!best->fits || faster))
            *best = run;
    }
    return PS_OK;
}

static int64_t bound_of(const ps_pipeline *pipeline, bool fused, bool barrier)
{
    ps_schedule_bound bound;
    ps_schedule_bound_compute(pipeline, fused, &bound);
    return barrier ? bound.makespan_ns : bound.span_ns;
}

int64_t ps_orders_bound(ps_arena *arena, const ps_pipeline *pipeline, bool barrier)
{
    ps_pipeline constant = with_constant_transients(arena, pipeline);
    int64_t split = bound_of(&constant, false, barrier);
    int64_t fused = bound_of(&constant, true, barrier);
    return split < fused ? split : fused;
}

static int64_t promise_of(ps_arena *scratch, const ps_plan_context *context, const ps_run *known)
{
    ps_pipeline pipeline = with_constant_transients(scratch, &known->pipeline);
    return bound_of(&pipeline, false, context->job->optimizer_barrier) + known->prediction.optimizer_ns +
           known->prediction.param_gather_exposed_ns;
}

// Keep a cut in its place by promise, if it is new and anything fits.
static ps_code add_cut(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                       const int32_t *first_layer, ps_survey *out, ps_status *status)
{
    size_t bytes = ((size_t)candidate->layout.pp * (size_t)candidate->layout.vp + 1) * sizeof *first_layer;
    for (int32_t index = 0; index < out->num_cuts; index++) {
        if (memcmp(out->cut[index].first_layer, first_layer, bytes) == 0)
            return PS_OK;
    }
    ps_run known;
    PS_TRY(run_known(scratch, context, candidate, first_layer, &known, status));
    if (!known.fits || out->num_cuts == PS_SURVEY_CUTS)
        return PS_OK;
    ps_survey_cut cut = out->cut[out->num_cuts++]; // the free room
    memcpy(cut.first_layer, first_layer, bytes);
    cut.known_ns = known.prediction.iteration_ns;
    cut.promise_ns = promise_of(scratch, context, &known);
    int32_t place = out->num_cuts - 1;
    for (; place > 0 && out->cut[place - 1].promise_ns > cut.promise_ns; place--)
        out->cut[place] = out->cut[place - 1];
    out->cut[place] = cut;
    if (cut.known_ns < out->known_ns) {
        out->known_ns = cut.known_ns;
        out->known_peak = known.memory[known.fullest].total_peak;
    }
    return PS_OK;
}

ps_code ps_survey_layout(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                         ps_survey *out, ps_status *status)
{
    ps_evaluation found = {.first_layer = ps_new_raw(scratch, int32_t, context->model->num_layers + 1)};
    out->known_ns = INT64_MAX;
    for (int32_t kind = 0; kind <= PS_SCHEDULE_ZB; kind++) {
        ps_candidate as_named = *candidate;
        bool least_memory = kind == PS_SCHEDULE_ZB;
        if (!least_memory && !stands_in(ps_schedule_family_at((ps_schedule_kind)kind), &candidate->layout))
            continue;
        as_named.layout.schedule = (ps_schedule_kind)kind;
        found = (ps_evaluation){.first_layer = found.first_layer};
        PS_TRY(ps_evaluate(scratch, context, &as_named, &found, status));
        if (found.feasible) {
            out->engine = found.engine;
            PS_TRY(add_cut(scratch, context, candidate, found.first_layer, out, status));
        }
    }
    if (out->num_cuts == 0) {
        out->refusal = found.refusal; // of the least memory, the last that was tried
        out->proven_infeasible = found.proven_infeasible;
    }
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
    PS_TRY(ps_order_search(scratch, &pipeline, options, &result, status));
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
