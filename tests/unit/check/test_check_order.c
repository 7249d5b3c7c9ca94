// SPDX-License-Identifier: Apache-2.0
#include "unit/check/checked.h"

typedef struct family_case {
    ps_schedule_kind kind;
    int32_t vp;
} family_case;

static const family_case FAMILIES[] = {
    {PS_SCHEDULE_GPIPE, 1},          {PS_SCHEDULE_1F1B, 1},       {PS_SCHEDULE_INTERLEAVED, 2},
    {PS_SCHEDULE_INTERLEAVED, 3},    {PS_SCHEDULE_ZB_H1, 1},      {PS_SCHEDULE_ZB_H2, 1},
    {PS_SCHEDULE_LOOPED_BFS, 1},     {PS_SCHEDULE_LOOPED_BFS, 3}, {PS_SCHEDULE_INTERLEAVED_ZB, 2},
    {PS_SCHEDULE_INTERLEAVED_ZB, 3},
};

// Their order is not derived again (dualpipev's is, test_check_dual.c), all else is.
static const family_case V_FAMILIES[] = {
    {PS_SCHEDULE_ZB_V, 2}, {PS_SCHEDULE_V_HALF, 2}, {PS_SCHEDULE_V_MIN, 2}, {PS_SCHEDULE_DUALPIPEV, 2}};

static bool is_legal(family_case family, int32_t pp, int32_t microbatches)
{
    ps_status status = {0};
    ps_schedule_shape shape = {.num_devices = pp, .num_stages = pp * family.vp, .num_microbatches = microbatches};
    return ps_schedule_family_at(family.kind)->legal(shape, &status) == PS_OK;
}

static ps_plan *family_plan(ps_arena *arena, family_case family, int32_t pp, int32_t microbatches)
{
    return consistent_plan(arena, (plan_spec){.pp = pp,
                                              .vp = family.vp,
                                              .dp = 1,
                                              .tp = 1,
                                              .num_microbatches = microbatches,
                                              .schedule = family.kind,
                                              .gpus_per_node = 2});
}

// The checker derives each family's order from closed forms, the generators walk it: both must agree, also where there
// are fewer micro-batches than the warm-up wants.
static void every_generated_schedule_has_the_order_that_it_names(void **state)
{
    for (size_t index = 0; index < sizeof FAMILIES / sizeof FAMILIES[0]; index++) {
        for (int32_t pp = 1; pp <= 6; pp++) {
            for (int32_t m = 1; m <= 14; m++) {
                if (!is_legal(FAMILIES[index], pp, m))
                    continue;
                assert_holds(*state, family_plan(*state, FAMILIES[index], pp, m));
            }
        }
    }
}

static void every_v_schedule_holds(void **state)
{
    for (size_t index = 0; index < sizeof V_FAMILIES / sizeof V_FAMILIES[0]; index++)
        for (int32_t pp = 1; pp <= 5; pp++)
            for (int32_t m = 1; m <= 12; m++)
                if (is_legal(V_FAMILIES[index], pp, m))
                    assert_holds(*state, family_plan(*state, V_FAMILIES[index], pp, m));
}

static void a_v_schedule_in_a_loop_or_with_three_chunks_is_found(void **state)
{
    ps_plan *plan = family_plan(*state, (family_case){PS_SCHEDULE_INTERLEAVED_ZB, 2}, 3, 6);
    plan->layout.schedule = PS_SCHEDULE_ZB_V;
    plan->inputs.job.schedule.count = 0;
    assert_found(*state, plan, "stage-device", "/stages/3/pp_rank");
    plan = family_plan(*state, (family_case){PS_SCHEDULE_INTERLEAVED_ZB, 3}, 1, 6);
    plan->layout.schedule = PS_SCHEDULE_V_MIN;
    plan->inputs.job.schedule.count = 0;
    assert_found(*state, plan, "schedule-chunks", "/layout/vp");
}

static void a_v_schedule_with_an_op_missing_is_found(void **state)
{
    ps_plan *plan = family_plan(*state, V_FAMILIES[1], 2, 4);
    plan->schedule.op[3] = plan->schedule.op[2];
    assert_found(*state, plan, "duplicate-cell", "/schedule/cells/0/3");
}

static void any_two_neighbouring_ops_swapped_are_found(void **state)
{
    for (size_t index = 0; index < sizeof FAMILIES / sizeof FAMILIES[0]; index++) {
        ps_plan *plan = family_plan(*state, FAMILIES[index], 4, 8);
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
    }
}

static void a_deadlock_is_reported_as_the_cycle_of_ops_that_wait(void **state)
{
    ps_plan *plan = family_plan(*state, (family_case){PS_SCHEDULE_1F1B, 1}, 2, 2);
    const ps_op first[] = {
        {0, 0, PS_OP_FORWARD}, {0, 0, PS_OP_BACKWARD}, {1, 0, PS_OP_FORWARD}, {1, 0, PS_OP_BACKWARD}};
    const ps_op second[] = {
        {1, 1, PS_OP_FORWARD}, {1, 1, PS_OP_BACKWARD}, {0, 1, PS_OP_FORWARD}, {0, 1, PS_OP_BACKWARD}};
    memcpy(plan->schedule.op, first, sizeof first);
    memcpy(plan->schedule.op + 4, second, sizeof second);
    const ps_finding *finding = assert_found(*state, plan, "deadlock", "/schedule/cells/0/1");
    assert_string_equal(finding->message,
                        "0B0 waits for 1B0, which is behind 1F1; 1F1 waits for 0F1, which is behind 0B0");
}

static void an_op_before_its_own_forward_is_a_deadlock(void **state)
{
    ps_plan *plan = family_plan(*state, (family_case){PS_SCHEDULE_1F1B, 1}, 1, 1);
    ps_op forward = plan->schedule.op[0];
    plan->schedule.op[0] = plan->schedule.op[1];
    plan->schedule.op[1] = forward;
    const ps_finding *finding = assert_found(*state, plan, "deadlock", "/schedule/cells/0/0");
    assert_string_equal(finding->message, "0B0 waits for 0F0, which stands behind it");
}

static void a_schedule_under_another_name_is_found(void **state)
{
    ps_plan *plan = family_plan(*state, (family_case){PS_SCHEDULE_1F1B, 1}, 4, 8);
    plan->layout.schedule = PS_SCHEDULE_GPIPE;
    plan->inputs.job.schedule.count = 0;
    assert_found(*state, plan, "schedule-order", "/schedule/cells/0/4");
}

static void chunks_that_a_schedule_cannot_have_are_found(void **state)
{
    ps_plan *plan = family_plan(*state, (family_case){PS_SCHEDULE_INTERLEAVED, 2}, 2, 4);
    plan->layout.schedule = PS_SCHEDULE_1F1B;
    assert_found(*state, plan, "schedule-chunks", "/layout/vp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(every_generated_schedule_has_the_order_that_it_names),
        test_in_arena(every_v_schedule_holds),
        test_in_arena(a_v_schedule_in_a_loop_or_with_three_chunks_is_found),
        test_in_arena(a_v_schedule_with_an_op_missing_is_found),
        test_in_arena(any_two_neighbouring_ops_swapped_are_found),
        test_in_arena(a_deadlock_is_reported_as_the_cycle_of_ops_that_wait),
        test_in_arena(an_op_before_its_own_forward_is_a_deadlock),
        test_in_arena(a_schedule_under_another_name_is_found),
        test_in_arena(chunks_that_a_schedule_cannot_have_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
