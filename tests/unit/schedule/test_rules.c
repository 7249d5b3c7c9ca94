// SPDX-License-Identifier: Apache-2.0
//
// Rules as shipped make the orders of the named families; rules of one's own make what they say.
#include "schedule/rule_file.h"
#include "support/cmocka_all.h"
#include "support/pipelines.h"

static const costs unit = {.forward_ns = 1, .backward_ns = 2, .backward_input_ns = 1, .backward_weight_ns = 1};

static void expect_same_ops(const ps_schedule *got, const ps_schedule *want)
{
    assert_int_equal(got->num_devices, want->num_devices);
    for (int32_t device = 0; device <= want->num_devices; device++)
        assert_int_equal(got->first[device], want->first[device]);
    for (int32_t index = 0; index < want->first[want->num_devices]; index++) {
        assert_int_equal(got->op[index].microbatch, want->op[index].microbatch);
        assert_int_equal(got->op[index].stage, want->op[index].stage);
        assert_int_equal(got->op[index].kind, want->op[index].kind);
    }
}

// Equal op for op where the family is legal, refused where it is not. Returns whether it was legal.
static bool compare(ps_arena *arena, ps_schedule_kind kind, const ps_pipeline *pipeline)
{
    ps_rules rules;
    ps_schedule got;
    ps_schedule want;
    ps_status status = {0};
    ps_status refusal = {0};
    assert_ok(ps_rules_load(arena, ps_schedule_family_at(kind)->name, &rules, &status), &status);
    bool legal = ps_schedule_generate(arena, kind, pipeline, &want, &refusal) == PS_OK;
    ps_code code = ps_rules_generate(arena, &rules, pipeline, &got, &status);
    if (!legal && (code != PS_ILLEGAL || strcmp(status.rule, "rules-require") != 0))
        fail_msg("the family is not legal (%s), and the rules say %d", refusal.message, (int)code);
    if (legal) {
        assert_ok(code, &status);
        expect_same_ops(&got, &want);
    }
    return legal;
}

static void shipped_rules_equal_the_families_op_for_op(void **state)
{
    static const ps_schedule_kind kinds[] = {PS_SCHEDULE_GPIPE, PS_SCHEDULE_1F1B, PS_SCHEDULE_INTERLEAVED,
                                             PS_SCHEDULE_ZB_H1, PS_SCHEDULE_GPIPE_RECOMPUTE};
    int32_t legal[5] = {0};
    (void)state;
    for (int32_t ranks = 1; ranks <= 9; ranks++)
        for (int32_t microbatches = 1; microbatches <= 3 * ranks; microbatches++)
            for (int32_t chunks = 1; chunks <= 4; chunks++) {
                ps_arena *arena = ps_arena_new(0);
                const ps_pipeline *pipeline = looped_stages(arena, ranks, chunks * ranks, microbatches, unit);
                for (int32_t index = 0; index < 5; index++)
                    legal[index] += compare(arena, kinds[index], pipeline);
                ps_arena_free(arena);
            }
    assert_int_equal(legal[0], 135); // 3 + 6 + ... + 27 shapes of one chunk
    assert_int_equal(legal[1], 135);
    assert_int_equal(legal[2], 81); // m = p, 2p, 3p and v = 2, 3, 4 for each p
    assert_int_equal(legal[3], 135);
    assert_int_equal(legal[4], 135);
}

static ps_code generate(ps_arena *arena, const char *text, ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    ps_schedule_shape shape = {.num_devices = pipeline->num_devices,
                               .num_stages = pipeline->num_stages,
                               .num_microbatches = pipeline->num_microbatches};
    const int32_t *device;
    ps_rules rules;
    PS_TRY(ps_rules_parse(arena, "own.rules", text, (int64_t)strlen(text), &rules, status));
    PS_TRY(ps_rules_place(arena, &rules, &shape, &device, status));
    assert_int_equal(shape.num_stages, pipeline->num_stages);
    for (int32_t stage = 0; stage < shape.num_stages; stage++)
        pipeline->stage[stage].device = device[stage];
    ps_pipeline_assign_lanes(arena, pipeline);
    return ps_rules_generate(arena, &rules, pipeline, out, status);
}

static void expect_cells(ps_arena *arena, const char *text, ps_pipeline *pipeline, const char *const *cells)
{
    ps_schedule got;
    ps_status status = {0};
    assert_ok(generate(arena, text, pipeline, &got, &status), &status);
    ps_schedule want = schedule_from_cells(arena, cells, pipeline->num_devices);
    expect_same_ops(&got, &want);
    simulate(arena, pipeline, &got);
}

