// SPDX-License-Identifier: Apache-2.0
//
// simulate_compare.c: one row a schedule and placement; ranked rows first.
#include "cli/simulate_compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cli/option_value.h"
#include "cli/step_options.h"
#include "pipesched/order_search.h"
#include "pipesched/timeline.h"
#include "report/comparison.h"

typedef struct comparer {
    ps_run *run;
    const ps_compare_options *options;
    const ps_jitter_options *jitter; // NULL: none
    ps_vec(ps_compared) row;
    bool halved;
    bool limit_hit;
} comparer;

// The two halves of what every rank has, chunk by chunk; the first is the larger where they differ.
static ps_number_list halves(ps_arena *arena, const ps_number_list *whole, int32_t ranks, ps_placement placement)
{
    ps_schedule_shape shape = {.num_devices = ranks, .num_stages = 2 * ranks};
    ps_number_list out = *whole;
    if (whole->count == 0)
        return out;
    out.count = shape.num_stages;
    out.value = ps_new_raw(arena, int64_t, shape.num_stages);
    for (int32_t stage = 0; stage < shape.num_stages; stage++) {
        int64_t value = ps_number_at(whole, ps_schedule_device(placement, shape, stage));
        out.value[stage] = stage < ranks ? value - value / 2 : value / 2;
    }
    return out;
}

static ps_code halve(ps_arena *arena, ps_placement placement, ps_bare_options *bare, ps_status *status)
{
    int32_t ranks = (int32_t)bare->pp;
    if (bare->comm_latency.count > 1 || bare->comm_occupy.count > 1)
        return ps_fail(status, PS_ILLEGAL, "compare-hops",
                       "hops are listed one by one, which says nothing of those between halves of stages");
    ps_number_list *const of_stages[] = {&bare->forward,  &bare->backward_input, &bare->backward_weight,
                                         &bare->backward, &bare->activation,     &bare->held_after_backward_input};
    for (size_t index = 0; index < sizeof of_stages / sizeof *of_stages; index++)
        *of_stages[index] = halves(arena, of_stages[index], ranks, placement);
    bare->vp = 2;
    return PS_OK;
}

// Order the pipeline: by its family, or by a search for the entries that are no family.
static ps_code make_order(comparer *c, const ps_schedule_family *family, const ps_pipeline *pipeline, ps_schedule *out,
                          ps_status *status)
{
    ps_arena *arena = c->run->arena;
    if (family->generate)
        return ps_schedule_generate(arena, family->kind, pipeline, out, status);
    ps_order_result found;
    ps_order_options search = {.objective = c->options->of_span ? PS_ORDER_SPAN : PS_ORDER_MAKESPAN,
                               .backward = family->splits_backward ? PS_ORDER_SPLIT : PS_ORDER_FUSED,
                               .effort = c->options->effort,
                               .control = &c->run->control.control};
    PS_TRY(ps_order_search(arena, pipeline, &search, &found, status));
    c->limit_hit |= found.limit_hit;
    *out = found.schedule;
    return PS_OK;
}

static ps_code measure(comparer *c, const ps_pipeline *pipeline, const ps_schedule *schedule, ps_compared *row,
                       ps_status *status)
{
    ps_timeline timeline;
    bool of_span = c->options->of_span;
    PS_TRY(ps_simulate(c->run->arena, pipeline, schedule, &timeline, status));
    PS_TRY(ps_timeline_fits(pipeline, &timeline, status));
    row->makespan_ns = timeline.makespan_ns;
    row->span_ns = timeline.span_ns;
    row->bubble = ps_timeline_bubble(&timeline);
    row->span_bubble = ps_timeline_span_bubble(&timeline);
    row->value_ns = of_span ? timeline.span_ns : timeline.makespan_ns;
    for (int32_t device = 0; device < timeline.num_devices; device++)
        if (timeline.device[device].peak_activation > row->peak_activation)
            row->peak_activation = timeline.device[device].peak_activation;
    if (!c->jitter)
        return PS_OK;
    ps_jitter_result jitter;
    PS_TRY(ps_jitter_sample(c->run->arena, pipeline, schedule, c->jitter, &jitter, status));
    const ps_jitter_statistics *statistics = of_span ? &jitter.span : &jitter.makespan;
    row->p50_ns = statistics->p50_ns;
    row->p95_ns = statistics->p95_ns;
    row->value_ns = statistics->p95_ns;
    return PS_OK;
}

static ps_code run_row(comparer *c, const ps_schedule_family *family, ps_compared *row, ps_status *status)
{
    ps_bare_options bare = *c->options->bare;
    ps_pipeline pipeline;
    ps_schedule schedule;
    if (family->placement == PS_PLACEMENT_DUAL) // a whole stage of the model on each of its two ways
        bare.vp = 2;
    else if (row->virtual_stages > bare.vp)
        PS_TRY(halve(c->run->arena, family->placement, &bare, status));
    PS_TRY(ps_bare_pipeline(c->run->arena, &bare, family, &pipeline, status));
    PS_TRY(make_order(c, family, &pipeline, &schedule, status));
    return measure(c, &pipeline, &schedule, row, status);
}

