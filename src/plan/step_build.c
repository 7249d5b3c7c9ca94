// SPDX-License-Identifier: Apache-2.0
//
// step_build.c: costs of a cut become the end of its step; a plan file becomes it again.
#include "plan/step_build.h"

#include "pipesched/plan.h"
#include "plan/pipeline_build.h"

static int32_t stage_with(const int32_t *first_layer, int32_t layer)
{
    int32_t stage = 0;
    while (first_layer[stage + 1] <= layer)
        stage++;
    return stage;
}

// With dualpipe both stages of a cut hold the same, so ranks r and pp - 1 - r add up their gradients.
static void tie_ways(const ps_step_ground *ground, ps_step *step)
{
    int32_t cuts = ps_layout_cuts(ground->layout);
    for (int32_t stage = cuts; stage < ground->pipeline->num_stages; stage++) {
        int32_t twin = stage - cuts;
        int64_t time = ps_cost_pair_sync_ns(ground->context->group, ground->context->job, ground->layout,
                                            ground->pipeline->stage[stage].device, ground->stage[stage].parameters);
        step->stage[stage].tied_ns = step->stage[twin].tied_ns = time;
        step->stage[stage].tied_to = step->stage[twin].tied_to = time > 0 ? twin : 0;
    }
}

// Cuts of which one stands for each rank, or pair of ranks with the same stages, that holds a weight of several.
typedef struct holders {
    int32_t count;
    int32_t *cut;       // [devices of the folded layout]
    int64_t parameters; // the most that one of them has a copy of
} holders;

static holders find_holders(ps_arena *arena, const ps_step_ground *ground)
{
    const ps_model *model = ground->context->model;
    ps_layout folded = ps_layout_folded(ground->layout);
    bool *holds = ps_new(arena, bool, folded.pp);
    holders found = {.cut = ps_new(arena, int32_t, folded.pp)};
    for (int32_t layer = 0; layer < model->num_layers; layer++) {
        if (model->layer[layer].shared_parameters == 0)
            continue;
        int32_t ends[2] = {stage_with(ground->first_layer, model->layer[layer].shared_with),
                           stage_with(ground->first_layer, layer)};
        if (ps_layout_device(&folded, ends[0]) == ps_layout_device(&folded, ends[1]))
            continue;
        for (int32_t i = 0; i < 2; i++) {
            int32_t device = ps_layout_device(&folded, ends[i]);
            if (!holds[device])
                found.cut[found.count++] = ends[i];
            holds[device] = true;
        }
        if (ground->stage[ends[1]].copy_parameters > found.parameters)
            found.parameters = ground->stage[ends[1]].copy_parameters;
    }
    return found;
}

// A weight that several ranks hold is reduced among these, all in one go: the owner and every rank with a copy of its
// own. One stage of a rank stands for it; with dualpipe what else the two stages of a cut add up goes with it.
static void tie(ps_arena *arena, const ps_step_ground *ground, ps_step *step)
{
    holders found = find_holders(arena, ground);
    int32_t cuts = ps_layout_cuts(ground->layout);
    int64_t time = ps_cost_tied_ns(ground->context->group, ground->context->job, ground->layout, found.parameters);
    if (time == 0)
        return;
    int32_t first = cuts;
    int64_t beside = 0;
    for (int32_t i = 0; i < found.count; i++) {
        const ps_step_stage *stage = &step->stage[found.cut[i]];
        first = found.cut[i] < first ? found.cut[i] : first;
        beside = stage->tied_ns > beside ? stage->tied_ns : beside;
    }
    for (int32_t i = 0; i < found.count; i++) {
        for (int32_t stage = found.cut[i]; stage < ground->pipeline->num_stages; stage += cuts) {
            step->stage[stage].tied_ns = time + beside;
            step->stage[stage].tied_to = first;
        }
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
    tie_ways(ground, out);
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
