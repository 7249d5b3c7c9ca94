// SPDX-License-Identifier: Apache-2.0
//
// test_searched.c: plans whose order is searched for, and what a plan says of the choice of its schedule.
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "pipesched/check.h"
#include "pipesched/jitter.h"
#include "pipesched/plan.h"
#include "support/cmocka_all.h"

// Unequal timed layers that hold enough for memory to matter.
static const char model_text[] =
    "{\"format\": \"pipesched/model/v1\", \"name\": \"uneven\", \"layers\": ["
    "{\"name\": \"a\", \"kind\": \"x\", \"parameters\": 100000000, \"output_bytes\": 1000000, \"forward_ms\": 3,"
    " \"backward_input_ms\": 2, \"backward_weight_ms\": 2, \"held_after_forward_bytes\": 1900000000,"
    " \"held_after_backward_input_bytes\": 800000000},"
    "{\"name\": \"b\", \"kind\": \"x\", \"repeat\": 6, \"parameters\": 200000000, \"output_bytes\": 1000000,"
    " \"forward_ms\": 2, \"backward_input_ms\": 2, \"backward_weight_ms\": 1, \"held_after_forward_bytes\": 1500000000,"
    " \"held_after_backward_input_bytes\": 500000000},"
    "{\"name\": \"c\", \"kind\": \"x\", \"parameters\": 50000000, \"output_bytes\": 4, \"forward_ms\": 4,"
    " \"backward_input_ms\": 5, \"backward_weight_ms\": 3, \"held_after_forward_bytes\": 300000000}]}";

static ps_code try_plan(ps_arena *arena, const char *model, const char *const *options, const ps_control *control,
                        ps_plan *out, ps_status *status)
{
    ps_model *m = ps_new(arena, ps_model, 1); // the plan keeps what they say of their files
    ps_cluster *c = ps_new(arena, ps_cluster, 1);
    ps_job job;
    ps_cluster_options cluster = {.nic_bytes_per_s = 50e9};
    if (model[0] == '{')
        assert_ok(ps_model_parse(arena, "model.json", model, (int64_t)strlen(model), m, status), status);
    else
        assert_ok(ps_model_load(arena, model, m, status), status);
    assert_ok(ps_cluster_load(arena, "1x4xA100-SXM4-80GB", &cluster, c, status), status);
    ps_job_init(&job);
    assert_ok(ps_job_set(&job, "seq-length", "1024", status), status);
    for (; options[0]; options += 2)
        assert_ok(ps_job_set(&job, options[0], options[1], status), status);
    return ps_plan_search_best(arena, m, c, &job, control, out, status);
}

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static ps_plan plan_of(ps_arena *arena, const char *const *options)
{
    ps_plan plan;
    ps_status status = {0};
    assert_ok(try_plan(arena, model_text, options, NULL, &plan, &status), &status);
    return plan;
}

static const ps_plan_diagnostic *note_of(const ps_plan *plan, const char *code)
{
    for (int32_t index = 0; index < plan->num_diagnostics; index++)
        if (strcmp(plan->diagnostic[index].code, code) == 0)
            return &plan->diagnostic[index];
    return NULL;
}

static char *text_of(const ps_plan *plan)
{
    char *text = NULL;
    size_t size = 0;
    ps_status status = {0};
    FILE *file = open_memstream(&text, &size);
    assert_ok(ps_plan_write_json(plan, NULL, file, &status), &status);
    fclose(file);
    return text;
}

static void a_searched_order_is_never_worse_than_a_named_split_one(void **state)
{
    static const char *const limits[] = {"12GiB", "16GiB", "24GiB", "80GiB"};
    static const char *const named[] = {"zb-h1", "zb-h2", "zb-v", "v-half", "v-min"};
    int32_t compared = 0;
    for (size_t limit = 0; limit < sizeof limits / sizeof *limits; limit++) {
        for (int32_t barrier = 0; barrier < 2; barrier++) {
            const char *on = barrier ? "on" : "off";
            ps_plan zb = plan_of(*state, OPTIONS("global-batch-size", "16", "pp", "4", "schedule", "zb", "memory-limit",
                                                 limits[limit], "optimizer-barrier", on));
            for (size_t index = 0; index < sizeof named / sizeof *named; index++) {
                ps_plan other = plan_of(*state, OPTIONS("global-batch-size", "16", "pp", "4", "schedule", named[index],
                                                        "memory-limit", limits[limit], "optimizer-barrier", on));
                if (!other.feasible)
                    continue;
                assert_true(zb.feasible);
                assert_true(zb.prediction.iteration_ns <= other.prediction.iteration_ns);
                compared++;
            }
        }
    }
    assert_true(compared >= 10);
}