// A schedule that cannot run here is a row with its reason; only being stopped, or out of memory, ends the comparison.
static ps_code add_row(comparer *c, const ps_schedule_family *family, int32_t virtual_stages, ps_status *status)
{
    ps_compared row = {.name = family->name, .virtual_stages = virtual_stages, .placement = family->placement};
    ps_status refusal = {0};
    ps_code code = run_row(c, family, &row, &refusal);
    if (code != PS_OK && code != PS_USAGE && code != PS_ILLEGAL && code != PS_INFEASIBLE && code != PS_BAD_INPUT) {
        *status = refusal;
        return code;
    }
    if (code != PS_OK) {
        ps_status *kept = ps_new(c->run->arena, ps_status, 1);
        *kept = refusal;
        row.refusal = kept;
    } else {
        c->halved |= family->placement != PS_PLACEMENT_DUAL && virtual_stages > c->options->bare->vp;
    }
    *ps_vec_push(c->run->arena, &c->row) = row;
    return PS_OK;
}

static ps_code add_families(comparer *c, ps_status *status)
{
    int32_t given = (int32_t)c->options->bare->vp;
    for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        if (family->needs_choices || family->recomputes) // other ops than the rest
            continue;
        bool several = family->virtual_stages || family->placement != PS_PLACEMENT_LOOP;
        PS_TRY(add_row(c, family, given == 1 && several ? 2 : given, status));
    }
    return PS_OK;
}

// With I and W where the backward can be split, else with B; on the stages as given and, in
// twos, round again and there and back again.
static ps_code add_searched(comparer *c, ps_status *status)
{
    bool split = c->options->bare->backward_weight.count > 0;
    int32_t given = (int32_t)c->options->bare->vp;
    ps_schedule_family loop = split ? ps_bare_zb : ps_bare_auto;
    ps_schedule_family back = loop;
    back.placement = PS_PLACEMENT_V;
    PS_TRY(add_row(c, &loop, given, status));
    if (given == 1)
        PS_TRY(add_row(c, &loop, 2, status));
    return given <= 2 && c->options->bare->pp > 1 ? add_row(c, &back, 2, status) : PS_OK;
}

// Ranked ones first; equal ones by memory, then as they were tried (qsort is not stable, so by the order of names).
static int by_rank(const void *a, const void *b)
{
    const ps_compared *x = a;
    const ps_compared *y = b;
    if (!x->refusal != !y->refusal)
        return x->refusal ? 1 : -1;
    if (x->value_ns != y->value_ns)
        return x->value_ns < y->value_ns ? -1 : 1;
    if (x->peak_activation != y->peak_activation)
        return x->peak_activation < y->peak_activation ? -1 : 1;
    int names = strcmp(x->name, y->name);
    if (names != 0 || x->placement != y->placement)
        return names != 0 ? names : (int)x->placement - (int)y->placement;
    return (int)x->virtual_stages - (int)y->virtual_stages;
}

static const char *ranked_by(const comparer *c)
{
    if (c->jitter)
        return c->options->of_span ? "p95 of the span" : "p95 of the makespan";
    return c->options->of_span ? "span" : "makespan";
}

static ps_code check_options(const ps_run *run, ps_status *status)
{
    static const char *const alone[] = {"schedule",  "rules",        "group-size", "launch-counts",
                                        "placement", "memory-curve", "to-csv",     "sends",
                                        "draw",      "timeline",     "recompute",  "held-after-recompute"};
    static const char *const required[] = {"pp", "num-microbatches", "forward"};
    for (size_t index = 0; index < sizeof alone / sizeof *alone; index++)
        PS_TRY(ps_run_exclude(run, "compare", alone[index], status));
    PS_TRY(ps_step_options_exclude(run, "compare", status));
    for (size_t index = 0; index < sizeof required / sizeof *required; index++)
        PS_TRY(ps_run_require(run, required[index], status));
    PS_TRY(ps_run_exclude(run, "backward", "backward-input", status));
    return ps_run_exclude(run, "backward", "backward-weight", status);
}

static ps_code write_rows(comparer *c, ps_status *status)
{
    const ps_bare_options *bare = c->options->bare;
    ps_run *run = c->run;
    qsort(c->row.data, (size_t)c->row.count, sizeof *c->row.data, by_rank);
    int64_t best = c->row.data[0].value_ns;
    for (int64_t index = 0; index < c->row.count; index++)
        c->row.data[index].loses = best > 0 ? (double)c->row.data[index].value_ns / (double)best - 1 : 0;
    ps_comparison comparison = {.num_devices = (int32_t)bare->pp,
                                .num_microbatches = (int32_t)bare->num_microbatches,
                                .ranked_by = ranked_by(c),
                                .with_jitter = c->jitter != NULL,
                                .halved = c->halved,
                                .in_bytes = bare->activation.with_unit || bare->memory_limit.with_unit,
                                .limit_hit = c->limit_hit,
                                .count = (int32_t)c->row.count,
                                .row = c->row.data};
    if (c->row.data[0].refusal)
        run->verdict = PS_INFEASIBLE;
    if (run->common->json)
        return ps_comparison_json(run->out, &comparison, status);
    ps_comparison_text(run->out, run->arena, &comparison);
    return PS_OK;
}

ps_code ps_compare_run(ps_run *run, const ps_compare_options *options, bool *limit_hit, ps_status *status)
{
    comparer c = {.run = run, .options = options};
    ps_jitter_options jitter;
    ps_pipeline pipeline;
    PS_TRY(check_options(run, status));
    PS_TRY(ps_jitter_options_read(run, options->jitter, &jitter, status));
    if (options->jitter->share) {
        PS_TRY(ps_jitter_straggler_expect(&jitter, (int32_t)options->bare->pp, status));
        c.jitter = &jitter;
    }
    PS_TRY(ps_bare_pipeline(run->arena, options->bare, &ps_bare_auto, &pipeline, status)); // the figures themselves
    PS_TRY(add_families(&c, status));
    PS_TRY(add_searched(&c, status));
    *limit_hit = c.limit_hit;
    return write_rows(&c, status);
}
