// SPDX-License-Identifier: Apache-2.0
//
// test_check_dual.c: plans of dualpipe, whose micro-batches come in from both ends, and of dualpipev.
#include "unit/check/checked.h"

static ps_plan *plan_for(ps_arena *arena, ps_schedule_kind kind, int32_t pp, int32_t microbatches)
{
    return consistent_plan(arena, (plan_spec){.pp = pp,
                                              .vp = 2,
                                              .dp = 1,
                                              .tp = 1,
                                              .num_microbatches = microbatches,
                                              .schedule = kind,
                                              .gpus_per_node = 2});
}

static ps_plan *dual_plan(ps_arena *arena)
{
    return plan_for(arena, PS_SCHEDULE_DUALPIPE, 4, 8);
}

// The checker has the phases as a table, the generator walks them.
static void the_table_of_phases_is_what_is_generated(void **state)
{
    for (int32_t pp = 2; pp <= 10; pp += 2)
        for (int32_t m = 2 * pp; m <= 3 * pp; m += 2)
            assert_holds(*state, plan_for(*state, PS_SCHEDULE_DUALPIPE, pp, m));
    for (int32_t pp = 1; pp <= 6; pp++)
        for (int32_t m = 2 * pp; m <= 3 * pp; m++)
            assert_holds(*state, plan_for(*state, PS_SCHEDULE_DUALPIPEV, pp, m));
}

// Change any two neighbours of a rank: either is a deadlock, or the order of another schedule.
static void any_two_ops_that_change_places_are_found(void **state)
{
    static const ps_schedule_kind kinds[] = {PS_SCHEDULE_DUALPIPE, PS_SCHEDULE_DUALPIPEV};
    for (int kind = 0; kind < 2; kind++) {
        ps_plan *plan = plan_for(*state, kinds[kind], 4, 10);
        for (int32_t device = 0; device < 4; device++) {
            for (int32_t at = plan->schedule.first[device]; at + 1 < plan->schedule.first[device + 1]; at++) {
                ps_op *op = &plan->schedule.op[at];
                ps_op first = op[0];
                op[0] = op[1];
                op[1] = first;
                assert_true(check(*state, plan).total > 0);
                op[1] = op[0];
                op[0] = first;
            }
        }
        assert_holds(*state, plan);
    }
}

static void an_op_on_the_wrong_way_is_found(void **state)
{
    ps_plan *plan = dual_plan(*state);
    assert_int_equal(plan->schedule.op[0].microbatch, 0);
    plan->schedule.op[0].microbatch = 7;
    const ps_finding *found = assert_found(*state, plan, "cell-route", "/schedule/cells/0/0");
    assert_string_equal(found->message, "0F7: micro-batches up to 3 pass stages up to 3, the others the rest");
    assert_found(*state, plan, "missing-cell", "/schedule/cells/0");
}

static void a_second_way_that_is_not_the_first_once_more_is_found(void **state)
{
    ps_plan *plan = dual_plan(*state);
    plan->stage[5].forward_ns++;
    settle_plan(*state, plan);
    assert_found(*state, plan, "way-stage", "/stages/5/forward_ms");

    plan = dual_plan(*state); // one layer over the border between stages 5 and 6 of the second way alone
    plan->stage[5].last_layer[0]++;
    plan->stage[6].first_layer[0]++;
    assert_found(*state, plan, "way-layers", "/stages/5/layer_ids");

    plan = dual_plan(*state);
    plan->stage[6].parameters += 5;
    assert_found(*state, plan, "parameter-sum", "/inputs/model/parameters");
    assert_found(*state, plan, "way-stage", "/stages/6/parameters");

    plan = dual_plan(*state);
    plan->stage[7].layer_name[1] = plan->stage[6].layer_name[1];
    assert_found(*state, plan, "layer-name-twice", "/stages/7/layers/1");
}

static void a_layer_that_one_way_leaves_out_is_found(void **state)
{
    ps_plan *plan = dual_plan(*state);
    plan->stage[7].last_layer[0]--;
    assert_found(*state, plan, "layer-missing", "/stages");
}

static void a_hop_from_one_way_to_the_other_is_found(void **state)
{
    ps_plan *plan = dual_plan(*state);
    plan->hop[2].from_stage = 3;
    plan->hop[2].to_stage = 4;
    assert_found(*state, plan, "hop-stages", "/hops/2");
    assert_found(*state, plan, "hop-missing", "/hops");
}

static void sizes_that_dualpipe_does_not_take_are_found(void **state)
{
    ps_plan *plan = dual_plan(*state);
    plan->layout.schedule = PS_SCHEDULE_DUALPIPE;
    plan->search.alternative[1].layout.num_microbatches = 4;
    plan->search.alternative[1].layout.micro_batch_size = 4;
    assert_found(*state, plan, "alternative-layout", "/search/alternatives/1/layout");
    plan = plan_for(*state, PS_SCHEDULE_ZB_V, 4, 6);
    plan->layout.schedule = PS_SCHEDULE_DUALPIPEV;
    plan->inputs.job.schedule.count = 0;
    assert_found(*state, plan, "schedule-microbatches", "/layout/num_microbatches");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(the_table_of_phases_is_what_is_generated),
        test_in_arena(any_two_ops_that_change_places_are_found),
        test_in_arena(an_op_on_the_wrong_way_is_found),
        test_in_arena(a_second_way_that_is_not_the_first_once_more_is_found),
        test_in_arena(a_layer_that_one_way_leaves_out_is_found),
        test_in_arena(a_hop_from_one_way_to_the_other_is_found),
        test_in_arena(sizes_that_dualpipe_does_not_take_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
