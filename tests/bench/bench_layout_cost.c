// SPDX-License-Identifier: Apache-2.0
//
// bench_layout_cost.c: the cost of a whole layout, all stages at one micro-batch size, once its layer kinds are known.
//
// The evaluation is what the planner does for each candidate: stages from prefix sums, and the pipeline of their times,
// sizes and hops. Beside it the stages alone, from prefix sums and summed layer by layer, whose figures must agree; the
// sum is the faster of the two while stages are short. The table, which finds the kinds and is shared by all layouts of
// its degrees, is shown apart. The reference prices every layer by its terms, and sums: the ratio is what knowing the
// kinds is worth. Asserts no time. Best of several rounds.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "cost/layer_terms.h"
#include "plan/device_room.h"
#include "plan/pipeline_build.h"

enum { ROUNDS = 25, REPEATS = 400, MAX_STAGES = 256 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void keep_least(double *least, double value)
{
    if (*least <= 0 || value < *least)
        *least = value;
}

typedef struct bench_case {
    const char *model;
    ps_layout layout;
    ps_arena *arena;
    ps_arena *scratch;
} bench_case;

typedef struct bench_setup {
    ps_model model;
    ps_cluster cluster;
    ps_job job;
    ps_plan_context context;
    ps_candidate candidate;
    ps_cost_table table;
    ps_cost_table priced; // layer by layer
    int32_t stages;
    int32_t first_layer[MAX_STAGES + 1];
} bench_setup;

static ps_code set_up(const bench_case *c, bench_setup *out, ps_status *status)
{
    const ps_cluster_options options = {.nic_bytes_per_s = 50e9};
    PS_TRY(ps_model_load(c->arena, c->model, &out->model, status));
    PS_TRY(ps_cluster_load(c->arena, "8x8xH100-SXM5-80GB", &options, &out->cluster, status));
    ps_job_init(&out->job);
    out->job.global_batch_size = 256;
    out->job.seq_length = 8192;
    out->context = (ps_plan_context){.model = &out->model, .group = &out->cluster.group[0], .job = &out->job};
    out->context.capacity_bytes = (int64_t)out->context.group->gpu.memory_usable_bytes.value;
    out->context.room_bytes = ps_room_bytes(&out->job, out->context.capacity_bytes);
    out->candidate = (ps_candidate){.layout = c->layout, .table = &out->table};
    out->stages = c->layout.pp * c->layout.vp;
    for (int32_t stage = 0; stage <= out->stages; stage++)
        out->first_layer[stage] = (int32_t)((int64_t)stage * out->model.num_layers / out->stages);
    PS_TRY(ps_cost_table_build(c->arena, &out->model, out->context.group, &out->job, &c->layout, &out->table, status));
    out->priced = out->table;
    out->priced.layer = ps_new(c->arena, ps_layer_cost, out->model.num_layers);
    return PS_OK;
}

// What ps_stage_cost() takes from two prefix sums, layer by layer.
static ps_layer_cost sum_plainly(const ps_cost_table *table, int32_t first, int32_t end)
{
    ps_layer_cost sum = {.output_bytes = table->layer[end - 1].output_bytes};
    for (int32_t layer = first; layer < end; layer++) {
        const ps_layer_cost *row = &table->layer[layer];
        sum.forward_ns += row->forward_ns;
        sum.backward_input_ns += row->backward_input_ns;
        sum.backward_weight_ns += row->backward_weight_ns;
        sum.recompute_ns += row->recompute_ns;
        sum.held_after_forward_bytes += row->held_after_forward_bytes;
        sum.held_after_backward_input_bytes += row->held_after_backward_input_bytes;
        sum.parameters += row->parameters;
        sum.expert_parameters += row->expert_parameters;
        sum.frozen_parameters += row->frozen_parameters;
        sum.parameter_bytes += row->parameter_bytes;
        sum.gradient_bytes += row->gradient_bytes;
        sum.optimizer_bytes += row->optimizer_bytes;
        if (row->transient_bytes > sum.transient_bytes)
            sum.transient_bytes = row->transient_bytes;
    }
    return sum;
}

// The reference: what a layout would cost if no two layers were known to be alike.
static ps_code price_every_layer(const bench_setup *s, ps_layer_cost *stage, ps_status *status)
{
    ps_rank_view view = ps_rank_view_of(s->context.group, &s->job, &s->candidate.layout);
    ps_time_source source = PS_TIMES_PREDICTED;
    PS_TRY(ps_rank_view_check(&view, &s->model, status));
    for (int32_t layer = 0; layer < s->model.num_layers; layer++) {
        ps_ledger ledger = {0};
        PS_TRY(ps_layer_terms(&view, &s->model, layer, &ledger, &source, status));
        PS_TRY(ps_layer_cost_of(&ledger, &s->priced.layer[layer], status));
    }
    for (int32_t index = 0; index < s->stages; index++)
        stage[index] = sum_plainly(&s->priced, s->first_layer[index], s->first_layer[index + 1]);
    return PS_OK;
}

static void sum_stages(const bench_setup *s, ps_layer_cost *stage, bool plainly)
{
    for (int32_t index = 0; index < s->stages; index++) {
        int32_t first = s->first_layer[index];
        int32_t end = s->first_layer[index + 1];
        stage[index] = plainly ? sum_plainly(&s->table, first, end)
                               : ps_candidate_stage_cost(&s->context, &s->candidate, first, end, false);
    }
}

typedef struct least_times {
    double table_s;
    double layout_s;
    double stages_s;
    double summed_s;
    double priced_s;
} least_times;

static ps_code time_round(const bench_case *c, const bench_setup *s, least_times *best, ps_status *status)
{
    static ps_layer_cost stage[MAX_STAGES];
    static ps_layer_cost plain[MAX_STAGES];
    static ps_layer_cost priced[MAX_STAGES];
    ps_cost_table table;
    ps_pipeline pipeline;
    double start = now_s();
    for (int32_t repeat = 0; repeat < REPEATS; repeat++) {
        ps_arena_reset(c->scratch);
        PS_TRY(ps_cost_table_build(c->scratch, &s->model, s->context.group, &s->job, &c->layout, &table, status));
    }
    double built = now_s();
    for (int32_t repeat = 0; repeat < REPEATS; repeat++) {
        ps_arena_reset(c->scratch);
        ps_pipeline_build(c->scratch, &s->context, &s->candidate, s->first_layer, &pipeline);
    }
    double evaluated = now_s();
    for (int32_t repeat = 0; repeat < REPEATS; repeat++)
        sum_stages(s, stage, false);
    double summed = now_s();
    for (int32_t repeat = 0; repeat < REPEATS; repeat++)
        sum_stages(s, plain, true);
    double plainly = now_s();
    for (int32_t repeat = 0; repeat < REPEATS; repeat++)
        PS_TRY(price_every_layer(s, priced, status));
    double end = now_s();
    keep_least(&best->table_s, (built - start) / REPEATS);
    keep_least(&best->layout_s, (evaluated - built) / REPEATS);
    keep_least(&best->stages_s, (summed - evaluated) / REPEATS);
    keep_least(&best->summed_s, (plainly - summed) / REPEATS);
    keep_least(&best->priced_s, (end - plainly) / REPEATS);
    size_t size = (size_t)s->stages * sizeof *stage;
    if (memcmp(stage, plain, size) != 0 || memcmp(stage, priced, size) != 0)
        return ps_fail(status, PS_INTERNAL, "bench", "stages by prefix sums and layer by layer differ");
    return ps_pipeline_validate(&pipeline, status);
}

static ps_code bench(void *context, ps_status *status)
{
    const bench_case *c = context;
    bench_setup *s = ps_new(c->arena, bench_setup, 1);
    least_times best = {0};
    PS_TRY(set_up(c, s, status));
    for (int32_t round = 0; round < ROUNDS; round++)
        PS_TRY(time_round(c, s, &best, status));
    printf("%-16s %6d %6d %9.2f %9.2f %9.2f %9.2f %9.2f %7.1f\n", c->model, (int)s->model.num_layers, (int)s->stages,
           1e6 * best.table_s, 1e6 * best.layout_s, 1e6 * best.stages_s, 1e6 * best.summed_s, 1e6 * best.priced_s,
           best.priced_s / best.layout_s);
    return PS_OK;
}

static int run_case(bench_case c)
{
    ps_status status = {0};
    c.arena = ps_arena_new(0);
    c.scratch = ps_arena_new(0);
    if (!c.arena || !c.scratch)
        return ps_exit_status(PS_EXHAUSTED);
    ps_code code = ps_guard(bench, &c, c.arena, &status);
    if (code != PS_OK)
        fprintf(stderr, "bench_layout_cost: %s: %s\n", status.rule, status.message);
    ps_arena_free(c.scratch);
    ps_arena_free(c.arena);
    return ps_exit_status(code);
}

#define LAYOUT(ranks, chunks, kind)                                                                                    \
    {                                                                                                                  \
        .dp = 2, .tp = 4, .pp = (ranks), .vp = (chunks), .cp = 1, .ep = 1, .etp = 4, .micro_batch_size = 1,            \
        .num_microbatches = 128, .schedule = (kind), .zero = 1                                                         \
    }

int main(void)
{
    static const bench_case cases[] = {
        {.model = "llama-3.1-70b", .layout = LAYOUT(8, 1, PS_SCHEDULE_1F1B)},
        {.model = "llama-3.1-70b", .layout = LAYOUT(8, 5, PS_SCHEDULE_INTERLEAVED)},
        {.model = "llama-3.1-405b", .layout = LAYOUT(8, 1, PS_SCHEDULE_1F1B)},
        {.model = "deepseek-v3", .layout = LAYOUT(8, 1, PS_SCHEDULE_1F1B)},
    };
    int exit_status = 0;
    printf("%-16s %6s %6s %9s %9s %9s %9s %9s %7s\n", "us", "layers", "stages", "table", "layout", "stages", "summed",
           "priced", "ratio");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && exit_status == 0; i++)
        exit_status = run_case(cases[i]);
    return exit_status;
}
