// SPDX-License-Identifier: Apache-2.0
#include "pipesched/plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "pipesched/check.h"
#include "plan/candidates.h"
#include "plan/evaluate.h"
#include "plan/layout_bound.h"
#include "plan/pipeline_build.h"
#include "support/cmocka_all.h"
#include "support/planned.h"

// Six unequal timed layers with state and activations, in 1 GiB-ish figures that make memory matter.
static const char timed_model[] =
    "{\"format\": \"pipesched/model/v1\", \"name\": \"six\", \"layers\": ["
    "{\"name\": \"a\", \"kind\": \"x\", \"parameters\": 100000000, \"output_bytes\": 1000000, \"forward_ms\": 3,"
    " \"backward_input_ms\": 2, \"backward_weight_ms\": 2, \"held_after_forward_bytes\": 900000000,"
    " \"held_after_backward_input_bytes\": 400000000},"
    "{\"name\": \"b\", \"kind\": \"x\", \"repeat\": 4, \"parameters\": 200000000, \"output_bytes\": 1000000,"
    " \"forward_ms\": 2, \"backward_input_ms\": 2, \"backward_weight_ms\": 1, \"held_after_forward_bytes\": 500000000,"
    " \"held_after_backward_input_bytes\": 200000000},"
    "{\"name\": \"c\", \"kind\": \"x\", \"parameters\": 50000000, \"output_bytes\": 4, \"forward_ms\": 4,"
    " \"backward_input_ms\": 5, \"backward_weight_ms\": 3, \"held_after_forward_bytes\": 100000000}]}";

static void every_layer_is_placed_once_and_memory_holds(void **state)
{
    ps_plan plan = plan_of(*state, "llama-3.1-70b", "8x8xH100-SXM5-80GB",
                           OPTIONS("global-batch-size", "1024", "seq-length", "8192"));
    int32_t next = 0;
    assert_true(plan.feasible);
    for (int32_t stage = 0; stage < plan.num_stages; stage++) {
        assert_int_equal(plan.stage[stage].first_layer[0], next);
        next = plan.stage[stage].last_layer[0] + 1;
    }
    assert_int_equal(next, 83); // embedding, 80 blocks, final norm, head
    for (int32_t device = 0; device < plan.num_devices; device++)
        assert_true(plan.device[device].memory.total_peak <= plan.device[device].memory.capacity);
    assert_true(plan.bounds.iteration_ns > 0 && plan.bounds.iteration_ns <= plan.prediction.iteration_ns);
}

// The winner is the same, to the last figure, whatever the number of threads.
static void threads_do_not_change_the_plan(void **state)
{
    char *text[3] = {NULL};
    const char *threads[3] = {"1", "2", "4"};
    for (int32_t index = 0; index < 3; index++) {
        size_t size = 0;
        ps_status status = {0};
        ps_plan plan = plan_of(*state, timed_model, "2x4xA100-SXM4-80GB",
                               OPTIONS("global-batch-size", "64", "seq-length", "1024", "threads", threads[index]));
        plan.inputs.job.threads = 0;
        FILE *file = open_memstream(&text[index], &size);
        assert_ok(ps_plan_write_json(&plan, NULL, file, &status), &status);
        fclose(file);
    }
    assert_string_equal(text[0], text[1]);
    assert_string_equal(text[0], text[2]);
    for (int32_t index = 0; index < 3; index++)
        free(text[index]);
}

// Every cut of every candidate, by brute force: none is faster than the bound or than the plan's winner says, and none
// smaller than the bound on memory.
static void enumerate_cuts(ps_arena *arena, const ps_plan_context *context, const ps_candidate *candidate,
                           int32_t *first_layer, int32_t stage, int64_t *best)
{
    int32_t stages = ps_layout_cuts(&candidate->layout);
    int32_t layers = context->model->num_layers;
    if (stage == stages) {
        ps_run run;
        ps_status status = {0};
        first_layer[stages] = layers;
        assert_ok(ps_run_cut(arena, context, candidate, first_layer, &run, &status), &status);
        assert_true(run.memory[run.fullest].total_peak >= ps_layout_bound_memory(context, candidate));
        if (run.fits && run.prediction.iteration_ns < *best)
            *best = run.prediction.iteration_ns;
        return;
    }
    for (int32_t first = first_layer[stage - 1] + 1; first <= layers - (stages - stage); first++) {
        first_layer[stage] = first;
        enumerate_cuts(arena, context, candidate, first_layer, stage + 1, best);
    }
}

