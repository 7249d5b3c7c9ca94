// SPDX-License-Identifier: Apache-2.0
//
// test_torch_csv.c: reading and writing the schedule files of torch.distributed.pipelining.
#include "support/cmocka_all.h"
#include "support/csv_text.h"
#include "support/pipelines.h"
#include "unit/schedule/torch_rules.h"

// Two stages a rank in V order, whole and split backwards, two overlapped pairs.
static const char overlapped[] = "0F0,3F0,(0F1;3B0)OVERLAP_F_B,3F1,3I1,3W1,0B0,0I1,0W1\n"
                                 "1F0,2F0,1F1,(2F1;2B0)OVERLAP_F_B,1B0,2I1,1I1,2W1,1W1\n";

static void assert_same_actions(const ps_actions *a, const ps_actions *b)
{
    assert_int_equal(a->num_devices, b->num_devices);
    for (int32_t rank = 0; rank <= a->num_devices; rank++)
        assert_int_equal(a->first[rank], b->first[rank]);
    for (int32_t i = 0; i < a->first[a->num_devices]; i++) {
        assert_int_equal(a->action[i].stage, b->action[i].stage);
        assert_int_equal(a->action[i].kind, b->action[i].kind);
        assert_int_equal(a->action[i].microbatch, b->action[i].microbatch);
        assert_int_equal(a->action[i].paired, b->action[i].paired);
    }
}

