// SPDX-License-Identifier: Apache-2.0
#include "support/plans.h"

#include "support/plan_step.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

static ps_placement placement_of(const ps_layout *layout)
{
    return ps_layout_placement(layout);
}

static ps_schedule_shape shape_of(const ps_layout *layout)
{
    return (ps_schedule_shape){
        .num_devices = layout->pp, .num_stages = layout->pp * layout->vp, .num_microbatches = layout->num_microbatches};
}

enum { LAYERS_A_STAGE = 2 };

static const char *block_name(ps_arena *arena, int32_t number)
{
    char *text = ps_new(arena, char, 32);
    snprintf(text, 32, "block.%d", (int)number);
    return text;
}

// Stages of one way: all, but for dualpipe, whose second way is the first once more.
static int32_t way_stages(const ps_layout *layout)
{
    return placement_of(layout) == PS_PLACEMENT_DUAL ? layout->pp : layout->pp * layout->vp;
}

static void place_layers(ps_arena *arena, ps_plan_stage *stage, int32_t place)
{
    int32_t first = place * LAYERS_A_STAGE;
    stage->num_ranges = 1;
    stage->first_layer = ps_new(arena, int32_t, 1);
    stage->last_layer = ps_new(arena, int32_t, 1);
    stage->first_layer[0] = first;
    stage->last_layer[0] = first + LAYERS_A_STAGE - 1;
    stage->num_layers = LAYERS_A_STAGE;
    stage->layer_name = ps_new(arena, const char *, LAYERS_A_STAGE);
    for (int32_t layer = 0; layer < LAYERS_A_STAGE; layer++)
        stage->layer_name[layer] = block_name(arena, first + layer);
}

static bool has_recompute_op(const ps_layout *layout)
{
    return layout->schedule == PS_SCHEDULE_GPIPE_RECOMPUTE;
}

// The first and the last stage share a weight unless one rank has both; the ways of dualpipe share all that they have.
static void tie_stages(ps_plan *plan)
{
    int32_t way = way_stages(&plan->layout);
    ps_plan_stage *last = &plan->stage[plan->num_stages - 1];
    if (last->pp_rank != plan->stage[0].pp_rank)
        last->tied_sync_ns = plan->stage[0].tied_sync_ns = 40000;
    for (int32_t index = way; index < plan->num_stages; index++) {
        ps_plan_stage *one = &plan->stage[index - way];
        one->tied_to = plan->stage[index].tied_to = index - way;
        one->tied_sync_ns = plan->stage[index].tied_sync_ns = 50000 + 100 * (index - way);
    }
}

static void make_stages(ps_arena *arena, ps_plan *plan)
{
    const ps_layout *layout = &plan->layout;
    plan->num_stages = layout->pp * layout->vp;
    plan->stage = ps_new(arena, ps_plan_stage, plan->num_stages);
    for (int32_t index = 0; index < plan->num_stages; index++) {
        int32_t place = index % way_stages(layout);
        int64_t odd = place % 3;
        plan->stage[index] = (ps_plan_stage){
            .stage = index,
            .pp_rank = ps_schedule_device(placement_of(layout), shape_of(layout), index),
            .chunk = index / layout->pp,
            .tp = layout->tp,
            .dp = layout->dp,
            .cp = 1,
            .ep = 1,
            .recompute = layout->recompute,
            .parameters = 1000 + 10 * place,
            .forward_ns = 1000007 + 300 * odd,
            .backward_input_ns = 1200011 + 500 * odd,
            .backward_weight_ns = 800013 - 200 * odd,
            .recompute_ns = layout->recompute == PS_RECOMPUTE_FULL ? 900001 : 0,
            .op_overhead_ns = plan->inputs.job.op_overhead_ns,
            .grad_sync_ns = layout->dp > 1 ? 1500000 + 1000 * odd : 0,
            .param_gather_ns = layout->dp > 1 ? 900000 + 10 * place : 0,
            .sync_buckets = odd % 2 ? 2 : 1,
            .held_after_forward_bytes = 1000000 + 1000 * odd,
            .added_by_recompute_bytes = has_recompute_op(layout) ? 700000 + 1000 * odd : 0,
            .held_after_backward_input_bytes = 400000 + 1000 * odd,
            .transient_bytes = 50000 + 100 * odd,
            .output_bytes = place + 1 < way_stages(layout) ? 65536 : 0,
            .parameter_bytes = (odd % 2 ? 160000000 : 2000) + 20 * place,
            .gradient_bytes = 4000 + 40 * place,
            .optimizer_bytes = 6000 + 60 * place,
        };
        place_layers(arena, &plan->stage[index], place);
    }
    tie_stages(plan);
}

