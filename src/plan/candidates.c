// SPDX-License-Identifier: Apache-2.0
//
// candidates.c: what is tried for given degrees and micro-batches: recompute, schedule and virtual stages. The order is
// fixed, so that equal bounds are always visited alike.
#include "plan/candidates.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "pipesched/limits.h"
#include "pipesched/order_search.h"
#include "plan/candidate_walk.h"
#include "plan/pipeline_build.h"

// Virtual stages tried when the job leaves them open.
static const int32_t auto_chunks[] = {2, 3, 4, 5, 6, 8};

void ps_candidates_reject(ps_arena *arena, ps_candidate_list *list, const ps_status *status)
{
    for (int64_t index = 0; index < list->rejection.count; index++) {
        if (strcmp(list->rejection.data[index].status.rule, status->rule) == 0) {
            list->rejection.data[index].count++;
            return;
        }
    }
    ps_rejection *rejection = ps_vec_push(arena, &list->rejection);
    rejection->status = *status;
    rejection->count = 1;
}

static ps_cost_table *find_table(const ps_candidate_list *list, const ps_layout *layout)
{
    for (int64_t index = list->table.count - 1; index >= 0; index--) {
        const ps_layout *have = &list->table.data[index]->layout;
        if (have->tp == layout->tp && have->dp == layout->dp && have->cp == layout->cp && have->ep == layout->ep &&
            have->etp == layout->etp && have->recompute == layout->recompute &&
            have->micro_batch_size == layout->micro_batch_size)
            return list->table.data[index];
    }
    return NULL;
}

// The table of the current point, built on first use. A refusal of the cost model is a counted rejection.
static ps_cost_table *table_of(ps_candidate_walk *walk)
{
    ps_cost_table *table = find_table(walk->list, &walk->layout);
    if (table)
        return table;
    ps_status status = {0};
    table = ps_new(walk->arena, ps_cost_table, 1);
    const ps_plan_context *context = walk->context;
    if (ps_cost_table_build(walk->arena, context->model, context->group, context->job, &walk->layout, table, &status)) {
        ps_walk_reject(walk, &status);
        return NULL;
    }
    *ps_vec_push(walk->arena, &walk->list->table) = table;
    return table;
}

// All work of an iteration one after the other stays within limits.h: no sum of times overflows after this.
static bool time_in_range(const ps_candidate_walk *walk, const ps_cost_table *table, ps_status *status)
{
    const ps_layer_cost *total = &table->prefix[table->num_layers];
    int64_t overhead = ps_multiply_saturating(walk->context->job->op_overhead_ns, 3 * (int64_t)PS_MAX_STAGES);
    int64_t once = ps_add_saturating(total->forward_ns + total->backward_input_ns,
                                     ps_add_saturating(total->backward_weight_ns + total->recompute_ns, overhead));
    if (ps_multiply_saturating(once, walk->layout.num_microbatches) <= PS_MAX_TIME_NS / 4)
        return true;
    ps_fail(status, PS_ILLEGAL, "time-overflow", "%d micro-batches of %lld ns each are too long to count",
            (int)walk->layout.num_microbatches, (long long)once);
    return false;
}

static ps_code check_searchable(const ps_layout *layout, ps_schedule_shape shape, ps_status *status)
{
    int64_t ops = (int64_t)shape.num_stages * shape.num_microbatches * 3;
    if (layout->schedule != PS_SCHEDULE_ZB || ops <= PS_ORDER_MAX_OPS)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "too-many-ops-to-search",
            "%d stages * %d micro-batches * 3 ops (F, I, W) = %lld ops, at most %d are searched", (int)shape.num_stages,
            (int)shape.num_microbatches, (long long)ops, (int)PS_ORDER_MAX_OPS);
    return ps_fail_hint(status, "use a named schedule, or a larger --micro-batch-size");
}

// The job allows nothing but recompute with a split backward: then it is the user's own wish.
static bool wants_split_recompute(const ps_job *job)
{
    for (int32_t index = 0; index < job->schedule.count; index++)
        if (!ps_schedule_family_at((ps_schedule_kind)job->schedule.value[index])->splits_backward)
            return false;
    return job->schedule.count > 0 && !ps_set_allows(&job->recompute, PS_RECOMPUTE_NONE);
}