static void assert_refused(ps_arena *arena, const char *text, const char *rule, int32_t row, int32_t column)
{
    ps_torch_csv csv;
    ps_status status = {0};
    assert_int_equal(ps_torch_csv_read(arena, "a.csv", text, (int64_t)strlen(text), &csv, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, rule);
    if (status.line != row || status.column != column)
        fail_msg("%s at %d:%d, not at %d:%d: %s", rule, (int)status.line, (int)status.column, (int)row, (int)column,
                 status.message);
}

static ps_stage_map placement_of(ps_arena *arena, const ps_pipeline *pipeline)
{
    int32_t *device = ps_new(arena, int32_t, pipeline->num_stages);
    for (int32_t stage = 0; stage < pipeline->num_stages; stage++)
        device[stage] = pipeline->stage[stage].device;
    return (ps_stage_map){pipeline->num_stages, pipeline->num_microbatches, device};
}

// 1F1B on two ranks with two micro-batches, F and B of equal length: six slots.
static void six_slots_of_1f1b_are_read_and_written_alike(void **state)
{
    static const char text[] = "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n";
    ps_torch_csv csv = csv_read(*state, text);
    assert_int_equal(csv.placement.num_stages, 2);
    assert_int_equal(csv.placement.num_microbatches, 2);
    assert_true(csv.whole_backward && !csv.split_backward && !csv.has_transfers);
    ps_pipeline *pipeline = equal_stages(*state, 2, 2, (costs){.forward_ns = 1, .backward_ns = 1});
    ps_timeline timeline = simulate(*state, pipeline, &csv.schedule);
    assert_int_equal(timeline.makespan_ns, 6);
    assert_string_equal(csv_text_in_slots(*state, &csv.actions, timeline.start_ns, timeline.makespan_ns), text);
    assert_string_equal(csv_text(*state, &csv.actions), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

static void blanks_crlf_and_idle_cells_change_nothing(void **state)
{
    ps_torch_csv plain = csv_read(*state, "0F0,0I0,0W0\n1F0,1B0");
    ps_torch_csv loose = csv_read(*state, " 0F0 ,,\t0I0,0W0,,\r\n, , 1F0,1B0 \r\n");
    assert_same_actions(&plain.actions, &loose.actions);
}

static void faults_are_at_the_row_and_column_of_their_cell(void **state)
{
    assert_refused(*state, "0F0,0B0\n1F0, 1Q1\n", "csv-cell", 2, 6);
    assert_refused(*state, "0F0,0B0\n,1B0,1F0\n", "op-order", 2, 2);
    assert_refused(*state, "0F0,0F1,0B0,0B1\n1F0,1B0,,\n", "incomplete-schedule", 2, 5);
    assert_refused(*state, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n", "incomplete-schedule", 2, 9);
    assert_refused(*state, "0F0,0F0,0B0\n", "duplicate-op", 1, 5);
    assert_refused(*state, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1F1,1B1\n", "duplicate-op", 2, 13);
    assert_refused(*state, "0F0,0B0,0F7,0B7\n", "microbatch-range", 1, 9);
    assert_refused(*state, "0F0,0B0\n1F0,0B1\n", "stage-on-two-ranks", 2, 5);
    assert_refused(*state, "0F0,0B0\n2F0,2B0\n", "missing-stage", 2, 1);
    assert_refused(*state, "0F0,0B0\n\n1F0,1B0\n", "csv-row", 2, 1);
    assert_refused(*state, "0F0,0I0,0W0,0B0\n", "mixed-backward", 1, 13);
    assert_refused(*state, "0F0,(0F1;0B0)OVERLAP_F_B,0B1,0B1\n", "duplicate-op", 1, 30);
    assert_refused(*state, "0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n", "missing-transfer", 2, 1);
}

static void what_follows_a_cell_is_not_read_over(void **state)
{
    ps_torch_csv csv;
    ps_status status = {0};
    assert_int_equal(ps_torch_csv_read(*state, "a.csv", "0F0junk,0B0", 11, &csv, &status), PS_BAD_INPUT);
    assert_non_null(strstr(status.message, "\"0F0junk\": nothing may follow"));
}

static void one_cell_is_a_schedule_when_it_is_a_pair(void **state)
{
    ps_torch_csv csv = csv_read(*state, "(0F0;0B0)OVERLAP_F_B");
    assert_int_equal(csv.schedule.first[1], 2);
    assert_string_equal(csv_text(*state, &csv.actions), "(0F0;0B0)OVERLAP_F_B\n");
    assert_refused(*state, "0F0", "incomplete-schedule", 1, 1);
}

static void a_million_cells_are_read(void **state)
{
    enum { MICROBATCHES = 500000 };
    ps_text text = {.arena = *state};
    for (int32_t microbatch = 0; microbatch < MICROBATCHES; microbatch++)
        ps_text_addf(&text, "%s0F%d,0B%d", microbatch ? "," : "", (int)microbatch, (int)microbatch);
    ps_torch_csv csv = csv_read(*state, text.data);
    assert_int_equal(csv.placement.num_microbatches, MICROBATCHES);
    assert_int_equal(csv.schedule.first[1], 2 * MICROBATCHES);
    // The last one again.
    ps_text_addf(&text, ",0F499999");
    assert_refused(*state, text.data, "duplicate-op", 1, (int32_t)text.size - 8 + 1);
}

static void an_overlapped_pair_is_two_ops_in_order(void **state)
{
    ps_torch_csv csv = csv_read(*state, overlapped);
    assert_true(csv.whole_backward && csv.split_backward);
    assert_int_equal(csv.placement.device[3], 0);
    assert_int_equal(csv.placement.device[2], 1);
    assert_string_equal(csv_text(*state, &csv.actions), overlapped);
    ps_pipeline *pipeline =
        looped_stages(*state, 2, 4, 2, (costs){.forward_ns = 2, .backward_input_ns = 3, .backward_weight_ns = 4});
    for (int32_t stage = 2; stage < 4; stage++)
        pipeline->stage[stage].device = csv.placement.device[stage];
    ps_pipeline_assign_lanes(*state, pipeline);
    ps_timeline timeline = simulate(*state, pipeline, &csv.schedule);
    assert_int_equal(timeline.end_ns[2] - timeline.start_ns[2], 2);     // 0F1
    assert_int_equal(timeline.end_ns[3] - timeline.start_ns[3], 3 + 4); // 3B0
    pytorch_accepts(csv_text(*state, &csv.actions), 2, 4, 2, false);
}

// A pair takes one cell at the slot of its F; that of its B stays empty.
static void pairs_are_written_into_slots(void **state)
{
    ps_torch_csv csv = csv_read(*state, "0F0,(0F1;0B0)OVERLAP_F_B,0B1");
    static const int64_t slot[] = {0, 2, 3, 4};
    char *text = csv_text_in_slots(*state, &csv.actions, slot, 6);
    assert_string_equal(text, "0F0,,(0F1;0B0)OVERLAP_F_B,,0B1,\n");
    ps_torch_csv again = csv_read(*state, text);
    assert_same_actions(&csv.actions, &again.actions);
}

static void what_is_written_reads_back_the_same(void **state)
{
    ps_rng rng = {.state = 11};
    for (int32_t kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        if (ps_schedule_family_at((ps_schedule_kind)kind)->placement == PS_PLACEMENT_DUAL)
            continue; // a CSV knows no routes
        for (int32_t round = 0; round < 20; round++) {
            ps_schedule_shape shape = random_shape(&rng, (ps_schedule_kind)kind);
            ps_pipeline *pipeline =
                random_stages(*state, &rng, shape.num_devices, shape.num_stages, shape.num_microbatches);
            place_for(*state, pipeline, (ps_schedule_kind)kind);
            ps_schedule schedule = schedule_for(*state, pipeline, (ps_schedule_kind)kind);
            ps_stage_map placement = placement_of(*state, pipeline);
            ps_actions compute;
            ps_actions all;
            ps_actions without;
            ps_status status = {0};
            ps_actions_from_schedule(*state, &schedule, &compute);
            char *text = csv_text(*state, &compute);
            ps_torch_csv csv = csv_read(*state, text);
            assert_same_actions(&compute, &csv.actions);
            assert_int_equal(csv.placement.num_microbatches, shape.num_microbatches);
            pytorch_accepts(text, shape.num_devices, shape.num_stages, shape.num_microbatches, false);

            assert_ok(ps_actions_add_transfers(*state, &placement, &compute, &all, &status), &status);
            text = csv_text(*state, &all);
            csv = csv_read(*state, text);
            assert_same_actions(&all, &csv.actions);
            ps_actions_compute(*state, &csv.actions, &without);
            assert_same_actions(&compute, &without);
            pytorch_accepts(text, shape.num_devices, shape.num_stages, shape.num_microbatches, true);
        }
    }
}

static void parameters_may_be_gathered_and_freed(void **state)
{
    static const char text[] = "0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD\n";
    ps_torch_csv csv = csv_read(*state, text);
    assert_int_equal(csv.schedule.first[1], 2);
    assert_string_equal(csv_text(*state, &csv.actions), text);
    assert_refused(*state, "0UNSHARD,0F0,0RESHARD,0B0\n", "shard-order", 1, 23);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(six_slots_of_1f1b_are_read_and_written_alike),
        test_in_arena(blanks_crlf_and_idle_cells_change_nothing),
        test_in_arena(faults_are_at_the_row_and_column_of_their_cell),
        test_in_arena(what_follows_a_cell_is_not_read_over),
        test_in_arena(one_cell_is_a_schedule_when_it_is_a_pair),
        test_in_arena(a_million_cells_are_read),
        test_in_arena(an_overlapped_pair_is_two_ops_in_order),
        test_in_arena(pairs_are_written_into_slots),
        test_in_arena(what_is_written_reads_back_the_same),
        test_in_arena(parameters_may_be_gathered_and_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
