// SPDX-License-Identifier: Apache-2.0
//
// layout_bound.c: lower bounds on an iteration that hold for any cut.
//
// Write f for forward, b for what the stage before waits for in the backward (input gradient and recompute, and the
// weight gradient when the backward is one op), t for all work of one micro-batch, m micro-batches, c the latency of a
// hop plus its transfer's least occupancy. For a stage s of layers [i, j) on a device of its own, in any order of ops:
//
//   head(s) = sum of f before i + s c: nothing can start on s earlier.
//   work(s) = m t(i, j).
//   idle(s) = max(0, RT - k f(i, j)): between the first F of s and the start of its first backward lie at least
//             RT = sum of f from i + sum of b from j + 2 c (p - 1 - s), and only forwards can run there, at most the k
//             micro-batches that the family keeps in flight on s; of an order that is searched for, as many as the
//             memory holds beside the state of the stage.
//   down(s) = sum of b before i + s c: after the last backward of s its gradient still flows to stage 0.
//
// Where the recompute r is an op of its own, before b but waiting for no other stage, b is without it, and idle(s)
// takes the recomputes of those k micro-batches away too; the second sum below then has m (f + r + b).
//
// makespan >= head + work + idle, and >= head + m (f + b) + idle + down; with one backward op the second is the larger.
// The span of s is at least work + idle, and that of stage 0, where every chain begins and ends, at least the second.
// All of it depends on i, j and s alone, so the least over all cuts of the largest over stages is a bottleneck DP.
#include "plan/layout_bound.h"

#include <stdlib.h>

#include "base/number.h"
#include "pipesched/limits.h"
#include "pipesched/step.h"
#include "plan/memory_bound.h"
#include "plan/pipeline_build.h"

// The bound over cuts takes about layers^2 / stages steps and stage; beyond this the closed form has to do.
#define MOST_CUT_STEPS (INT64_C(1) << 24)

typedef struct bound_terms {
    int32_t layers;
    int32_t stages;
    int64_t microbatches;
    int64_t ops_overhead;       // per stage and micro-batch, all ops
    int64_t recompute_overhead; // of R, 0 without
    int64_t forward_overhead;
    int64_t hop_ns;           // least time from one stage to the next
    const int64_t *forward;   // prefix sums [layers + 1]
    const int64_t *backward;  // prefix sums of b
    const int64_t *recompute; // prefix sums of R, 0 without
    const int64_t *all;       // prefix sums of t
    const int32_t *depth;     // [stages] micro-batches in flight; NULL: as many as there is room for
    const int64_t *state;     // prefix sums of parameters, gradients, optimizer state
    const int64_t *held;      // prefix sums of what a micro-batch holds
    int64_t room;             // memory of a device
    bool span; // bound the longest span of a device instead of the makespan: its own late start does not count
} bound_terms;

static bool is_fused(const ps_candidate *candidate)
{
    return !ps_schedule_family_at(candidate->layout.schedule)->splits_backward;
}

static bool has_recompute_op(const ps_candidate *candidate)
{
    return ps_schedule_family_at(candidate->layout.schedule)->recomputes;
}

static int64_t path_of(const ps_candidate *candidate, const ps_layer_cost *cost)
{
    int64_t recompute = has_recompute_op(candidate) ? 0 : cost->recompute_ns;
    return recompute + cost->backward_input_ns + (is_fused(candidate) ? cost->backward_weight_ns : 0);
}

static int32_t ops_of(const ps_candidate *candidate)
{
    return (is_fused(candidate) ? 2 : 3) + has_recompute_op(candidate);
}

// What an iteration takes at least beside the pipeline, on a rank with an even share of the parameters: the fullest
// rank has no less, since these costs grow at least in proportion.
typedef struct even_share {
    int64_t once_ns;  // what comes after everything else on any rank whatever: barrier, optimizer, exposed gather
    int64_t whole_ns; // all work, what of the reduction no op hides, and those: on the average rank, hence on some rank
} even_share;

static ps_layer_cost share_of(const ps_candidate *candidate)
{
    const ps_layer_cost *total = &candidate->table->prefix[candidate->table->num_layers];
    int32_t pp = ps_layout_folded(&candidate->layout).pp;
    ps_layer_cost share = {
        .parameters = (total->parameters - total->expert_parameters - total->frozen_parameters) / pp,
        .expert_parameters = total->expert_parameters / pp,
        .frozen_parameters = total->frozen_parameters / pp,
        .parameter_bytes = total->parameter_bytes / pp,
        .gradient_bytes = total->gradient_bytes / pp,
        .optimizer_bytes = total->optimizer_bytes / pp,
    };
    share.parameters += share.expert_parameters + share.frozen_parameters;
    return share;
}