static ps_schedule_kind order_of(const ps_layout *layout)
{
    if (layout->schedule != PS_SCHEDULE_ZB)
        return layout->schedule;
    if (layout->vp == 1)
        return PS_SCHEDULE_ZB_H1;
    return layout->placement == PS_PLACEMENT_V ? PS_SCHEDULE_ZB_V : PS_SCHEDULE_INTERLEAVED_ZB;
}

static void make_order(ps_arena *arena, ps_plan *plan)
{
    ps_pipeline pipeline = {.num_stages = plan->num_stages,
                            .num_devices = plan->layout.pp,
                            .num_microbatches = plan->layout.num_microbatches,
                            .stage = ps_new(arena, ps_stage, plan->num_stages)};
    for (int32_t stage = 0; stage < plan->num_stages; stage++)
        pipeline.stage[stage].device = plan->stage[stage].pp_rank;
    ps_schedule_set_routes(arena, placement_of(&plan->layout), &pipeline);
    ps_status status = {0};
    ps_code code = ps_schedule_generate(arena, order_of(&plan->layout), &pipeline, &plan->schedule, &status);
    assert(code == PS_OK);
    (void)code;
}

static bool same_node(const ps_plan *plan, int32_t a, int32_t b)
{
    int32_t block = plan->layout.tp * plan->layout.dp;
    for (int32_t within = 0; within < block; within++)
        if ((a * block + within) / plan->inputs.gpus_per_node != (b * block + within) / plan->inputs.gpus_per_node)
            return false;
    return true;
}

static ps_plan_hop make_hop(ps_plan *plan, int32_t from, int32_t to, bool used[2])
{
    ps_plan_hop hop = {.from_stage = from, .to_stage = to, .link = "none"};
    hop.bytes = plan->stage[from < to ? from : to].output_bytes;
    int32_t a = plan->stage[from].pp_rank;
    int32_t b = plan->stage[to].pp_rank;
    if (a == b)
        return hop;
    bool far = !same_node(plan, a, b);
    used[far] = true;
    hop.link = far ? "slow" : "fast";
    hop.latency_ns = far ? 5003 : 1001;
    hop.transfer_ns = llround((double)hop.bytes / (far ? 1e10 : 1e11) * 1e9);
    return hop;
}

static void make_hops(ps_arena *arena, ps_plan *plan)
{
    bool used[2] = {false, false};
    int32_t way = way_stages(&plan->layout);
    int32_t pairs = plan->num_stages - plan->num_stages / way;
    int32_t pair = 0;
    plan->num_hops = 2 * pairs;
    plan->hop = ps_new(arena, ps_plan_hop, plan->num_hops);
    for (int32_t stage = 0; stage < plan->num_stages; stage++) {
        if ((stage + 1) % way == 0)
            continue;
        plan->hop[pair] = make_hop(plan, stage, stage + 1, used);
        plan->hop[pairs + pair++] = make_hop(plan, stage + 1, stage, used);
    }
    plan->link = ps_new(arena, ps_plan_link, 2);
    if (used[0])
        plan->link[plan->num_links++] = (ps_plan_link){"fast", 1001, 1e11};
    if (used[1])
        plan->link[plan->num_links++] = (ps_plan_link){"slow", 5003, 1e10};
}

static void make_devices(ps_arena *arena, ps_plan *plan)
{
    const ps_layout *layout = &plan->layout;
    plan->num_gpus = 1;
    plan->gpu = ps_new(arena, ps_plan_gpu, 1);
    plan->gpu[0] = (ps_plan_gpu){.name = "test-gpu", .memory_usable_bytes = 4000000000, .peak_flops = 1e14};
    plan->num_devices = layout->pp;
    plan->device = ps_new(arena, ps_plan_device, layout->pp);
    for (int32_t index = 0; index < layout->pp; index++) {
        ps_plan_device *device = &plan->device[index];
        *device = (ps_plan_device){.pp_rank = index,
                                   .num_stages = layout->vp,
                                   .stage = ps_new(arena, int32_t, layout->vp),
                                   .gpu = "test-gpu",
                                   .optimizer_ns = 20000 - 100 * index};
        for (int32_t chunk = 0; chunk < layout->vp; chunk++)
            device->stage[chunk] = ps_schedule_stage(placement_of(layout), shape_of(layout), index, chunk);
    }
}

