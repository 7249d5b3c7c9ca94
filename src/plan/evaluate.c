// SPDX-License-Identifier: Apache-2.0
//
// evaluate.c: partition problem of a candidate, then its cuts one by one through schedule and simulator.
#include "plan/evaluate.h"

#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "pipesched/partition.h"
#include "plan/device_room.h"
#include "plan/pipeline_build.h"
#include "plan/rebalance.h"
#include "plan/split_order.h"
#include "plan/step_build.h"

// Cuts tried a layout. Listing more than the best is quadratic in the layers, and on a long chain the second best is
// hardly different.
enum { CUTS_PER_EFFORT = 4, LONG_CHAIN = 4096 };

static void sum_into(ps_layer_cost *sum, const ps_layer_cost *cost)
{
    sum->forward_ns += cost->forward_ns;
    sum->backward_input_ns += cost->backward_input_ns;
    sum->backward_weight_ns += cost->backward_weight_ns;
    sum->recompute_ns += cost->recompute_ns;
    sum->parameters += cost->parameters;
    sum->parameter_bytes += cost->parameter_bytes;
    sum->gradient_bytes += cost->gradient_bytes;
    sum->optimizer_bytes += cost->optimizer_bytes;
    sum->copy_parameters += cost->copy_parameters;
}

// Activations and transients are added up at their largest, which is what a plan promises to have room for.
static void fill_memory(ps_run *run, const ps_plan_context *context, int32_t device, const ps_layer_cost *sum)
{
    const ps_device_timeline *timeline = &run->timeline.device[device];
    ps_plan_memory *memory = &run->memory[device];

    memory->parameters = sum->parameter_bytes;
    memory->gradients = sum->gradient_bytes;
    memory->optimizer = sum->optimizer_bytes;
    memory->activations_peak = timeline->peak_activation;
    memory->transient = timeline->peak_transient;
    memory->framework = context->job->memory_framework_bytes;
    memory->reserve = context->job->memory_reserve_bytes;
    int64_t model =
        memory->parameters + memory->gradients + memory->optimizer + memory->activations_peak + memory->transient;
    memory->fragmentation = ps_fragmentation_bytes(context->job, model + memory->framework);
    memory->total_peak = ps_total_bytes(context->job, model);
    memory->capacity = context->capacity_bytes;
    memory->headroom = memory->capacity - memory->total_peak;
}

// When the last device has synchronised its gradients, stepped and gathered.
static ps_code end_step(ps_arena *arena, ps_run *run, const ps_step_ground *ground, ps_status *status)
{
    ps_step_build(arena, ground, &run->step);
    PS_TRY(ps_step_validate(&run->pipeline, &run->step, status));
    ps_step_place(arena, &run->pipeline, &run->schedule, &run->timeline, &run->step, &run->tail);
    run->prediction = (ps_plan_prediction){
        .iteration_ns = run->tail.iteration_ns,
        .pipeline_ns = run->tail.pipeline_ns,
        .grad_sync_exposed_ns = run->tail.sync_exposed_ns,
        .optimizer_ns = run->tail.optimizer_ns,
        .param_gather_exposed_ns = run->tail.gather_exposed_ns,
        .barrier_ns = run->step.barrier_ns,
        .validation_hop_ns = run->step.validation_hop_ns,
        .makespan_ns = run->timeline.makespan_ns,
        .span_ns = run->timeline.span_ns,
    };
    return PS_OK;
}

