// SPDX-License-Identifier: Apache-2.0
//
// plan_reasons.c: why nothing fits, in numbers, and what would.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/text.h"
#include "pipesched/limits.h"
#include "plan/device_room.h"
#include "plan/layout_bound.h"
#include "plan/planner.h"

// Layouts cut without a memory limit to find the nearest miss: those with the least bound on memory.
enum { NEAREST_TRIED = 1024, NODES_ONE_BY_ONE = 8, MOST_NODE_ROUNDS = 14 };

// How many nodes the state alone needs; and, where that is enough, the data types that make it fit.
static const char *state_hint(ps_arena *arena, const ps_plan_context *context, double need, double have)
{
    double room = (double)context->room_bytes;
    double nodes = ceil(need / room / context->group->gpus_per_node);
    ps_job small = *context->job;
    small.gradient_bytes = 2;
    small.optimizer_bytes = 2;
    bool helps = ps_cost_least_state_bytes(&small) * (double)context->model->parameters <= have;
    return ps_text_format(arena, "at least %.0f nodes of %d x %s for the state alone%s", nodes,
                          (int)context->group->gpus_per_node, context->group->gpu.name,
                          helps ? ", or --grad-dtype bf16 --optimizer-dtype bf16" : "");
}

static bool reserve_exceeds(ps_arena *arena, const ps_plan_context *context, ps_reason_list *reasons)
{
    int64_t empty = ps_total_bytes(context->job, 0);
    bool framework = context->job->memory_framework_bytes > context->job->memory_reserve_bytes;
    char have[32];
    char need[32];
    if (context->room_bytes > 0)
        return false;
    *ps_vec_push(arena, reasons) = (ps_reason){
        .rule = "memory",
        .message = ps_text_format(arena, "the reserve and the framework's own %s leave nothing of the GPU's %s",
                                  ps_format_bytes(empty, need), ps_format_bytes(context->capacity_bytes, have)),
        .have = context->capacity_bytes,
        .need = empty,
        .dominant = framework ? "framework" : "reserve",
        .hint = framework ? "lower --memory-framework or raise --memory-limit"
                          : "lower --memory-reserve or raise --memory-limit",
    };
    return true;
}

bool ps_reasons_from_bound(ps_arena *arena, const ps_plan_context *context, ps_reason_list *reasons)
{
    if (reserve_exceeds(arena, context, reasons))
        return true;
    double each = ps_cost_least_state_bytes(context->job);
    double need = each * (double)context->model->parameters;
    double have = (double)context->room_bytes * (double)context->num_gpus;
    if (need <= have)
        return false;

    char need_text[32];
    char have_text[32];
    char count[32];
    *ps_vec_push(arena, reasons) = (ps_reason){
        .rule = "state-exceeds-cluster",
        .message = ps_text_format(
            arena,
            "parameters, gradients and optimizer state of %s parameters at %g B each need %s, more than "
            "%lld GPU%s with %s",
            ps_format_count(context->model->parameters, count), each, ps_format_bytes((int64_t)need, need_text),
            (long long)context->num_gpus, ps_plural(context->num_gpus), ps_format_bytes((int64_t)have, have_text)),
        .have = (int64_t)have,
        .need = (int64_t)need,
        .dominant = "optimizer",
        .hint = state_hint(arena, context, need, have),
    };
    return true;
}

// A changed job or cluster: does any layout fit?
static ps_code fits(ps_arena *arena, const ps_plan_context *context, bool *out, ps_status *status)
{
    ps_search_outcome *outcome = ps_new(arena, ps_search_outcome, 1);
    PS_TRY(ps_layout_search(arena, context, PS_SEARCH_ANY_FIT, NULL, outcome, status));
    *out = outcome->num_found > 0;
    return PS_OK;
}

typedef struct change {
    const char *text;
    bool (*apply)(ps_job *job); // false: changes nothing
} change;

static bool open_recompute(ps_job *job)
{
    bool closed = job->recompute.count > 0;
    job->recompute.count = 0;
    return closed;
}

static bool open_micro_batch(ps_job *job)
{
    bool closed = job->micro_batch_size.count > 0;
    job->micro_batch_size.count = 0;
    return closed;
}

