// SPDX-License-Identifier: Apache-2.0
//
// plan_reasons.c: why nothing fits, in numbers, and what would.
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "plan/layout_bound.h"
#include "plan/planner.h"

// Layouts cut without a memory limit to find the nearest miss: those with the least bound on memory.
enum { NEAREST_TRIED = 96, MOST_NODE_FACTOR = 64 };

static const char *nodes_hint(ps_arena *arena, const ps_plan_context *context, double need)
{
    double room = (double)(context->capacity_bytes - context->job->memory_reserve_bytes);
    double nodes = ceil(need / room / context->group->gpus_per_node);
    return ps_text_format(arena,
                          "at least %.0f nodes of %d x %s for the state alone, or --optimizer-dtype and "
                          "--grad-dtype bf16",
                          nodes, (int)context->group->gpus_per_node, context->group->gpu.name);
}

static bool reserve_exceeds(ps_arena *arena, const ps_plan_context *context, ps_reason_list *reasons)
{
    int64_t reserve = context->job->memory_reserve_bytes;
    char have[32];
    char need[32];
    if (reserve < context->capacity_bytes)
        return false;
    *ps_vec_push(arena, reasons) = (ps_reason){
        .rule = "memory",
        .message = ps_text_format(arena, "the reserve of %s leaves nothing of the GPU's %s",
                                  ps_format_bytes(reserve, need), ps_format_bytes(context->capacity_bytes, have)),
        .have = context->capacity_bytes,
        .need = reserve,
        .dominant = "reserve",
        .hint = "lower --memory-reserve or raise --memory-limit",
    };
    return true;
}

bool ps_reasons_from_bound(ps_arena *arena, const ps_plan_context *context, ps_reason_list *reasons)
{
    if (reserve_exceeds(arena, context, reasons))
        return true;
    double each = ps_cost_least_state_bytes(context->job);
    double need = each * (double)context->model->parameters;
    double have = (double)(context->capacity_bytes - context->job->memory_reserve_bytes) * (double)context->num_gpus;
    if (need <= have)
        return false;

    char need_text[32];
    char have_text[32];
    char count[32];
    *ps_vec_push(arena, reasons) = (ps_reason){
        .rule = "state-exceeds-cluster",
        .message = ps_text_format(arena,
                                  "parameters, gradients and optimizer state of %s parameters at %g B each need %s, "
                                  "%lld GPUs have %s",
                                  ps_format_count(context->model->parameters, count), each,
                                  ps_format_bytes((int64_t)need, need_text), (long long)context->num_gpus,
                                  ps_format_bytes((int64_t)have, have_text)),
        .have = (int64_t)have,
        .need = (int64_t)need,
        .dominant = "optimizer",
        .hint = nodes_hint(arena, context, need),
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

// More of the same nodes; the batch grows along so that it still divides.
static ps_code try_nodes(ps_arena *arena, const ps_plan_context *context, const char **hint, ps_status *status)
{
    for (int32_t factor = 2; factor <= MOST_NODE_FACTOR; factor *= 2) {
        ps_group group = *context->group;
        ps_plan_context changed = *context;
        bool fit = false;
        if ((int64_t)group.nodes * factor * group.gpus_per_node > INT32_MAX)
            return PS_OK;
        group.nodes *= factor;
        changed.group = &group;
        changed.num_gpus *= factor;
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
        {"parameters", memory->parameters}, {"gradients", memory->gradients},
        {"optimizer", memory->optimizer},   {"activations_peak", memory->activations_peak},
        {"transient", memory->transient},   {"reserve", memory->reserve},
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

// The candidates with the least bound on memory, by repeated selection: few, so no sort is needed.
static ps_code find_nearest(ps_arena *arena, const ps_plan_context *context, const ps_candidate_list *list,
                            nearest_miss *out, ps_status *status)
{
    int64_t count = list->candidate.count;
    bool *tried = ps_new(arena, bool, count);
    for (int32_t round = 0; round < NEAREST_TRIED && round < count; round++) {
        int64_t best = -1;
        int64_t least = INT64_MAX;
        for (int64_t index = 0; index < count; index++) {
            int64_t bytes = ps_layout_bound_memory(context, &list->candidate.data[index]);
            if (!tried[index] && bytes < least) {
                least = bytes;
                best = index;
            }
        }
        if (best < 0)
            break;
        tried[best] = true;
        ps_device_memory fullest = {0};
        ps_code code = ps_evaluate_unlimited(arena, context, &list->candidate.data[best], &fullest, status);
        if (code == PS_INFEASIBLE || code == PS_ILLEGAL) {
            *status = (ps_status){0};
            continue;
        }
        PS_TRY(code);
        if (!out->candidate || fullest.memory.total_peak < out->fullest.memory.total_peak)
            *out = (nearest_miss){.candidate = &list->candidate.data[best], .fullest = fullest};
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
        .message = ps_text_format(arena,
                                  "nearest miss: tp %d, pp %d, dp %d, micro-batch size %d, %s, recompute %s: pipeline "
                                  "rank %d needs %s, the GPU has %s",
                                  (int)layout->tp, (int)layout->pp, (int)layout->dp, (int)layout->micro_batch_size,
                                  ps_schedule_family_at(layout->schedule)->name, ps_recompute_name(layout->recompute),
                                  (int)miss->fullest.device, ps_format_bytes(memory->total_peak, need),
                                  ps_format_bytes(memory->capacity, have)),
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
            .message = ps_text_format(arena, "%lld layouts, such as: %s", (long long)rejection->count, status->message),
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