ps_code ps_run_order(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                     const int32_t *first_layer, const ps_schedule *order, ps_run *out, ps_status *status)
{
    const ps_layout *layout = &candidate->layout;
    int32_t stages = layout->pp * layout->vp;
    ps_placement placement = ps_layout_placement(layout);

    *out = (ps_run){.fits = true};
    ps_pipeline_build(arena, context, candidate, first_layer, &out->pipeline);
    PS_TRY(ps_pipeline_validate(&out->pipeline, status));
    if (order)
        out->schedule = *order;
    else if (layout->schedule == PS_SCHEDULE_ZB)
        ps_order_in_sequence(arena, &out->pipeline, &out->schedule);
    else
        PS_TRY(ps_schedule_generate(arena, layout->schedule, &out->pipeline, &out->schedule, status));
    PS_TRY(ps_simulate(arena, &out->pipeline, &out->schedule, &out->timeline, status));

    out->memory = ps_new(arena, ps_plan_memory, layout->pp);
    out->stage = ps_new(arena, ps_layer_cost, stages);
    bool copies = ps_cut_tied_owner(context->model, layout, first_layer) >= 0;
    for (int32_t stage = 0; stage < stages; stage++) {
        int32_t cut = ps_layout_cut_of(layout, stage);
        out->stage[stage] = ps_candidate_stage_cost(context, candidate, first_layer[cut], first_layer[cut + 1], copies);
    }
    for (int32_t device = 0; device < layout->pp; device++) {
        ps_layer_cost sum = {0};
        for (int32_t chunk = 0; chunk < layout->vp; chunk++)
            sum_into(&sum, &out->stage[ps_schedule_stage(placement, ps_layout_shape(layout), device, chunk)]);
        fill_memory(out, context, device, &sum);
        out->fits &= out->memory[device].headroom >= 0;
        if (out->memory[device].headroom < out->memory[out->fullest].headroom)
            out->fullest = device;
    }
    ps_step_ground ground = {.context = context,
                             .layout = layout,
                             .pipeline = &out->pipeline,
                             .stage = out->stage,
                             .first_layer = first_layer};
    return end_step(arena, out, &ground, status);
}

ps_code ps_run_cut(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                   const int32_t *first_layer, ps_run *out, ps_status *status)
{
    return ps_run_order(arena, context, candidate, first_layer, NULL, out, status);
}

// Per-layer arrays of a candidate for the partitioner.
typedef struct layer_arrays {
    int64_t *cost;
    int64_t *state;
    int64_t *held_full;
    int64_t *held_weight;
    int64_t *transient;
    int32_t *pinned;
} layer_arrays;

static layer_arrays arrays_of(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate)
{
    const ps_model *model = context->model;
    int32_t n = model->num_layers;
    // The first and the last rank are one in a V, and with dualpipe hold the same: they are where tied weights are.
    bool loop = ps_layout_placement(&candidate->layout) == PS_PLACEMENT_LOOP;
    bool copies = candidate->layout.pp > 1 && loop;
    bool recomputes = ps_schedule_family_at(candidate->layout.schedule)->recomputes;
    layer_arrays arrays = {
        .cost = ps_new_raw(arena, int64_t, n),
        .state = ps_new_raw(arena, int64_t, n),
        .held_full = ps_new_raw(arena, int64_t, n),
        .held_weight = ps_new_raw(arena, int64_t, n),
        .transient = ps_new_raw(arena, int64_t, n),
        .pinned = model->pinned_stage ? ps_new_raw(arena, int32_t, n) : NULL,
    };
    for (int32_t layer = 0; layer < n; layer++) {
        ps_layer_cost cost = ps_candidate_stage_cost(context, candidate, layer, layer + 1, copies);
        arrays.cost[layer] = ps_layer_work_ns(&cost);
        arrays.state[layer] = cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes;
        arrays.held_full[layer] = cost.held_after_forward_bytes;
        arrays.held_weight[layer] = recomputes ? cost.recomputed_bytes : cost.held_after_backward_input_bytes;
        arrays.transient[layer] = cost.transient_bytes;
        if (arrays.pinned) {
            int32_t last = ps_layout_cuts(&candidate->layout) - 1;
            int32_t pin = model->pinned_stage[layer];
            arrays.pinned[layer] = pin == PS_PIN_LAST ? last : pin;
        }
    }
    return arrays;
}