static void no_layout_and_no_cut_beats_the_bound(void **state)
{
    const char *const *options = OPTIONS("global-batch-size", "16", "seq-length", "1024", "op-overhead", "10us");
    ps_arena *arena = *state;
    ps_model model;
    ps_cluster cluster;
    ps_job job = job_of(options);
    load(arena, timed_model, "1x4xA100-SXM4-40GB", &model, &cluster);
    ps_plan plan = plan_of(arena, timed_model, "1x4xA100-SXM4-40GB", options);
    ps_plan_context context = {.model = &model,
                               .group = &cluster.group[0],
                               .job = &job,
                               .num_gpus = 4,
                               .capacity_bytes = (int64_t)cluster.group[0].gpu.memory_usable_bytes.value};
    ps_candidate_list list = {0};
    int64_t best = INT64_MAX;

    ps_candidates_enumerate(arena, &context, &list);
    assert_true(list.candidate.count > 20);
    for (int64_t index = 0; index < list.candidate.count; index++) {
        ps_candidate *candidate = &list.candidate.data[index];
        int32_t first_layer[8] = {0};
        int64_t own = INT64_MAX;
        const char *by = NULL;
        ps_layout_bound_quick(arena, &context, candidate);
        enumerate_cuts(arena, &context, candidate, first_layer, 1, &own);
        if (own == INT64_MAX)
            continue;
        assert_true(candidate->bound_ns <= own);
        assert_true(ps_layout_bound_sharp(arena, &context, candidate, own, &by) <= own);
        if (own < best)
            best = own;
    }
    assert_true(plan.feasible);
    assert_true(plan.bounds.iteration_ns <= best);
    assert_int_equal(plan.prediction.iteration_ns, best);
}

// C20c: 18 B * 235e9 parameters exceed 32 * 79.1 GiB whatever the split; the answer needs no search.
static void state_larger_than_the_cluster_is_refused_by_a_bound(void **state)
{
    ps_plan plan = plan_of(*state, "llama-3.1-405b", "4x8xH100-SXM5-80GB",
                           OPTIONS("global-batch-size", "256", "seq-length", "4096"));
    assert_false(plan.feasible);
    assert_int_equal(plan.num_reasons, 1);
    assert_string_equal(plan.reason[0].rule, "state-exceeds-cluster");
    assert_true(plan.reason[0].need > plan.reason[0].have);
    assert_non_null(plan.reason[0].hint);
    assert_int_equal(plan.search.evaluated, 0);
}

static void an_infeasible_job_names_the_term_and_a_change_that_fits(void **state)
{
    ps_plan plan =
        plan_of(*state, "llama-3.1-8b", "1x4xA100-SXM4-40GB",
                OPTIONS("global-batch-size", "8", "seq-length", "1024", "tp", "1", "pp", "1", "recompute", "none"));
    assert_false(plan.feasible);
    assert_string_equal(plan.reason[0].rule, "memory");
    assert_non_null(plan.reason[0].dominant);
    assert_non_null(plan.reason[0].hint);
}

static void bf16_asked_for_on_a_v100_is_refused_and_fp16_named(void **state)
{
    ps_plan plan = plan_of(*state, "gpt2", "1x8xV100-SXM2-32GB",
                           OPTIONS("global-batch-size", "64", "seq-length", "1024", "precision", "bf16"));
    assert_false(plan.feasible);
    assert_string_equal(plan.reason[0].rule, "precision-unsupported");
    assert_non_null(strstr(plan.reason[0].hint, "fp16"));
}