static void memory_is_kept_down_to_one_micro_batch_at_a_time(void **state)
{
    int32_t feasible = 0;
    int32_t infeasible = 0;
    for (int32_t gib = 30; gib >= 4; gib--) {
        char limit[16];
        snprintf(limit, sizeof limit, "%dGiB", (int)gib);
        ps_plan plan = plan_of(*state, OPTIONS("global-batch-size", "16", "pp", "4", "vp", "1", "schedule", "zb",
                                               "micro-batch-size", "1", "memory-limit", limit));
        feasible += plan.feasible;
        infeasible += !plan.feasible;
        assert_true(plan.feasible || plan.num_reasons > 0);
        if (!plan.feasible)
            continue;
        assert_int_equal(infeasible, 0); // less memory never helps
        for (int32_t device = 0; device < plan.num_devices; device++)
            assert_true(plan.device[device].memory.headroom >= 0);
        assert_true(plan.bounds.iteration_ns <= plan.prediction.iteration_ns);
    }
    assert_true(feasible >= 5 && infeasible >= 1);
}

static void it_fits_where_no_named_split_schedule_does(void **state)
{
    const char *const *zb = OPTIONS("global-batch-size", "16", "pp", "4", "vp", "1", "schedule", "zb", "memory-limit",
                                    "12900MiB", "micro-batch-size", "1");
    const char *const *h1 = OPTIONS("global-batch-size", "16", "pp", "4", "vp", "1", "schedule", "zb-h1,zb-h2",
                                    "memory-limit", "12900MiB", "micro-batch-size", "1");
    assert_true(plan_of(*state, zb).feasible);
    assert_false(plan_of(*state, h1).feasible);
}

// The stages tell the placement, so that what is read back is checked, drawn and written as it was.
static void a_written_plan_reads_back_on_either_placement(void **state)
{
    static const char *const vp[] = {"1", "2"};
    for (int32_t index = 0; index < 2; index++) {
        ps_status status = {0};
        ps_plan again;
        ps_check_result result;
        ps_plan plan =
            plan_of(*state, OPTIONS("global-batch-size", "16", "pp", "4", "vp", vp[index], "schedule", "zb"));
        plan.inputs.job.threads = 0;
        char *text = text_of(&plan);
        assert_ok(ps_plan_read_json(*state, "plan.json", text, (int64_t)strlen(text), &again, &status), &status);
        assert_int_equal(again.layout.schedule, PS_SCHEDULE_ZB);
        assert_int_equal(again.layout.placement, plan.layout.placement);
        assert_ok(ps_check_plan(*state, &again, &result, &status), &status);
        assert_int_equal(result.total, 0);
        char *text_again = text_of(&again);
        assert_string_equal(text, text_again);
        free(text);
        free(text_again);
    }
}

static void another_name_for_the_same_cells_is_refused(void **state)
{
    ps_plan plan = plan_of(
        *state, OPTIONS("global-batch-size", "16", "pp", "4", "vp", "1", "schedule", "zb", "memory-limit", "12900MiB"));
    ps_status status = {0};
    ps_check_result result;
    assert_true(plan.feasible);
    plan.layout.schedule = PS_SCHEDULE_ZB_H1;
    plan.inputs.job.schedule.count = 0;
    plan.search.num_alternatives = 0;
    assert_ok(ps_check_plan(*state, &plan, &result, &status), &status);
    assert_true(result.total > 0);
    bool named = false;
    for (int32_t index = 0; index < result.count; index++)
        named = named || strcmp(result.finding[index].rule, "schedule-order") == 0;
    assert_true(named);
}