// A pin to a stage that this layout does not have says nothing against layouts with more stages.
static ps_code check_pins(const ps_model *model, int32_t stages, ps_status *status)
{
    for (int32_t layer = 0; model->pinned_stage && layer < model->num_layers; layer++) {
        if (model->pinned_stage[layer] < stages)
            continue;
        ps_fail(status, PS_INFEASIBLE, "pins", "layer %s is pinned to stage %d, the last of this layout is %d",
                model->layer[layer].name, (int)model->pinned_stage[layer], (int)stages - 1);
        return ps_fail_hint(status, "--pp %d or more", (int)model->pinned_stage[layer] + 1);
    }
    return PS_OK;
}

// Cuts of a candidate. With virtual stages the limit holds for a device, not for a stage: they are first cut without
// it, and with an even share of it when nothing fits.
ps_code ps_layout_cut(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                      const ps_depth_list *depth, int64_t stage_limit, ps_partition_result *out, ps_status *status)
{
    const ps_layout *layout = &candidate->layout;
    PS_TRY(check_pins(context->model, ps_layout_cuts(layout), status));
    layer_arrays arrays = arrays_of(arena, context, candidate);
    const int64_t *cost[1] = {arrays.cost};
    int32_t stages = ps_layout_cuts(layout);
    ps_device_type type = {.name = context->group->gpu.name, .count = stages, .memory_limit = stage_limit};

    ps_partition_problem problem = {
        .num_layers = context->model->num_layers,
        .num_stages = stages,
        .num_types = 1,
        .type = &type,
        .memory_is_bytes = true,
        .cost_ns = cost,
        .static_bytes = arrays.state,
        .held_full = arrays.held_full,
        .held_weight = arrays.held_weight,
        .transient_bytes = arrays.transient,
        .depth = depth,
        .pinned_stage = arrays.pinned,
        .keep_with_next = context->model->keep_with_next,
        .num_microbatches = layout->num_microbatches,
        .objective = layout->vp == 1 ? PS_OBJECTIVE_ITERATION : PS_OBJECTIVE_BOTTLENECK,
        .rule_only = true, // a search says how far the nearest layout is, not each
    };
    ps_partition_options options = {.engine = PS_ENGINE_AUTO, .top_k = 1};
    if (problem.num_layers <= LONG_CHAIN)
        options.top_k = CUTS_PER_EFFORT * context->job->effort;
    return ps_partition_solve(arena, &problem, &options, out, status);
}

void ps_layout_depths(ps_arena *arena, const ps_layout *layout, double share, ps_depth_list *out)
{
    int32_t stages = layout->pp * layout->vp;
    *out = (ps_depth_list){.num_stages = stages,
                           .first = ps_new_raw(arena, int32_t, stages + 1),
                           .point = ps_new_raw(arena, ps_depth, 2 * (int64_t)stages)};
    for (int32_t stage = 0; stage < stages; stage++) {
        int32_t depth = 1 + (int32_t)(share * (stages - 1 - stage));
        if (depth > layout->num_microbatches)
            depth = layout->num_microbatches;
        out->first[stage] = 2 * stage;
        out->point[2 * stage] = (ps_depth){.full = depth};
        out->point[2 * stage + 1] = (ps_depth){.full = depth - 1, .weight = 1};
    }
    out->first[stages] = 2 * stages;
}

// An order that is searched for takes what room there is, so that only one micro-batch at a time has to fit.
static ps_code depths_of(ps_arena *arena, const ps_layout *layout, ps_depth_list *out, ps_status *status)
{
    if (layout->schedule == PS_SCHEDULE_ZB) {
        ps_layout_depths(arena, layout, 0, out);
        return PS_OK;
    }
    PS_TRY(ps_schedule_depths(arena, layout->schedule, ps_layout_shape(layout), out, status));
    out->num_stages = ps_layout_cuts(layout); // the other way's are the same in reverse
    return PS_OK;
}

static void keep_fullest(ps_evaluation *out, const ps_run *run)
{
    const ps_plan_memory *memory = &run->memory[run->fullest];
    if (out->fullest.memory.total_peak == 0 || memory->total_peak < out->fullest.memory.total_peak)
        out->fullest = (ps_device_memory){.device = run->fullest, .memory = *memory};
}