static bool open_degrees(ps_job *job)
{
    bool closed = job->tp.count > 0 || job->pp.count > 0 || job->dp.count > 0 || job->vp.count > 0;
    job->tp.count = job->pp.count = job->dp.count = job->vp.count = 0;
    return closed;
}

static bool open_schedule(ps_job *job)
{
    bool closed = job->schedule.count > 0;
    job->schedule.count = 0;
    return closed;
}

static bool shard_optimizer(ps_job *job)
{
    bool whole = job->zero == 0;
    job->zero = 1;
    return whole;
}

static bool open_all(ps_job *job)
{
    bool changed = open_recompute(job);
    changed |= open_micro_batch(job);
    changed |= open_degrees(job);
    changed |= open_schedule(job);
    return changed;
}

static const change changes[] = {
    {"--recompute auto", open_recompute},
    {"--micro-batch-size auto", open_micro_batch},
    {"--schedule auto", open_schedule},
    {"--zero 1", shard_optimizer},
    {"--tp auto --pp auto --dp auto --vp auto", open_degrees},
    {"leave --tp --pp --dp --vp --micro-batch-size --recompute and --schedule open", open_all},
};

// More of the same nodes: one by one at first, then twice, four times, ... as many.
static ps_code try_nodes(ps_arena *arena, const ps_plan_context *context, const char **hint, ps_status *status)
{
    int64_t have = context->group->nodes;
    for (int32_t round = 1; round <= MOST_NODE_ROUNDS; round++) {
        int64_t nodes = round <= NODES_ONE_BY_ONE ? have + round : have << (round - NODES_ONE_BY_ONE);
        ps_group group = *context->group;
        ps_plan_context changed = *context;
        bool fit = false;
        if (nodes * group.gpus_per_node > PS_MAX_GPUS)
            return PS_OK;
        group.nodes = (int32_t)nodes;
        changed.group = &group;
        changed.num_gpus = nodes * group.gpus_per_node;
        PS_TRY(fits(arena, &changed, &fit, status));
        if (fit) {
            *hint = ps_text_format(arena, "%d nodes instead of %d", (int)group.nodes, (int)context->group->nodes);
            return PS_OK;
        }
    }
    return PS_OK;
}

static ps_code nearest_change(ps_arena *arena, const ps_plan_context *context, const char **hint, ps_status *status)
{
    for (size_t index = 0; index < sizeof changes / sizeof changes[0]; index++) {
        ps_job job = *context->job;
        ps_plan_context changed = *context;
        bool fit = false;
        changed.job = &job;
        if (!changes[index].apply(&job))
            continue;
        PS_TRY(fits(arena, &changed, &fit, status));
        if (fit) {
            *hint = changes[index].text;
            return PS_OK;
        }
    }
    return try_nodes(arena, context, hint, status);
}

static const char *dominant_term(const ps_plan_memory *memory)
{
    const struct {
        const char *name;
        int64_t bytes;
    } term[] = {
        {"parameters", memory->parameters},       {"gradients", memory->gradients},
        {"optimizer", memory->optimizer},         {"activations_peak", memory->activations_peak},
        {"transient", memory->transient},         {"framework", memory->framework},
        {"fragmentation", memory->fragmentation}, {"reserve", memory->reserve},
    };
    size_t largest = 0;
    for (size_t index = 1; index < sizeof term / sizeof term[0]; index++) {
        if (term[index].bytes > term[largest].bytes)
            largest = index;
    }
    return term[largest].name;
}

typedef struct nearest_miss {
    const ps_candidate *candidate;
    ps_device_memory fullest;
} nearest_miss;

typedef struct unlimited_runs {
    const ps_plan_context *context;
    const ps_candidate **candidate; // by least bound on memory
    ps_device_memory *fullest;      // total 0: cannot be cut
} unlimited_runs;

static ps_code run_unlimited(void *context, int64_t index, ps_arena *scratch, ps_status *status)
{
    unlimited_runs *runs = context;
    ps_code code = ps_evaluate_unlimited(scratch, runs->context, runs->candidate[index], &runs->fullest[index], status);
    if (code == PS_INFEASIBLE || code == PS_ILLEGAL || code == PS_BAD_INPUT) { // as in ps_evaluate()
        *status = (ps_status){0};
        return PS_OK;
    }
    return code;
}

typedef struct memory_order {
    const ps_candidate *candidate;
    int64_t least_bytes;
    int64_t index;
} memory_order;