static void without_a_wish_a_v100_gets_fp16_and_the_plan_says_so(void **state)
{
    ps_plan plan =
        plan_of(*state, "gpt2", "1x8xV100-SXM2-32GB", OPTIONS("global-batch-size", "64", "seq-length", "1024"));
    bool said = false;
    assert_true(plan.feasible);
    assert_int_equal(plan.inputs.job.precision, PS_PRECISION_FP16);
    for (int32_t index = 0; index < plan.num_diagnostics; index++)
        said |= strcmp(plan.diagnostic[index].code, "precision-fp16") == 0;
    assert_true(said);
}

static void degrees_that_leave_gpus_over_are_refused_by_rule(void **state)
{
    ps_plan plan = plan_of(*state, "gpt2", "1x8xA100-SXM4-80GB",
                           OPTIONS("global-batch-size", "64", "seq-length", "1024", "pp", "3"));
    assert_false(plan.feasible);
    assert_string_equal(plan.reason[0].rule, "gpus-used");
}

static void more_ranks_than_layers_are_refused_by_rule(void **state)
{
    ps_plan plan = plan_of(*state, "gpt2", "16x8xA100-SXM4-80GB",
                           OPTIONS("global-batch-size", "128", "seq-length", "1024", "pp", "128"));
    assert_false(plan.feasible);
    assert_string_equal(plan.reason[0].rule, "fewer-layers-than-stages");
}

static void too_many_ops_show_the_product(void **state)
{
    ps_plan plan = plan_of(*state, "gpt2", "1x8xA100-SXM4-80GB",
                           OPTIONS("global-batch-size", "16777216", "seq-length", "128", "pp", "8", "micro-batch-size",
                                   "1", "schedule", "1f1b"));
    assert_false(plan.feasible);
    assert_string_equal(plan.reason[0].rule, "too-many-ops");
    assert_non_null(strstr(plan.reason[0].message, "8 stages * 16777216 micro-batches * 3 ops"));
}

// A layout beyond the limits is ruled out by itself: it used to end the whole search as bad input.
static void memory_beyond_counting_rules_out_only_its_layout(void **state)
{
    static const char heavy[] =
        "{\"format\": \"pipesched/model/v1\", \"name\": \"heavy\", \"layers\": [{\"name\": \"a\", \"kind\": \"x\","
        " \"repeat\": 2, \"forward_ms\": 0.001, \"backward_input_ms\": 0, \"backward_weight_ms\": 0,"
        " \"held_after_forward_bytes\": \"1TiB\"}]}";
    ps_plan plan = plan_of(*state, heavy, "1x2xA100-SXM4-80GB",
                           OPTIONS("global-batch-size", "2097152", "seq-length", "1024", "tp", "1", "micro-batch-size",
                                   "1", "schedule", "1f1b", "recompute", "none", "memory-limit", "16TiB"));
    assert_false(plan.feasible);
    assert_string_equal(plan.reason[0].rule, "memory-overflow");

    plan =
        plan_of(*state, "gpt2", "1x4xH100-SXM5-80GB", OPTIONS("global-batch-size", "2147483648", "seq-length", "8192"));
    assert_false(plan.feasible);
    assert_string_equal(plan.reason[0].rule, "too-many-ops");
}

static ps_code late_after_two_polls(void *context)
{
    int32_t *polls = context;
    return ++*polls > 2 ? PS_TIME_LIMIT : PS_OK;
}

