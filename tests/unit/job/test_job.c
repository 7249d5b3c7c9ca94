// SPDX-License-Identifier: Apache-2.0
#include "support/cmocka_all.h"
#include "unit/model/bad_files.h"

#include "pipesched/job.h"

static ps_job job_with(const char *const (*options)[2], int32_t count)
{
    ps_job job;
    ps_job_init(&job);
    for (int32_t index = 0; index < count; index++) {
        ps_status status = {0};
        assert_ok(ps_job_set(&job, options[index][0], options[index][1], &status), &status);
    }
    return job;
}

#define JOB(...)                                                                                                       \
    job_with((const char *const[][2]){{"global-batch-size", "64"}, {"seq-length", "4096"}, __VA_ARGS__},               \
             (int32_t)(sizeof((const char *const[][2]){{"", ""}, {"", ""}, __VA_ARGS__}) / sizeof(const char *[2])))

// The option is refused with this rule and, unless NULL, this hint; the job stays as it was.
static void assert_refused(const char *name, const char *value, const char *rule, const char *hint)
{
    ps_job job;
    ps_job before;
    memset(&job, 0, sizeof job);
    ps_job_init(&job);
    memcpy(&before, &job, sizeof job);
    ps_status status = {0};
    ps_code code = ps_job_set(&job, name, value, &status);
    if (code != PS_USAGE || status.code != PS_USAGE || strcmp(status.rule, rule) != 0)
        fail_msg("--%s %s: code %d, rule %s: %s", name, value, (int)code, status.rule, status.message);
    if (hint)
        assert_string_equal(status.hint, hint);
    if (strcmp(rule, "unknown-option") != 0)
        assert_string_equal(status.source + 2, name); // "--tp"
    assert_memory_equal(&before, &job, sizeof job);
}

static void defaults_are_those_of_the_manual(void **state)
{
    (void)state;
    ps_job job;
    ps_job_init(&job);
    assert_int_equal(job.precision, PS_PRECISION_BF16);
    assert_false(job.precision_given);
    assert_int_equal(job.optimizer, PS_OPTIMIZER_ADAM);
    assert_int_equal(job.zero, 1);
    assert_int_equal(job.gradient_bytes, 4);
    assert_int_equal(job.optimizer_bytes, 4);
    assert_true(job.flash_attention && job.sequence_parallel && job.overlap_grad_sync && job.overlap_tp);
    assert_true(job.optimizer_barrier);
    assert_false(job.extrapolate);
    assert_int_equal(job.memory_reserve_bytes, INT64_C(2) << 30);
    assert_int_equal(job.memory_limit_bytes, 0);
    assert_int_equal(job.effort, 1);
    assert_int_equal(job.tp.count, 0);
    assert_int_equal(job.schedule.count, 0);
}

