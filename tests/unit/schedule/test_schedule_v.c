// SPDX-License-Identifier: Apache-2.0
//
// test_schedule_v.c: the families whose stages go there and back again: time, memory, messages and legality.
#include <stdio.h>

#include "support/cmocka_all.h"
#include "support/pipelines.h"

static const ps_schedule_kind KINDS[] = {PS_SCHEDULE_ZB_V, PS_SCHEDULE_V_HALF, PS_SCHEDULE_V_MIN,
                                         PS_SCHEDULE_DUALPIPEV};
enum { NUM_KINDS = 4 };

// One slot an op; half of a chunk's activation stays from I to W.
static const costs UNIT = {.forward_ns = 1,
                           .backward_input_ns = 1,
                           .backward_weight_ns = 1,
                           .held_after_forward = 2,
                           .held_after_backward_input = 1};

// A chunk is held until I only.
static const costs UNTIL_INPUT = {
    .forward_ns = 1, .backward_input_ns = 1, .backward_weight_ns = 1, .held_after_forward = 1};

static bool is_legal(ps_schedule_kind kind, int32_t p, int32_t m)
{
    ps_schedule_shape shape = {.num_devices = p, .num_stages = 2 * p, .num_microbatches = m};
    ps_status status = {0};
    return ps_schedule_family_at(kind)->legal(shape, &status) == PS_OK;
}

static int64_t most_held(const ps_timeline *timeline)
{
    int64_t most = 0;
    for (int32_t device = 0; device < timeline->num_devices; device++)
        if (timeline->device[device].peak_activation > most)
            most = timeline->device[device].peak_activation;
    return most;
}

// Makespan 6 m + p - 1 slots: (p - 1) W / 2 idle, W being the time of both chunks; the span has no bubble.
static void zb_v_has_no_bubble_in_its_span_from_two_p_micro_batches_on(void **state)
{
    for (int32_t p = 1; p <= 16; p++) {
        for (int32_t m = 2 * p; m <= 4 * p; m++) {
            ps_timeline t = run(*state, v_stages(*state, p, m, UNIT), PS_SCHEDULE_ZB_V);
            assert_int_equal(t.span_ns, 6 * m);
            assert_int_equal(t.makespan_ns, 6 * m + p - 1);
        }
    }
}

// p micro-batches from F to the end of W: 2p chunks of 2 units each.
static void zb_v_holds_no_more_than_1f1b(void **state)
{
    for (int32_t p = 1; p <= 12; p++)
        for (int32_t m = 1; m <= 3 * p; m++) {
            ps_timeline t = run(*state, v_stages(*state, p, m, UNIT), PS_SCHEDULE_ZB_V);
            assert_true(most_held(&t) <= 4 * p);
            assert_true(m < p || most_held(&t) == 4 * p);
        }
}

// The authors' greedy scheduler reaches these spans with p micro-batches; each micro-batch takes six slots.
static void zb_v_is_as_fast_as_the_greedy_scheduler_with_p_micro_batches(void **state)
{
    static const int32_t span[][2] = {{4, 27}, {8, 55}, {16, 111}, {32, 223}};
    for (size_t i = 0; i < sizeof span / sizeof span[0]; i++) {
        int32_t p = span[i][0];
        assert_int_equal(run(*state, v_stages(*state, p, p, UNIT), PS_SCHEDULE_ZB_V).span_ns, span[i][1]);
    }
}

static void v_half_holds_half_and_idles_less_than_half_of_1f1b(void **state)
{
    for (int32_t p = 1; p <= 16; p++) {
        for (int32_t m = p; m <= 3 * p; m++) {
            ps_timeline t = run(*state, v_stages(*state, p, m, UNTIL_INPUT), PS_SCHEDULE_V_HALF);
            assert_true(most_held(&t) <= (p + 2) / 2 * 2);
            assert_true(t.makespan_ns - 6 * m <= 3 * (p - 1));
        }
    }
}

static void v_min_holds_a_third_and_idles_two_thirds_of_1f1b(void **state)
{
    for (int32_t p = 1; p <= 16; p++) {
        for (int32_t m = p; m <= 3 * p; m++) {
            ps_timeline t = run(*state, v_stages(*state, p, m, UNTIL_INPUT), PS_SCHEDULE_V_MIN);
            assert_true(most_held(&t) <= (p + 4) / 3 * 2);
            assert_true(t.makespan_ns - 6 * m <= 4 * (p - 1));
        }
    }
}