// One batch of layouts with millions of ops used to outlast the limit by minutes.
static void a_time_limit_cuts_a_batch_short(void **state)
{
    ps_model model;
    ps_cluster cluster;
    ps_plan plan;
    ps_status status = {0};
    int32_t polls = 0;
    const ps_control control = {.should_stop = late_after_two_polls, .context = &polls};
    ps_job job = job_of(OPTIONS("global-batch-size", "32", "seq-length", "1024", "threads", "1"));
    load(*state, timed_model, "1x4xA100-SXM4-80GB", &model, &cluster);
    assert_int_equal(ps_plan_search_best(*state, &model, &cluster, &job, &control, &plan, &status), PS_TIME_LIMIT);
    assert_int_equal(status.code, PS_OK); // there is a plan
    assert_true(plan.search.limit_hit);
    assert_int_equal(plan.search.evaluated, 1);

    ps_check_result result;
    assert_ok(ps_check_plan(*state, &plan, &result, &status), &status);
    assert_int_equal(result.count, 0);
}

// Without the barrier the span counts: a zero-bubble schedule then wins over its own makespan.
static void the_optimizer_barrier_decides_what_counts(void **state)
{
    ps_plan plan = plan_of(*state, timed_model, "1x4xA100-SXM4-80GB",
                           OPTIONS("global-batch-size", "32", "seq-length", "1024", "pp", "4", "schedule", "zb-h2",
                                   "optimizer-barrier", "off"));
    assert_true(plan.feasible);
    assert_int_equal(plan.prediction.pipeline_ns, plan.prediction.span_ns);
    assert_true(plan.prediction.span_ns < plan.prediction.makespan_ns);
}

// The checker derives placement, time and memory of any schedule again, and the order of those with a closed form.
static void every_schedule_gives_a_plan_that_holds(void **state)
{
    for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        if (family->needs_choices)
            continue;
        ps_plan plan = plan_of(*state, timed_model, "1x2xA100-SXM4-80GB",
                               OPTIONS("global-batch-size", "8", "seq-length", "1024", "pp", "2", "micro-batch-size",
                                       "1", "schedule", family->name));
        ps_check_result result;
        ps_status status = {0};
        assert_true(plan.feasible);
        assert_int_equal(plan.layout.schedule, kind);
        assert_ok(ps_check_plan(*state, &plan, &result, &status), &status);
        assert_int_equal(result.total, 0);
        if (family->placement != PS_PLACEMENT_V)
            continue;
        assert_int_equal(plan.layout.vp, 2);
        assert_int_equal(plan.stage[3].pp_rank, 0);
        assert_int_equal(plan.device[0].stage[1], 3);
        assert_string_equal(plan.hop[1].link, "none"); // stages 1 and 2 share rank 1
    }
}

// The recompute of its own hides in the wait for gradients; all else is the same, so the plan is no slower and holds
// more while a stage is recomputed.
static void a_recompute_op_is_no_slower_than_one_inside_the_backward(void **state)
{
    static const char *const kinds[] = {"gpipe", "gpipe-recompute"};
    ps_plan plan[2];
    for (int i = 0; i < 2; i++)
        plan[i] = plan_of(*state, timed_model, "1x2xA100-SXM4-80GB",
                          OPTIONS("global-batch-size", "8", "seq-length", "1024", "pp", "2", "micro-batch-size", "1",
                                  "recompute", "full", "schedule", kinds[i]));
    assert_true(plan[0].feasible && plan[1].feasible);
    assert_true(plan[1].prediction.pipeline_ns < plan[0].prediction.pipeline_ns);
    assert_int_equal(plan[1].layout.schedule, PS_SCHEDULE_GPIPE_RECOMPUTE);
    assert_int_equal(plan[1].layout.recompute, PS_RECOMPUTE_FULL);
    for (int32_t stage = 0; stage < 2; stage++) {
        assert_int_equal(plan[0].stage[stage].added_by_recompute_bytes, 0);
        assert_true(plan[1].stage[stage].recompute_ns == 0 || plan[1].stage[stage].added_by_recompute_bytes > 0);
    }
    ps_pipeline pipeline;
    ps_status status = {0};
    assert_ok(ps_plan_pipeline(*state, &plan[1], &pipeline, &status), &status);
    ps_schedule_bound bound;
    ps_schedule_bound_compute(&pipeline, true, &bound);
    assert_true(bound.makespan_ns <= plan[1].prediction.makespan_ns);
}

