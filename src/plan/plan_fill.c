// SPDX-License-Identifier: Apache-2.0
//
// plan_fill.c: the winning layout, run once more in full, written into the plan's fields.
#include <string.h>

#include "job/dialect.h"
#include "plan/pipeline_build.h"
#include "plan/planner.h"

typedef struct plan_filler {
    ps_arena *arena;
    const ps_plan_context *context;
    const ps_candidate *candidate;
    const int32_t *first_layer;
    const ps_run *run;
    ps_plan *plan;
} plan_filler;

// Most micro-batches of each stage between F and the end of I or B; also, summed over a device's stages, of the device.
static void count_in_flight(plan_filler *filler)
{
    const ps_schedule *schedule = &filler->run->schedule;
    int32_t *now = ps_new(filler->arena, int32_t, filler->plan->num_stages);
    for (int32_t index = 0; index < schedule->first[schedule->num_devices]; index++) {
        ps_op op = schedule->op[index];
        ps_plan_stage *stage = &filler->plan->stage[op.stage];
        if (op.kind == PS_OP_FORWARD && ++now[op.stage] > stage->launch_count)
            stage->launch_count = now[op.stage];
        if (op.kind == PS_OP_BACKWARD || op.kind == PS_OP_BACKWARD_INPUT)
            now[op.stage]--;
    }
}

static void fill_stage_layers(plan_filler *filler, ps_plan_stage *stage)
{
    const ps_model *model = filler->context->model;
    int32_t cut = ps_layout_cut_of(&filler->plan->layout, stage->stage);
    int32_t first = filler->first_layer[cut];
    int32_t end = filler->first_layer[cut + 1];

    stage->num_ranges = 1;
    stage->first_layer = ps_new(filler->arena, int32_t, 1);
    stage->last_layer = ps_new(filler->arena, int32_t, 1);
    stage->first_layer[0] = first;
    stage->last_layer[0] = end - 1;
    stage->num_layers = end - first;
    stage->layer_name = ps_new(filler->arena, const char *, stage->num_layers);
    for (int32_t layer = first; layer < end; layer++) {
        stage->layer_name[layer - first] = model->layer[layer].name;
        stage->parameters += model->layer[layer].parameters;
    }
}

static void fill_stages(plan_filler *filler)
{
    ps_plan *plan = filler->plan;
    const ps_layout *layout = &plan->layout;

    plan->num_stages = layout->pp * layout->vp;
    plan->stage = ps_new(filler->arena, ps_plan_stage, plan->num_stages);
    for (int32_t index = 0; index < plan->num_stages; index++) {
        const ps_layer_cost *cost = &filler->run->stage[index];
        const ps_step_stage *step = &filler->run->step.stage[index];
        ps_plan_stage *stage = &plan->stage[index];
        *stage = (ps_plan_stage){
            .stage = index,
            .pp_rank = ps_layout_device(layout, index),
            .chunk = index / layout->pp,
            .tp = layout->tp,
            .dp = layout->dp,
            .cp = layout->cp,
            .ep = layout->ep,
            .recompute = layout->recompute,
            .forward_ns = cost->forward_ns,
            .backward_input_ns = cost->backward_input_ns,
            .backward_weight_ns = cost->backward_weight_ns,
            .recompute_ns = cost->recompute_ns,
            .op_overhead_ns = filler->context->job->op_overhead_ns,
            .grad_sync_ns = step->reduce_ns,
            .tied_sync_ns = step->tied_ns,
            .tied_to = step->tied_to,
            .param_gather_ns = step->gather_ns,
            .sync_buckets = step->buckets,
            .held_after_forward_bytes = cost->held_after_forward_bytes,
            .added_by_recompute_bytes = cost->recomputed_bytes,
            .held_after_backward_input_bytes = cost->held_after_backward_input_bytes,
            .transient_bytes = cost->transient_bytes,
            .output_bytes = (index + 1) % ps_layout_cuts(layout) > 0 ? cost->output_bytes : 0,
            .parameter_bytes = cost->parameter_bytes,
            .gradient_bytes = cost->gradient_bytes,
            .optimizer_bytes = cost->optimizer_bytes,
            .single_microbatch_bytes = cost->parameter_bytes + cost->gradient_bytes + cost->optimizer_bytes +
                                       cost->held_after_forward_bytes + cost->recomputed_bytes +
                                       cost->held_after_backward_input_bytes + cost->transient_bytes,
        };
        fill_stage_layers(filler, stage);
    }
    count_in_flight(filler);
}