// Makespans of the authors' scheduler in slots of one op.
static void v_half_and_v_min_are_as_fast_as_the_authors_own(void **state)
{
    static const struct {
        int32_t p, m, half, min;
    } cases[] = {{4, 4, 34, 35},    {4, 8, 53, 59},    {4, 16, 101, 107},  {8, 8, 65, 75},
                 {8, 16, 113, 123}, {8, 32, 209, 219}, {16, 16, 137, 155}, {16, 32, 233, 251}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ps_pipeline *pipeline = v_stages(*state, cases[i].p, cases[i].m, UNIT);
        assert_true(run(*state, pipeline, PS_SCHEDULE_V_HALF).makespan_ns <= cases[i].half);
        assert_true(run(*state, pipeline, PS_SCHEDULE_V_MIN).makespan_ns <= cases[i].min);
    }
}

// (p - 1) W / 2 idle without any gain of overlap, and p + 1/2 micro-batches held.
static void dualpipev_idles_as_zb_v_and_holds_half_a_micro_batch_more(void **state)
{
    for (int32_t p = 1; p <= 10; p++) {
        for (int32_t m = 2 * p; m <= 4 * p; m++) {
            ps_timeline t = run(*state, v_stages(*state, p, m, UNIT), PS_SCHEDULE_DUALPIPEV);
            assert_int_equal(t.makespan_ns, 6 * m + p - 1);
            assert_true(most_held(&t) <= 2 * (2 * p + 1));
        }
    }
}

static void dualpipev_needs_two_p_micro_batches(void **state)
{
    (void)state;
    ps_schedule_shape shape = {.num_devices = 4, .num_stages = 8, .num_microbatches = 7};
    ps_status status = {0};
    assert_int_equal(ps_schedule_family_at(PS_SCHEDULE_DUALPIPEV)->legal(shape, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "dualpipev-microbatches");
    assert_string_equal(status.hint, "use 8 micro-batches, or zb-v, which takes any number");
}

// Any number of micro-batches, odd sizes, one device: whatever is legal runs, with and without hops.
static void every_v_schedule_runs_whatever_its_rule_lets_through(void **state)
{
    (void)state;
    costs cost = {.forward_ns = 5, .backward_input_ns = 6, .backward_weight_ns = 4, .hop_latency_ns = 1};
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        for (int32_t p = 1; p <= 16; p++) {
            ps_arena *arena = ps_arena_new(0);
            for (int32_t m = 1; m <= 3 * p; m++) {
                assert_int_equal(is_legal(KINDS[kind], p, m), KINDS[kind] != PS_SCHEDULE_DUALPIPEV || m >= 2 * p);
                if (!is_legal(KINDS[kind], p, m))
                    continue;
                ps_timeline t = run(arena, v_stages(arena, p, m, cost), KINDS[kind]);
                assert_true(t.makespan_ns >= m * 30);
            }
            ps_arena_free(arena);
        }
    }
}

// 2 (2p - 2) m messages: nothing is sent between stages p - 1 and p.
static void nothing_is_sent_at_the_turn_of_a_v(void **state)
{
    for (int32_t p = 1; p <= 8; p++) {
        ps_pipeline *pipeline = v_stages(*state, p, 2 * p, UNIT);
        int32_t sent = 0;
        for (int32_t s = 0; s + 1 < 2 * p; s++)
            sent += (pipeline->forward_hop[s].lane != PS_NO_LANE) + (pipeline->backward_hop[s].lane != PS_NO_LANE);
        assert_int_equal(sent, 2 * (2 * p - 2));
    }
}

static void a_stage_and_its_device_name_each_other(void **state)
{
    (void)state;
    ps_schedule_shape shape = {.num_devices = 4, .num_stages = 8, .num_microbatches = 1};
    static const int32_t v[8] = {0, 1, 2, 3, 3, 2, 1, 0};
    for (int32_t s = 0; s < 8; s++) {
        assert_int_equal(ps_schedule_device(PS_PLACEMENT_V, shape, s), v[s]);
        assert_int_equal(ps_schedule_stage(PS_PLACEMENT_V, shape, v[s], s / 4), s);
        assert_int_equal(ps_schedule_device(PS_PLACEMENT_LOOP, shape, s), s % 4);
        assert_int_equal(ps_schedule_stage(PS_PLACEMENT_LOOP, shape, s % 4, s / 4), s);
    }
}