static void make_ranks(ps_arena *arena, ps_plan *plan)
{
    const ps_layout *layout = &plan->layout;
    plan->rank_order = "tp-cp-ep-dp-pp";
    plan->ranks_per_node = plan->inputs.gpus_per_node;
    plan->num_ranks = (int64_t)layout->tp * layout->dp * layout->pp;
    plan->rank = ps_new(arena, ps_plan_rank, plan->num_ranks);
    int32_t rank = 0;
    for (int32_t pp = 0; pp < layout->pp; pp++)
        for (int32_t dp = 0; dp < layout->dp; dp++)
            for (int32_t tp = 0; tp < layout->tp; tp++, rank++)
                plan->rank[rank] = (ps_plan_rank){.rank = rank,
                                                  .dp = dp,
                                                  .pp = pp,
                                                  .tp = tp,
                                                  .node = rank / plan->ranks_per_node,
                                                  .gpu = rank % plan->ranks_per_node};
}

static int64_t cost_of(const ps_plan *plan, const ps_plan_stage *stage, int kind)
{
    int64_t input = (has_recompute_op(&plan->layout) ? 0 : stage->recompute_ns) + stage->backward_input_ns;
    int64_t cost[PS_OP_KINDS] = {stage->forward_ns, input + stage->backward_weight_ns, input, stage->backward_weight_ns,
                                 stage->recompute_ns};
    return cost[kind] + stage->op_overhead_ns;
}

// Everything about one run: when inputs arrive, when ops start and end.
typedef struct run {
    const ps_plan *plan;
    int64_t *arrival[2]; // forward and backward: [stage * microbatches + microbatch], -1: not yet
    int64_t *lane;       // [device * devices + device]
    int64_t *start;      // [ops]
    int64_t *end;
    int64_t *clock;
    int32_t *next;
} run;

static int64_t *arrival_of(const run *r, int backward, int32_t stage, int32_t microbatch)
{
    return &r->arrival[backward][(int64_t)stage * r->plan->layout.num_microbatches + microbatch];
}

static const ps_plan_hop *hop_from_to(const ps_plan *plan, int32_t from, int32_t to)
{
    for (int32_t hop = 0; hop < plan->num_hops; hop++)
        if (plan->hop[hop].from_stage == from && plan->hop[hop].to_stage == to)
            return &plan->hop[hop];
    return NULL;
}

static void pass_on(const run *r, ps_op op, int64_t end)
{
    const ps_plan *plan = r->plan;
    int backward = op.kind != PS_OP_FORWARD;
    int32_t to = backward ? op.stage - 1 : op.stage + 1;
    int32_t way = way_stages(&plan->layout);
    bool end_of_way = backward ? op.stage % way == 0 : to % way == 0;
    if (!backward && end_of_way)
        *arrival_of(r, 1, op.stage, op.microbatch) = end; // the loss: its backward may begin
    if (op.kind >= PS_OP_BACKWARD_WEIGHT || end_of_way)
        return;
    const ps_plan_hop *hop = hop_from_to(plan, op.stage, to);
    assert(hop);
    int64_t at = end;
    int32_t a = plan->stage[op.stage].pp_rank;
    int32_t b = plan->stage[to].pp_rank;
    if (a != b) {
        int64_t *lane = &r->lane[a * plan->num_devices + b];
        *lane = (*lane > end ? *lane : end) + hop->transfer_ns;
        at = *lane + hop->latency_ns;
    }
    *arrival_of(r, backward, to, op.microbatch) = at;
}

// Runs the next op of a device if its input is there.
static bool advance(const run *r, int32_t device)
{
    const ps_schedule *schedule = &r->plan->schedule;
    int32_t at = schedule->first[device] + r->next[device];
    if (at == schedule->first[device + 1])
        return false;
    ps_op op = schedule->op[at];
    int64_t ready = 0; // W waits for its own I, R for its own F, which stand before them on this device
    if (op.kind < PS_OP_BACKWARD_WEIGHT)
        ready = *arrival_of(r, op.kind != PS_OP_FORWARD, op.stage, op.microbatch);
    if (ready < 0)
        return false;
    r->start[at] = ready > r->clock[device] ? ready : r->clock[device];
    r->end[at] = r->start[at] + cost_of(r->plan, &r->plan->stage[op.stage], op.kind);
    r->clock[device] = r->end[at];
    r->next[device]++;
    pass_on(r, op, r->end[at]);
    return true;
}

