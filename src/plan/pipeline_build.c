// SPDX-License-Identifier: Apache-2.0
//
// pipeline_build.c: a cut becomes stages, hops and devices; a plan file becomes them again.
#include "plan/pipeline_build.h"

#include <math.h>
#include <string.h>

#include "pipesched/limits.h"
#include "pipesched/plan.h"

static void add_copied_state(ps_layer_cost *cost, const ps_job *job, const ps_layout *layout)
{
    ps_state_bytes bytes = ps_cost_state_bytes(job, layout);
    double copies = (double)cost->copy_parameters;
    cost->parameter_bytes += (int64_t)ceil(copies * bytes.parameters);
    cost->gradient_bytes += (int64_t)ceil(copies * bytes.gradients);
    cost->optimizer_bytes += (int64_t)ceil(copies * bytes.optimizer);
}

ps_layer_cost ps_stage_cost(const ps_cost_table *table, const ps_job *job, int32_t first, int32_t end, bool copies)
{
    const ps_layer_cost *a = &table->prefix[first];
    const ps_layer_cost *b = &table->prefix[end];
    ps_layer_cost cost = {
        .forward_ns = b->forward_ns - a->forward_ns,
        .backward_input_ns = b->backward_input_ns - a->backward_input_ns,
        .backward_weight_ns = b->backward_weight_ns - a->backward_weight_ns,
        .recompute_ns = b->recompute_ns - a->recompute_ns,
        .held_after_forward_bytes = b->held_after_forward_bytes - a->held_after_forward_bytes,
        .held_after_backward_input_bytes = b->held_after_backward_input_bytes - a->held_after_backward_input_bytes,
        .output_bytes = table->layer[end - 1].output_bytes,
        .parameters = b->parameters - a->parameters,
        .expert_parameters = b->expert_parameters - a->expert_parameters,
        .frozen_parameters = b->frozen_parameters - a->frozen_parameters,
        .parameter_bytes = b->parameter_bytes - a->parameter_bytes,
        .gradient_bytes = b->gradient_bytes - a->gradient_bytes,
        .optimizer_bytes = b->optimizer_bytes - a->optimizer_bytes,
        .copy_parameters = b->copy_parameters - a->copy_parameters,
    };
    for (int32_t layer = first; layer < end; layer++) {
        if (table->layer[layer].transient_bytes > cost.transient_bytes)
            cost.transient_bytes = table->layer[layer].transient_bytes;
    }
    if (!copies)
        cost.copy_parameters = 0;
    if (cost.copy_parameters > 0)
        add_copied_state(&cost, job, &table->layout);
    return cost;
}

static bool has_recompute_op(ps_schedule_kind kind)
{
    return ps_schedule_family_at(kind)->recomputes;
}

ps_layer_cost ps_candidate_stage_cost(const ps_plan_context *context, const ps_candidate *candidate, int32_t first,
                                      int32_t end, bool copies)
{
    ps_layer_cost cost = ps_stage_cost(candidate->table, context->job, first, end, copies);
    if (!has_recompute_op(candidate->layout.schedule))
        return cost;
    cost.transient_bytes = 0;
    for (int32_t index = first; index < end; index++) {
        const ps_layer_cost *layer = &candidate->table->layer[index];
        int64_t transient = layer->transient_bytes - layer->recomputed_bytes;
        if (transient > cost.transient_bytes)
            cost.transient_bytes = transient;
        if (layer->recomputed_bytes > layer->held_after_forward_bytes) // the kept input is part of what comes back
            cost.recomputed_bytes += layer->recomputed_bytes - layer->held_after_forward_bytes;
    }
    return cost;
}

ps_schedule_shape ps_layout_shape(const ps_layout *layout)
{
    return (ps_schedule_shape){
        .num_devices = layout->pp, .num_stages = layout->pp * layout->vp, .num_microbatches = layout->num_microbatches};
}

int32_t ps_layout_device(const ps_layout *layout, int32_t stage)
{
    return ps_schedule_device(ps_layout_placement(layout), ps_layout_shape(layout), stage);
}

static bool is_dual(const ps_layout *layout)
{
    return ps_schedule_family_at(layout->schedule)->placement == PS_PLACEMENT_DUAL;
}

ps_layout ps_layout_folded(const ps_layout *layout)
{
    ps_layout folded = *layout;
    if (is_dual(layout))
        folded.pp /= 2;
    return folded;
}

int32_t ps_layout_cuts(const ps_layout *layout)
{
    return is_dual(layout) ? layout->pp : layout->pp * layout->vp;
}

int32_t ps_layout_cut_of(const ps_layout *layout, int32_t stage)
{
    return stage % ps_layout_cuts(layout);
}

