// SPDX-License-Identifier: Apache-2.0
//
// What ends the step of a plan: every figure of it, and every entry of the timeline, is derived again.
#include "support/timed_plan.h"
#include "unit/check/checked.h"

static const plan_spec two_nodes = {
    .pp = 2, .vp = 1, .dp = 2, .tp = 1, .num_microbatches = 4, .schedule = PS_SCHEDULE_1F1B, .gpus_per_node = 2};

static ps_plan *timed_plan(ps_arena *arena, plan_spec spec)
{
    const char *text = timed_plan_text(arena, spec);
    ps_plan *plan = ps_new(arena, ps_plan, 1);
    ps_status status = {0};
    assert_ok(ps_plan_read_json(arena, "plan.json", text, (int64_t)strlen(text), plan, &status), &status);
    return plan;
}

static int32_t entry_of(const ps_plan *plan, int32_t rank, ps_step_kind kind)
{
    for (int32_t index = 0; index < plan->num_events; index++)
        if (plan->event[index].ends_step && plan->event[index].pp_rank == rank && plan->event[index].step.kind == kind)
            return index;
    fail();
    return -1;
}

// Both ZeRO stages that reduce differently, with and without overlap and barrier, each with its timeline.
static void steps_of_every_kind_hold(void **state)
{
    for (int32_t choice = 0; choice < 24; choice++) {
        plan_spec spec = two_nodes;
        spec.vp = choice < 12 ? 1 : 2;
        spec.schedule = choice < 12 ? PS_SCHEDULE_ZB_H1 : PS_SCHEDULE_INTERLEAVED;
        spec.no_barrier = choice % 2;
        ps_plan *plan = consistent_plan(*state, spec);
        plan->layout.zero = choice / 2 % 3;
        plan->inputs.job.zero = plan->layout.zero;
        for (int32_t index = 0; index < plan->search.num_alternatives; index++)
            plan->search.alternative[index].layout.zero = plan->layout.zero;
        plan->inputs.job.overlap_grad_sync = choice / 6 % 2;
        for (int32_t stage = 0; stage < plan->num_stages && !plan->inputs.job.overlap_grad_sync; stage++)
            plan->stage[stage].sync_buckets = 1;
        settle_plan(*state, plan);
        assert_holds(*state, plan);

        ps_pipeline pipeline;
        ps_timeline timeline;
        ps_plan again;
        ps_status status = {0};
        assert_ok(ps_plan_pipeline(*state, plan, &pipeline, &status), &status);
        assert_ok(ps_simulate(*state, &pipeline, &plan->schedule, &timeline, &status), &status);
        const char *text = plan_text(*state, plan, &timeline);
        assert_ok(ps_plan_read_json(*state, "plan.json", text, (int64_t)strlen(text), &again, &status), &status);
        assert_holds(*state, &again);
        again.num_events--;
        assert_found(*state, &again, "timeline-missing", "/timeline");
    }
}

static void edit_buckets(ps_plan *plan)
{
    plan->stage[0].sync_buckets = 3;
}

static void edit_no_buckets(ps_plan *plan)
{
    plan->stage[1].sync_buckets = 0;
}

static void edit_one_holder(ps_plan *plan)
{
    plan->stage[1].tied_sync_ns = 0;
}

static void edit_holders_differ(ps_plan *plan)
{
    plan->stage[1].tied_sync_ns++;
}

static void edit_tied_to_another(ps_plan *plan)
{
    plan->stage[1].tied_to = 1;
}

static void edit_tied_to_nobody(ps_plan *plan)
{
    plan->stage[1].tied_to = 2;
}

static void edit_sync_of_a_stage(ps_plan *plan)
{
    plan->stage[1].grad_sync_ns++;
}

static void edit_gather_of_a_stage(ps_plan *plan)
{
    plan->stage[1].param_gather_ns++;
}

static void edit_hidden_for_exposed(ps_plan *plan)
{
    plan->device[0].grad_sync_hidden_ns++;
    plan->device[0].grad_sync_exposed_ns--;
}

static void edit_validated(ps_plan *plan)
{
    plan->device[1].validated_ns++;
}

static void edit_barrier(ps_plan *plan)
{
    plan->prediction.barrier_ns++;
}

static void edit_validation_beside_a_barrier(ps_plan *plan)
{
    plan->prediction.validation_hop_ns = 1;
}

static void edit_endless_barrier(ps_plan *plan)
{
    plan->prediction.barrier_ns = INT64_MAX;
}

static void edit_endless_gather(ps_plan *plan)
{
    plan->stage[1].param_gather_ns = INT64_MAX;
}