// The mean over the ranks of times that are rounded on each may be so much below the rounded time of a mean share.
enum { ROUNDING_NS = 2 };

// What is left of a reduction or gather when the op beside it takes so long. With all layers on one rank it is known
// exactly; else a part hides under at most the whole op, and the average holds for some rank.
static int64_t exposed(const ps_candidate *candidate, const ps_job *job, int64_t transfer, int32_t buckets, int64_t op)
{
    if (!job->overlap_grad_sync)
        op = 0;
    if (candidate->layout.pp == 1)
        return transfer > 0 ? ps_step_exposed_ns(transfer, buckets, op) : 0;
    return transfer > op + ROUNDING_NS ? transfer - op - ROUNDING_NS : 0;
}

// What each rank pays once, were all shares even. The optimizer's part is linear, so that some rank pays no less. A
// rank without experts, or beside adapters with embeddings alone, reduces none and is spared even the latency: several
// ranks are only sure to reduce the rest.
static ps_iteration_cost once_of(const ps_plan_context *context, const ps_candidate *candidate)
{
    const ps_layout *layout = &candidate->layout;
    ps_layer_cost share = share_of(candidate);
    ps_iteration_cost once = ps_cost_iteration(context->group, context->job, layout, &share);
    if (layout->pp == 1 || (share.expert_parameters == 0 && share.frozen_parameters == 0))
        return once;
    share.parameters -= share.expert_parameters;
    share.expert_parameters = 0;
    ps_iteration_cost dense = ps_cost_iteration(context->group, context->job, layout, &share);
    once.reduce_ns = share.frozen_parameters > 0 ? 0 : dense.reduce_ns;
    once.gather_ns = share.frozen_parameters > 0 ? 0 : dense.gather_ns;
    return once;
}

// With one stage a rank its last op makes its last gradients, and its next one needs its first parameters. Several
// stages hide reductions and gathers beside each other's ops, as far as anybody knows before they are ordered.
static even_share share_of_iteration(const ps_plan_context *context, const ps_candidate *candidate)
{
    const ps_layout *layout = &candidate->layout;
    const ps_job *job = context->job;
    const ps_layer_cost *total = &candidate->table->prefix[candidate->table->num_layers];
    ps_iteration_cost once = once_of(context, candidate);
    int64_t overhead = job->op_overhead_ns;
    int32_t holders = ps_layout_folded(layout).pp;
    int32_t microbatches = ps_layout_stage_microbatches(layout);
    int64_t forward = ps_ceil_div(total->forward_ns, holders) + overhead;
    int64_t backward = ps_ceil_div(total->backward_weight_ns, holders) + overhead;
    if (is_fused(candidate))
        backward = ps_ceil_div(path_of(candidate, total), holders) + overhead;
    int64_t work = ps_layer_work_ns(total) / holders + overhead * ops_of(candidate);
    bool alone = layout->vp == 1 || !job->overlap_grad_sync;
    int64_t reduce = alone ? exposed(candidate, job, once.reduce_ns, once.buckets, backward) : 0;
    int64_t gather = alone ? exposed(candidate, job, once.gather_ns, once.buckets, forward) : 0;
    if (layout->zero == 2 && !job->overlap_grad_sync)
        reduce = ps_multiply_saturating(reduce, microbatches);

    int64_t after = once.optimizer_ns + gather;
    if (job->optimizer_barrier)
        after += ps_cost_barrier_ns(context->group, layout);
    int64_t synced = ps_add_saturating(ps_multiply_saturating(work, microbatches), reduce);
    if (layout->pp > 1 && synced > ROUNDING_NS)
        synced -= ROUNDING_NS;
    // Without a barrier each rank is by itself: the slowest to compute need not be the one with the most to step.
    return (even_share){.once_ns = job->optimizer_barrier || layout->pp == 1 ? after : 0,
                        .whole_ns = ps_add_saturating(synced, after)};
}