static void threads_do_not_change_a_searched_plan(void **state)
{
    static const char *const threads[] = {"1", "2", "4"};
    static const char *const schedules[] = {"zb", "auto"};
    for (int32_t which = 0; which < 2; which++) {
        char *text[3];
        for (int32_t index = 0; index < 3; index++) {
            ps_plan plan = plan_of(*state, OPTIONS("global-batch-size", "32", "schedule", schedules[which],
                                                   "memory-limit", "24GiB", "threads", threads[index]));
            plan.inputs.job.threads = 0;
            text[index] = text_of(&plan);
        }
        assert_string_equal(text[0], text[1]);
        assert_string_equal(text[0], text[2]);
        for (int32_t index = 0; index < 3; index++)
            free(text[index]);
    }
}

// Users measured a tenth of the whole backward's speed: nothing here knows that cost, so nothing ranks it.
static void a_split_backward_is_not_ranked_with_recompute(void **state)
{
    ps_plan plan;
    ps_status status = {0};
    assert_ok(
        try_plan(*state, "llama-3.1-8b", OPTIONS("global-batch-size", "16", "recompute", "full"), NULL, &plan, &status),
        &status);
    assert_true(plan.feasible);
    assert_false(ps_schedule_family_at(plan.layout.schedule)->splits_backward);
    for (int32_t index = 0; index < plan.search.num_alternatives; index++)
        assert_false(ps_schedule_family_at(plan.search.alternative[index].layout.schedule)->splits_backward);
    bool counted = false;
    for (int32_t index = 0; index < plan.search.num_infeasible; index++)
        counted = counted || strcmp(plan.search.infeasible[index].rule, "split-backward-recompute") == 0;
    assert_true(counted);
}

static void whoever_asks_for_a_split_backward_with_recompute_is_warned(void **state)
{
    ps_plan plan;
    ps_status status = {0};
    assert_ok(try_plan(*state, "llama-3.1-8b",
                       OPTIONS("global-batch-size", "16", "pp", "4", "recompute", "full", "schedule", "zb-h1"), NULL,
                       &plan, &status),
              &status);
    assert_true(plan.feasible);
    assert_int_equal(plan.layout.recompute, PS_RECOMPUTE_FULL);
    assert_string_equal(note_of(&plan, "split-backward-recompute")->level, "warning");
    assert_non_null(note_of(&plan, "torchtitan-5-compile"));
}

// 226 ms a micro-batch, 64 of them on 4 equal stages: no schedule gains more than the bubble, 3 / 67 of the time.
static void a_plan_says_how_much_any_schedule_could_gain(void **state)
{
    static const char model[] =
        "{\"format\": \"pipesched/model/v1\", \"name\": \"even\", \"layers\": ["
        "{\"name\": \"b\", \"kind\": \"x\", \"repeat\": 40, \"parameters\": 1000000, \"output_bytes\": 1000,"
        " \"forward_ms\": 7.5333, \"backward_input_ms\": 7.5333, \"backward_weight_ms\": 7.5334,"
        " \"held_after_forward_bytes\": 1000}]}";
    ps_plan plan;
    ps_status status = {0};
    assert_ok(try_plan(*state, model,
                       OPTIONS("global-batch-size", "64", "tp", "1", "pp", "4", "dp", "1", "micro-batch-size", "1",
                               "schedule", "1f1b", "optimizer-barrier", "off"),
                       NULL, &plan, &status),
              &status);
    const ps_plan_diagnostic *gain = note_of(&plan, "schedule-gain");
    assert_non_null(gain);
    assert_non_null(strstr(gain->message, "at most 4."));
    assert_non_null(strstr(gain->message, "within what the times are known to"));
    assert_null(note_of(&plan, "simpler-schedule"));
}

static void a_simpler_schedule_that_is_as_good_is_named(void **state)
{
    ps_plan plan = plan_of(*state, OPTIONS("global-batch-size", "256", "tp", "1", "pp", "2", "dp", "2",
                                           "micro-batch-size", "1", "schedule", "zb-h1,1f1b"));
    assert_int_equal(plan.layout.schedule, PS_SCHEDULE_ZB_H1);
    const ps_plan_diagnostic *simpler = note_of(&plan, "simpler-schedule");
    assert_non_null(simpler);
    assert_non_null(strstr(simpler->message, "1f1b at tp 1, pp 2"));
    assert_non_null(strstr(simpler->message, "deepspeed, megatron, torchtitan"));
}