static ps_code try_cut(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                       const int32_t *first_layer, ps_evaluation *out, ps_status *status)
{
    ps_run run;
    PS_TRY(ps_run_cut(scratch, context, candidate, first_layer, &run, status));
    if (!run.fits) {
        if (!out->feasible)
            keep_fullest(out, &run);
        return PS_OK;
    }
    if (out->feasible && run.prediction.iteration_ns >= out->iteration_ns)
        return PS_OK;
    int32_t stages = ps_layout_cuts(&candidate->layout);
    out->feasible = true;
    out->iteration_ns = run.prediction.iteration_ns;
    out->fullest = (ps_device_memory){.device = run.fullest, .memory = run.memory[run.fullest]};
    memcpy(out->first_layer, first_layer, ((size_t)stages + 1) * sizeof *first_layer);
    return PS_OK;
}

static ps_code try_cuts(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                        int64_t stage_limit, ps_evaluation *out, ps_status *status)
{
    ps_partition_result result;
    ps_depth_list depth;
    PS_TRY(depths_of(scratch, &candidate->layout, &depth, status));
    PS_TRY(ps_layout_cut(scratch, context, candidate, &depth, stage_limit, &result, status));
    out->engine = result.engine;
    for (int32_t index = 0; index < result.count; index++) {
        if (index > 0 && out->feasible && ps_plan_is_stopped(context))
            return PS_OK;
        PS_TRY(try_cut(scratch, context, candidate, result.partition[index].first_layer, out, status));
    }
    int32_t *even = result.partition[0].first_layer;
    ps_cut_rebalance(scratch, context, candidate, even);
    return try_cut(scratch, context, candidate, even, out, status);
}

static void refuse_memory(const ps_plan_context *context, ps_evaluation *out)
{
    char need[32];
    char have[32];
    const ps_device_memory *fullest = &out->fullest;
    ps_fail(&out->refusal, PS_INFEASIBLE, "memory", "pipeline rank %d needs %s, the GPU has %s", (int)fullest->device,
            ps_format_bytes(fullest->memory.total_peak, need), ps_format_bytes(context->capacity_bytes, have));
}

ps_code ps_evaluate(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                    ps_evaluation *out, ps_status *status)
{
    const ps_layout *layout = &candidate->layout;
    int64_t limit = context->room_bytes;

    ps_code code = try_cuts(scratch, context, candidate, layout->vp == 1 ? limit : INT64_MAX, out, status);
    if (code == PS_OK && !out->feasible && layout->vp > 1)
        code = try_cuts(scratch, context, candidate, limit / layout->vp, out, status);
    // PS_BAD_INPUT: a pipeline beyond limits.h, which says nothing against other layouts.
    if (code == PS_INFEASIBLE || code == PS_ILLEGAL || code == PS_BAD_INPUT) {
        out->refusal = *status;
        out->proven_infeasible = layout->vp == 1 && code == PS_INFEASIBLE && strcmp(status->rule, "no-cut-yet") != 0;
        *status = (ps_status){0};
    } else if (code != PS_OK) {
        return code;
    }
    if (!out->feasible && (out->refusal.code == PS_OK || out->fullest.memory.total_peak > 0))
        refuse_memory(context, out);
    return PS_OK;
}

ps_code ps_evaluate_unlimited(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                              ps_device_memory *out, ps_status *status)
{
    ps_partition_result result;
    ps_run run;
    ps_depth_list depth;
    PS_TRY(depths_of(scratch, &candidate->layout, &depth, status));
    PS_TRY(ps_layout_cut(scratch, context, candidate, &depth, INT64_MAX, &result, status));
    PS_TRY(ps_run_cut(scratch, context, candidate, result.partition[0].first_layer, &run, status));
    *out = (ps_device_memory){.device = run.fullest, .memory = run.memory[run.fullest]};
    return PS_OK;
}
