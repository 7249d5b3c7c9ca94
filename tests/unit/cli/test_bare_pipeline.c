// SPDX-License-Identifier: Apache-2.0
#include "cli/bare_pipeline.h"

#include "support/cmocka_all.h"

static ps_number_list one(ps_arena *arena, int64_t value)
{
    ps_number_list list = {.count = 1, .value = ps_new(arena, int64_t, 1)};
    list.value[0] = value;
    return list;
}

static ps_bare_options bare_of(ps_arena *arena, int64_t pp, int64_t vp, int64_t microbatches)
{
    return (ps_bare_options){.pp = pp,
                             .vp = vp,
                             .num_microbatches = microbatches,
                             .forward = one(arena, 10),
                             .backward_input = one(arena, 12),
                             .backward_weight = one(arena, 8),
                             .comm_latency = one(arena, 3)};
}

static void a_whole_backward_takes_input_plus_weight(void **state)
{
    ps_bare_options bare = bare_of(*state, 2, 1, 4);
    ps_pipeline pipeline;
    ps_status status = {0};
    assert_ok(ps_bare_pipeline(*state, &bare, ps_schedule_family_named("1f1b"), &pipeline, &status), &status);
    assert_int_equal(pipeline.stage[0].duration_ns[PS_OP_BACKWARD], 20);
    assert_int_equal(pipeline.forward_hop[0].latency_ns, 3);
    assert_int_equal(pipeline.backward_hop[0].latency_ns, 3);
}

static void backward_alone_sets_the_whole_backward(void **state)
{
    ps_bare_options bare = bare_of(*state, 2, 1, 4);
    bare.backward_input = bare.backward_weight = (ps_number_list){0};
    bare.backward = one(*state, 21);
    ps_pipeline pipeline;
    ps_status status = {0};
    assert_ok(ps_bare_pipeline(*state, &bare, ps_schedule_family_named("gpipe"), &pipeline, &status), &status);
    assert_int_equal(pipeline.stage[1].duration_ns[PS_OP_BACKWARD], 21);
    assert_int_equal(ps_bare_pipeline(*state, &bare, ps_schedule_family_named("zb-h1"), &pipeline, &status), PS_USAGE);
    assert_string_equal(status.rule, "conflicting-options");
}

static void virtual_stages_go_round_the_ranks_and_hop_only_between_ranks(void **state)
{
    ps_bare_options bare = bare_of(*state, 4, 2, 8);
    ps_pipeline pipeline;
    ps_status status = {0};
    assert_ok(ps_bare_pipeline(*state, &bare, ps_schedule_family_named("interleaved"), &pipeline, &status), &status);
    assert_int_equal(pipeline.num_stages, 8);
    for (int32_t stage = 0; stage < 8; stage++)
        assert_int_equal(pipeline.stage[stage].device, stage % 4);
    for (int32_t hop = 0; hop < 7; hop++)
        assert_int_not_equal(pipeline.forward_hop[hop].lane, PS_NO_LANE);
}

static void lists_must_have_one_value_or_one_a_virtual_stage(void **state)
{
    ps_bare_options bare = bare_of(*state, 4, 1, 8);
    bare.forward = (ps_number_list){.count = 3, .value = ps_new(*state, int64_t, 3)};
    ps_pipeline pipeline;
    ps_status status = {0};
    assert_int_equal(ps_bare_pipeline(*state, &bare, ps_schedule_family_named("1f1b"), &pipeline, &status), PS_USAGE);
    assert_string_equal(status.rule, "list-length");
    assert_string_equal(status.source, "--forward");
}

static void too_many_ops_shows_the_product_before_anything_is_made(void **state)
{
    ps_bare_options bare = bare_of(*state, 4096, 1, 100000);
    ps_pipeline pipeline;
    ps_status status = {0};
    assert_int_not_equal(ps_bare_pipeline(*state, &bare, ps_schedule_family_named("1f1b"), &pipeline, &status), PS_OK);
    assert_string_equal(status.rule, "too-many-ops");
    assert_non_null(strstr(status.message, "4096"));
    assert_non_null(strstr(status.message, "100000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(a_whole_backward_takes_input_plus_weight),
        test_in_arena(backward_alone_sets_the_whole_backward),
        test_in_arena(virtual_stages_go_round_the_ranks_and_hop_only_between_ranks),
        test_in_arena(lists_must_have_one_value_or_one_a_virtual_stage),
        test_in_arena(too_many_ops_shows_the_product_before_anything_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
