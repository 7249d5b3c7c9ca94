// SPDX-License-Identifier: Apache-2.0
#include "pipesched/memory_terms.h"

#include <math.h>

#include "support/planned.h"

static const char SMALL_CLUSTER[] = "1x8xH100-SXM5-80GB";

typedef struct planned {
    ps_plan plan;
    ps_pipeline pipeline;
    ps_timeline timeline;
    ps_model model;
    ps_cluster cluster;
    ps_memory_source source;
} planned;

static planned *plan_with(ps_arena *arena, const char *model, const char *const *options)
{
    planned *p = ps_new(arena, planned, 1);
    ps_status status = {0};
    load(arena, model, SMALL_CLUSTER, &p->model, &p->cluster);
    p->plan = plan_of(arena, model, SMALL_CLUSTER, options);
    assert_true(p->plan.feasible);
    assert_ok(ps_plan_pipeline(arena, &p->plan, &p->pipeline, &status), &status);
    assert_ok(ps_simulate(arena, &p->pipeline, &p->plan.schedule, &p->timeline, &status), &status);
    p->source = (ps_memory_source){
        .plan = &p->plan, .timeline = &p->timeline, .model = &p->model, .group = &p->cluster.group[0]};
    return p;
}

static int64_t sum_of(const ps_memory_terms *terms, const char *part)
{
    double sum = 0;
    for (int32_t index = 0; index < terms->count; index++)
        if (!part || strcmp(terms->term[index].part, part) == 0)
            sum += terms->term[index].bytes;
    assert_true(fabs(sum - (double)llround(sum)) < 1e-3); // whole bytes
    return llround(sum);
}

static void assert_sums_hold(ps_arena *arena, planned *p)
{
    for (int32_t device = 0; device < p->plan.num_devices; device++) {
        const ps_plan_memory *memory = &p->plan.device[device].memory;
        for (int with_model = 0; with_model < 2; with_model++) {
            ps_memory_terms terms;
            ps_status status = {0};
            p->source.model = with_model ? &p->model : NULL;
            assert_ok(ps_plan_memory_terms(arena, &p->source, device, &terms, &status), &status);
            assert_int_equal(sum_of(&terms, "parameters"), memory->parameters);
            assert_int_equal(sum_of(&terms, "gradients"), memory->gradients);
            assert_int_equal(sum_of(&terms, "optimizer"), memory->optimizer);
            assert_int_equal(sum_of(&terms, "activations_peak"), memory->activations_peak);
            assert_int_equal(sum_of(&terms, "transient"), memory->transient);
            assert_int_equal(sum_of(&terms, NULL), memory->total_peak);
        }
    }
}

#define COMMON "global-batch-size", "16", "seq-length", "2048", "micro-batch-size", "1"

static void terms_add_up_to_the_peak_of_every_device(void **state)
{
    static const char *const schedules[] = {"gpipe", "1f1b", "interleaved", "zb-h1", "v-half", "zb", "dualpipe"};
    for (size_t index = 0; index < sizeof schedules / sizeof *schedules; index++)
        assert_sums_hold(*state, plan_with(*state, "llama-3.1-8b",
                                           OPTIONS(COMMON, "tp", "2", "pp", "4", "recompute", "none", "schedule",
                                                   schedules[index])));
}

static void what_is_recomputed_adds_up_too(void **state)
{
    static const char *const schedules[] = {"1f1b", "gpipe-recompute"};
    for (size_t index = 0; index < sizeof schedules / sizeof *schedules; index++)
        assert_sums_hold(*state,
                         plan_with(*state, "llama-3.1-8b",
                                   OPTIONS(COMMON, "pp", "4", "recompute", "full", "schedule", schedules[index])));
    assert_sums_hold(*state, plan_with(*state, "llama-3.1-8b",
                                       OPTIONS(COMMON, "pp", "4", "recompute", "selective", "recompute-parts",
                                               "norm,activation", "schedule", "1f1b")));
}

static void sharded_state_adds_up_too(void **state)
{
    assert_sums_hold(*state, plan_with(*state, "llama-3.1-8b",
                                       OPTIONS(COMMON, "pp", "2", "dp", "4", "zero", "3", "schedule", "1f1b")));
    assert_sums_hold(
        *state, plan_with(*state, "mixtral-8x7b",
                          OPTIONS(COMMON, "pp", "4", "dp", "2", "ep", "2", "zero", "3", "schedule", "1f1b", "precision",
                                  "fp8", "optimizer-dtype", "bf16", "grad-dtype", "bf16", "memory-limit", "200GiB")));
}

static void a_tied_head_is_a_copy_where_the_embedding_is_elsewhere(void **state)
{
    planned *p = plan_with(*state, "gpt2",
                           OPTIONS("global-batch-size", "16", "seq-length", "1024", "pp", "4", "schedule", "1f1b"));
    ps_memory_terms terms;
    ps_status status = {0};
    int32_t copies = 0;
    assert_sums_hold(*state, p);
    assert_ok(ps_plan_memory_terms(*state, &p->source, 3, &terms, &status), &status);
    for (int32_t index = 0; index < terms.count; index++)
        copies += strncmp(terms.term[index].formula, "copy of a weight", 16) == 0;
    assert_int_equal(copies, 3); // parameters, gradients, optimizer
}

static void in_1f1b_rank_i_of_p_holds_p_less_i_micro_batches(void **state)
{
    planned *p = plan_with(*state, "llama-3.1-8b",
                           OPTIONS(COMMON, "tp", "2", "pp", "4", "recompute", "none", "schedule", "1f1b"));
    for (int32_t device = 0; device < 4; device++) {
        ps_memory_terms terms;
        ps_status status = {0};
        assert_ok(ps_plan_memory_terms(*state, &p->source, device, &terms, &status), &status);
        assert_int_equal(terms.num_holdings, 1);
        assert_int_equal(terms.holding[0].after_forward, 4 - device);
        assert_int_equal(terms.holding[0].after_backward_input, 0);
        assert_int_equal(terms.peak.kind, PS_OP_FORWARD);
        assert_int_equal(terms.peak.microbatch, 3 - device);
        assert_true(terms.peak_end_ns > terms.peak_start_ns);
    }
}

static void another_model_is_refused(void **state)
{
    planned *p = plan_with(*state, "llama-3.1-8b", OPTIONS(COMMON, "pp", "4", "schedule", "1f1b"));
    ps_memory_terms terms;
    ps_status status = {0};
    p->model.layer[1].parameters += 1000;
    assert_int_equal(ps_plan_memory_terms(*state, &p->source, 0, &terms, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "other-figures");
    status = (ps_status){0};
    p->model.num_layers--;
    assert_int_equal(ps_plan_memory_terms(*state, &p->source, 0, &terms, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "other-figures");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(terms_add_up_to_the_peak_of_every_device),
        test_in_arena(what_is_recomputed_adds_up_too),
        test_in_arena(sharded_state_adds_up_too),
        test_in_arena(a_tied_head_is_a_copy_where_the_embedding_is_elsewhere),
        test_in_arena(in_1f1b_rank_i_of_p_holds_p_less_i_micro_batches),
        test_in_arena(another_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