static void every_supported_option_lands_in_its_field(void **state)
{
    (void)state;
    ps_job job = JOB({"micro-batch-size", "2"}, {"tp", "8"}, {"pp", "4"}, {"vp", "1"}, {"dp", "16"}, {"cp", "1"},
                     {"ep", "auto"}, {"etp", "1"}, {"precision", "fp16"}, {"optimizer", "sgd"}, {"zero", "3"},
                     {"grad-dtype", "bf16"}, {"optimizer-dtype", "bf16"}, {"recompute", "full"},
                     {"attention", "unfused"}, {"sequence-parallel", "off"}, {"overlap-grad-sync", "off"},
                     {"overlap-tp", "off"}, {"schedule", "zb-h1"}, {"optimizer-barrier", "off"}, {"extrapolate", "on"},
                     {"target", "any"}, {"objective", "time"}, {"memory-reserve", "1GiB"}, {"memory-limit", "40GB"},
                     {"op-overhead", "5us"}, {"rank-order", "tp-cp-ep-dp-pp"}, {"effort", "3"}, {"threads", "2"});
    assert_int_equal(job.global_batch_size, 64);
    assert_int_equal(job.seq_length, 4096);
    assert_int_equal(job.micro_batch_size.value[0], 2);
    assert_int_equal(job.tp.value[0], 8);
    assert_int_equal(job.pp.value[0], 4);
    assert_int_equal(job.vp.value[0], 1);
    assert_int_equal(job.dp.value[0], 16);
    assert_int_equal(job.precision, PS_PRECISION_FP16);
    assert_true(job.precision_given);
    assert_int_equal(job.optimizer, PS_OPTIMIZER_SGD);
    assert_int_equal(job.zero, 3);
    assert_int_equal(job.gradient_bytes, 2);
    assert_int_equal(job.optimizer_bytes, 2);
    assert_int_equal(job.recompute.value[0], PS_RECOMPUTE_FULL);
    assert_false(job.flash_attention || job.sequence_parallel || job.overlap_grad_sync || job.overlap_tp);
    assert_int_equal(job.schedule.value[0], PS_SCHEDULE_ZB_H1);
    assert_false(job.optimizer_barrier);
    assert_true(job.extrapolate);
    assert_int_equal(job.memory_reserve_bytes, INT64_C(1) << 30);
    assert_int_equal(job.memory_limit_bytes, INT64_C(40000000000));
    assert_int_equal(job.op_overhead_ns, 5000);
    assert_int_equal(job.effort, 3);
    assert_int_equal(job.threads, 2);
    job = JOB({"jitter", "2.5%"}, {"jitter-samples", "30"});
    assert_int_equal(job.jitter_ppm, 25000);
    assert_int_equal(job.jitter_samples, 30);
}

static void degrees_and_parts_of_experts_context_and_recompute(void **state)
{
    (void)state;
    ps_job job =
        JOB({"cp", "2,1"}, {"ep", "8"}, {"etp", "1"}, {"cp-method", "all-to-all"}, {"ep-dispatch", "dedup"},
            {"overlap-ep", "on"}, {"moe-parallel", "head"}, {"expert-capacity", "1.25"}, {"expert-imbalance", "1.5"},
            {"precision", "mxfp8"}, {"recompute", "selective"}, {"recompute-parts", "norm,core-attention"},
            {"loss", "plain"}, {"cuda-graphs", "on"}, {"lora-rank", "16"}, {"offload-optimizer", "on"},
            {"memory-framework", "1GiB"}, {"memory-fragmentation", "0.1"}, {"packed-length", "512"},
            {"offload-activations", "25%"}, {"repeat-kv", "on"}, {"kernels", "eager"}, {"p2p-wait", "1ms"});
    assert_int_equal(job.packed_length, 512);
    assert_int_equal(job.offload_activations_ppm, 250000);
    assert_true(job.repeat_kv && !job.fused_kernels);
    assert_int_equal(job.p2p_wait_ns, 1000000);
    assert_int_equal(job.cp.count, 2);
    assert_int_equal(job.cp.value[1], 2);
    assert_int_equal(job.ep.value[0], 8);
    assert_int_equal(job.etp.value[0], 1);
    assert_int_equal(job.cp_method, PS_CP_ALL_TO_ALL);
    assert_int_equal(job.dispatch, PS_DISPATCH_DEDUP);
    assert_true(job.overlap_ep && job.head_parallel_moe && job.cuda_graphs && job.offload_optimizer);
    assert_true(job.expert_capacity == 1.25);
    assert_true(job.expert_imbalance == 1.5);
    assert_int_equal(job.precision, PS_PRECISION_MXFP8);
    assert_int_equal(job.recompute.value[0], PS_RECOMPUTE_SELECTIVE);
    assert_int_equal(job.recompute_parts, PS_RECOMPUTE_CORE_ATTENTION | PS_RECOMPUTE_NORM);
    assert_false(job.fused_loss);
    assert_int_equal(job.lora_rank, 16);
    assert_int_equal(job.memory_framework_bytes, INT64_C(1) << 30);
    assert_int_equal(job.memory_fragmentation_ppm, 100000);
    assert_refused("recompute-parts", "norm,all", "bad-value", NULL);
    assert_refused("recompute-parts", "auto", "bad-value",
                   "expected some of: core-attention, norm, activation, mla-up, moe, attention, ffn, ops");
    assert_refused("expert-imbalance", "0.9", "bad-value", NULL);
    assert_refused("expert-imbalance", "inf", "bad-value", NULL);
    assert_refused("expert-capacity", "1.2x", "bad-value", NULL);
}