static void chunks_are_visited_group_by_group_in_the_directions_stated(void **state)
{
    static const char *const cells[] = {"0F0 0F1 1F0 1F1 0F2 1F2 1B0 1B1 0B0 0B1 1B2 0B2"};
    expect_cells(*state, "format: pipesched/rules/v1\nbackward: fused\ngroup: 2\nwarmup: m * v\nsteady: F\ndrain: B\n",
                 looped_stages(*state, 1, 2, 3, unit), cells);
}

static void a_v_turns_on_the_last_rank(void **state)
{
    static const char *const cells[] = {"0F0 3F0 3I0 0I0 3W0 0W0", "1F0 2F0 2I0 1I0 2W0 1W0"};
    expect_cells(*state,
                 "format: pipesched/rules/v1\nplacement: v\nbackward: split\nwarmup: m * v\nsteady: F\ndrain: I\n",
                 looped_stages(*state, 2, 4, 1, unit), cells);
}

static void a_given_placement_may_put_more_stages_on_one_rank(void **state)
{
    static const char *const cells[] = {"0F0 2F0 2B0 0B0", "1F0 1B0"};
    expect_cells(
        *state, "format: pipesched/rules/v1\nplacement: given 0 1 0\nbackward: fused\nwarmup: v\nsteady: F\ndrain: B\n",
        looped_stages(*state, 2, 3, 1, unit), cells);
}

static void conditions_see_what_has_been_written(void **state)
{
    static const char *const cells[] = {"0F0 0F1 0I0 0F2 0I1 0W0 0I2 0W1 0W2"};
    expect_cells(*state,
                 "format: pipesched/rules/v1 # comments and CRLF do not count\r\n\r\nbackward: split\n"
                 "warmup: 1\nsteady: F I W when b - w >= 2\ndrain: I W\n",
                 looped_stages(*state, 1, 1, 3, unit), cells);
}

// R's follow the order of the backwards, as far ahead as the rule says; conditions see how many there are.
static void recomputes_stand_where_the_rounds_put_them(void **state)
{
    static const char *const ahead[] = {"0F0 0F1 0F2 0F3 0R0 0R1 0B0 0R2 0B1 0R3 0B2 0B3"};
    static const char *const split[] = {"0F0 1F0 1R0 1I0 0F1 0R0 0I0 1W0 1F1 1R1 1I1 0W0 0R1 0I1 1W1 0W1"};
    expect_cells(*state,
                 "format: pipesched/rules/v1\nbackward: fused\nwarmup: m\nsteady: F\n"
                 "drain: R R when recomputed < 2 B\n",
                 equal_stages(*state, 1, 4, unit), ahead);
    expect_cells(*state,
                 "format: pipesched/rules/v1\nbackward: split\ngroup: 1\nwarmup: 1\nsteady: F R I W when f > 2\n"
                 "drain: R I W\n",
                 looped_stages(*state, 1, 2, 2, unit), split);
}

static void rules_whose_ops_wait_for_each_other_are_refused_with_the_cycle(void **state)
{
    ps_pipeline *pipeline = looped_stages(*state, 2, 2, 2, unit);
    ps_schedule schedule;
    ps_timeline timeline;
    ps_status status = {0};
    assert_ok(generate(*state, "format: pipesched/rules/v1\nbackward: fused\nwarmup: 2 * r\nsteady: F B\ndrain: B\n",
                       pipeline, &schedule, &status),
              &status);
    assert_int_equal(ps_simulate(*state, pipeline, &schedule, &timeline, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "deadlock");
    assert_non_null(strstr(status.message, "waits for"));
}

static void an_unknown_name_has_a_nearest_one(void **state)
{
    ps_rules rules;
    ps_status status = {0};
    assert_int_equal(ps_rules_load(*state, "zb-h2", &rules, &status), PS_IO);
    assert_string_equal(status.rule, "file-missing");
    assert_string_equal(status.hint, "did you mean \"zb-h1\"?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_rules_equal_the_families_op_for_op),
        test_in_arena(chunks_are_visited_group_by_group_in_the_directions_stated),
        test_in_arena(a_v_turns_on_the_last_rank),
        test_in_arena(a_given_placement_may_put_more_stages_on_one_rank),
        test_in_arena(conditions_see_what_has_been_written),
        test_in_arena(recomputes_stand_where_the_rounds_put_them),
        test_in_arena(rules_whose_ops_wait_for_each_other_are_refused_with_the_cycle),
        test_in_arena(an_unknown_name_has_a_nearest_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
