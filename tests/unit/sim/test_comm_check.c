// SPDX-License-Identifier: Apache-2.0
//
// test_comm_check.c: ranks that wait for each other's transfers, and the transfers that we place so that none do.
#include "support/cmocka_all.h"
#include "support/csv_text.h"
#include "support/pipelines.h"

static ps_code check(ps_arena *arena, const char *text, ps_send_mode mode, ps_status *status)
{
    ps_torch_csv csv = csv_parse(arena, text);
    *status = (ps_status){0};
    return ps_actions_check_transfers(arena, &csv.actions, mode, status);
}

static void assert_verdict(ps_arena *arena, const char *text, ps_send_mode mode, const char *rule, const char *message)
{
    ps_status status;
    assert_int_equal(check(arena, text, mode, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, rule);
    assert_string_equal(status.message, message);
}

static void assert_passes(ps_arena *arena, const char *text, ps_send_mode mode)
{
    ps_status status;
    assert_ok(check(arena, text, mode, &status), &status);
}

// Each sends before it receives what the other sends.
static void two_ranks_that_send_first_wait_for_each_other(void **state)
{
    static const char text[] = "0SEND_F1,2RECV_F0,2F0\n1SEND_F0,1RECV_F1,1F1\n";
    assert_verdict(*state, text, PS_SEND_RENDEZVOUS, "deadlock",
                   "rank 0 at 0SEND_F1 waits for 1RECV_F1 of rank 1; rank 1 at 1SEND_F0 waits for 2RECV_F0 of rank 0");
    assert_passes(*state, text, PS_SEND_BUFFERED);
}

// Even ranks send first and odd ranks receive first, but further on.
static void swapping_the_order_on_odd_ranks_does_not_help_across_ops(void **state)
{
    static const char text[] = "0F2,0SEND_F2,2RECV_B0,2B0\n3B0,3SEND_B0,3F1,3B1,1RECV_F2\n";
    assert_verdict(*state, text, PS_SEND_RENDEZVOUS, "deadlock",
                   "rank 0 at 0SEND_F2 waits for 1RECV_F2 of rank 1; rank 1 at 3SEND_B0 waits for 2RECV_B0 of rank 0");
    assert_passes(*state, text, PS_SEND_BUFFERED);
}

// Rank 0 has stages 0 and 2, rank 1 has 1 and 3; neither sends before it has received.
static void receiving_first_everywhere_is_a_deadlock_with_buffers_too(void **state)
{
    static const char text[] = "2RECV_F0,0SEND_F0\n1RECV_F0,1SEND_F0,3F0\n";
    static const char cycle[] =
        "rank 0 at 2RECV_F0 waits for 1SEND_F0 of rank 1; rank 1 at 1RECV_F0 waits for 0SEND_F0 of rank 0";
    assert_verdict(*state, text, PS_SEND_BUFFERED, "deadlock", cycle);
    assert_verdict(*state, text, PS_SEND_RENDEZVOUS, "deadlock", cycle);
}

static void nothing_is_sent_within_a_rank(void **state)
{
    assert_verdict(*state, "0SEND_F0,1RECV_F0\n", PS_SEND_BUFFERED, "unexpected-transfer",
                   "rank 0 has both ends of 0SEND_F0: nothing is sent");
}

static void a_long_cycle_names_its_first_ranks_and_counts_the_rest(void **state)
{
    ps_text text = {.arena = *state};
    // Stages 2r on rank r send to stages 2r + 1, which are on rank r + 1; stage 23 is on rank 0.
    for (int32_t rank = 0; rank < 12; rank++)
        ps_text_addf(&text, "%dSEND_F0,%dRECV_F0\n", (int)(2 * rank), (int)(rank == 0 ? 23 : 2 * rank - 1));
    ps_status status;
    assert_int_equal(check(*state, text.data, PS_SEND_RENDEZVOUS, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "deadlock");
    assert_non_null(strstr(status.message, "rank 0 at 0SEND_F0 waits for 1RECV_F0 of rank 1; rank 1 at 2SEND_F0"));
    assert_non_null(strstr(status.message, "and so on over 4 more ranks back to rank 0"));
    assert_passes(*state, text.data, PS_SEND_BUFFERED);
}

static void a_transfer_has_two_ends(void **state)
{
    assert_verdict(*state, "0F0,0SEND_F0\n1F0\n", PS_SEND_BUFFERED, "missing-transfer",
                   "0SEND_F0 of rank 0 has no 1RECV_F0 on any rank");
    assert_verdict(*state, "0F0\n1RECV_F0\n", PS_SEND_BUFFERED, "missing-transfer",
                   "1RECV_F0 of rank 1 has no 0SEND_F0 on any rank");
    assert_verdict(*state, "0RECV_B3\n1F0\n", PS_SEND_RENDEZVOUS, "missing-transfer",
                   "0RECV_B3 of rank 0 has no 1SEND_B3 on any rank");
    assert_verdict(*state, "0F0\n1SEND_B3\n", PS_SEND_RENDEZVOUS, "missing-transfer",
                   "1SEND_B3 of rank 1 has no 0RECV_B3 on any rank");
    assert_verdict(*state, "0SEND_F0,0SEND_F0\n1RECV_F0\n", PS_SEND_RENDEZVOUS, "duplicate-transfer",
                   "0SEND_F0 stands twice, on rank 0 and on rank 0");
}

// NCCL pairs the transfers of two ranks by their order.
static void buffered_transfers_arrive_in_the_order_in_which_they_are_sent(void **state)
{
    static const char text[] = "0SEND_F0,0SEND_F1\n1RECV_F1,1RECV_F0\n";
    assert_verdict(*state, text, PS_SEND_BUFFERED, "transfer-order",
                   "rank 0 sends 0SEND_F0 before 0SEND_F1, but rank 1 receives 1RECV_F1 before 1RECV_F0");
    assert_verdict(*state, text, PS_SEND_RENDEZVOUS, "deadlock",
                   "rank 0 at 0SEND_F0 waits for 1RECV_F0 of rank 1; rank 1 at 1RECV_F1 waits for 0SEND_F1 of rank 0");
}

static ps_actions lowered(ps_arena *arena, const char *text)
{
    ps_torch_csv csv = csv_read(arena, text);
    ps_actions all;
    ps_status status = {0};
    assert_ok(ps_actions_add_transfers(arena, &csv.placement, &csv.actions, &all, &status), &status);
    return all;
}

// In the steady state each rank receives the next input just before it sends its gradient down, and no earlier.
static void transfers_of_1f1b_stand_as_late_as_they_can(void **state)
{
    ps_actions all = lowered(*state, "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
    assert_string_equal(csv_text(*state, &all),
                        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0SEND_F2,0RECV_B1,0B1,0RECV_B2,0B2\n"
                        "1RECV_F0,1F0,1B0,1RECV_F1,1SEND_B0,1F1,1B1,1RECV_F2,1SEND_B1,1F2,1B2,1SEND_B2\n");
}

static void stages_that_share_a_rank_send_nothing(void **state)
{
    ps_actions all = lowered(*state, "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
    assert_string_equal(csv_text(*state, &all), "0F0,0SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,0RECV_B0,0B0\n"
                                                "1RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,2B0,1B0,1SEND_B0\n");
}

// Both inputs of a pair are there before it, both results leave after it.
static void an_overlapped_pair_receives_and_sends_as_one_cell(void **state)
{
    ps_actions all = lowered(*state, "0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n2F0,2B0,2F1,2B1\n");
    assert_string_equal(csv_text(*state, &all),
                        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                        "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1RECV_B0,(1F1;1B0)OVERLAP_F_B,1SEND_F1,1SEND_B0,1RECV_B1,1B1,"
                        "1SEND_B1\n"
                        "2RECV_F0,2F0,2B0,2SEND_B0,2RECV_F1,2F1,2B1,2SEND_B1\n");
}

static void a_pair_whose_ops_need_each_other_is_refused(void **state)
{
    ps_torch_csv csv = csv_read(*state, "(0F0;0B0)OVERLAP_F_B\n1F0,1B0\n");
    ps_actions all;
    ps_status status = {0};
    assert_int_equal(ps_actions_add_transfers(*state, &csv.placement, &csv.actions, &all, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "deadlock");
    assert_non_null(strstr(status.message, "rank 0 stands at 0F0, whose input for 0B0 comes from rank 1"));
}

// The list of one rank with its action `from` moved to stand before action `to` > from.
static ps_actions moved(ps_arena *arena, const ps_actions *all, int32_t from, int32_t to)
{
    int32_t count = all->first[all->num_devices];
    ps_actions copy = {.num_devices = all->num_devices, .first = all->first, .action = ps_new(arena, ps_action, count)};
    memcpy(copy.action, all->action, (size_t)count * sizeof *copy.action);
    memmove(&copy.action[from], &copy.action[from + 1], (size_t)(to - 1 - from) * sizeof *copy.action);
    copy.action[to - 1] = all->action[from];
    return copy;
}

// The op that needs what a RECV brings.
static int32_t consumer_of(const ps_actions *all, int32_t receive)
{
    ps_action wanted = all->action[receive];
    bool forward = wanted.kind == PS_ACTION_RECV_F;
    for (int32_t i = receive + 1;; i++) {
        ps_action action = all->action[i];
        bool kind = forward ? action.kind == PS_OP_FORWARD
                            : action.kind == PS_OP_BACKWARD || action.kind == PS_OP_BACKWARD_INPUT;
        if (kind && action.stage == wanted.stage && action.microbatch == wanted.microbatch)
            return i;
    }
}

static int32_t check_lateness(ps_arena *arena, const ps_actions *all)
{
    int32_t early = 0;
    for (int32_t i = 0; i < all->first[all->num_devices]; i++) {
        if (!ps_action_is_transfer(all->action[i].kind) || ps_action_is_send(all->action[i].kind))
            continue;
        int32_t consumer = consumer_of(all, i);
        if (consumer == i + 1)
            continue;
        ps_actions later = moved(arena, all, i, consumer);
        ps_status status = {0};
        assert_int_equal(ps_actions_check_transfers(arena, &later, PS_SEND_RENDEZVOUS, &status), PS_ILLEGAL);
        assert_string_equal(status.rule, "deadlock");
        early++;
    }
    return early;
}

static void no_family_deadlocks_and_no_receive_could_come_later(void **state)
{
    (void)state;
    ps_rng rng = {.state = 5};
    int32_t early = 0;
    for (int32_t kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        if (ps_schedule_family_at((ps_schedule_kind)kind)->placement == PS_PLACEMENT_DUAL)
            continue; // there are no actions on routes
        for (int32_t round = 0; round < 12; round++) {
            ps_arena *arena = ps_arena_new(0);
            ps_schedule_shape shape = random_shape(&rng, (ps_schedule_kind)kind);
            ps_pipeline *pipeline =
                random_stages(arena, &rng, shape.num_devices, shape.num_stages, shape.num_microbatches);
            place_for(arena, pipeline, (ps_schedule_kind)kind);
            ps_schedule schedule = schedule_for(arena, pipeline, (ps_schedule_kind)kind);
            ps_actions compute;
            ps_actions all;
            ps_status status = {0};
            ps_actions_from_schedule(arena, &schedule, &compute);
            int32_t *device = ps_new(arena, int32_t, shape.num_stages);
            for (int32_t stage = 0; stage < shape.num_stages; stage++)
                device[stage] = pipeline->stage[stage].device;
            ps_stage_map placement = {shape.num_stages, shape.num_microbatches, device};
            assert_ok(ps_actions_add_transfers(arena, &placement, &compute, &all, &status), &status);
            assert_ok(ps_actions_check_transfers(arena, &all, PS_SEND_RENDEZVOUS, &status), &status);
            assert_ok(ps_actions_check_transfers(arena, &all, PS_SEND_BUFFERED, &status), &status);
            // Where several stages of a rank wait at once, one RECV made later can make room for another.
            if (ps_schedule_family_at((ps_schedule_kind)kind)->kind <= PS_SCHEDULE_ZB_H2)
                early += check_lateness(arena, &all);
            ps_arena_free(arena);
        }
    }
    assert_in_range(early, 100, 1000000); // so that the property was tried
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(two_ranks_that_send_first_wait_for_each_other),
        test_in_arena(swapping_the_order_on_odd_ranks_does_not_help_across_ops),
        test_in_arena(receiving_first_everywhere_is_a_deadlock_with_buffers_too),
        test_in_arena(nothing_is_sent_within_a_rank),
        test_in_arena(a_long_cycle_names_its_first_ranks_and_counts_the_rest),
        test_in_arena(a_transfer_has_two_ends),
        test_in_arena(buffered_transfers_arrive_in_the_order_in_which_they_are_sent),
        test_in_arena(transfers_of_1f1b_stand_as_late_as_they_can),
        test_in_arena(stages_that_share_a_rank_send_nothing),
        test_in_arena(an_overlapped_pair_receives_and_sends_as_one_cell),
        test_in_arena(a_pair_whose_ops_need_each_other_is_refused),
        cmocka_unit_test(no_family_deadlocks_and_no_receive_could_come_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
