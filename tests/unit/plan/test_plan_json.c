// SPDX-License-Identifier: Apache-2.0
#include "pipesched/check.h"
#include "pipesched/plan.h"

#include "base/text.h"
#include "support/cmocka_all.h"
#include "support/plan_text.h"
#include "support/plans.h"

static ps_code read_text(ps_arena *arena, const char *text, ps_plan *plan, ps_status *status)
{
    *status = (ps_status){0};
    return ps_plan_read_json(arena, "plan.json", text, (int64_t)strlen(text), plan, status);
}

// The text with the first occurrence of `from` replaced, which must be there.
static char *edited(ps_arena *arena, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at)
        fail_msg("no \"%s\" in the plan", from);
    return ps_text_format(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void assert_refused(ps_arena *arena, const char *text, const char *rule, const char *pointer)
{
    ps_plan plan;
    ps_status status;
    assert_int_equal(read_text(arena, text, &plan, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, rule);
    assert_string_equal(status.pointer, pointer);
    assert_string_equal(status.source, "plan.json");
}

static void assert_same_bytes_again(ps_arena *arena, const ps_plan *plan)
{
    const char *text = plan_text(arena, plan, NULL);
    ps_plan again;
    ps_status status;
    assert_ok(read_text(arena, text, &again, &status), &status);
    assert_string_equal(plan_text(arena, &again, NULL), text);
}

static void reading_and_writing_gives_the_same_bytes(void **state)
{
    assert_same_bytes_again(*state, small_plan(*state));
    assert_same_bytes_again(*state, consistent_plan(*state, (plan_spec){.pp = 2,
                                                                        .vp = 2,
                                                                        .dp = 2,
                                                                        .tp = 2,
                                                                        .num_microbatches = 4,
                                                                        .schedule = PS_SCHEDULE_INTERLEAVED,
                                                                        .recompute = PS_RECOMPUTE_FULL,
                                                                        .gpus_per_node = 4}));
    assert_same_bytes_again(*state, consistent_plan(*state, (plan_spec){.pp = 1,
                                                                        .vp = 1,
                                                                        .dp = 1,
                                                                        .tp = 1,
                                                                        .num_microbatches = 1,
                                                                        .schedule = PS_SCHEDULE_ZB_H2,
                                                                        .gpus_per_node = 1}));
}

static void a_plan_that_was_read_passes_the_check(void **state)
{
    ps_plan plan;
    ps_status status;
    ps_check_result result;
    assert_ok(read_text(*state, plan_text(*state, small_plan(*state), NULL), &plan, &status), &status);
    assert_ok(ps_check_plan(*state, &plan, &result, &status), &status);
    assert_int_equal(result.total, 0);
    assert_int_equal(plan.num_diagnostics, 1); // the fixture's own
}

static void every_job_option_but_threads_is_kept(void **state)
{
    ps_plan *plan = small_plan(*state);
    ps_job *job = &plan->inputs.job;
    job->recompute = (ps_int_set){.count = 2, .value = {PS_RECOMPUTE_NONE, PS_RECOMPUTE_FULL}};
    job->precision = PS_PRECISION_FP16;
    job->optimizer = PS_OPTIMIZER_SGD;
    job->gradient_bytes = 2;
    job->flash_attention = false;
    job->memory_limit_bytes = 123456;
    job->threads = 7;
    ps_plan again;
    ps_status status;
    assert_ok(read_text(*state, plan_text(*state, plan, NULL), &again, &status), &status);
    assert_int_equal(again.inputs.job.recompute.count, 2);
    assert_int_equal(again.inputs.job.recompute.value[1], PS_RECOMPUTE_FULL);
    assert_int_equal(again.inputs.job.precision, PS_PRECISION_FP16);
    assert_int_equal(again.inputs.job.optimizer, PS_OPTIMIZER_SGD);
    assert_int_equal(again.inputs.job.gradient_bytes, 2);
    assert_int_equal(again.inputs.job.optimizer_bytes, 4);
    assert_false(again.inputs.job.flash_attention);
    assert_int_equal(again.inputs.job.memory_limit_bytes, 123456);
    assert_int_equal(again.inputs.job.micro_batch_size.count, 0); // auto
    assert_int_equal(again.inputs.job.op_overhead_ns, 101);
    assert_int_equal(again.inputs.job.threads, 0);
}

static void an_infeasible_plan_says_only_what_was_asked_and_why_not(void **state)
{
    ps_plan *plan = small_plan(*state);
    ps_reason reason = {.rule = "memory", .message = "too large", .have = 80, .need = 90, .dominant = "optimizer"};
    plan->feasible = false;
    plan->num_reasons = 1;
    plan->reason = &reason;
    const char *text = plan_text(*state, plan, NULL);
    assert_null(strstr(text, "\"stages\""));
    assert_null(strstr(text, "\"prediction\""));
    assert_non_null(strstr(text, "\"dominant\": \"optimizer\""));
    assert_non_null(strstr(text, "\"hint\": null"));
    assert_same_bytes_again(*state, plan);
}

static void unknown_keys_are_warnings(void **state)
{
    const char *text = plan_text(*state, small_plan(*state), NULL);
    text = edited(*state, text, "\"layout\": {", "\"layout\": {\"color\": 3, \"_note\": \"mine\",");
    ps_plan plan;
    ps_status status;
    assert_ok(read_text(*state, text, &plan, &status), &status);
    assert_int_equal(plan.num_diagnostics, 2);
    assert_string_equal(plan.diagnostic[1].level, "warning");
    assert_string_equal(plan.diagnostic[1].code, "unknown-key");
    assert_string_equal(plan.diagnostic[1].message, "/layout/color: unknown key");
}

static void another_major_version_is_refused(void **state)
{
    const char *text = plan_text(*state, small_plan(*state), NULL);
    ps_arena *arena = *state;
    assert_refused(arena, edited(arena, text, "plan/v1", "plan/v2"), "plan-version", "/format");
    assert_refused(arena, edited(arena, text, "plan/v1", "plan/v10"), "plan-version", "/format");
    assert_refused(arena, edited(arena, text, "pipesched/plan/v1", "pipesched/model/v1"), "plan-version", "/format");
}

static void wrong_shapes_are_refused_with_their_place(void **state)
{
    ps_arena *arena = *state;
    const char *text = plan_text(arena, small_plan(arena), NULL);
    assert_refused(arena, edited(arena, text, "\"pp_rank\": 0", "\"pp_rank\": \"0\""), "json-type",
                   "/stages/0/pp_rank");
    assert_refused(arena, edited(arena, text, "\"num_microbatches\": 4", "\"num_microbatches\": 0"), "out-of-range",
                   "/layout/num_microbatches");
    assert_refused(arena, edited(arena, text, "\"num_microbatches\": 4", "\"num_microbatches\": 4.5"), "json-type",
                   "/layout/num_microbatches");
    assert_refused(arena, edited(arena, text, "[[0, 1]]", "[[1, 0]]"), "layer-range", "/stages/0/layer_ids/0");
    assert_refused(arena, edited(arena, text, "[[0, 1]]", "[[0, 1, 2]]"), "layer-range", "/stages/0/layer_ids/0");
    assert_refused(arena, edited(arena, text, "[[0, 1]]", "[[-1, 1]]"), "out-of-range", "/stages/0/layer_ids/0/0");
    assert_refused(arena, edited(arena, text, "\"schedule\": \"1f1b\"", "\"schedule\": \"2f2b\""), "unknown-name",
                   "/layout/schedule");
    assert_refused(arena, edited(arena, text, "\"kind\": \"1f1b\"", "\"kind\": \"gpipe\""), "plan-contradiction",
                   "/schedule/kind");
    assert_refused(arena, edited(arena, text, "\"verdict\": \"feasible\"", "\"verdict\": \"maybe\""), "unknown-name",
                   "/verdict");
    assert_refused(arena, edited(arena, text, "\"makespan_ms\"", "\"makespan\""), "missing-key", "/prediction");
    assert_refused(arena, edited(arena, text, "\"name\": \"any\"", "\"name\": \"megatron\""), "plan-target",
                   "/layout/target");
    assert_refused(arena, edited(arena, text, "\"tp\": [1, 64]", "\"tp\": []"), "out-of-range", "/inputs/job/tp");
    assert_refused(arena, "{}", "missing-key", "");
    assert_refused(arena, "[]", "json-type", "");
}

static void cells_are_read_strictly(void **state)
{
    static const char *const bad[] = {"0F",   "F0",   "0X0",     "00F0",    "0F00",         "-1F0",
                                      " 0F0", "0F0 ", "0F0junk", "65536F0", "0F4294967296", ""};
    ps_arena *arena = *state;
    const char *text = plan_text(arena, small_plan(arena), NULL);
    for (size_t index = 0; index < sizeof bad / sizeof bad[0]; index++)
        assert_refused(arena, edited(arena, text, "\"0F0\"", ps_text_format(arena, "\"%s\"", bad[index])), "bad-cell",
                       "/schedule/cells/0/0");
    assert_refused(arena, edited(arena, text, "\"0F0\"", "0"), "bad-cell", "/schedule/cells/0/0");
}

static void a_file_cut_short_anywhere_is_refused(void **state)
{
    ps_arena *arena = ps_arena_new(0);
    const char *text = plan_text(*state, small_plan(*state), NULL);
    int64_t size = (int64_t)strlen(text) - 2; // without the last brace and line end
    for (int64_t cut = 0; cut < size; cut++) {
        ps_plan plan;
        ps_status status = {0};
        assert_int_equal(ps_plan_read_json(arena, "plan.json", text, cut, &plan, &status), PS_BAD_INPUT);
        ps_arena_reset(arena);
    }
    ps_arena_free(arena);
}

// Timeline of the small plan: 0F0 takes 1,000,108 ns, its message 6,554 ns and then 5,003 ns.
static void the_timeline_lists_ops_and_transfers(void **state)
{
    ps_arena *arena = *state;
    ps_plan *plan = small_plan(arena);
    int32_t ops = plan->schedule.first[2];
    ps_timeline timeline = {.num_devices = 2,
                            .device = ps_new(arena, ps_device_timeline, 2),
                            .start_ns = ps_new(arena, int64_t, ops),
                            .end_ns = ps_new(arena, int64_t, ops)};
    timeline.device[1].last_end_ns = 3000000;
    timeline.end_ns[0] = 1000108;
    timeline.start_ns[1] = 1000108;
    timeline.end_ns[1] = 1000109; // the second message finds the lane busy
    const char *text = plan_text(arena, plan, &timeline);
    assert_non_null(strstr(text, "{\"pp_rank\": 0, \"cell\": \"0F0\", \"start_ms\": 0, \"end_ms\": 1.000108}"));
    assert_non_null(strstr(text, "{\"from_stage\": 0, \"to_stage\": 1, \"microbatch\": 0, \"start_ms\": 1.000108, "
                                 "\"end_ms\": 1.011665}"));
    assert_non_null(strstr(text, "{\"from_stage\": 0, \"to_stage\": 1, \"microbatch\": 1, \"start_ms\": 1.006662, "
                                 "\"end_ms\": 1.018219}"));
    assert_non_null(strstr(text, "\"cell\": \"0REDUCE_GRAD\", \"start_ms\": 0, \"end_ms\": 1.5}"));
    assert_non_null(strstr(text, "\"cell\": \"1REDUCE_TIED\", \"start_ms\": 3, \"end_ms\": 3.04}"));
    assert_non_null(strstr(text, "{\"pp_rank\": 1, \"cell\": \"BARRIER\", \"start_ms\": 3.04, \"end_ms\": 3.0425}"));
    ps_plan again;
    ps_status status;
    assert_ok(read_text(arena, text, &again, &status), &status);
    assert_int_equal(again.num_diagnostics, 1); // "timeline" is no unknown key
    assert_true(again.has_timeline);
    assert_string_equal(plan_text(arena, &again, NULL), text);

    assert_refused(arena, edited(arena, text, "\"cell\": \"0F1\"", "\"cell\": \"0X1\""), "bad-cell",
                   "/timeline/2/cell");
    assert_refused(arena, edited(arena, text, "\"cell\": \"0F1\"", "\"cell\": 1"), "json-type", "/timeline/2/cell");
    assert_refused(arena, edited(arena, text, "\"cell\": \"0F1\", ", ""), "missing-key", "/timeline/2");
}

static void an_unknown_launch_target_is_a_warning(void **state)
{
    const char *text = plan_text(*state, small_plan(*state), NULL);
    ps_plan plan;
    ps_status status;
    text = edited(*state, text, "\"megatron\": \"ok\"", "\"nemo\": \"ok\"");
    assert_ok(read_text(*state, text, &plan, &status), &status);
    assert_int_equal(plan.num_diagnostics, 2);
    assert_string_equal(plan.diagnostic[1].code, "unknown-target");
    assert_string_equal(plan.diagnostic[1].level, "warning");
}

static void a_large_rank_map_is_left_out(void **state)
{
    ps_plan *plan = consistent_plan(*state, (plan_spec){.pp = 1,
                                                        .vp = 1,
                                                        .dp = PS_PLAN_MAX_RANK_MAP + 1,
                                                        .tp = 1,
                                                        .num_microbatches = 1,
                                                        .schedule = PS_SCHEDULE_GPIPE,
                                                        .gpus_per_node = 8});
    const char *text = plan_text(*state, plan, NULL);
    assert_null(strstr(text, "\"map\""));
    assert_same_bytes_again(*state, plan);
}

static void a_full_disk_is_reported(void **state)
{
    ps_status status = {0};
    FILE *file = fopen("/dev/full", "w");
    if (!file)
        skip();
    assert_int_equal(ps_plan_write_json(small_plan(*state), NULL, file, &status), PS_IO);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(reading_and_writing_gives_the_same_bytes),
        test_in_arena(a_plan_that_was_read_passes_the_check),
        test_in_arena(every_job_option_but_threads_is_kept),
        test_in_arena(an_infeasible_plan_says_only_what_was_asked_and_why_not),
        test_in_arena(unknown_keys_are_warnings),
        test_in_arena(another_major_version_is_refused),
        test_in_arena(wrong_shapes_are_refused_with_their_place),
        test_in_arena(cells_are_read_strictly),
        test_in_arena(a_file_cut_short_anywhere_is_refused),
        test_in_arena(the_timeline_lists_ops_and_transfers),
        test_in_arena(an_unknown_launch_target_is_a_warning),
        test_in_arena(a_large_rank_map_is_left_out),
        test_in_arena(a_full_disk_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