// A plan's p95 is that of its pipeline, and what happens once an iteration.
static void with_jitter_plans_are_ranked_by_p95(void **state)
{
    const char *const *options = OPTIONS("global-batch-size", "16", "pp", "4", "micro-batch-size", "1", "schedule",
                                         "zb-h1,zb-h2,1f1b,zb", "jitter", "20%", "jitter-samples", "60");
    ps_plan plan = plan_of(*state, options);
    ps_pipeline pipeline;
    ps_status status = {0};
    ps_jitter_result result;
    ps_jitter_options jitter = {.share = 200000, .samples = 60, .seed = 1, .straggler = -1, .factor = PS_JITTER_ONE};
    char expected[128];
    char p95[32];
    const ps_plan_diagnostic *note = note_of(&plan, "jitter");
    assert_non_null(note);
    assert_ok(ps_plan_pipeline(*state, &plan, &pipeline, &status), &status);
    assert_ok(ps_jitter_sample(*state, &pipeline, &plan.schedule, &jitter, &result, &status), &status);
    int64_t value = plan.prediction.iteration_ns - plan.prediction.pipeline_ns + result.makespan.p95_ns;
    snprintf(expected, sizeof expected, "jitter 20 %%, 60 samples: ranked by p95, %s of this plan",
             ps_format_ns(value, p95));
    assert_int_equal(strncmp(note->message, expected, strlen(expected)), 0);
}

static void a_plan_says_truly_what_ranked_it(void **state)
{
    ps_plan plan = plan_of(*state, OPTIONS("global-batch-size", "16", "pp", "4", "jitter", "0.05"));
    ps_status status = {0};
    ps_check_result result;
    plan.inputs.job.jitter_ppm += 10000;
    assert_ok(ps_check_plan(*state, &plan, &result, &status), &status);
    assert_int_equal(result.total, 1);
    assert_string_equal(result.finding[0].rule, "jitter");
    plan.inputs.job.jitter_ppm = 0;
    plan.inputs.job.jitter_samples = 0;
    assert_ok(ps_check_plan(*state, &plan, &result, &status), &status);
    assert_true(result.total > 0);
}

// 46 equal blocks, and an embedding and a head as heavy as one each, on 16 ranks: 2, 14 times 3, and 2 blocks. Padded
// to 48 that is three a rank, which some generators of ZB-V refuse as odd; stages of 1 and 2 layers make it legal here.
// One stage a rank is no V.
static void a_v_wants_two_stages_a_rank_and_takes_any_number_of_layers(void **state)
{
    static const char model[] =
        "{\"format\": \"pipesched/model/v1\", \"name\": \"forty-six\", \"layers\": ["
        "{\"name\": \"b\", \"kind\": \"x\", \"repeat\": 48, \"parameters\": 1000000, \"output_bytes\": 1000,"
        " \"forward_ms\": 1, \"backward_input_ms\": 1, \"backward_weight_ms\": 1,"
        " \"held_after_forward_bytes\": 1000}]}";
    static const char *const schedules[] = {"zb-h1", "zb-h2", "zb-v"};
    ps_model m;
    ps_cluster c;
    ps_status status = {0};
    assert_ok(ps_model_parse(*state, "m.json", model, (int64_t)strlen(model), &m, &status), &status);
    assert_ok(
        ps_cluster_load(*state, "2x8xA100-SXM4-80GB", &(ps_cluster_options){.nic_bytes_per_s = 50e9}, &c, &status),
        &status);
    for (int32_t index = 0; index < 3; index++) {
        ps_job job;
        ps_plan plan;
        ps_job_init(&job);
        for (const char *const *option = OPTIONS("global-batch-size", "64", "seq-length", "1024", "pp", "16", "tp", "1",
                                                 "micro-batch-size", "1", "schedule", schedules[index]);
             *option; option += 2)
            assert_ok(ps_job_set(&job, option[0], option[1], &status), &status);
        assert_ok(ps_plan_search_best(*state, &m, &c, &job, NULL, &plan, &status), &status);
        assert_true(plan.feasible);
        for (int32_t device = 0; device < 16; device++) {
            int32_t layers = 0;
            for (int32_t chunk = 0; chunk < plan.device[device].num_stages; chunk++)
                layers += plan.stage[plan.device[device].stage[chunk]].num_layers;
            assert_int_equal(layers, 3); // with the embedding and the head counted as layers
        }
        for (int32_t target = 0; target < plan.num_launchable; target++) {
            bool torchtitan = strcmp(plan.launchable[target].target, "torchtitan") == 0;
            assert_int_equal(strcmp(plan.launchable[target].verdict, "ok") == 0, torchtitan);
        }
    }
    ps_job job;
    ps_job_init(&job);
    for (const char *const *option =
             OPTIONS("global-batch-size", "64", "seq-length", "1024", "pp", "4", "vp", "1", "schedule", "zb-v");
         *option; option += 2)
        assert_ok(ps_job_set(&job, option[0], option[1], &status), &status);
    assert_int_equal(ps_job_check(&job, &status), PS_USAGE);
    assert_string_equal(status.rule, "interleaved-needs-vp");
}