static run run_plan(ps_arena *arena, const ps_plan *plan)
{
    int64_t pairs = (int64_t)plan->num_stages * plan->layout.num_microbatches;
    int64_t ops = plan->schedule.first[plan->num_devices];
    run r = {.plan = plan,
             .arrival = {ps_new(arena, int64_t, pairs), ps_new(arena, int64_t, pairs)},
             .lane = ps_new(arena, int64_t, (int64_t)plan->num_devices * plan->num_devices),
             .start = ps_new(arena, int64_t, ops),
             .end = ps_new(arena, int64_t, ops),
             .clock = ps_new(arena, int64_t, plan->num_devices),
             .next = ps_new(arena, int32_t, plan->num_devices)};
    for (int64_t pair = 0; pair < pairs; pair++) {
        r.arrival[0][pair] = pair / plan->layout.num_microbatches % way_stages(&plan->layout) == 0 ? 0 : -1;
        r.arrival[1][pair] = -1;
    }
    bool moved = true;
    while (moved) {
        moved = false;
        for (int32_t device = 0; device < plan->num_devices; device++)
            while (advance(&r, device))
                moved = true;
    }
    return r;
}

static void settle_device_times(ps_plan *plan, const run *r)
{
    int64_t first_backward = INT64_MAX;
    int64_t last_forward = 0;
    int64_t makespan = 0;
    for (int32_t at = 0; at < plan->schedule.first[plan->num_devices]; at++) {
        ps_op op = plan->schedule.op[at];
        if (op.kind == PS_OP_FORWARD && r->end[at] > last_forward)
            last_forward = r->end[at];
        if (op.kind != PS_OP_FORWARD && op.kind != PS_OP_RECOMPUTE && r->start[at] < first_backward)
            first_backward = r->start[at];
        if (r->end[at] > makespan)
            makespan = r->end[at];
    }
    if (last_forward < first_backward) // no time is between them
        last_forward = first_backward;
    plan->prediction.makespan_ns = makespan;
    plan->prediction.span_ns = 0;
    for (int32_t index = 0; index < plan->num_devices; index++) {
        ps_plan_device *device = &plan->device[index];
        int32_t first = plan->schedule.first[index];
        int32_t end = plan->schedule.first[index + 1];
        int64_t busy[3] = {0, 0, 0}; // before, between and after the two instants
        int64_t until[3] = {first_backward, last_forward, makespan};
        for (int32_t at = first; at < end; at++) {
            int64_t from = r->start[at];
            for (int phase = 0; phase < 3; phase++) {
                int64_t to = r->end[at] < until[phase] ? r->end[at] : until[phase];
                if (to > from) {
                    busy[phase] += to - from;
                    from = to;
                }
            }
        }
        device->busy_ns = busy[0] + busy[1] + busy[2];
        device->idle_ns = makespan - device->busy_ns;
        device->idle = (ps_idle){first_backward - busy[0], last_forward - first_backward - busy[1],
                                 makespan - last_forward - busy[2]};
        if (r->clock[index] - r->start[first] > plan->prediction.span_ns)
            plan->prediction.span_ns = r->clock[index] - r->start[first];
    }
}