static void a_recompute_op_needs_full_recompute(void **state)
{
    ps_plan plan = plan_of(*state, timed_model, "1x2xA100-SXM4-80GB",
                           OPTIONS("global-batch-size", "8", "seq-length", "1024", "pp", "2", "recompute", "none",
                                   "schedule", "gpipe-recompute"));
    assert_false(plan.feasible);
    assert_string_equal(plan.reason[0].rule, "gpipe-recompute-full");
    assert_string_equal(plan.reason[0].hint, "--recompute full, or --schedule gpipe");
}

static void v_schedules_want_two_layers_a_rank(void **state)
{
    ps_plan plan = plan_of(*state, timed_model, "1x4xA100-SXM4-80GB",
                           OPTIONS("global-batch-size", "8", "seq-length", "1024", "pp", "4", "schedule", "zb-v"));
    assert_false(plan.feasible);
    assert_string_equal(plan.reason[0].rule, "fewer-layers-than-stages");
    assert_string_equal(plan.reason[0].hint, "at most --pp 3");
}

static int64_t parameter_bytes(const ps_plan *plan)
{
    int64_t bytes = 0;
    for (int32_t device = 0; device < plan->num_devices; device++)
        bytes += plan->device[device].memory.parameters;
    return bytes;
}

// GPT-2's head is its embedding, 50257 rows, padded to 50304, of 768 parameters. With 1F1B the last rank has a copy and
// both reduce its gradient; in a V both are on rank 0.
static void tied_weights_are_there_once_when_the_pipeline_turns_back(void **state)
{
    ps_plan line = plan_of(*state, "gpt2", "1x2xA100-SXM4-80GB",
                           OPTIONS("global-batch-size", "8", "seq-length", "1024", "pp", "2", "micro-batch-size", "1",
                                   "schedule", "1f1b"));
    ps_plan v = plan_of(*state, "gpt2", "1x2xA100-SXM4-80GB",
                        OPTIONS("global-batch-size", "8", "seq-length", "1024", "pp", "2", "micro-batch-size", "1",
                                "schedule", "zb-v"));
    assert_true(line.feasible && v.feasible);
    assert_int_equal(parameter_bytes(&line) - parameter_bytes(&v), INT64_C(2) * 50304 * 768);
    for (int32_t device = 0; device < 2; device++) {
        assert_true(line.device[device].grad_sync_ns > 0);
        assert_int_equal(v.device[device].grad_sync_ns, 0);
        // Each rank steps what it holds, the shared weight once.
        assert_int_equal(line.stage[device].tied_sync_ns, line.device[device].grad_sync_ns);
        assert_int_equal(line.stage[device].tied_to, 0);
    }
    // The gradients are whole on the slower rank, and then summed over both.
    int64_t tied = line.stage[0].tied_sync_ns;
    assert_int_equal(line.prediction.grad_sync_exposed_ns, tied);
}

static ps_plan plan_of_replicas(ps_arena *arena, const char *schedule, const char *zero, const char *overlap,
                                const char *barrier)
{
    return plan_of(arena, "gpt2", "1x4xA100-SXM4-80GB",
                   OPTIONS("global-batch-size", "16", "seq-length", "1024", "pp", "2", "dp", "2", "micro-batch-size",
                           "1", "schedule", schedule, "zero", zero, "overlap-grad-sync", overlap, "optimizer-barrier",
                           barrier));
}

