// SPDX-License-Identifier: Apache-2.0
#include "job/dialect.h"

#include "support/cmocka_all.h"

static ps_layout layout_of(ps_schedule_kind schedule, int32_t pp, int32_t vp, int32_t microbatches)
{
    return (ps_layout){.dp = 1,
                       .tp = 1,
                       .pp = pp,
                       .vp = vp,
                       .cp = 1,
                       .ep = 1,
                       .micro_batch_size = 1,
                       .num_microbatches = microbatches,
                       .schedule = schedule,
                       .zero = 1};
}

// Interleaved on 4 ranks, micro-batches against both frameworks' rules: they differ at 3, 6 and 10.
static void megatron_and_pytorch_disagree_on_interleaved_micro_batches(void **state)
{
    const struct {
        int32_t microbatches;
        bool megatron;
        bool torchtitan;
    } row[] = {{3, false, true},  {6, false, true},  {8, true, true},
               {9, false, false}, {10, false, true}, {12, true, true}};
    (void)state;
    for (size_t index = 0; index < sizeof row / sizeof row[0]; index++) {
        ps_layout layout = layout_of(PS_SCHEDULE_INTERLEAVED, 4, 2, row[index].microbatches);
        assert_int_equal(ps_dialect_megatron(&layout) == NULL, row[index].megatron);
        assert_int_equal(ps_dialect_torchtitan(&layout) == NULL, row[index].torchtitan);
    }
}

static void megatron_has_no_zero_bubble_schedule(void **state)
{
    (void)state;
    ps_layout layout = layout_of(PS_SCHEDULE_ZB_H1, 4, 1, 8);
    assert_string_equal(ps_dialect_megatron(&layout), "megatron-1-schedule");
    layout.schedule = PS_SCHEDULE_1F1B;
    assert_null(ps_dialect_megatron(&layout));
}

static void a_v_placement_is_for_torchtitan_with_two_stages_a_rank_only(void **state)
{
    (void)state;
    const ps_schedule_kind kinds[] = {PS_SCHEDULE_ZB_V, PS_SCHEDULE_V_HALF, PS_SCHEDULE_V_MIN, PS_SCHEDULE_DUALPIPEV};
    for (size_t index = 0; index < sizeof kinds / sizeof kinds[0]; index++) {
        ps_layout layout = layout_of(kinds[index], 4, 2, 8);
        assert_null(ps_dialect_torchtitan(&layout));
        assert_string_equal(ps_dialect_megatron(&layout), "megatron-1-schedule");
        assert_string_equal(ps_dialect_deepspeed(&layout), "deepspeed-1-schedule");
        layout.vp = 3;
        assert_string_equal(ps_dialect_torchtitan(&layout), "torchtitan-3-v-stages");
    }
}

static void nothing_launches_micro_batches_from_both_ends(void **state)
{
    (void)state;
    ps_layout layout = layout_of(PS_SCHEDULE_DUALPIPE, 4, 2, 8);
    assert_string_equal(ps_dialect_torchtitan(&layout), "torchtitan-4-both-ways");
    assert_string_equal(ps_dialect_megatron(&layout), "megatron-1-schedule");
    assert_string_equal(ps_dialect_deepspeed(&layout), "deepspeed-1-schedule");
}

static void pytorch_refuses_fewer_micro_batches_than_ranks(void **state)
{
    (void)state;
    ps_layout layout = layout_of(PS_SCHEDULE_1F1B, 8, 1, 4);
    assert_string_equal(ps_dialect_torchtitan(&layout), "torchtitan-1-microbatches");
}

static void deepspeed_shards_no_gradients_across_a_pipeline(void **state)
{
    (void)state;
    ps_layout layout = layout_of(PS_SCHEDULE_1F1B, 4, 1, 8);
    assert_null(ps_dialect_deepspeed(&layout));
    layout.zero = 2;
    assert_string_equal(ps_dialect_deepspeed(&layout), "deepspeed-2-zero");
}

// An order that was searched for is a CSV: any number of stages in a loop, two there and back again, never Megatron.
static void a_searched_order_is_for_torchtitan_in_the_placement_that_it_knows(void **state)
{
    (void)state;
    ps_layout layout = layout_of(PS_SCHEDULE_ZB, 4, 3, 2);
    assert_null(ps_dialect_torchtitan(&layout));
    assert_string_equal(ps_dialect_megatron(&layout), "megatron-1-schedule");
    layout.placement = PS_PLACEMENT_V;
    assert_string_equal(ps_dialect_torchtitan(&layout), "torchtitan-3-v-stages");
    layout.vp = 2;
    assert_null(ps_dialect_torchtitan(&layout));
}

static void a_split_backward_is_a_caution_where_it_can_be_compiled(void **state)
{
    (void)state;
    ps_layout layout = layout_of(PS_SCHEDULE_ZB_H1, 4, 1, 8);
    assert_string_equal(ps_caution_torchtitan(&layout)->rule, "torchtitan-5-compile");
    layout.schedule = PS_SCHEDULE_1F1B;
    assert_null(ps_caution_torchtitan(&layout));
    layout = layout_of(PS_SCHEDULE_ZB, 1, 1, 8);
    assert_null(ps_caution_torchtitan(&layout));
}

static void targets_are_listed_in_order(void **state)
{
    (void)state;
    for (int32_t index = 1; index < ps_dialect_count(); index++)
        assert_true(strcmp(ps_dialect_at(index - 1)->target, ps_dialect_at(index)->target) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(megatron_and_pytorch_disagree_on_interleaved_micro_batches),
        cmocka_unit_test(megatron_has_no_zero_bubble_schedule),
        cmocka_unit_test(a_v_placement_is_for_torchtitan_with_two_stages_a_rank_only),
        cmocka_unit_test(nothing_launches_micro_batches_from_both_ends),
        cmocka_unit_test(pytorch_refuses_fewer_micro_batches_than_ranks),
        cmocka_unit_test(deepspeed_shards_no_gradients_across_a_pipeline),
        cmocka_unit_test(a_searched_order_is_for_torchtitan_in_the_placement_that_it_knows),
        cmocka_unit_test(a_split_backward_is_a_caution_where_it_can_be_compiled),
        cmocka_unit_test(targets_are_listed_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