static ps_plan_hop hop_of(const plan_filler *filler, int32_t from, int32_t to)
{
    const ps_plan *plan = filler->plan;
    int32_t lower = from < to ? from : to;
    ps_plan_hop hop = {.from_stage = from, .to_stage = to, .bytes = plan->stage[lower].output_bytes, .link = "none"};
    if (plan->stage[from].pp_rank == plan->stage[to].pp_rank)
        return hop;
    ps_cost_link link = ps_cost_pipeline_link(filler->context->group, &plan->layout, plan->stage[from].pp_rank,
                                              plan->stage[to].pp_rank);
    hop.latency_ns = link.latency_ns;
    hop.transfer_ns = ps_cost_transfer_ns(link, hop.bytes);
    hop.link = link.name;
    return hop;
}

static void fill_hops(plan_filler *filler)
{
    ps_plan *plan = filler->plan;
    int32_t cuts = ps_layout_cuts(&plan->layout);
    int32_t pairs = plan->num_stages - plan->num_stages / cuts;
    plan->num_hops = 2 * pairs;
    plan->hop = ps_new(filler->arena, ps_plan_hop, plan->num_hops);
    int32_t pair = 0;
    for (int32_t stage = 0; stage + 1 < plan->num_stages; stage++) {
        if ((stage + 1) % cuts == 0)
            continue; // from one way of dualpipe to the other
        plan->hop[pair] = hop_of(filler, stage, stage + 1);
        plan->hop[pairs + pair++] = hop_of(filler, stage + 1, stage);
    }
}

// The links that some hop uses, the inner one first.
static void fill_links(plan_filler *filler)
{
    ps_cost_link links[2] = {ps_cost_intra_link(filler->context->group), ps_cost_inter_link(filler->context->group)};
    ps_plan *plan = filler->plan;
    plan->link = ps_new(filler->arena, ps_plan_link, 2);
    for (int32_t index = 0; index < 2; index++) {
        bool used = false;
        for (int32_t hop = 0; hop < plan->num_hops && !used; hop++)
            used = strcmp(plan->hop[hop].link, links[index].name) == 0;
        if (used)
            plan->link[plan->num_links++] = (ps_plan_link){.name = links[index].name,
                                                           .latency_ns = links[index].latency_ns,
                                                           .bytes_per_s = links[index].bytes_per_s};
    }
}

static void fill_devices(plan_filler *filler)
{
    ps_plan *plan = filler->plan;
    const ps_layout *layout = &plan->layout;

    ps_placement placement = ps_layout_placement(layout);
    plan->num_devices = layout->pp;
    plan->device = ps_new(filler->arena, ps_plan_device, layout->pp);
    for (int32_t index = 0; index < layout->pp; index++) {
        const ps_device_timeline *timeline = &filler->run->timeline.device[index];
        const ps_step_device *tail = &filler->run->tail.device[index];
        int64_t optimizer_ns = filler->run->step.optimizer_ns[index];
        ps_plan_device *device = &plan->device[index];
        *device = (ps_plan_device){
            .pp_rank = index,
            .num_stages = layout->vp,
            .stage = ps_new(filler->arena, int32_t, layout->vp),
            .gpu = filler->context->group->gpu.name,
            .memory = filler->run->memory[index],
            .grad_sync_ns = tail->sync_ns,
            .grad_sync_exposed_ns = tail->sync_exposed_ns,
            .grad_sync_hidden_ns = tail->sync_ns - tail->sync_exposed_ns,
            .optimizer_ns = optimizer_ns,
            .param_gather_ns = tail->gather_ns,
            .param_gather_exposed_ns = tail->gather_exposed_ns,
            .done_ns = timeline->last_end_ns + tail->sync_exposed_ns + optimizer_ns + tail->gather_exposed_ns,
            .validated_ns = tail->validated_ns,
            .busy_ns = timeline->busy_ns,
            .idle_ns = timeline->idle_ns,
            .idle = timeline->idle,
            .in_flight_peak = timeline->in_flight_peak,
        };
        for (int32_t chunk = 0; chunk < layout->vp; chunk++)
            device->stage[chunk] = ps_schedule_stage(placement, ps_layout_shape(layout), index, chunk);
    }
}

// tp runs fastest, then cp, dp and pp: tensor parallel groups sit in a node, pipeline neighbours far apart. Experts
// have a grid of their own on the same ranks of a pipeline rank: etp fastest, then ep.
static void fill_ranks(plan_filler *filler)
{
    ps_plan *plan = filler->plan;
    const ps_layout *layout = &plan->layout;

    plan->rank_order = "tp-cp-ep-dp-pp";
    plan->ranks_per_node = filler->context->group->gpus_per_node;
    plan->num_ranks = filler->context->num_gpus;
    if (plan->num_ranks > PS_PLAN_MAX_RANK_MAP)
        return;
    plan->rank = ps_new(filler->arena, ps_plan_rank, plan->num_ranks);
    for (int32_t rank = 0; rank < plan->num_ranks; rank++) {
        plan->rank[rank] = (ps_plan_rank){
            .rank = rank,
            .tp = rank % layout->tp,
            .cp = rank / layout->tp % layout->cp,
            .ep = rank / layout->etp % layout->ep,
            .dp = rank / (layout->tp * layout->cp) % layout->dp,
            .pp = rank / (layout->tp * layout->cp * layout->dp),
            .node = rank / plan->ranks_per_node,
            .gpu = rank % plan->ranks_per_node,
        };
    }
}