// What a recomputed layer costs once its backward is split is not known: a framework may run its forward again for I
// and once more for W, and users have measured a tenth of the speed of the whole backward. Such a layout is not ranked
// among others by a figure that nobody has measured.
static ps_code check_recompute(const ps_job *job, const ps_layout *layout, ps_status *status)
{
    const ps_schedule_family *family = ps_schedule_family_at(layout->schedule);
    if (layout->recompute == PS_RECOMPUTE_NONE || !family->splits_backward || wants_split_recompute(job))
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "split-backward-recompute",
            "recompute %s under %s: what recomputing costs when the backward is split into I and W is not known, and "
            "may be many times as much",
            ps_recompute_name(layout->recompute), family->name);
    return ps_fail_hint(status,
                        "a schedule with a whole backward, or --recompute none; with --recompute %s and only "
                        "split schedules it is priced as if recomputed once",
                        ps_recompute_name(layout->recompute));
}

static void add_candidate(ps_candidate_walk *walk)
{
    ps_layout *layout = &walk->layout;
    ps_schedule_shape shape = ps_layout_shape(layout);
    const ps_schedule_family *family = ps_schedule_family_at(layout->schedule);
    ps_status status = {0};

    if (ps_layout_cuts(layout) > walk->context->model->num_layers) {
        ps_fail(&status, PS_INFEASIBLE, "fewer-layers-than-stages",
                "%d pipeline ranks with %d virtual stages each need %d layers or more, the model has %d",
                (int)layout->pp, (int)layout->vp, (int)ps_layout_cuts(layout), (int)walk->context->model->num_layers);
        ps_fail_hint(&status, "at most --pp %d", (int)(walk->context->model->num_layers / layout->vp));
        ps_walk_reject(walk, &status);
        return;
    }
    int64_t ops = (int64_t)shape.num_stages * layout->num_microbatches * 3;
    if (ops > PS_MAX_OPS) {
        ps_fail(&status, PS_ILLEGAL, "too-many-ops",
                "%d stages * %d micro-batches * 3 ops (F, I, W) = %lld ops, at most %lld are planned",
                (int)shape.num_stages, (int)layout->num_microbatches, (long long)ops, (long long)PS_MAX_OPS);
        ps_fail_hint(&status, "use a larger --micro-batch-size or a smaller --global-batch-size");
        ps_walk_reject(walk, &status);
        return;
    }
    if (family->legal(shape, &status) || check_searchable(layout, shape, &status) ||
        check_recompute(walk->context->job, layout, &status)) {
        ps_walk_reject(walk, &status);
        return;
    }
    ps_cost_table *table = table_of(walk);
    if (!table)
        return;
    if (!time_in_range(walk, table, &status)) {
        ps_walk_reject(walk, &status);
        return;
    }
    if (layout->recompute != PS_RECOMPUTE_NONE && table->prefix[table->num_layers].recompute_ns == 0) {
        ps_fail(&status, PS_ILLEGAL, "recompute-nothing", "recompute %s would recompute nothing: %s",
                ps_recompute_name(layout->recompute),
                layout->recompute == PS_RECOMPUTE_FULL
                    ? "no layer gives what it holds and a smaller output_bytes before it"
                    : "no layer has the parts that --recompute-parts names");
        ps_fail_hint(&status, "--recompute none");
        ps_walk_reject(walk, &status);
        return;
    }
    ps_candidate *candidate = ps_vec_push(walk->arena, &walk->list->candidate);
    candidate->layout = *layout;
    candidate->table = table;
}

static bool has_layers_for(const ps_candidate_walk *walk)
{
    return ps_layout_cuts(&walk->layout) <= walk->context->model->num_layers;
}

static bool is_worth_searching(const ps_candidate_walk *walk, int32_t chunks)
{
    int64_t ops = 3 * (int64_t)walk->layout.pp * chunks * walk->layout.num_microbatches;
    bool named = walk->context->job->schedule.count > 0;
    return named || ops <= (int64_t)PS_SEARCHED_OPS_BESIDE_FAMILIES * walk->context->job->effort;
}

