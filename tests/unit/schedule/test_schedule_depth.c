// SPDX-License-Identifier: Apache-2.0
#include "pipesched/schedule.h"

#include "support/cmocka_all.h"
#include "support/pipelines.h"

static ps_depth_list depths(ps_arena *arena, ps_schedule_kind kind, ps_schedule_shape shape)
{
    ps_depth_list list = {0};
    ps_status status = {0};
    assert_ok(ps_schedule_depths(arena, kind, shape, &list, &status), &status);
    assert_int_equal(list.num_stages, shape.num_stages);
    assert_int_equal(list.first[0], 0);
    return list;
}

static void assert_points(const ps_depth_list *list, int32_t stage, const ps_depth *want, int32_t count)
{
    assert_int_equal(list->first[stage + 1] - list->first[stage], count);
    for (int32_t i = 0; i < count; i++) {
        assert_int_equal(list->point[list->first[stage] + i].full, want[i].full);
        assert_int_equal(list->point[list->first[stage] + i].weight, want[i].weight);
    }
}

static void one_f_one_b_holds_p_minus_rank_and_gpipe_all(void **state)
{
    for (int32_t m = 1; m <= 12; m++) {
        ps_schedule_shape shape = {.num_devices = 5, .num_stages = 5, .num_microbatches = m};
        ps_depth_list one = depths(*state, PS_SCHEDULE_1F1B, shape);
        ps_depth_list all = depths(*state, PS_SCHEDULE_GPIPE, shape);
        for (int32_t stage = 0; stage < 5; stage++) {
            assert_points(&one, stage, &(ps_depth){m < 5 - stage ? m : 5 - stage, 0}, 1);
            assert_points(&all, stage, &(ps_depth){m, 0}, 1);
        }
    }
}

// Whole activations and what W still needs trade off, so a stage of ZB-H1 may have two worst moments.
static void zb_h1_has_a_point_for_each_worst_moment(void **state)
{
    ps_schedule_shape shape = {.num_devices = 4, .num_stages = 4, .num_microbatches = 12};
    ps_depth_list list = depths(*state, PS_SCHEDULE_ZB_H1, shape);
    assert_points(&list, 0, (ps_depth[]){{4, 0}, {3, 1}}, 2);
    assert_points(&list, 1, (ps_depth[]){{3, 1}, {2, 2}}, 2);
    assert_points(&list, 3, (ps_depth[]){{1, 3}, {0, 4}}, 2);
}

static void interleaved_counts_every_chunk_apart(void **state)
{
    ps_schedule_shape shape = {.num_devices = 4, .num_stages = 8, .num_microbatches = 16};
    ps_depth_list list = depths(*state, PS_SCHEDULE_INTERLEAVED, shape);
    // Rank 0 has 11 in flight at most, first 7 of chunk 0 and 4 of chunk 1, then 8 and 3.
    assert_points(&list, 0, &(ps_depth){8, 0}, 1);
    assert_points(&list, 4, &(ps_depth){4, 0}, 1);
}

static void an_illegal_shape_is_refused(void **state)
{
    ps_depth_list list;
    ps_status status = {0};
    ps_schedule_shape shape = {.num_devices = 4, .num_stages = 8, .num_microbatches = 6};
    assert_int_equal(ps_schedule_depths(*state, PS_SCHEDULE_INTERLEAVED, shape, &list, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "interleaved-microbatches");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(one_f_one_b_holds_p_minus_rank_and_gpipe_all),
        test_in_arena(zb_h1_has_a_point_for_each_worst_moment),
        test_in_arena(interleaved_counts_every_chunk_apart),
        test_in_arena(an_illegal_shape_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