static void lists_are_sets_kept_in_order(void **state)
{
    (void)state;
    ps_job job = JOB({"tp", "8,1,4"}, {"schedule", "zb-h2,gpipe,1f1b"}, {"recompute", "full,none"});
    assert_int_equal(job.tp.count, 3);
    assert_int_equal(job.tp.value[0], 1);
    assert_int_equal(job.tp.value[1], 4);
    assert_int_equal(job.tp.value[2], 8);
    assert_int_equal(job.schedule.count, 3);
    assert_int_equal(job.schedule.value[0], PS_SCHEDULE_GPIPE);
    assert_int_equal(job.schedule.value[1], PS_SCHEDULE_1F1B);
    assert_int_equal(job.schedule.value[2], PS_SCHEDULE_ZB_H2);
    assert_int_equal(job.recompute.count, 2);
}

static void auto_empties_a_set(void **state)
{
    (void)state;
    ps_job job = JOB({"tp", "2"}, {"tp", "auto"}, {"schedule", "gpipe"}, {"schedule", "auto"}, {"memory-limit", "40GB"},
                     {"memory-limit", "auto"});
    assert_int_equal(job.tp.count, 0);
    assert_int_equal(job.schedule.count, 0);
    assert_int_equal(job.memory_limit_bytes, 0);
}

static void malformed_values_are_refused(void **state)
{
    (void)state;
    assert_refused("tp", "", "bad-value", NULL);
    assert_refused("tp", "1,,2", "bad-value", NULL);
    assert_refused("tp", "1,2,", "bad-value", NULL);
    assert_refused("tp", "1,2,1", "bad-value", NULL);
    assert_refused("tp", "0", "bad-value", NULL);
    assert_refused("tp", "-1", "bad-value", NULL);
    assert_refused("tp", "1048577", "bad-value", NULL);
    assert_refused("tp", "99999999999999999999", "bad-value", NULL);
    assert_refused("tp", "auto,2", "bad-value", NULL);
    assert_refused("tp", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33",
                   "bad-value", NULL);
    assert_refused("global-batch-size", "0", "bad-value", NULL);
    assert_refused("global-batch-size", "1e3", "bad-value", NULL);
    assert_refused("seq-length", "4096 ", "bad-value", NULL);
    assert_refused("zero", "4", "bad-value", NULL);
    assert_refused("effort", "0", "bad-value", NULL);
    assert_refused("schedule", "1f1b,1f1b", "bad-value", NULL);
    assert_refused("sequence-parallel", "yes", "bad-value", "expected one of: on, off");
    assert_refused("memory-limit", "80", "bad-quantity", NULL);
    assert_refused("memory-limit", "0B", "bad-value", NULL);
    assert_refused("op-overhead", "5", "bad-quantity", NULL);
    assert_refused("jitter", "1.5", "bad-value", NULL);
    assert_refused("jitter", "%", "bad-value", NULL);
    assert_refused("rank-order", "pp-dp-ep-cp-tp", "bad-value", NULL);
}

static void typos_are_answered_with_the_nearest(void **state)
{
    (void)state;
    assert_refused("micro-batchsize", "1", "unknown-option", "did you mean \"micro-batch-size\"?");
    assert_refused("schedule", "1fb1", "bad-value", "did you mean \"1f1b\"?");
    assert_refused("precision", "bf61", "bad-value", "did you mean \"bf16\"?");
    assert_refused("optimizer", "adma", "bad-value", "did you mean \"adam\"?");
}

