// SPDX-License-Identifier: Apache-2.0
//
// Context and expert parallelism from the options to the plan, and the room that memory options leave.
#include "plan/device_room.h"
#include "support/cmocka_all.h"
#include "support/planned.h"

#define MIXTRAL(...)                                                                                                   \
    OPTIONS("global-batch-size", "128", "seq-length", "4096", "pp", "2", "schedule", "1f1b", "micro-batch-size", "1",  \
            "recompute", "full", __VA_ARGS__)

static ps_plan mixtral(ps_arena *arena, const char *const *options)
{
    return plan_of(arena, "mixtral-8x7b", "4x8xH100-SXM5-80GB", options);
}

static void experts_are_divided_in_a_grid_of_their_own(void **state)
{
    ps_plan plan = mixtral(*state, MIXTRAL("tp", "2", "ep", "4", "etp", "1"));
    assert_true(plan.feasible);
    assert_int_equal(plan.layout.dp, 8);
    for (int32_t rank = 0; rank < plan.num_ranks; rank++) {
        assert_int_equal(plan.rank[rank].tp, rank % 2);
        assert_int_equal(plan.rank[rank].ep, rank % 4);
        assert_int_equal(plan.rank[rank].dp, rank / 2 % 8);
    }
}

static void context_ranks_take_replicas_and_tokens(void **state)
{
    ps_plan whole = mixtral(*state, MIXTRAL("tp", "2", "ep", "8", "cp", "1"));
    ps_plan cut = mixtral(*state, MIXTRAL("tp", "2", "ep", "8", "cp", "4"));
    assert_true(whole.feasible && cut.feasible);
    assert_int_equal(cut.layout.dp * cut.layout.cp, whole.layout.dp);
    assert_int_equal(cut.layout.num_microbatches, 4 * whole.layout.num_microbatches);
    // What a block keeps and sends is a quarter, and experts take as many bytes.
    assert_int_equal(4 * cut.stage[0].output_bytes, whole.stage[0].output_bytes);
    assert_int_equal(cut.stage[0].parameter_bytes, whole.stage[0].parameter_bytes);
    assert_true(cut.stage[0].forward_ns < whole.stage[0].forward_ns);
    for (int32_t rank = 0; rank < cut.num_ranks; rank++)
        assert_int_equal(cut.rank[rank].cp, rank / 2 % 4);
}

static void left_open_experts_are_divided_as_is_best(void **state)
{
    ps_plan open = mixtral(*state, MIXTRAL("tp", "1"));
    assert_true(open.feasible);
    static const char *const degrees[] = {"1", "2", "4", "8"};
    for (int32_t index = 0; index < 4; index++) {
        ps_plan one = mixtral(*state, MIXTRAL("tp", "1", "ep", degrees[index]));
        if (one.feasible)
            assert_true(open.prediction.iteration_ns <= one.prediction.iteration_ns);
    }
}

static void assert_ruled_out(ps_plan plan, const char *rule)
{
    assert_false(plan.feasible);
    assert_int_equal(plan.num_reasons, 1);
    assert_string_equal(plan.reason[0].rule, rule);
    assert_true(plan.reason[0].hint[0] != '\0');
}

static void degrees_that_cannot_be_are_ruled_out_by_name(void **state)
{
    assert_ruled_out(mixtral(*state, MIXTRAL("ep", "3")), "expert-degree");
    assert_ruled_out(mixtral(*state, MIXTRAL("tp", "8", "dp", "2", "ep", "16", "etp", "1")), "ep-experts");
    assert_ruled_out(mixtral(*state, MIXTRAL("cp", "3")), "gpus-used");
    assert_ruled_out(plan_of(*state, "llama-3.1-8b", "1x8xH100-SXM5-80GB",
                             OPTIONS("global-batch-size", "8", "seq-length", "4096", "ep", "2", "tp", "1", "pp", "1")),
                     "ep-dense");
}

static void selective_recompute_keeps_less_than_none_and_more_than_full(void **state)
{
    static const char *const kinds[] = {"none", "selective", "full"};
    int64_t held[3];
    int64_t again[3];
    for (int32_t index = 0; index < 3; index++) {
        ps_plan plan =
            plan_of(*state, "llama-3.1-8b", "1x8xH100-SXM5-80GB",
                    OPTIONS("global-batch-size", "8", "seq-length", "8192", "tp", "4", "pp", "2", "recompute-parts",
                            "activation,norm", "recompute", kinds[index], "micro-batch-size", "1", "schedule", "1f1b"));
        assert_true(plan.feasible);
        held[index] = plan.stage[0].held_after_forward_bytes;
        again[index] = plan.stage[0].recompute_ns;
    }
    assert_true(held[0] > held[1] && held[1] > held[2]);
    assert_true(again[0] == 0 && again[1] > 0 && again[1] < again[2]);
}

static void room_is_the_most_that_fits(void **state)
{
    (void)state;
    static const int64_t capacity[] = {0, 1, 999999, 1000000, 84934656000, INT64_C(1) << 60};
    static const int64_t share[] = {0, 1, 50000, 333333, 1000000};
    for (int32_t c = 0; c < 6; c++)
        for (int32_t s = 0; s < 5; s++)
            for (int64_t framework = 0; framework < 3000; framework += 1009) {
                ps_job job = {.memory_fragmentation_ppm = share[s], .memory_framework_bytes = framework};
                int64_t room = ps_room_bytes(&job, capacity[c]);
                int64_t more = room < 0 ? 0 : room + 1; // a model has no less than nothing
                if (room >= 0)
                    assert_true(ps_total_bytes(&job, room) <= capacity[c]);
                assert_true(ps_total_bytes(&job, more) > capacity[c]);
            }
    ps_job job = {.memory_reserve_bytes = 100};
    assert_int_equal(ps_room_bytes(&job, 40), -60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(experts_are_divided_in_a_grid_of_their_own),
        test_in_arena(context_ranks_take_replicas_and_tokens),
        test_in_arena(left_open_experts_are_divided_as_is_best),
        test_in_arena(degrees_that_cannot_be_are_ruled_out_by_name),
        test_in_arena(selective_recompute_keeps_less_than_none_and_more_than_full),
        cmocka_unit_test(room_is_the_most_that_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