static int by_least_bytes(const void *a, const void *b)
{
    const memory_order *x = a;
    const memory_order *y = b;
    if (x->least_bytes != y->least_bytes)
        return x->least_bytes < y->least_bytes ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static ps_code find_nearest(ps_arena *arena, const ps_plan_context *context, const ps_candidate_list *list,
                            nearest_miss *out, ps_status *status)
{
    int64_t count = 0;
    memory_order *order = ps_new(arena, memory_order, list->candidate.count);
    for (int64_t index = 0; index < list->candidate.count; index++) {
        const ps_candidate *candidate = &list->candidate.data[index];
        if (ps_layout_is_quick(&candidate->layout))
            order[count++] = (memory_order){candidate, ps_layout_bound_memory(context, candidate), index};
    }
    qsort(order, (size_t)count, sizeof *order, by_least_bytes);
    count = count < NEAREST_TRIED ? count : NEAREST_TRIED;

    unlimited_runs runs = {.context = context,
                           .candidate = ps_new(arena, const ps_candidate *, count),
                           .fullest = ps_new(arena, ps_device_memory, count)};
    for (int64_t index = 0; index < count; index++)
        runs.candidate[index] = order[index].candidate;
    PS_TRY(ps_parallel_for(count, context->job->threads, 0, run_unlimited, &runs, status));
    for (int64_t index = 0; index < count; index++) {
        int64_t total = runs.fullest[index].memory.total_peak;
        if (total > 0 && (!out->candidate || total < out->fullest.memory.total_peak))
            *out = (nearest_miss){.candidate = runs.candidate[index], .fullest = runs.fullest[index]};
    }
    return PS_OK;
}

static void add_nearest(ps_arena *arena, const nearest_miss *miss, const char *hint, ps_reason_list *reasons)
{
    char need[32];
    char have[32];
    const ps_plan_memory *memory = &miss->fullest.memory;
    const ps_layout *layout = &miss->candidate->layout;
    const char *dominant = dominant_term(memory);
    *ps_vec_push(arena, reasons) = (ps_reason){
        .rule = "memory",
        .message =
            ps_text_format(arena,
                           "nearest miss: tp %d, pp %d, dp %d%s, micro-batch size %d, %s, recompute %s: pipeline "
                           "rank %d needs %s, the GPU has %s",
                           (int)layout->tp, (int)layout->pp, (int)layout->dp, ps_layout_rank_text(arena, layout),
                           (int)layout->micro_batch_size, ps_schedule_family_at(layout->schedule)->name,
                           ps_recompute_name(layout->recompute), (int)miss->fullest.device,
                           ps_format_bytes(memory->total_peak, need), ps_format_bytes(memory->capacity, have)),
        .have = memory->capacity,
        .need = memory->total_peak,
        .dominant = dominant,
        .hint = hint,
    };
}

// Rules of form with their last example, so that the user sees values and a legal neighbour.
static void add_rules(ps_arena *arena, const ps_candidate_list *list, ps_reason_list *reasons)
{
    for (int64_t index = 0; index < list->rejection.count; index++) {
        const ps_rejection *rejection = &list->rejection.data[index];
        const ps_status *status = &rejection->status;
        if (strcmp(status->rule, "memory") == 0)
            continue;
        *ps_vec_push(arena, reasons) = (ps_reason){
            .rule = status->rule,
            .message = ps_text_format(arena, "%lld layout%s, such as: %s", (long long)rejection->count,
                                      ps_plural(rejection->count), status->message),
            .hint = status->hint[0] ? status->hint : NULL,
        };
    }
}

ps_code ps_reasons_from_search(ps_arena *arena, const ps_plan_context *context, const ps_search_outcome *outcome,
                               ps_reason_list *reasons, ps_status *status)
{
    nearest_miss miss = {0};
    const char *hint = NULL;

    PS_TRY(find_nearest(arena, context, &outcome->list, &miss, status));
    PS_TRY(nearest_change(arena, context, &hint, status));
    if (miss.candidate && miss.fullest.memory.headroom < 0)
        add_nearest(arena, &miss, hint, reasons);
    add_rules(arena, &outcome->list, reasons);
    if (reasons->count > 0 && !reasons->data[0].hint)
        reasons->data[0].hint = hint;
    return PS_OK;
}
