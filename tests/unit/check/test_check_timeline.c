// SPDX-License-Identifier: Apache-2.0
//
// Plans that list when every op and transfer runs: the list is checked entry by entry.
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
    assert_true(plan->has_timeline);
    return plan;
}

static void a_timeline_of_every_schedule_holds(void **state)
{
    const plan_spec specs[] = {
        two_nodes,
        {.pp = 3, .vp = 1, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_GPIPE, .recompute = PS_RECOMPUTE_FULL},
        {.pp = 2, .vp = 3, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_INTERLEAVED},
        {.pp = 4, .vp = 1, .dp = 2, .tp = 1, .schedule = PS_SCHEDULE_ZB_H1},
        {.pp = 4, .vp = 1, .dp = 1, .tp = 2, .schedule = PS_SCHEDULE_ZB_H2, .no_barrier = true},
        {.pp = 1, .vp = 1, .dp = 1, .tp = 1, .schedule = PS_SCHEDULE_1F1B},
    };
    for (size_t index = 0; index < sizeof specs / sizeof specs[0]; index++) {
        plan_spec spec = specs[index];
        spec.num_microbatches = 6;
        spec.gpus_per_node = 2;
        assert_holds(*state, timed_plan(*state, spec));
    }
}

// The entries of two_nodes begin: op 0F0, its transfer, op 0F1, its transfer, op 0B0.
static void edit_start(ps_plan *plan)
{
    plan->event[2].start_ns++;
}

static void edit_end(ps_plan *plan)
{
    plan->event[0].end_ns--;
}

static void edit_transfer_start(ps_plan *plan)
{
    plan->event[1].start_ns--;
}

static void edit_arrival(ps_plan *plan)
{
    plan->event[3].end_ns++;
}

static void edit_rank(ps_plan *plan)
{
    plan->event[0].pp_rank = 1;
}

static void edit_op_twice(ps_plan *plan)
{
    plan->event[2] = plan->event[0];
}

static void edit_transfer_twice(ps_plan *plan)
{
    plan->event[3] = plan->event[1];
}

static void edit_op_that_is_not(ps_plan *plan)
{
    plan->event[0].op.microbatch = 4;
}

static void edit_op_of_no_stage(ps_plan *plan)
{
    plan->event[0].op.stage = 2;
}

static void edit_kind_of_another_schedule(ps_plan *plan)
{
    plan->event[4].op.kind = PS_OP_BACKWARD_INPUT;
}

static void edit_transfer_past_a_stage(ps_plan *plan)
{
    plan->event[1].to_stage = 2;
}

static void edit_transfer_from_the_last(ps_plan *plan)
{
    plan->event[1].from_stage = 1;
    plan->event[1].to_stage = 2;
}

static void edit_transfer_below_the_first(ps_plan *plan)
{
    plan->event[1].to_stage = -1;
}

static void edit_shorter(ps_plan *plan)
{
    plan->num_events--;
}

static void edit_nothing_listed(ps_plan *plan)
{
    plan->num_events = 0;
}

static void an_entry_that_disagrees_is_found(void **state)
{
    static const struct {
        void (*edit)(ps_plan *plan);
        const char *rule;
        const char *pointer;
    } edits[] = {
        {edit_start, "timeline-time", "/timeline/2/start_ms"},
        {edit_end, "timeline-time", "/timeline/0/end_ms"},
        {edit_transfer_start, "timeline-time", "/timeline/1/start_ms"},
        {edit_arrival, "timeline-time", "/timeline/3/end_ms"},
        {edit_rank, "timeline-device", "/timeline/0/pp_rank"},
        {edit_op_twice, "timeline-twice", "/timeline/2"},
        {edit_op_twice, "timeline-missing", "/timeline"},
        {edit_transfer_twice, "timeline-twice", "/timeline/3"},
        {edit_transfer_twice, "timeline-missing", "/timeline"},
        {edit_op_that_is_not, "timeline-op", "/timeline/0/cell"},
        {edit_op_of_no_stage, "timeline-op", "/timeline/0/cell"},
        {edit_kind_of_another_schedule, "timeline-op", "/timeline/4/cell"},
        {edit_transfer_past_a_stage, "timeline-transfer", "/timeline/1"},
        {edit_transfer_from_the_last, "timeline-transfer", "/timeline/1"},
        {edit_transfer_below_the_first, "timeline-transfer", "/timeline/1"},
        {edit_shorter, "timeline-missing", "/timeline"},
        {edit_nothing_listed, "timeline-missing", "/timeline"},
    };
    for (size_t index = 0; index < sizeof edits / sizeof edits[0]; index++) {
        ps_plan *plan = timed_plan(*state, two_nodes);
        edits[index].edit(plan);
        assert_found(*state, plan, edits[index].rule, edits[index].pointer);
    }
}

// Nothing is sent between stages of one device, so no such transfer may be listed.
static void a_transfer_within_a_device_is_found(void **state)
{
    ps_plan *plan = timed_plan(*state, (plan_spec){.pp = 1,
                                                   .vp = 2,
                                                   .dp = 1,
                                                   .tp = 1,
                                                   .num_microbatches = 2,
                                                   .schedule = PS_SCHEDULE_INTERLEAVED,
                                                   .gpus_per_node = 1});
    assert_holds(*state, plan);
    plan->event[0] = (ps_plan_event){.is_transfer = true, .from_stage = 0, .to_stage = 1};
    assert_found(*state, plan, "timeline-transfer", "/timeline/0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(a_timeline_of_every_schedule_holds),
        test_in_arena(an_entry_that_disagrees_is_found),
        test_in_arena(a_transfer_within_a_device_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