static void settle_memory(ps_arena *arena, ps_plan *plan)
{
    int32_t *open = ps_new(arena, int32_t, plan->num_stages);
    for (int32_t index = 0; index < plan->num_stages; index++) {
        ps_plan_stage *stage = &plan->stage[index];
        stage->launch_count = 0;
        stage->single_microbatch_bytes = stage->parameter_bytes + stage->gradient_bytes + stage->optimizer_bytes +
                                         stage->held_after_forward_bytes + stage->added_by_recompute_bytes +
                                         stage->held_after_backward_input_bytes + stage->transient_bytes;
    }
    for (int32_t index = 0; index < plan->num_devices; index++) {
        ps_plan_device *device = &plan->device[index];
        device->memory = (ps_plan_memory){.framework = plan->inputs.job.memory_framework_bytes,
                                          .reserve = plan->inputs.job.memory_reserve_bytes,
                                          .capacity = 4000000000};
        device->in_flight_peak = 0;
        for (int32_t chunk = 0; chunk < device->num_stages; chunk++) {
            const ps_plan_stage *stage = &plan->stage[device->stage[chunk]];
            device->memory.parameters += stage->parameter_bytes;
            device->memory.gradients += stage->gradient_bytes;
            device->memory.optimizer += stage->optimizer_bytes;
            if (stage->transient_bytes > device->memory.transient)
                device->memory.transient = stage->transient_bytes;
        }
        int64_t held = 0;
        int32_t pairs = 0;
        for (int32_t at = plan->schedule.first[index]; at < plan->schedule.first[index + 1]; at++) {
            ps_op op = plan->schedule.op[at];
            ps_plan_stage *stage = &plan->stage[op.stage];
            if (op.kind == PS_OP_FORWARD) {
                held += stage->held_after_forward_bytes;
                pairs++;
                if (++open[op.stage] > stage->launch_count)
                    stage->launch_count = open[op.stage];
            } else if (op.kind == PS_OP_BACKWARD_WEIGHT) {
                held -= stage->held_after_backward_input_bytes;
            } else if (op.kind == PS_OP_RECOMPUTE) {
                held += stage->added_by_recompute_bytes;
            } else {
                held -= stage->held_after_forward_bytes + stage->added_by_recompute_bytes;
                held += op.kind == PS_OP_BACKWARD_INPUT ? stage->held_after_backward_input_bytes : 0;
                pairs--;
                open[op.stage]--;
            }
            if (held > device->memory.activations_peak)
                device->memory.activations_peak = held;
            if (pairs > device->in_flight_peak)
                device->in_flight_peak = pairs;
        }
        ps_plan_memory *memory = &device->memory;
        int64_t allocated = memory->parameters + memory->gradients + memory->optimizer + memory->activations_peak +
                            memory->transient + memory->framework;
        memory->fragmentation = allocated / 100 * 3 + allocated % 100 * 3 / 100;
        memory->total_peak = allocated + memory->fragmentation + memory->reserve;
        memory->headroom = memory->capacity - memory->total_peak;
    }
}

static void settle_prediction(ps_plan *plan)
{
    ps_plan_prediction *prediction = &plan->prediction;
    int64_t busy = 0;
    for (int32_t index = 0; index < plan->num_devices; index++)
        busy += plan->device[index].busy_ns;
    const ps_plan_inputs *inputs = &plan->inputs;
    prediction->pipeline_ns = inputs->job.optimizer_barrier ? prediction->makespan_ns : prediction->span_ns;
    prediction->iteration_ns = prediction->pipeline_ns + prediction->grad_sync_exposed_ns + prediction->optimizer_ns +
                               prediction->param_gather_exposed_ns;
    double seconds = (double)prediction->iteration_ns * 1e-9;
    double batch = (double)inputs->job.global_batch_size;
    double gpus = (double)plan->num_ranks;
    prediction->bubble = 1 - (double)busy / ((double)prediction->makespan_ns * plan->num_devices);
    prediction->span_bubble = 1 - (double)busy / ((double)prediction->span_ns * plan->num_devices);
    prediction->tokens_per_s = batch * (double)inputs->job.seq_length / seconds;
    prediction->model_tflops_per_gpu = batch * inputs->model_flops_per_sequence / seconds / gpus * 1e-12;
    prediction->mfu = batch * inputs->model_flops_per_sequence / seconds / gpus / plan->gpu[0].peak_flops;
    prediction->kwh_per_iteration = gpus * inputs->gpu_watts / 1000 * seconds / 3600;
    prediction->usd_per_iteration =
        gpus * inputs->usd_per_gpu_hour * seconds / 3600 + prediction->kwh_per_iteration * inputs->usd_per_kwh;
    plan->bounds.gap =
        (double)(prediction->iteration_ns - plan->bounds.iteration_ns) / (double)plan->bounds.iteration_ns;
    plan->bounds.proved = prediction->iteration_ns == plan->bounds.iteration_ns;
    for (int32_t index = 0; index < plan->search.num_alternatives; index++) {
        ps_plan_alternative *other = &plan->search.alternative[index];
        other->iteration_ns = prediction->iteration_ns + 1000 * (1 + index);
        other->loses = (double)other->iteration_ns / (double)prediction->iteration_ns - 1;
    }
}

void settle_plan(ps_arena *arena, ps_plan *plan)
{
    run r = run_plan(arena, plan);
    plan->inputs.model_parameters = 0;
    for (int32_t stage = 0; stage < way_stages(&plan->layout); stage++)
        plan->inputs.model_parameters += plan->stage[stage].parameters;
    settle_device_times(plan, &r);
    settle_memory(arena, plan);
    settle_step(arena, plan, r.start, r.end);
    settle_prediction(plan);
}