// Every ZeRO stage with and without overlap and barrier: the planner checks each plan. Overlap never loses, and a
// bound lies below every plan.
static void every_end_of_a_step_gives_a_plan_that_holds(void **state)
{
    static const char *const schedules[] = {"1f1b", "zb-h1", "looped-bfs"};
    static const char *const zeros[] = {"0", "1", "2", "3"};
    static const char *const switches[] = {"on", "off"};
    for (size_t kind = 0; kind < 3; kind++)
        for (size_t zero = 0; zero < 4; zero++)
            for (size_t barrier = 0; barrier < 2; barrier++) {
                int64_t beside = 0;
                for (size_t overlap = 0; overlap < 2; overlap++) {
                    ps_plan plan =
                        plan_of_replicas(*state, schedules[kind], zeros[zero], switches[overlap], switches[barrier]);
                    assert_true(plan.feasible);
                    assert_true(plan.bounds.iteration_ns <= plan.prediction.iteration_ns);
                    assert_true(barrier == 0 ? plan.prediction.barrier_ns > 0 : plan.prediction.barrier_ns == 0);
                    assert_true(barrier == 1 ? plan.prediction.validation_hop_ns > 0
                                             : plan.prediction.validation_hop_ns == 0);
                    assert_true(zero < 3 ? plan.stage[0].grad_sync_ns > 0 : plan.stage[0].grad_sync_ns == 0);
                    assert_true(plan.prediction.iteration_ns >= beside);
                    beside = plan.prediction.iteration_ns;
                }
            }
}

// Twice the parameters of a V, in which tied weights are there once; ranks r and 3 - r have the same stages and as much
// to add up. Six layers are enough for four ranks: the model has four stages, not eight.
static void dualpipe_holds_every_parameter_twice(void **state)
{
    ps_plan v = plan_of(*state, "gpt2", "1x4xA100-SXM4-80GB",
                        OPTIONS("global-batch-size", "8", "seq-length", "1024", "pp", "4", "micro-batch-size", "1",
                                "schedule", "zb-v"));
    ps_plan dual = plan_of(*state, "gpt2", "1x4xA100-SXM4-80GB",
                           OPTIONS("global-batch-size", "8", "seq-length", "1024", "pp", "4", "micro-batch-size", "1",
                                   "schedule", "dualpipe"));
    assert_true(v.feasible && dual.feasible);
    assert_int_equal(parameter_bytes(&dual), 2 * parameter_bytes(&v));
    assert_int_equal(dual.num_stages, 8);
    assert_int_equal(dual.num_hops, 12);
    for (int32_t rank = 0; rank < 4; rank++) {
        const ps_plan_device *device = &dual.device[rank];
        assert_int_equal(device->stage[0], rank);
        assert_int_equal(device->stage[1], 7 - rank);
        assert_int_equal(device->memory.parameters, dual.device[3 - rank].memory.parameters);
        assert_true(device->grad_sync_exposed_ns > 0);
        assert_int_equal(device->grad_sync_ns, dual.device[3 - rank].grad_sync_ns);
        assert_int_equal(dual.stage[rank].first_layer[0], dual.stage[4 + rank].first_layer[0]);
        assert_int_equal(dual.stage[rank].last_layer[0], dual.stage[4 + rank].last_layer[0]);
        // The two stages of the same layers add up their gradients, the pairs that a rank has one after the other.
        assert_int_equal(dual.stage[rank].tied_to, rank);
        assert_int_equal(dual.stage[4 + rank].tied_to, rank);
        assert_true(dual.stage[rank].tied_sync_ns > 0);
        assert_int_equal(dual.stage[4 + rank].tied_sync_ns, dual.stage[rank].tied_sync_ns);
        assert_int_equal(device->grad_sync_ns, dual.stage[rank].tied_sync_ns + dual.stage[3 - rank].tied_sync_ns);
    }
    ps_plan six = plan_of(*state, timed_model, "1x4xA100-SXM4-80GB",
                          OPTIONS("global-batch-size", "8", "seq-length", "1024", "pp", "4", "schedule", "dualpipe"));
    assert_true(six.feasible);
}