int32_t ps_layout_stage_microbatches(const ps_layout *layout)
{
    return is_dual(layout) ? layout->num_microbatches / 2 : layout->num_microbatches;
}

static int32_t stage_with(const int32_t *first_layer, int32_t layer)
{
    int32_t stage = 0;
    while (first_layer[stage + 1] <= layer)
        stage++;
    return stage;
}

int32_t ps_cut_tied_owner(const ps_model *model, const ps_layout *layout, const int32_t *first_layer)
{
    ps_layout folded = ps_layout_folded(layout);
    for (int32_t layer = 0; layer < model->num_layers; layer++) {
        if (model->layer[layer].shared_parameters == 0)
            continue;
        int32_t owner = ps_layout_device(&folded, stage_with(first_layer, model->layer[layer].shared_with));
        return owner == ps_layout_device(&folded, stage_with(first_layer, layer)) ? -1 : owner;
    }
    return -1;
}

// `apart`: the recompute is an op of its own, R.
static void set_durations(ps_stage *stage, const ps_layer_cost *cost, int64_t overhead, bool apart)
{
    int64_t input = (apart ? 0 : cost->recompute_ns) + cost->backward_input_ns;
    stage->duration_ns[PS_OP_FORWARD] = cost->forward_ns + overhead;
    stage->duration_ns[PS_OP_BACKWARD] = input + cost->backward_weight_ns + overhead;
    stage->duration_ns[PS_OP_BACKWARD_INPUT] = input + overhead;
    stage->duration_ns[PS_OP_BACKWARD_WEIGHT] = cost->backward_weight_ns + overhead;
    stage->duration_ns[PS_OP_RECOMPUTE] = apart ? cost->recompute_ns + overhead : 0;
    stage->held_after_forward = cost->held_after_forward_bytes;
    stage->added_by_recompute = cost->recomputed_bytes;
    stage->held_after_backward_input = cost->held_after_backward_input_bytes;
    stage->transient = cost->transient_bytes;
}

static void allocate(ps_arena *arena, ps_pipeline *pipeline)
{
    pipeline->stage = ps_new(arena, ps_stage, pipeline->num_stages);
    pipeline->forward_hop = ps_new(arena, ps_hop, pipeline->num_stages);
    pipeline->backward_hop = ps_new(arena, ps_hop, pipeline->num_stages);
    pipeline->device = ps_new(arena, ps_device, pipeline->num_devices);
}

static ps_hop hop_between(const ps_group *group, const ps_layout *layout, int32_t from, int32_t to, int64_t bytes)
{
    if (from == to)
        return (ps_hop){.lane = PS_NO_LANE};
    ps_cost_link link = ps_cost_pipeline_link(group, layout, from, to);
    return (ps_hop){.latency_ns = link.latency_ns, .occupy_ns = ps_cost_transfer_ns(link, bytes)};
}

static int64_t send_ns(const ps_hop *hop, int64_t wait_ns)
{
    return hop->lane == PS_NO_LANE ? 0 : hop->occupy_ns + wait_ns;
}

// Where hops do not overlap ops, the op before a hop takes the transfer's time too, and no lane is occupied beside it.
static void block_on_transfers(const ps_layout *layout, int64_t wait_ns, ps_pipeline *pipeline)
{
    for (int32_t lower = 0; lower + 1 < pipeline->num_stages; lower++) {
        ps_hop *up = &pipeline->forward_hop[lower];
        ps_hop *down = &pipeline->backward_hop[lower];
        if ((lower + 1) % ps_layout_cuts(layout) > 0) { // else the first stage of the other way follows
            int64_t *sender = pipeline->stage[lower + 1].duration_ns;
            pipeline->stage[lower].duration_ns[PS_OP_FORWARD] += send_ns(up, wait_ns);
            sender[PS_OP_BACKWARD] += send_ns(down, wait_ns);
            sender[PS_OP_BACKWARD_INPUT] += send_ns(down, wait_ns);
        }
        up->occupy_ns = 0;
        down->occupy_ns = 0;
    }
}