static void fill_rates(plan_filler *filler)
{
    ps_plan *plan = filler->plan;
    ps_plan_prediction *prediction = &plan->prediction;
    const ps_job *job = filler->context->job;
    double seconds = (double)prediction->iteration_ns / 1e9;
    double gpus = (double)plan->num_ranks;
    double batch = (double)job->global_batch_size;

    prediction->bubble = ps_timeline_bubble(&filler->run->timeline);
    prediction->span_bubble = ps_timeline_span_bubble(&filler->run->timeline);
    if (seconds > 0) { // times of 0 are legal
        prediction->tokens_per_s = batch * (double)job->seq_length / seconds;
        prediction->model_tflops_per_gpu = plan->inputs.model_flops_per_sequence * batch / seconds / gpus / 1e12;
    }
    prediction->mfu = prediction->model_tflops_per_gpu * 1e12 / plan->gpu[0].peak_flops;
    prediction->kwh_per_iteration = plan->inputs.gpu_watts * gpus * seconds / 3.6e6;
    prediction->usd_per_iteration = plan->inputs.usd_per_gpu_hour * gpus * seconds / 3600 +
                                    plan->inputs.usd_per_kwh * prediction->kwh_per_iteration;
    prediction->accuracy = filler->candidate->table->accuracy;
}

static void fill_bounds(plan_filler *filler, const ps_search_outcome *outcome)
{
    ps_plan_bounds *bounds = &filler->plan->bounds;
    int64_t value = filler->plan->prediction.iteration_ns;
    bounds->iteration_ns = outcome->bound_ns;
    if (value > outcome->bound_ns)
        bounds->gap = (double)(value - outcome->bound_ns) / (double)outcome->bound_ns;
    bounds->proved = value == outcome->bound_ns;
    bounds->limited_by = outcome->limited_by;
    bounds->method = "closed forms for every enumerated layout; for those evaluated, work spread as memory allows, and "
                     "start-up, work and drain of each stage, least over all cuts";
}

static void fill_launchable(plan_filler *filler)
{
    ps_plan *plan = filler->plan;
    plan->num_launchable = ps_dialect_count();
    plan->launchable = ps_new(filler->arena, ps_plan_launchable, plan->num_launchable);
    for (int32_t index = 0; index < plan->num_launchable; index++) {
        const ps_dialect *dialect = ps_dialect_at(index);
        const char *rule = dialect->forbids(&plan->layout);
        plan->launchable[index] = (ps_plan_launchable){.target = dialect->target, .verdict = rule ? rule : "ok"};
    }
}

ps_code ps_plan_fill(ps_arena *arena, const ps_plan_context *context, const ps_search_outcome *outcome, ps_plan *plan,
                     ps_status *status)
{
    const ps_found_layout *best = &outcome->found[0];
    ps_run *run = ps_new(arena, ps_run, 1);
    plan_filler filler = {.arena = arena,
                          .context = context,
                          .candidate = best->candidate,
                          .first_layer = best->first_layer,
                          .run = run,
                          .plan = plan};

    PS_TRY(ps_run_order(arena, context, best->candidate, best->first_layer, best->order, run, status));
    plan->layout = best->candidate->layout;
    plan->inputs.model_flops_per_sequence = best->candidate->table->model_flops;
    plan->schedule = run->schedule;
    plan->prediction = run->prediction;
    plan->num_gpus = 1;
    plan->gpu = ps_new(arena, ps_plan_gpu, 1);
    plan->gpu[0] = (ps_plan_gpu){.name = context->group->gpu.name,
                                 .memory_usable_bytes = (int64_t)context->group->gpu.memory_usable_bytes.value,
                                 .peak_flops = context->group->gpu.peak_flops[context->job->precision].value};
    fill_stages(&filler);
    fill_hops(&filler);
    ps_plan_set_sends(plan);
    fill_links(&filler);
    fill_devices(&filler);
    fill_ranks(&filler);
    fill_rates(&filler);
    fill_bounds(&filler, outcome);
    fill_launchable(&filler);
    return PS_OK;
}