static void another_number_of_stages_or_another_placement_is_refused(void **state)
{
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at(KINDS[kind]);
        char rule[64];
        ps_status status = {0};
        ps_schedule schedule;
        ps_schedule_shape shape = {.num_devices = 4, .num_stages = 12, .num_microbatches = 8};
        assert_int_equal(family->legal(shape, &status), PS_ILLEGAL);
        snprintf(rule, sizeof rule, "%s-two-stages", family->name);
        assert_string_equal(status.rule, rule);
        assert_string_equal(status.hint, "use 8 stages");

        status = (ps_status){0};
        ps_pipeline *loop = looped_stages(*state, 4, 8, 8, UNIT);
        assert_int_equal(family->generate(*state, loop, &schedule, &status), PS_ILLEGAL);
        snprintf(rule, sizeof rule, "%s-placement", family->name);
        assert_string_equal(status.rule, rule);
    }
}

static void renamed_devices_change_nothing(void **state)
{
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        ps_pipeline *plain = v_stages(*state, 3, 7, UNIT);
        ps_pipeline *renamed = v_stages(*state, 3, 7, UNIT);
        for (int32_t s = 0; s < 6; s++)
            renamed->stage[s].device = (plain->stage[s].device + 2) % 3;
        ps_pipeline_assign_lanes(*state, renamed);
        ps_timeline a = run(*state, plain, KINDS[kind]);
        ps_timeline b = run(*state, renamed, KINDS[kind]);
        for (int32_t d = 0; d < 3; d++)
            assert_int_equal(a.device[d].last_end_ns, b.device[(d + 2) % 3].last_end_ns);
    }
}

static void a_table_of_slots_beyond_memory_is_refused(void **state)
{
    (void)state;
    ps_schedule_shape shape = {.num_devices = 30000, .num_stages = 60000, .num_microbatches = 1};
    ps_status status = {0};
    assert_int_equal(ps_schedule_family_at(PS_SCHEDULE_V_HALF)->legal(shape, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "too-many-slots");
    status = (ps_status){0};
    assert_int_equal(ps_schedule_family_at(PS_SCHEDULE_ZB_V)->legal(shape, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "too-many-slots");
    assert_true(is_legal(PS_SCHEDULE_V_MIN, 1024, 1024));
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(1099511628211); // FNV-1a
}

static uint64_t hash_of_cells(ps_schedule_kind kind)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int32_t p = 1; p <= 20; p++) {
        for (int32_t m = 1; m <= 45; m++) {
            ps_arena *arena = ps_arena_new(0);
            ps_schedule schedule;
            ps_status status = {0};
            ps_pipeline *pipeline = v_stages(arena, p, m, UNIT);
            assert_ok(ps_schedule_generate(arena, kind, pipeline, &schedule, &status), &status);
            for (int32_t op = 0; op < schedule.first[p]; op++)
                hash = mix(mix(mix(hash, schedule.op[op].stage), schedule.op[op].kind),
                           (uint64_t)schedule.op[op].microbatch);
            ps_arena_free(arena);
        }
    }
    return hash;
}

// Every cell of 900 shapes as they were when each slot of time was a cell of a table: lists of ops give the same.
static void v_half_and_v_min_are_what_a_table_of_slots_gives(void **state)
{
    (void)state;
    assert_true(hash_of_cells(PS_SCHEDULE_V_HALF) == UINT64_C(14602560538430144987));
    assert_true(hash_of_cells(PS_SCHEDULE_V_MIN) == UINT64_C(17712381421315379565));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(zb_v_has_no_bubble_in_its_span_from_two_p_micro_batches_on),
        test_in_arena(zb_v_holds_no_more_than_1f1b),
        test_in_arena(zb_v_is_as_fast_as_the_greedy_scheduler_with_p_micro_batches),
        test_in_arena(v_half_holds_half_and_idles_less_than_half_of_1f1b),
        test_in_arena(v_min_holds_a_third_and_idles_two_thirds_of_1f1b),
        test_in_arena(v_half_and_v_min_are_as_fast_as_the_authors_own),
        test_in_arena(dualpipev_idles_as_zb_v_and_holds_half_a_micro_batch_more),
        test_in_arena(dualpipev_needs_two_p_micro_batches),
        test_in_arena(every_v_schedule_runs_whatever_its_rule_lets_through),
        test_in_arena(nothing_is_sent_at_the_turn_of_a_v),
        test_in_arena(a_stage_and_its_device_name_each_other),
        test_in_arena(another_number_of_stages_or_another_placement_is_refused),
        test_in_arena(renamed_devices_change_nothing),
        test_in_arena(a_table_of_slots_beyond_memory_is_refused),
        test_in_arena(v_half_and_v_min_are_what_a_table_of_slots_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