static void a_figure_that_disagrees_is_found(void **state)
{
    static const struct {
        void (*edit)(ps_plan *plan);
        const char *rule;
        const char *pointer;
    } edits[] = {
        {edit_buckets, "sync-buckets", "/stages/0/sync_buckets"},
        {edit_no_buckets, "out-of-range", "/stages/1/sync_buckets"},
        {edit_one_holder, "tied-sync", "/stages/0/tied_sync_ms"},
        {edit_holders_differ, "tied-sync", "/stages/1/tied_sync_ms"},
        {edit_tied_to_another, "tied-sync", "/stages/0/tied_sync_ms"},
        {edit_tied_to_nobody, "out-of-range", "/stages/1/tied_to"},
        {edit_sync_of_a_stage, "grad-sync", "/devices/1/grad_sync_ms"},
        {edit_gather_of_a_stage, "param-gather", "/devices/1/param_gather_ms"},
        {edit_hidden_for_exposed, "grad-sync", "/devices/0/grad_sync_hidden_ms"},
        {edit_hidden_for_exposed, "grad-sync", "/devices/0/grad_sync_exposed_ms"},
        {edit_validated, "validated", "/devices/1/validated_ms"},
        {edit_barrier, "optimizer-time", "/prediction/optimizer_ms"},
        {edit_validation_beside_a_barrier, "validation-hop", "/prediction/validation_hop_ms"},
        {edit_endless_barrier, "time-overflow", "/prediction"},
        {edit_endless_gather, "time-overflow", "/stages/1"},
    };
    for (size_t index = 0; index < sizeof edits / sizeof edits[0]; index++) {
        ps_plan *plan = small_plan(*state);
        edits[index].edit(plan);
        assert_found(*state, plan, edits[index].rule, edits[index].pointer);
    }
    plan_spec spec = two_nodes;
    spec.no_barrier = true;
    ps_plan *plan = consistent_plan(*state, spec);
    plan->prediction.barrier_ns = 1;
    assert_found(*state, plan, "barrier-time", "/prediction/barrier_ms");
    plan = consistent_plan(*state, spec);
    plan->prediction.validation_hop_ns--;
    assert_found(*state, plan, "validation-hop", "/prediction/validation_hop_ms");
}

// Two stages of one rank cannot both stand for the weight that it shares.
static void a_weight_shared_twice_by_a_rank_is_found(void **state)
{
    plan_spec spec = two_nodes;
    spec.vp = 2;
    spec.schedule = PS_SCHEDULE_INTERLEAVED;
    ps_plan *plan = consistent_plan(*state, spec);
    plan->stage[2].tied_sync_ns = plan->stage[0].tied_sync_ns;
    assert_found(*state, plan, "tied-sync", "/stages/2/tied_sync_ms");
    plan->stage[2].tied_to = 1;
    assert_found(*state, plan, "tied-sync", "/stages/2/tied_to");
}

static void an_entry_of_the_timeline_that_disagrees_is_found(void **state)
{
    static const ps_step_kind kinds[] = {PS_STEP_REDUCE_GRAD, PS_STEP_REDUCE_TIED, PS_STEP_BARRIER, PS_STEP_OPTIMIZER,
                                         PS_STEP_GATHER};
    for (size_t index = 0; index < sizeof kinds / sizeof kinds[0]; index++) {
        for (int32_t fault = 0; fault < 5; fault++) {
            ps_plan *plan = timed_plan(*state, two_nodes);
            int32_t at = entry_of(plan, 1, kinds[index]);
            ps_plan_event *event = &plan->event[at];
            static const char *const rule[] = {"timeline-time", "timeline-time", "timeline-twice", "timeline-missing",
                                               "timeline-op"};
            static const char *const key[] = {"/start_ms", "/end_ms", "", NULL, "/cell"};
            const char *pointer =
                key[fault] ? ps_text_format(*state, "/timeline/%d%s", (int)at, key[fault]) : "/timeline";
            switch (fault) {
            case 0: event->start_ns++; break;
            case 1: event->end_ns--; break;
            case 2:
            case 3: *event = plan->event[entry_of(plan, 0, kinds[index])]; break;
            default: event->step.stage = 2; event->step.kind = PS_STEP_GATHER;
            }
            assert_found(*state, plan, rule[fault], pointer);
        }
    }
    ps_plan *plan = timed_plan(*state, two_nodes);
    int32_t at = entry_of(plan, 1, PS_STEP_BARRIER);
    plan->event[at].step.kind = PS_STEP_VALIDATE;
    assert_found(*state, plan, "timeline-op", ps_text_format(*state, "/timeline/%d/cell", (int)at));
    plan = timed_plan(*state, two_nodes);
    at = entry_of(plan, 1, PS_STEP_REDUCE_GRAD);
    plan->event[at].step.microbatch = 0;
    assert_found(*state, plan, "timeline-op", ps_text_format(*state, "/timeline/%d/cell", (int)at));
    plan = timed_plan(*state, two_nodes);
    at = entry_of(plan, 1, PS_STEP_GATHER);
    plan->event[at].pp_rank = 0;
    assert_found(*state, plan, "timeline-device", ps_text_format(*state, "/timeline/%d/pp_rank", (int)at));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(steps_of_every_kind_hold),
        test_in_arena(a_figure_that_disagrees_is_found),
        test_in_arena(a_weight_shared_twice_by_a_rank_is_found),
        test_in_arena(an_entry_of_the_timeline_that_disagrees_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