typedef struct polls {
    int32_t left; // until the limit; workers may poll, but here there is one thread
    ps_code answer;
} polls;

static ps_code stop_after(void *context)
{
    polls *p = context;
    return p->left-- > 0 ? PS_OK : p->answer;
}

static void a_time_limit_leaves_the_best_so_far(void **state)
{
    int32_t cut_short = 0;
    for (int32_t left = 0; left < 4000; left = 2 * left + 1) {
        polls p = {.left = left, .answer = PS_TIME_LIMIT};
        ps_control control = {.should_stop = stop_after, .context = &p};
        ps_plan plan;
        ps_status status = {0};
        ps_code code =
            try_plan(*state, model_text, OPTIONS("global-batch-size", "16", "schedule", "zb", "threads", "1"), &control,
                     &plan, &status);
        if (code == PS_OK)
            break;
        cut_short++;
        assert_int_equal(code, PS_TIME_LIMIT);
        assert_true(status.code == PS_TIME_LIMIT || plan.feasible);
        if (status.code == PS_OK)
            assert_non_null(note_of(&plan, "time-limit"));
    }
    assert_true(cut_short > 3);
}

static void an_interrupt_at_any_moment_ends_it(void **state)
{
    int32_t interrupted = 0;
    for (int32_t left = 0; left < 4000; left++) {
        polls p = {.left = left, .answer = PS_STOPPED};
        ps_control control = {.should_stop = stop_after, .context = &p};
        ps_plan plan;
        ps_status status = {0};
        ps_code code =
            try_plan(*state, model_text, OPTIONS("global-batch-size", "16", "schedule", "zb", "threads", "1"), &control,
                     &plan, &status);
        if (p.left >= 0)
            break; // it was done before
        assert_int_equal(code, PS_STOPPED);
        assert_string_equal(status.rule, "interrupted");
        interrupted++;
    }
    assert_true(interrupted > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(a_searched_order_is_never_worse_than_a_named_split_one),
        test_in_arena(memory_is_kept_down_to_one_micro_batch_at_a_time),
        test_in_arena(it_fits_where_no_named_split_schedule_does),
        test_in_arena(a_written_plan_reads_back_on_either_placement),
        test_in_arena(another_name_for_the_same_cells_is_refused),
        test_in_arena(threads_do_not_change_a_searched_plan),
        test_in_arena(a_split_backward_is_not_ranked_with_recompute),
        test_in_arena(whoever_asks_for_a_split_backward_with_recompute_is_warned),
        test_in_arena(a_plan_says_how_much_any_schedule_could_gain),
        test_in_arena(a_simpler_schedule_that_is_as_good_is_named),
        test_in_arena(with_jitter_plans_are_ranked_by_p95),
        test_in_arena(a_plan_says_truly_what_ranked_it),
        test_in_arena(a_v_wants_two_stages_a_rank_and_takes_any_number_of_layers),
        test_in_arena(a_time_limit_leaves_the_best_so_far),
        test_in_arena(an_interrupt_at_any_moment_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
