// SPDX-License-Identifier: Apache-2.0
//
// step_build.c: costs of a cut become the end of its step; a plan file becomes it again.
#include "plan/step_build.h"

#include "pipesched/plan.h"

static int32_t stage_with(const int32_t *first_layer, int32_t layer)
{
    int32_t stage = 0;
    while (first_layer[stage + 1] <= layer)
        stage++;
    return stage;
}

// A weight that several ranks hold is reduced among these, all in one go: the owner and every rank with a copy of its
// own. One stage of a rank stands for it.
static void tie(ps_arena *arena, const ps_step_ground *ground, ps_step *step)
{
    const ps_model *model = ground->context->model;
    bool *holds = ps_new(arena, bool, ground->pipeline->num_devices);
    int32_t *stage = ps_new(arena, int32_t, ground->pipeline->num_devices);
    int32_t holders = 0;
    int64_t parameters = 0;
    for (int32_t layer = 0; layer < model->num_layers; layer++) {
        if (model->layer[layer].shared_parameters == 0)
            continue;
        int32_t ends[2] = {stage_with(ground->first_layer, model->layer[layer].shared_with),
                           stage_with(ground->first_layer, layer)};
        int32_t owner = ground->pipeline->stage[ends[0]].device;
        if (owner == ground->pipeline->stage[ends[1]].device)
            continue;
        for (int32_t i = 0; i < 2; i++) {
            int32_t device = ground->pipeline->stage[ends[i]].device;
            if (!holds[device])
                stage[holders++] = ends[i];
            holds[device] = true;
        }
        if (ground->stage[ends[1]].copy_parameters > parameters)
            parameters = ground->stage[ends[1]].copy_parameters;
    }
    int64_t time = ps_cost_tied_ns(ground->context->group, ground->context->job, ground->layout, parameters);
    int32_t first = ground->pipeline->num_stages;
    for (int32_t i = 0; i < holders; i++)
        first = stage[i] < first ? stage[i] : first;
    for (int32_t i = 0; i < holders && time > 0; i++) {
        step->stage[stage[i]].tied_ns = time;
        step->stage[stage[i]].tied_to = first;
    }
}

static int64_t slowest_hop(const ps_pipeline *pipeline)
{
    int64_t slowest = 0;
    for (int32_t stage = 0; stage + 1 < pipeline->num_stages; stage++) {
        int64_t up = pipeline->forward_hop[stage].latency_ns;
        int64_t down = pipeline->backward_hop[stage].latency_ns;
        slowest = up > slowest ? up : slowest;
        slowest = down > slowest ? down : slowest;
    }
    return slowest;
}

void ps_step_build(ps_arena *arena, const ps_step_ground *ground, ps_step *out)
{
    const ps_plan_context *context = ground->context;
    const ps_pipeline *pipeline = ground->pipeline;
    *out = (ps_step){.stage = ps_new(arena, ps_step_stage, pipeline->num_stages),
                     .optimizer_ns = ps_new(arena, int64_t, pipeline->num_devices),
                     .barrier = context->job->optimizer_barrier,
                     .overlap = context->job->overlap_grad_sync,
                     .every_microbatch = ground->layout->zero == 2};
    for (int32_t stage = 0; stage < pipeline->num_stages; stage++) {
        ps_iteration_cost once = ps_cost_iteration(context->group, context->job, ground->layout, &ground->stage[stage]);
        out->stage[stage] =
            (ps_step_stage){.reduce_ns = once.reduce_ns, .gather_ns = once.gather_ns, .buckets = once.buckets};
        out->optimizer_ns[pipeline->stage[stage].device] += once.optimizer_ns;
    }
    tie(arena, ground, out);
    if (out->barrier)
        out->barrier_ns = ps_cost_barrier_ns(context->group, ground->layout);
    else
        out->validation_hop_ns = slowest_hop(pipeline);
}

ps_code ps_plan_step(ps_arena *arena, const ps_plan *plan, const ps_pipeline *pipeline, ps_step *out, ps_status *status)
{
    const ps_job *job = &plan->inputs.job;
    *out = (ps_step){.stage = ps_new(arena, ps_step_stage, plan->num_stages),
                     .optimizer_ns = ps_new(arena, int64_t, plan->num_devices),
                     .barrier = job->optimizer_barrier,
                     .overlap = job->overlap_grad_sync,
                     .every_microbatch = plan->layout.zero == 2,
                     .barrier_ns = plan->prediction.barrier_ns,
                     .validation_hop_ns = plan->prediction.validation_hop_ns};
    for (int32_t stage = 0; stage < plan->num_stages; stage++) {
        const ps_plan_stage *from = &plan->stage[stage];
        out->stage[stage] = (ps_step_stage){.reduce_ns = from->grad_sync_ns,
                                            .gather_ns = from->param_gather_ns,
                                            .tied_ns = from->tied_sync_ns,
                                            .tied_to = from->tied_to,
                                            .buckets = from->sync_buckets};
    }
    for (int32_t device = 0; device < plan->num_devices; device++)
        out->optimizer_ns[device] = plan->device[device].optimizer_ns;
    return ps_step_validate(pipeline, out, status);
}