void ps_pipeline_build(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                       const int32_t *first_layer, ps_pipeline *out)
{
    const ps_layout *layout = &candidate->layout;
    int32_t stages = layout->pp * layout->vp;

    *out = (ps_pipeline){.num_stages = stages, .num_devices = layout->pp, .num_microbatches = layout->num_microbatches};
    allocate(arena, out);
    bool copies = ps_cut_tied_owner(context->model, layout, first_layer) >= 0;
    for (int32_t device = 0; device < layout->pp; device++)
        out->device[device].memory_limit = context->room_bytes;
    for (int32_t stage = 0; stage < stages; stage++) {
        int32_t cut = ps_layout_cut_of(layout, stage);
        ps_layer_cost cost =
            ps_candidate_stage_cost(context, candidate, first_layer[cut], first_layer[cut + 1], copies);
        int32_t device = ps_layout_device(layout, stage);
        out->stage[stage].device = device;
        set_durations(&out->stage[stage], &cost, context->job->op_overhead_ns, has_recompute_op(layout->schedule));
        out->device[device].static_memory += cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes;
        if (stage + 1 < stages) {
            int32_t next = ps_layout_device(layout, stage + 1);
            out->forward_hop[stage] = hop_between(context->group, layout, device, next, cost.output_bytes);
            out->backward_hop[stage] = hop_between(context->group, layout, next, device, cost.output_bytes);
        }
    }
    if (!context->job->overlap_p2p)
        block_on_transfers(layout, context->job->p2p_wait_ns, out);
    ps_schedule_set_routes(arena, ps_schedule_family_at(layout->schedule)->placement, out);
    ps_pipeline_assign_lanes(arena, out);
}

void ps_plan_set_sends(ps_plan *plan)
{
    for (int32_t index = 0; index < plan->num_hops && !plan->inputs.job.overlap_p2p; index++) {
        const ps_plan_hop *hop = &plan->hop[index];
        bool forward = hop->to_stage > hop->from_stage;
        if (hop->from_stage >= plan->num_stages)
            continue; // for the checker to refuse
        bool apart = hop->to_stage < plan->num_stages &&
                     plan->stage[hop->from_stage].pp_rank != plan->stage[hop->to_stage].pp_rank;
        plan->stage[hop->from_stage].send_ns[forward ? 0 : 1] =
            hop->transfer_ns + (apart ? plan->inputs.job.p2p_wait_ns : 0);
    }
}

// Hops between neighbours only; what else a plan lists is for the checker to refuse.
static void place_hops(const ps_plan *plan, ps_pipeline *pipeline)
{
    for (int32_t index = 0; index < plan->num_hops; index++) {
        const ps_plan_hop *hop = &plan->hop[index];
        ps_hop timed = {.latency_ns = hop->latency_ns, .occupy_ns = hop->transfer_ns};
        if (hop->to_stage == hop->from_stage + 1)
            pipeline->forward_hop[hop->from_stage] = timed;
        else if (hop->from_stage == hop->to_stage + 1)
            pipeline->backward_hop[hop->to_stage] = timed;
    }
    for (int32_t stage = 0; stage + 1 < pipeline->num_stages; stage++) {
        if (pipeline->stage[stage].device == pipeline->stage[stage + 1].device) {
            pipeline->forward_hop[stage] = (ps_hop){.lane = PS_NO_LANE};
            pipeline->backward_hop[stage] = (ps_hop){.lane = PS_NO_LANE};
        }
    }
}

ps_code ps_plan_pipeline(ps_arena *arena, const ps_plan *plan, ps_pipeline *out, ps_status *status)
{
    if (!plan->feasible) {
        ps_fail(status, PS_INFEASIBLE, "plan-infeasible", "the plan's verdict is infeasible: it has no schedule");
        return ps_fail_hint(status, "its reasons name what would fit");
    }
    *out = (ps_pipeline){.num_stages = plan->num_stages,
                         .num_devices = plan->num_devices,
                         .num_microbatches = plan->layout.num_microbatches};
    allocate(arena, out);
    for (int32_t device = 0; device < plan->num_devices; device++) {
        const ps_plan_memory *memory = &plan->device[device].memory;
        out->device[device].static_memory = memory->parameters + memory->gradients + memory->optimizer +
                                            memory->framework + memory->fragmentation + memory->reserve;
        out->device[device].memory_limit = memory->capacity;
    }
    for (int32_t stage = 0; stage < plan->num_stages; stage++) {
        const ps_plan_stage *from = &plan->stage[stage];
        ps_layer_cost cost = {
            .forward_ns = from->forward_ns,
            .backward_input_ns = from->backward_input_ns,
            .backward_weight_ns = from->backward_weight_ns,
            .recompute_ns = from->recompute_ns,
            .held_after_forward_bytes = from->held_after_forward_bytes,
            .recomputed_bytes = from->added_by_recompute_bytes,
            .held_after_backward_input_bytes = from->held_after_backward_input_bytes,
            .transient_bytes = from->transient_bytes,
        };
        out->stage[stage].device = from->pp_rank;
        set_durations(&out->stage[stage], &cost, from->op_overhead_ns, has_recompute_op(plan->layout.schedule));
    }
    place_hops(plan, out);
    if (!plan->inputs.job.overlap_p2p)
        block_on_transfers(&plan->layout, plan->inputs.job.p2p_wait_ns, out);
    ps_schedule_set_routes(arena, ps_schedule_family_at(plan->layout.schedule)->placement, out);
    ps_pipeline_assign_lanes(arena, out);
    return ps_pipeline_validate(out, status);
}