static void values_of_later_releases_are_refused_with_what_works(void **state)
{
    (void)state;
    assert_refused("optimizer", "muon", "unsupported-optimizer", "supported: adam, adamw, sgd");
    assert_refused("cp", "two", "bad-value", NULL);
    assert_refused("target", "megatron", "unsupported-target", "supported: any");
    assert_refused("target", "torchtitan@0.2", "unsupported-target", "supported: any");
    assert_refused("target", "any@1", "bad-value", NULL);
    assert_refused("objective", "pareto", "unsupported-objective", "supported: time");
    assert_refused("calibration", "h100.json", "unsupported-calibration", NULL);
    assert_refused("profile", "h100.json", "unsupported-profile", NULL);
    assert_refused("time-limit", "10", "unsupported-time-limit", NULL);
    assert_refused("seed", "1", "unsupported-seed", NULL);
}

static void assert_check_fails(ps_job job, const char *rule)
{
    ps_status status = {0};
    assert_int_equal(ps_job_check(&job, &status), PS_USAGE);
    assert_string_equal(status.rule, rule);
    assert_true(status.message[0] != '\0');
}

static void batch_and_sequence_are_required(void **state)
{
    (void)state;
    ps_job job;
    ps_job_init(&job);
    assert_check_fails(job, "missing-option");
    job.global_batch_size = 8;
    assert_check_fails(job, "missing-option");
    job.seq_length = 128;
    ps_status status = {0};
    assert_ok(ps_job_check(&job, &status), &status);
}

static void options_that_can_never_work_together_are_refused(void **state)
{
    (void)state;
    assert_check_fails(JOB({"micro-batch-size", "1,128"}), "micro-batch-too-large");
    assert_check_fails(JOB({"vp", "2,4"}, {"schedule", "1f1b,zb-h1"}), "vp-needs-interleaved");
    assert_check_fails(JOB({"vp", "1"}, {"schedule", "interleaved"}), "interleaved-needs-vp");
    assert_check_fails(JOB({"vp", "1"}, {"schedule", "zb-v,interleaved-zb"}), "interleaved-needs-vp");
    assert_check_fails(JOB({"vp", "3,4"}, {"schedule", "zb-v,v-half,1f1b"}), "vp-needs-interleaved");
    assert_check_fails(JOB({"pp", "60000"}, {"vp", "2"}, {"schedule", "interleaved"}), "too-many-stages");
    assert_check_fails(JOB({"memory-limit", "2GiB"}), "memory-reserve");
}

static void one_combination_that_works_is_enough(void **state)
{
    (void)state;
    ps_job jobs[] = {JOB({"dp", "3,4"}),
                     JOB({"dp", "16,32"}, {"micro-batch-size", "2,4"}),
                     JOB({"vp", "1,2"}, {"schedule", "1f1b"}),
                     JOB({"vp", "2"}, {"schedule", "1f1b,interleaved"}),
                     JOB({"vp", "1,2"}, {"schedule", "interleaved"}),
                     JOB({"pp", "40000,8"}, {"vp", "2"})};
    for (size_t index = 0; index < sizeof jobs / sizeof jobs[0]; index++) {
        ps_status status = {0};
        assert_ok(ps_job_check(&jobs[index], &status), &status);
    }
}

// The planner says so with a hint, as a verdict like any other.
static void a_batch_that_cannot_be_dealt_out_is_left_to_the_planner(void **state)
{
    (void)state;
    ps_job jobs[] = {JOB({"dp", "3,5"}), JOB({"dp", "32"}, {"micro-batch-size", "4"})};
    for (size_t index = 0; index < sizeof jobs / sizeof jobs[0]; index++) {
        ps_status status = {0};
        assert_ok(ps_job_check(&jobs[index], &status), &status);
    }
}