// Least time for one hop: a transfer's occupancy depends on the cut, so the smallest output counts.
static int64_t least_hop(const ps_plan_context *context, const ps_candidate *candidate)
{
    const ps_cost_table *table = candidate->table;
    if (candidate->layout.pp == 1)
        return 0;
    int64_t least = INT64_MAX;
    for (int32_t layer = 0; layer + 1 < table->num_layers; layer++) {
        if (table->layer[layer].output_bytes < least)
            least = table->layer[layer].output_bytes;
    }
    int64_t hop = INT64_MAX;
    for (int32_t rank = 0; rank + 1 < candidate->layout.pp; rank++) {
        ps_cost_link link = ps_cost_pipeline_link(context->group, &candidate->layout, rank, rank + 1);
        int64_t time = link.latency_ns + ps_cost_transfer_ns(link, least == INT64_MAX ? 0 : least);
        if (time < hop)
            hop = time;
    }
    return hop;
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

// Without a barrier a rank's own steps go with its own work, which a bound on the busiest rank may then count: what of
// the optimizer falls on each layer, shared out over the micro-batches. NULL: nothing.
static const int64_t *steps_of_layers(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate)
{
    const ps_layout *layout = &candidate->layout;
    const ps_cost_table *table = candidate->table;
    if (context->job->optimizer_barrier || layout->pp == 1)
        return NULL;
    int64_t *step = ps_new_raw(arena, int64_t, table->num_layers);
    for (int32_t layer = 0; layer < table->num_layers; layer++) {
        ps_layer_cost alone = table->layer[layer];
        alone.copy_parameters = 0; // its owner may be on the same rank
        int64_t ns = ps_cost_iteration(context->group, context->job, layout, &alone).optimizer_ns;
        step[layer] = (ns > 0 ? ns - 1 : 0) / ps_layout_stage_microbatches(layout); // it was rounded
    }
    return step;
}

// Least largest load of `devices` devices for any placement of layers on them: an even share; and, for every q, two
// facts of counting: some device has at least ceil(n / devices) layers, and of the q * devices + 1 largest layers some
// device has q + 1.
static int64_t any_placement_load(ps_arena *arena, const ps_cost_table *table, int32_t devices, const int64_t *step)
{
    int32_t layers = table->num_layers;
    int64_t *work = ps_new_raw(arena, int64_t, layers);
    int64_t *prefix = ps_new_raw(arena, int64_t, layers + 1);
    prefix[0] = 0;
    for (int32_t layer = 0; layer < layers; layer++)
        work[layer] = ps_layer_work_ns(&table->layer[layer]) + (step ? step[layer] : 0);
    qsort(work, (size_t)layers, sizeof *work, descending);
    for (int32_t layer = 0; layer < layers; layer++)
        prefix[layer + 1] = prefix[layer] + work[layer];

    int64_t best = ps_ceil_div(prefix[layers], devices);
    int64_t fewest = ps_ceil_div(layers, devices);
    int64_t smallest = prefix[layers] - prefix[layers - fewest];
    if (smallest > best)
        best = smallest;
    for (int64_t q = 0; q * devices + 1 <= layers; q++) {
        int64_t last = q * devices + 1;
        int64_t load = prefix[last] - prefix[last - q - 1];
        if (load > best)
            best = load;
    }
    return best;
}

void ps_layout_bound_quick(ps_arena *arena, const ps_plan_context *context, ps_candidate *candidate)
{
    const ps_layout *layout = &candidate->layout;
    const ps_cost_table *table = candidate->table;
    const ps_layer_cost *total = &table->prefix[table->num_layers];
    int64_t overhead = context->job->op_overhead_ns;
    int64_t stages = ps_layout_cuts(layout);
    int64_t hop = least_hop(context, candidate);

    const int64_t *step = steps_of_layers(arena, context, candidate);
    int64_t load = ps_add_saturating(any_placement_load(arena, table, ps_layout_folded(layout).pp, step),
                                     ps_multiply_saturating(overhead * ops_of(candidate), layout->vp));
    load = ps_multiply_saturating(load, ps_layout_stage_microbatches(layout));
    if (step && load > layout->vp) // each stage's own step is rounded
        load -= layout->vp;
    int64_t hops = 0; // a V's turn is none
    for (int32_t stage = 0; stage + 1 < stages; stage++)
        hops += ps_layout_device(layout, stage) != ps_layout_device(layout, stage + 1);
    int64_t single = total->forward_ns + path_of(candidate, total) + 2 * stages * overhead + 2 * hops * hop;

    even_share share = share_of_iteration(context, candidate);
    int64_t longest = load >= single ? load : single;
    candidate->limited_by = load >= single ? "work of the busiest GPU" : "one micro-batch through all stages";
    candidate->bound_ns = ps_add_saturating(longest, share.once_ns);
    if (share.whole_ns > candidate->bound_ns) {
        candidate->bound_ns = share.whole_ns;
        candidate->limited_by = "work and gradient synchronisation";
    }
}

// Micro-batches that every device holds at once: all of them where no backward begins before the last forward.
static int64_t always_held(const ps_layout *layout)
{
    bool all = layout->schedule == PS_SCHEDULE_GPIPE || layout->schedule == PS_SCHEDULE_LOOPED_BFS ||
               layout->schedule == PS_SCHEDULE_GPIPE_RECOMPUTE;
    return all ? layout->num_microbatches : 0;
}

int64_t ps_layout_bound_memory(const ps_plan_context *context, const ps_candidate *candidate)
{
    const ps_cost_table *table = candidate->table;
    const ps_layer_cost *total = &table->prefix[table->num_layers];
    int32_t pp = ps_layout_folded(&candidate->layout).pp;
    int64_t states = total->parameter_bytes + total->gradient_bytes + total->optimizer_bytes;
    int64_t held = ps_multiply_saturating(total->held_after_forward_bytes, always_held(&candidate->layout));
    int64_t least = ps_ceil_div(ps_add_saturating(states, held), pp);

    for (int32_t layer = 0; layer < table->num_layers; layer++) {
        ps_layer_cost cost = ps_candidate_stage_cost(context, candidate, layer, layer + 1, false);
        int64_t alone = cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes +
                        cost.held_after_forward_bytes + cost.recomputed_bytes + cost.transient_bytes;
        if (alone > least)
            least = alone;
    }
    return least;
}

// Micro-batches of which a stage of layers first .. end - 1 can run the forward before any backward.
static int64_t depth_at(const bound_terms *terms, int32_t first, int32_t end, int32_t stage)
{
    if (terms->depth)
        return terms->depth[stage];
    int64_t held = terms->held[end] - terms->held[first];
    int64_t room = terms->room - (terms->state[end] - terms->state[first]);
    int64_t depth = held > 0 && room > 0 ? room / held : terms->microbatches;
    return depth < terms->microbatches ? depth : terms->microbatches;
}

static int64_t stage_bound(const bound_terms *terms, int32_t first, int32_t end, int32_t stage)
{
    int64_t forward = terms->forward[end] - terms->forward[first] + terms->forward_overhead;
    int64_t path = terms->backward[end] - terms->backward[first] + terms->forward_overhead;
    int64_t work = terms->all[end] - terms->all[first] + terms->ops_overhead;
    int64_t head = terms->forward[first] + stage * (terms->hop_ns + terms->forward_overhead);
    int64_t down = terms->backward[first] + stage * (terms->hop_ns + terms->forward_overhead);
    int64_t later = terms->stages - 1 - stage;
    int64_t trip = terms->forward[terms->layers] - terms->forward[first] + terms->backward[terms->layers] -
                   terms->backward[end] + later * 2 * (terms->hop_ns + terms->forward_overhead) +
                   terms->forward_overhead;
    int64_t recompute = terms->recompute[end] - terms->recompute[first] + terms->recompute_overhead;
    int64_t idle = trip - depth_at(terms, first, end, stage) * (forward + recompute);

    if (idle < 0)
        idle = 0;
    int64_t own = (terms->span ? 0 : head) + terms->microbatches * work + idle;
    int64_t chain = head + terms->microbatches * (forward + recompute + path) + idle + down;
    return own > chain ? own : chain;
}

// best[s][j]: least, over cuts of the first j layers into s stages, of the largest stage bound. Rows are rolled.
static int64_t least_over_cuts(ps_arena *arena, const bound_terms *terms, int64_t limit)
{
    int32_t n = terms->layers;
    int64_t *now = ps_new_raw(arena, int64_t, n + 1);
    int64_t *next = ps_new_raw(arena, int64_t, n + 1);

    for (int32_t end = 0; end <= n; end++)
        now[end] = end == 0 ? 0 : INT64_MAX;
    for (int32_t stage = 0; stage < terms->stages; stage++) {
        for (int32_t end = 0; end <= n; end++)
            next[end] = INT64_MAX;
        for (int32_t end = stage + 1; end <= n - (terms->stages - 1 - stage); end++) {
            for (int32_t first = end - 1; first >= stage; first--) {
                // Work alone grows with every layer added, so the rest of this row is above the limit too.
                if (terms->microbatches * (terms->all[end] - terms->all[first]) > limit)
                    break;
                if (now[first] >= next[end])
                    continue;
                int64_t bound = stage_bound(terms, first, end, stage);
                int64_t value = bound > now[first] ? bound : now[first];
                if (value < next[end])
                    next[end] = value;
            }
        }
        int64_t *swap = now;
        now = next;
        next = swap;
    }
    return now[n];
}

static const int32_t *depths_of(ps_arena *arena, const ps_candidate *candidate)
{
    const ps_layout *layout = &candidate->layout;
    ps_schedule_shape shape = ps_layout_shape(layout);
    ps_depth_list list = {0};
    ps_status status = {0};
    if (ps_schedule_depths(arena, layout->schedule, shape, &list, &status))
        return NULL;
    int32_t *depth = ps_new(arena, int32_t, layout->pp);
    for (int32_t stage = 0; stage < layout->pp; stage++) {
        for (int32_t point = list.first[stage]; point < list.first[stage + 1]; point++) {
            if (list.point[point].full > depth[stage])
                depth[stage] = list.point[point].full;
        }
    }
    return depth;
}

static int64_t cuts_bound(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                          int64_t value_ns)
{
    const ps_layout *layout = &candidate->layout;
    const ps_cost_table *table = candidate->table;
    int32_t n = table->num_layers;
    bool affordable = (int64_t)n * n / layout->pp <= MOST_CUT_STEPS;
    bool searched = layout->schedule == PS_SCHEDULE_ZB;
    if (layout->vp > 1 || !affordable)
        return 0;
    const int32_t *depth = searched ? NULL : depths_of(scratch, candidate);
    if (!depth && !searched)
        return 0;

    bool apart = has_recompute_op(candidate);
    int64_t *forward = ps_new(scratch, int64_t, n + 1);
    int64_t *backward = ps_new(scratch, int64_t, n + 1);
    int64_t *recompute = ps_new(scratch, int64_t, n + 1);
    int64_t *all = ps_new(scratch, int64_t, n + 1);
    int64_t *state = ps_new(scratch, int64_t, n + 1);
    int64_t *held = ps_new(scratch, int64_t, n + 1);
    for (int32_t layer = 0; layer < n; layer++) {
        forward[layer + 1] = forward[layer] + table->layer[layer].forward_ns;
        backward[layer + 1] = backward[layer] + path_of(candidate, &table->layer[layer]);
        recompute[layer + 1] = recompute[layer] + (apart ? table->layer[layer].recompute_ns : 0);
        all[layer + 1] = all[layer] + ps_layer_work_ns(&table->layer[layer]);
        state[layer + 1] = state[layer] + table->layer[layer].parameter_bytes + table->layer[layer].gradient_bytes +
                           table->layer[layer].optimizer_bytes;
        held[layer + 1] = held[layer] + table->layer[layer].held_after_forward_bytes;
    }
    bound_terms terms = {
        .layers = n,
        .stages = layout->pp,
        .microbatches = layout->num_microbatches,
        .ops_overhead = context->job->op_overhead_ns * ops_of(candidate),
        .recompute_overhead = apart ? context->job->op_overhead_ns : 0,
        .forward_overhead = context->job->op_overhead_ns,
        .hop_ns = least_hop(context, candidate),
        .forward = forward,
        .backward = backward,
        .recompute = recompute,
        .all = all,
        .depth = depth,
        .state = state,
        .held = held,
        .room = context->room_bytes,
        .span = !context->job->optimizer_barrier,
    };
    int64_t once = share_of_iteration(context, candidate).once_ns;
    int64_t pipeline = least_over_cuts(scratch, &terms, value_ns - once);
    return pipeline == INT64_MAX ? value_ns : pipeline + once;
}

// Work of the busiest device, as memory allows it to be spread.
static int64_t work_bound(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                          int64_t value_ns)
{
    const ps_layout *layout = &candidate->layout;
    int64_t once = share_of_iteration(context, candidate).once_ns;
    int64_t overhead = context->job->op_overhead_ns * ops_of(candidate) * layout->vp;
    int64_t even = any_placement_load(scratch, candidate->table, ps_layout_folded(layout).pp, 0);
    int64_t most = (value_ns - once) / ps_layout_stage_microbatches(layout) - overhead;
    int64_t work = ps_memory_bound_work(scratch, context, candidate, even, most);
    return (work + overhead) * ps_layout_stage_microbatches(layout) + once;
}

int64_t ps_layout_bound_sharp(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                              int64_t value_ns, const char **limited_by)
{
    int64_t cuts = cuts_bound(scratch, context, candidate, value_ns);
    int64_t work = work_bound(scratch, context, candidate, value_ns);
    int64_t bound = candidate->bound_ns;
    *limited_by = candidate->limited_by;
    if (work > bound) {
        bound = work;
        *limited_by = "work of the busiest GPU, spread as memory allows";
    }
    if (cuts > bound) {
        bound = cuts;
        *limited_by = "start-up, work and drain of one stage";
    }
    return bound < value_ns ? bound : value_ns;
}