// 32 blocks and a head of more than two on 8 ranks: none needs more than 5 blocks. The even cut of the chain gives 6 to
// one, and from there layers must go past ranks that have as many as those they go to.
static void no_rank_of_a_v_has_more_layers_than_it_must(void **state)
{
    static const char model[] = "{\"format\": \"pipesched/model/v1\", \"name\": \"alike\", \"layers\": ["
                                "{\"name\": \"first\", \"kind\": \"x\", \"output_bytes\": 1000,"
                                " \"forward_ms\": 0.1, \"backward_input_ms\": 0.1, \"backward_weight_ms\": 0.1},"
                                "{\"name\": \"block\", \"kind\": \"x\", \"repeat\": 32, \"output_bytes\": 1000,"
                                " \"forward_ms\": 3, \"backward_input_ms\": 3, \"backward_weight_ms\": 3},"
                                "{\"name\": \"norm\", \"kind\": \"x\", \"output_bytes\": 1000,"
                                " \"forward_ms\": 0.1, \"backward_input_ms\": 0.1, \"backward_weight_ms\": 0.1},"
                                "{\"name\": \"last\", \"kind\": \"x\","
                                " \"forward_ms\": 7, \"backward_input_ms\": 7, \"backward_weight_ms\": 7}]}";
    static const char *const schedules[] = {"zb-v", "dualpipev", "dualpipe"};
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        ps_plan plan = plan_of(*state, model, "1x8xA100-SXM4-80GB",
                               OPTIONS("global-batch-size", "32", "seq-length", "1024", "pp", "8", "micro-batch-size",
                                       "1", "schedule", schedules[i]));
        assert_true(plan.feasible);
        for (int32_t rank = 0; rank < 8; rank++)
            assert_true(plan.device[rank].busy_ns <= INT64_C(5) * 32 * 9000000);
    }
}

// Every built-in model on every built-in cluster gets a verdict: a plan that holds, or reasons.
static void every_built_in_pair_has_an_answer(void **state)
{
    const char *const models[] = {"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "mixtral-8x7b", "gpt2"};
    const char *const clusters[] = {"h100-8", "h100-8x8", "a100-4x8", "l40s-2x8"};
    int32_t feasible = 0;
    (void)state;
    for (size_t model = 0; model < sizeof models / sizeof models[0]; model++) {
        for (size_t cluster = 0; cluster < sizeof clusters / sizeof clusters[0]; cluster++) {
            ps_arena *arena = ps_arena_new(0);
            ps_plan plan = plan_of(arena, models[model], clusters[cluster],
                                   OPTIONS("global-batch-size", "128", "seq-length", "1024"));
            assert_true(plan.feasible || plan.num_reasons > 0);
            feasible += plan.feasible;
            ps_arena_free(arena);
        }
    }
    assert_true(feasible >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(every_layer_is_placed_once_and_memory_holds),
        test_in_arena(threads_do_not_change_the_plan),
        test_in_arena(no_layout_and_no_cut_beats_the_bound),
        test_in_arena(state_larger_than_the_cluster_is_refused_by_a_bound),
        test_in_arena(an_infeasible_job_names_the_term_and_a_change_that_fits),
        test_in_arena(bf16_asked_for_on_a_v100_is_refused_and_fp16_named),
        test_in_arena(without_a_wish_a_v100_gets_fp16_and_the_plan_says_so),
        test_in_arena(degrees_that_leave_gpus_over_are_refused_by_rule),
        test_in_arena(more_ranks_than_layers_are_refused_by_rule),
        test_in_arena(too_many_ops_show_the_product),
        test_in_arena(memory_beyond_counting_rules_out_only_its_layout),
        test_in_arena(a_time_limit_cuts_a_batch_short),
        test_in_arena(the_optimizer_barrier_decides_what_counts),
        test_in_arena(every_schedule_gives_a_plan_that_holds),
        test_in_arena(a_recompute_op_is_no_slower_than_one_inside_the_backward),
        test_in_arena(a_recompute_op_needs_full_recompute),
        test_in_arena(v_schedules_want_two_layers_a_rank),
        test_in_arena(tied_weights_are_there_once_when_the_pipeline_turns_back),
        test_in_arena(dualpipe_holds_every_parameter_twice),
        test_in_arena(no_rank_of_a_v_has_more_layers_than_it_must),
        test_in_arena(every_end_of_a_step_gives_a_plan_that_holds),
        test_in_arena(every_built_in_pair_has_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