static void a_job_file_says_what_options_say(void **state)
{
    ps_job job;
    ps_status status = {0};
    ps_job_init(&job);
    assert_ok(ps_job_load(*state, PS_TESTS_DIR "/data/jobs/lists.json", &job, &status), &status);
    ps_job same = JOB({"tp", "1,2,4"}, {"schedule", "interleaved"}, {"vp", "2"}, {"memory-reserve", "3GiB"},
                      {"sequence-parallel", "off"}, {"precision", "fp16"}, {"zero", "2"});
    assert_int_equal(job.global_batch_size, 64);
    assert_int_equal(job.seq_length, 4096);
    assert_memory_equal(&job.tp, &same.tp, sizeof job.tp);
    assert_memory_equal(&job.schedule, &same.schedule, sizeof job.schedule);
    assert_memory_equal(&job.vp, &same.vp, sizeof job.vp);
    assert_int_equal(job.memory_reserve_bytes, same.memory_reserve_bytes);
    assert_false(job.sequence_parallel);
    assert_true(job.precision_given);
    assert_int_equal(job.precision, same.precision);
    assert_int_equal(job.zero, 2);
}

static void options_override_the_file(void **state)
{
    ps_job job;
    ps_status status = {0};
    ps_job_init(&job);
    assert_ok(ps_job_load(*state, PS_TESTS_DIR "/data/jobs/lists.json", &job, &status), &status);
    assert_ok(ps_job_set(&job, "tp", "8", &status), &status);
    assert_int_equal(job.tp.count, 1);
    assert_int_equal(job.tp.value[0], 8);
}

static void the_built_in_job_is_complete(void **state)
{
    ps_job job;
    ps_status status = {0};
    ps_job_init(&job);
    assert_ok(ps_job_load(*state, "pretrain-8k", &job, &status), &status);
    assert_ok(ps_job_check(&job, &status), &status);
    assert_int_equal(job.seq_length, 8192);
}

static ps_code load_job(ps_arena *arena, const char *path, ps_status *status)
{
    ps_job job;
    ps_job_init(&job);
    return ps_job_load(arena, path, &job, status);
}

static void every_malformed_job_fails_with_its_rule_and_place(void **state)
{
    (void)state;
    each_bad_file_fails_by_its_name(PS_TESTS_DIR "/bad/job", load_job, 30);
}

static void names_read_back(void **state)
{
    (void)state;
    assert_string_equal(ps_optimizer_name(PS_OPTIMIZER_ADAMW), "adamw");
    assert_string_equal(ps_recompute_name(PS_RECOMPUTE_FULL), "full");
    for (int precision = 0; precision < PS_PRECISIONS; precision++)
        assert_int_equal(ps_precision_named(ps_precision_name((ps_precision)precision)), precision);
    assert_int_equal(ps_precision_named("int8"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_manual),
        cmocka_unit_test(every_supported_option_lands_in_its_field),
        cmocka_unit_test(degrees_and_parts_of_experts_context_and_recompute),
        cmocka_unit_test(lists_are_sets_kept_in_order),
        cmocka_unit_test(auto_empties_a_set),
        cmocka_unit_test(malformed_values_are_refused),
        cmocka_unit_test(typos_are_answered_with_the_nearest),
        cmocka_unit_test(values_of_later_releases_are_refused_with_what_works),
        cmocka_unit_test(batch_and_sequence_are_required),
        cmocka_unit_test(options_that_can_never_work_together_are_refused),
        cmocka_unit_test(a_batch_that_cannot_be_dealt_out_is_left_to_the_planner),
        cmocka_unit_test(one_combination_that_works_is_enough),
        test_in_arena(a_job_file_says_what_options_say),
        test_in_arena(options_override_the_file),
        test_in_arena(the_built_in_job_is_complete),
        cmocka_unit_test(every_malformed_job_fails_with_its_rule_and_place),
        cmocka_unit_test(names_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