// Orders that are searched for: one stage a rank, and two there and back again; the user's own numbers also in a loop.
static void walk_searched(ps_candidate_walk *walk)
{
    const ps_job *job = walk->context->job;
    ps_layout *layout = &walk->layout;
    bool whole_choice = job->schedule.count == 0;
    if (!ps_set_allows(&job->schedule, PS_SCHEDULE_ZB) || (whole_choice && layout->pp == 1))
        return;

    layout->schedule = PS_SCHEDULE_ZB;
    layout->placement = PS_PLACEMENT_LOOP;
    layout->vp = 1;
    if (job->vp.count == 0 && is_worth_searching(walk, 1))
        add_candidate(walk);
    for (int32_t index = 0; index < job->vp.count; index++) {
        layout->vp = job->vp.value[index];
        if (is_worth_searching(walk, layout->vp))
            add_candidate(walk);
    }
    layout->placement = PS_PLACEMENT_V;
    layout->vp = 2;
    if (layout->pp > 1 && is_worth_searching(walk, 2) && ps_set_allows(&job->vp, 2) &&
        (job->vp.count > 0 || has_layers_for(walk)))
        add_candidate(walk);
    layout->placement = PS_PLACEMENT_LOOP;
}

static void reject_without_recompute(ps_candidate_walk *walk, const ps_schedule_family *family)
{
    ps_status status = {0};
    char rule[sizeof status.rule];
    snprintf(rule, sizeof rule, "%s-full", family->name);
    ps_fail(&status, PS_ILLEGAL, rule, "%s recomputes all activations, recompute is %s", family->name,
            ps_recompute_name(walk->layout.recompute));
    ps_fail_hint(&status, "--recompute full, or --schedule gpipe");
    ps_walk_reject(walk, &status);
}

// A family with as many stages a rank as it takes, 0: any number.
static void walk_chunks(ps_candidate_walk *walk, int32_t only)
{
    const ps_job *job = walk->context->job;
    if (only > 0) {
        walk->layout.vp = only;
        bool pointless = job->schedule.count == 0 && job->vp.count == 0 && only > 1 && !has_layers_for(walk);
        if (ps_set_allows(&job->vp, only) && !pointless)
            add_candidate(walk);
        return;
    }
    for (int32_t index = 0; index < job->vp.count; index++) {
        walk->layout.vp = job->vp.value[index];
        add_candidate(walk);
    }
    for (size_t index = 0; job->vp.count == 0 && index < sizeof auto_chunks / sizeof auto_chunks[0]; index++) {
        walk->layout.vp = auto_chunks[index];
        if (has_layers_for(walk))
            add_candidate(walk);
    }
}

// Families that the job allows. On one pipeline rank they all run the same ops; one of them is enough.
static void walk_schedules(ps_candidate_walk *walk)
{
    const ps_job *job = walk->context->job;
    bool whole_choice = job->schedule.count == 0;

    for (int32_t kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        if (!ps_set_allows(&job->schedule, kind))
            continue;
        if (whole_choice && (family->needs_choices || (walk->layout.pp == 1 && kind != PS_SCHEDULE_1F1B)))
            continue;
        walk->layout.schedule = (ps_schedule_kind)kind;
        if (family->recomputes && walk->layout.recompute != PS_RECOMPUTE_FULL) {
            if (!whole_choice)
                reject_without_recompute(walk, family);
            continue;
        }
        int32_t only = family->placement != PS_PLACEMENT_LOOP ? 2 : !family->virtual_stages ? 1 : 0;
        walk_chunks(walk, only);
    }
}

void ps_walk_recompute(ps_candidate_walk *walk)
{
    const ps_job *job = walk->context->job;
    for (int32_t recompute = 0; recompute < PS_RECOMPUTES; recompute++) {
        bool pointless = recompute == PS_RECOMPUTE_SELECTIVE && job->recompute.count == 0 && !walk->has_parts;
        if (!ps_set_allows(&job->recompute, recompute) || pointless)
            continue;
        walk->layout.recompute = (ps_recompute)recompute;
        walk_schedules(walk);
        walk_searched(walk);
    }
}
