// SPDX-License-Identifier: Apache-2.0
//
// test_overlap_p2p.c: with --overlap-p2p off an op ends when its output has been sent.
#include "pipesched/check.h"
#include "support/planned.h"

static const char model_text[] =
    "{\"format\": \"pipesched/model/v1\", \"name\": \"wide\", \"layers\": ["
    "{\"name\": \"a\", \"kind\": \"x\", \"repeat\": 8, \"parameters\": 1000000, \"output_bytes\": 50000000,"
    " \"forward_ms\": 3, \"backward_input_ms\": 2, \"backward_weight_ms\": 1, \"held_after_forward_bytes\": 1000000,"
    " \"held_after_backward_input_bytes\": 400000}]}";

static ps_plan wide_plan(ps_arena *arena, const char *pp, const char *vp, const char *schedule, const char *overlap)
{
    return plan_of(arena, model_text, "1x4xA100-SXM4-80GB",
                   OPTIONS("global-batch-size", "16", "seq-length", "128", "pp", pp, "vp", vp, "schedule", schedule,
                           "recompute", "none", "overlap-p2p", overlap));
}

static void the_sender_waits_and_nothing_else_does(void **state)
{
    ps_plan plan = wide_plan(*state, "4", "1", "1f1b", "off");
    ps_pipeline pipeline;
    ps_status status = {0};
    int64_t transfer = plan.hop[0].transfer_ns + plan.inputs.job.p2p_wait_ns;

    assert_int_equal(plan.inputs.job.p2p_wait_ns, 250000);
    assert_true(plan.hop[0].transfer_ns > 500000 && plan.hop[0].latency_ns > 0);
    assert_ok(ps_plan_pipeline(*state, &plan, &pipeline, &status), &status);
    for (int32_t stage = 0; stage < 4; stage++) {
        const ps_plan_stage *from = &plan.stage[stage];
        const int64_t *duration = pipeline.stage[stage].duration_ns;
        assert_int_equal(duration[PS_OP_FORWARD], from->forward_ns + (stage < 3 ? transfer : 0));
        assert_int_equal(duration[PS_OP_BACKWARD],
                         from->backward_input_ns + from->backward_weight_ns + (stage > 0 ? transfer : 0));
        assert_int_equal(duration[PS_OP_BACKWARD_WEIGHT], from->backward_weight_ns);
    }
    for (int32_t hop = 0; hop < 3; hop++) {
        assert_int_equal(pipeline.forward_hop[hop].occupy_ns, 0);
        assert_int_equal(pipeline.forward_hop[hop].latency_ns, plan.hop[0].latency_ns);
    }
}

// The checker times ops by its own rules and finds the same, of every family; and waiting never makes a step shorter.
static void plans_of_every_family_hold_and_take_longer(void **state)
{
    static const char *const family[][3] = {
        {"4", "1", "gpipe"},  {"4", "1", "1f1b"},           {"2", "2", "interleaved"}, {"4", "1", "zb-h1"},
        {"4", "1", "zb-h2"},  {"2", "2", "interleaved-zb"}, {"4", "2", "zb-v"},        {"4", "2", "v-min"},
        {"4", "2", "v-half"}, {"4", "2", "dualpipev"},      {"4", "auto", "dualpipe"}, {"4", "1", "zb"}};

    for (size_t index = 0; index < sizeof family / sizeof family[0]; index++) {
        const char *const *row = family[index];
        ps_plan beside = wide_plan(*state, row[0], row[1], row[2], "on");
        ps_plan waiting = wide_plan(*state, row[0], row[1], row[2], "off");
        ps_check_result result;
        ps_status status = {0};
        assert_ok(ps_check_plan(*state, &waiting, &result, &status), &status);
        if (result.total > 0)
            fail_msg("%s: %s: %s", row[2], result.finding[0].pointer, result.finding[0].message);
        assert_true(waiting.prediction.iteration_ns > beside.prediction.iteration_ns);
        assert_true(waiting.bounds.iteration_ns <= waiting.prediction.iteration_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(the_sender_waits_and_nothing_else_does),
        test_in_arena(plans_of_every_family_hold_and_take_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