static void make_inputs(ps_plan *plan, plan_spec spec)
{
    ps_plan_inputs *inputs = &plan->inputs;
    int32_t ranks = spec.pp * spec.dp * spec.tp;
    *inputs = (ps_plan_inputs){
        .model_name = "test-model",
        .model_sha256 = "00",
        .model_layers = spec.pp * (spec.schedule == PS_SCHEDULE_DUALPIPE ? 1 : spec.vp) * LAYERS_A_STAGE,
        .model_flops_per_sequence = 3.7e9,
        .cluster_name = "test-cluster",
        .cluster_sha256 = "11",
        .cluster_nodes = (ranks + spec.gpus_per_node - 1) / spec.gpus_per_node,
        .gpus_per_node = spec.gpus_per_node,
        .domain_nodes = 1,
        .usd_per_gpu_hour = 2.95,
        .usd_per_kwh = 0.12,
        .gpu_watts = 700,
    };
    ps_job_init(&inputs->job);
    inputs->job.jitter_samples = 0; // there is no jitter
    inputs->job.global_batch_size = (int64_t)spec.dp * 2 * spec.num_microbatches;
    inputs->job.seq_length = 2048;
    inputs->job.op_overhead_ns = 101;
    inputs->job.memory_reserve_bytes = 1000003;
    inputs->job.memory_framework_bytes = 1009;
    inputs->job.memory_fragmentation_ppm = 30000;
    inputs->job.optimizer_barrier = !spec.no_barrier;
    inputs->job.tp = (ps_int_set){.count = 2, .value = {spec.tp, 64}};
    inputs->job.schedule = (ps_int_set){.count = 1, .value = {(int32_t)spec.schedule}};
}

static void make_search(ps_arena *arena, ps_plan *plan)
{
    ps_plan_search *search = &plan->search;
    plan->bounds.iteration_ns = 3000000;
    plan->bounds.limited_by = "work of the busiest stage";
    plan->bounds.method = "closed forms";
    *search = (ps_plan_search){.candidates = 12, .pruned = 3, .evaluated = 6, .engine = "dp", .effort = 1};
    search->num_infeasible = 1;
    search->infeasible = ps_new(arena, ps_plan_count, 1);
    search->infeasible[0] = (ps_plan_count){"memory", 3};
    search->num_alternatives = 2;
    search->alternative = ps_new(arena, ps_plan_alternative, 2);
    for (int32_t index = 0; index < 2; index++)
        search->alternative[index] = (ps_plan_alternative){.layout = plan->layout, .peak_bytes = 20000000 + index};
    plan->num_launchable = 1;
    plan->launchable = ps_new(arena, ps_plan_launchable, 1);
    plan->launchable[0] = (ps_plan_launchable){"megatron", "ok"};
    plan->num_diagnostics = 1;
    plan->diagnostic = ps_new(arena, ps_plan_diagnostic, 1);
    plan->diagnostic[0] = (ps_plan_diagnostic){"note", "test", "made by hand"};
}

ps_plan *consistent_plan(ps_arena *arena, plan_spec spec)
{
    ps_plan *plan = ps_new(arena, ps_plan, 1);
    *plan = (ps_plan){.tool_version = "0.0.0", .feasible = true};
    plan->prediction.accuracy = "times given";
    make_inputs(plan, spec);
    plan->layout = (ps_layout){.dp = spec.dp,
                               .tp = spec.tp,
                               .pp = spec.pp,
                               .vp = spec.vp,
                               .cp = 1,
                               .ep = 1,
                               .etp = spec.tp,
                               .micro_batch_size = 2,
                               .num_microbatches = spec.num_microbatches,
                               .schedule = spec.schedule,
                               .placement = spec.placement,
                               .recompute = spec.recompute,
                               .zero = plan->inputs.job.zero};
    make_stages(arena, plan);
    make_order(arena, plan);
    make_ranks(arena, plan);
    make_hops(arena, plan);
    make_devices(arena, plan);
    make_search(arena, plan);
    settle_plan(arena, plan);
    return plan;
}

ps_plan *small_plan(ps_arena *arena)
{
    return consistent_plan(arena, (plan_spec){.pp = 2,
                                              .vp = 1,
                                              .dp = 2,
                                              .tp = 1,
                                              .num_microbatches = 4,
                                              .schedule = PS_SCHEDULE_1F1B,
                                              .gpus_per_node = 2});
}
