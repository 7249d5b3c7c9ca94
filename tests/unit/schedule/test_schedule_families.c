// SPDX-License-Identifier: Apache-2.0
//
// test_schedule_families.c: time, bubble, memory and legality of the named families.
#include "pipesched/schedule.h"

#include "support/cmocka_all.h"
#include "support/pipelines.h"

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule_kind kind, ps_status *status)
{
    ps_schedule schedule;
    *status = (ps_status){0};
    return ps_schedule_generate(arena, kind, pipeline, &schedule, status);
}

static int64_t makespan(ps_arena *arena, int32_t devices, int32_t microbatches, ps_schedule_kind kind, costs cost)
{
    return run(arena, equal_stages(arena, devices, microbatches, cost), kind).makespan_ns;
}

// (m + p - 1)(F + B) with equal stages and free hops; Narayanan et al., SC 2021, section 2.2.
static void gpipe_and_1f1b_take_the_textbook_time(void **state)
{
    costs cost = {.forward_ns = 10, .backward_ns = 21};
    for (int32_t p = 1; p <= 9; p++) {
        for (int32_t m = 1; m <= 3 * p; m++) {
            assert_int_equal(makespan(*state, p, m, PS_SCHEDULE_1F1B, cost), (m + p - 1) * 31);
            assert_int_equal(makespan(*state, p, m, PS_SCHEDULE_GPIPE, cost), (m + p - 1) * 31);
        }
    }
}

static void idle_share_of_1f1b_and_gpipe_is_p_minus_1_over_m_plus_p_minus_1(void **state)
{
    static const struct {
        int32_t devices;
        int32_t microbatches;
        double percent; // as printed
        double digit;
    } cases[] = {{8, 8, 46.7, 0.1},   {8, 16, 30.4, 0.1}, {4, 8, 27.3, 0.1},   {4, 64, 4.48, 0.01},
                 {12, 12, 47.8, 0.1}, {4, 1, 75.0, 0.1},  {8, 512, 1.35, 0.01}};
    const ps_schedule_kind kinds[] = {PS_SCHEDULE_GPIPE, PS_SCHEDULE_1F1B};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ps_pipeline *pipeline =
            equal_stages(*state, cases[i].devices, cases[i].microbatches, (costs){.forward_ns = 1, .backward_ns = 2});
        double share = (cases[i].devices - 1.0) / (cases[i].microbatches + cases[i].devices - 1.0);
        for (int k = 0; k < 2; k++) {
            ps_timeline timeline = run(*state, pipeline, kinds[k]);
            assert_near(ps_timeline_bubble(&timeline), share, 1e-12);
            assert_near(100 * ps_timeline_bubble(&timeline), cases[i].percent, cases[i].digit / 2);
        }
    }
}

// (m + p - 1)(F + B) + m R + 2 (p - 1) c: what R inside B would add for each of the other stages is hidden while they
// wait. Held: the inputs of all micro-batches and what R adds for one.
static void gpipe_recompute_hides_all_recomputes_but_those_of_one_stage(void **state)
{
    costs cost = {.forward_ns = 10, .backward_ns = 21, .held_after_forward = 3, .added_by_recompute = 17};
    for (int32_t p = 1; p <= 9; p++) {
        for (int32_t m = 1; m <= 3 * p; m++) {
            for (int32_t hop = 0; hop <= 8; hop += 4) {
                cost.recompute_ns = 7;
                cost.hop_latency_ns = hop;
                ps_pipeline *pipeline = equal_stages(*state, p, m, cost);
                ps_timeline t = run(*state, pipeline, PS_SCHEDULE_GPIPE_RECOMPUTE);
                assert_int_equal(t.makespan_ns, (m + p - 1) * 31 + m * 7 + 2 * (p - 1) * hop);
                assert_int_equal(t.busy_ns, (int64_t)p * m * 38);
                for (int32_t device = 0; device < p; device++) {
                    assert_int_equal(t.device[device].in_flight_peak, m);
                    assert_int_equal(t.device[device].peak_activation, 3 * m + 17);
                }
                ps_schedule_bound bound;
                ps_schedule_bound_compute(pipeline, true, &bound);
                assert_int_equal(bound.makespan_ns, t.makespan_ns);
                cost.backward_ns = 28;
                cost.recompute_ns = 0;
                assert_int_equal(makespan(*state, p, m, PS_SCHEDULE_GPIPE, cost), t.makespan_ns + (p - 1) * 7);
                cost.backward_ns = 21;
            }
        }
    }
}

// Whatever the costs: every B starts no later than the end of its R and its gradient together would let it.
static void a_recompute_of_its_own_is_never_slower_than_one_inside_the_backward(void **state)
{
    ps_rng rng = {21};
    for (int32_t round = 0; round < 200; round++) {
        int32_t p = (int32_t)ps_rng_range(&rng, 1, 7);
        ps_pipeline *apart = random_stages(*state, &rng, p, p, (int32_t)ps_rng_range(&rng, 1, 12));
        ps_pipeline inside = *apart;
        inside.stage = ps_new(*state, ps_stage, p);
        for (int32_t s = 0; s < p; s++) {
            apart->stage[s].duration_ns[PS_OP_RECOMPUTE] = ps_rng_range(&rng, 0, 9);
            inside.stage[s] = apart->stage[s];
            inside.stage[s].duration_ns[PS_OP_BACKWARD] += apart->stage[s].duration_ns[PS_OP_RECOMPUTE];
            inside.stage[s].duration_ns[PS_OP_RECOMPUTE] = 0;
        }
        ps_timeline own = run(*state, apart, PS_SCHEDULE_GPIPE_RECOMPUTE);
        ps_timeline whole = run(*state, &inside, PS_SCHEDULE_GPIPE);
        assert_true(own.makespan_ns <= whole.makespan_ns);
        assert_int_equal(own.busy_ns, whole.busy_ns);
    }
}

// Eight devices, 32 micro-batches, F = B = 1: both take 78 slots and idle 17.95 %, but GPipe holds 32 micro-batches.
static void gpipe_and_1f1b_differ_in_memory_only(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 8, 32, (costs){.forward_ns = 1, .backward_ns = 1});
    ps_timeline gpipe = run(*state, pipeline, PS_SCHEDULE_GPIPE);
    ps_timeline one = run(*state, pipeline, PS_SCHEDULE_1F1B);
    assert_int_equal(gpipe.makespan_ns, 78);
    assert_int_equal(one.makespan_ns, 78);
    assert_near(ps_timeline_bubble(&one), 0.1795, 0.00005);
    for (int32_t device = 0; device < 8; device++) {
        assert_int_equal(gpipe.device[device].in_flight_peak, 32);
        assert_int_equal(one.device[device].in_flight_peak, 8 - device);
    }
}

// With equal stages a claim of 71 slots for the case above lies below the bound, which 1F1B reaches.
static void no_order_of_the_same_work_is_faster(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 8, 32, (costs){.forward_ns = 1, .backward_ns = 1});
    ps_schedule_bound bound;
    ps_schedule_bound_compute(pipeline, true, &bound);
    assert_int_equal(bound.makespan_ns, 78);
    assert_true(bound.makespan_ns > 71);
}

// Ten stages of [7, 6 x 8, 6] layers: depth falls by one a stage and so do the live layer-microbatches.
static void in_flight_depth_falls_along_the_pipeline(void **state)
{
    static const int64_t live[10] = {70, 54, 48, 42, 36, 30, 24, 18, 12, 6};
    for (int32_t m = 10; m <= 23; m += 13) {
        ps_pipeline *pipeline = equal_stages(*state, 10, m, (costs){.forward_ns = 1, .backward_ns = 2});
        for (int32_t s = 0; s < 10; s++)
            pipeline->stage[s].held_after_forward = s == 0 ? 7 : 6;
        ps_timeline timeline = run(*state, pipeline, PS_SCHEDULE_1F1B);
        for (int32_t device = 0; device < 10; device++) {
            assert_int_equal(timeline.device[device].in_flight_peak, 10 - device);
            assert_int_equal(timeline.device[device].peak_activation, live[device]);
        }
    }
}

// Idle (p - 1)(F + B) / v a device, and ((v - 1) p + 2 (p - 1) + 1) / v micro-batches held by rank 0: p = 8, v = 2
// holds 11.5 and v = 4 holds 9.75 in units of a whole device's activation.
static void interleaving_divides_the_bubble_by_the_chunks(void **state)
{
    for (int32_t p = 1; p <= 8; p++) {
        for (int32_t v = 2; v <= 4; v++) {
            for (int32_t m = p; m <= 3 * p; m += p) {
                costs cost = {.forward_ns = 10, .backward_ns = 20, .held_after_forward = 1};
                ps_timeline timeline = run(*state, looped_stages(*state, p, p * v, m, cost), PS_SCHEDULE_INTERLEAVED);
                assert_int_equal(timeline.makespan_ns, m * v * 30 + (p - 1) * 30);
                int32_t fill = (v - 1) * p + 2 * (p - 1) + 1;
                assert_int_equal(timeline.device[0].in_flight_peak, fill < m * v ? fill : m * v);
                assert_int_equal(timeline.device[0].peak_activation, fill < m * v ? fill : m * v);
            }
        }
    }
}

// m (F + I + W) + (p - 1)(F + I - W + 4c) for m >= 2p: hops of latency c are part of the closed form.
static void zb_h1_has_closed_form_with_hops(void **state)
{
    for (int32_t p = 1; p <= 8; p++) {
        for (int32_t m = 2 * p; m <= 4 * p; m++) {
            costs cost = {.forward_ns = 100, .backward_input_ns = 98, .backward_weight_ns = 55, .hop_latency_ns = 3};
            assert_int_equal(makespan(*state, p, m, PS_SCHEDULE_ZB_H1, cost), m * 253 + (p - 1) * (143 + 12));
            cost = (costs){.forward_ns = 7, .backward_input_ns = 7, .backward_weight_ns = 7};
            assert_int_equal(makespan(*state, p, m, PS_SCHEDULE_ZB_H1, cost), m * 21 + (p - 1) * 7);
        }
    }
}

// Span m (F + I + W) + (p - 1)(F + I + 2c - 2W) for m >= 2p: no bubble at all with equal times and free hops.
static void zb_h2_span_has_closed_form_with_hops(void **state)
{
    for (int32_t p = 1; p <= 8; p++) {
        for (int32_t m = 2 * p; m <= 4 * p; m++) {
            costs cost = {.forward_ns = 100, .backward_input_ns = 98, .backward_weight_ns = 55, .hop_latency_ns = 3};
            ps_timeline timeline = run(*state, equal_stages(*state, p, m, cost), PS_SCHEDULE_ZB_H2);
            assert_int_equal(timeline.span_ns, m * 253 + (p - 1) * (198 + 6 - 110));
            cost = (costs){.forward_ns = 7, .backward_input_ns = 7, .backward_weight_ns = 7};
            timeline = run(*state, equal_stages(*state, p, m, cost), PS_SCHEDULE_ZB_H2);
            assert_int_equal(timeline.span_ns, m * 21);
            assert_near(ps_timeline_span_bubble(&timeline), 0, 1e-12);
            assert_true(timeline.makespan_ns > timeline.span_ns || p == 1);
        }
    }
}

// Eight devices, 32 micro-batches, F = I = W = 1: 7 of 103 units idle.
static void zb_h1_leaves_a_third_of_the_bubble(void **state)
{
    costs cost = {.forward_ns = 1, .backward_input_ns = 1, .backward_weight_ns = 1};
    ps_timeline timeline = run(*state, equal_stages(*state, 8, 32, cost), PS_SCHEDULE_ZB_H1);
    assert_int_equal(timeline.makespan_ns, 103);
    assert_near(ps_timeline_bubble(&timeline), 0.0680, 0.00005);
}

static void zb_h1_needs_the_memory_of_1f1b_and_zb_h2_twice_as_much(void **state)
{
    costs cost = {.forward_ns = 1,
                  .backward_input_ns = 1,
                  .backward_weight_ns = 1,
                  .held_after_forward = 2,
                  .held_after_backward_input = 1};
    for (int32_t p = 1; p <= 8; p++) {
        ps_pipeline *pipeline = equal_stages(*state, p, 3 * p, cost);
        ps_timeline h1 = run(*state, pipeline, PS_SCHEDULE_ZB_H1);
        ps_timeline h2 = run(*state, pipeline, PS_SCHEDULE_ZB_H2);
        for (int32_t device = 0; device < p; device++) {
            assert_int_equal(h1.device[device].in_flight_peak, p - device);
            assert_int_equal(h2.device[device].in_flight_peak, 2 * (p - device) - 1);
            assert_true(h1.device[device].peak_activation <= 2 * p);
            assert_true(h2.device[device].peak_activation <= 2 * (2 * p - 1));
        }
        assert_int_equal(h1.device[0].peak_activation, 2 * p);
        assert_int_equal(h2.device[0].peak_activation, 2 * (2 * p - 1));
    }
}

// Fewer micro-batches than the pipeline is deep is slow, not wrong.
static void every_one_stage_family_runs_any_number_of_micro_batches(void **state)
{
    const ps_schedule_kind kinds[] = {PS_SCHEDULE_GPIPE, PS_SCHEDULE_1F1B, PS_SCHEDULE_ZB_H1, PS_SCHEDULE_ZB_H2,
                                      PS_SCHEDULE_GPIPE_RECOMPUTE};
    costs cost = {.forward_ns = 3, .backward_input_ns = 2, .backward_weight_ns = 2, .hop_latency_ns = 1};
    for (int32_t p = 1; p <= 9; p++)
        for (int32_t m = 1; m <= 2 * p + 1; m++)
            for (int k = 0; k < 5; k++)
                assert_true(makespan(*state, p, m, kinds[k], cost) >= m * 7);
}

static void first_ops_of_each_family_are_in_the_published_order(void **state)
{
    static const struct {
        ps_schedule_kind kind;
        int32_t stages;
        const char *cells[2];
    } cases[] = {
        {PS_SCHEDULE_GPIPE, 2, {"0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3", "1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3"}},
        {PS_SCHEDULE_GPIPE_RECOMPUTE,
         2,
         {"0F0 0F1 0F2 0F3 0R0 0B0 0R1 0B1 0R2 0B2 0R3 0B3", "1F0 1F1 1F2 1F3 1R0 1B0 1R1 1B1 1R2 1B2 1R3 1B3"}},
        {PS_SCHEDULE_1F1B, 2, {"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"}},
        {PS_SCHEDULE_INTERLEAVED,
         4,
         {"0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3",
          "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3"}},
        {PS_SCHEDULE_ZB_H1,
         2,
         {"0F0 0F1 0I0 0W0 0F2 0I1 0W1 0F3 0I2 0W2 0I3 0W3", "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1F3 1I3 1W2 1W3"}},
        {PS_SCHEDULE_ZB_H2,
         2,
         {"0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3", "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ps_pipeline *pipeline = looped_stages(*state, 2, cases[i].stages, 4, (costs){.forward_ns = 1});
        ps_schedule made = schedule_for(*state, pipeline, cases[i].kind);
        ps_schedule want = schedule_from_cells(*state, cases[i].cells, 2);
        assert_memory_equal(made.first, want.first, 3 * sizeof *want.first);
        for (int32_t op = 0; op < want.first[2]; op++) {
            char made_text[32];
            char want_text[32];
            ps_op_format(made.op[op], made_text);
            ps_op_format(want.op[op], want_text);
            assert_string_equal(made_text, want_text);
        }
    }
}

static void several_stages_on_a_device_are_refused_with_the_family_that_takes_them(void **state)
{
    static const struct {
        ps_schedule_kind kind;
        const char *rule;
    } cases[] = {{PS_SCHEDULE_GPIPE, "gpipe-one-stage"},
                 {PS_SCHEDULE_GPIPE_RECOMPUTE, "gpipe-recompute-one-stage"},
                 {PS_SCHEDULE_1F1B, "1f1b-one-stage"},
                 {PS_SCHEDULE_ZB_H1, "zb-h1-one-stage"},
                 {PS_SCHEDULE_ZB_H2, "zb-h2-one-stage"}};
    ps_status status;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ps_pipeline *two_each = looped_stages(*state, 4, 8, 8, (costs){.forward_ns = 1});
        assert_int_equal(generate(*state, two_each, cases[i].kind, &status), PS_ILLEGAL);
        assert_string_equal(status.rule, cases[i].rule);
        assert_non_null(strstr(status.message, "8 stages on 4 devices"));
        assert_non_null(strstr(status.hint, "interleaved"));
        ps_pipeline *too_few = looped_stages(*state, 4, 3, 8, (costs){.forward_ns = 1});
        assert_int_equal(generate(*state, too_few, cases[i].kind, &status), PS_ILLEGAL);
        assert_non_null(strstr(status.hint, "use 4 stages"));
    }
}

static void interleaved_names_the_nearest_legal_micro_batch_counts(void **state)
{
    ps_status status;
    ps_pipeline *pipeline = looped_stages(*state, 4, 8, 10, (costs){.forward_ns = 1});
    assert_int_equal(generate(*state, pipeline, PS_SCHEDULE_INTERLEAVED, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "interleaved-microbatches");
    assert_non_null(strstr(status.message, "10 is not a multiple of 4"));
    assert_string_equal(status.hint, "use 8 or 12 micro-batches");
}

// Six devices and three micro-batches: the reason is too few micro-batches, not an empty range.
static void interleaved_says_that_there_are_fewer_micro_batches_than_devices(void **state)
{
    ps_status status;
    ps_pipeline *pipeline = looped_stages(*state, 6, 12, 3, (costs){.forward_ns = 1});
    assert_int_equal(generate(*state, pipeline, PS_SCHEDULE_INTERLEAVED, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "interleaved-microbatches");
    assert_string_equal(status.message, "interleaved on 6 devices needs at least 6 micro-batches, got 3");
    assert_non_null(strstr(status.hint, "1f1b"));
}

static void interleaved_refuses_one_stage_a_device_and_uneven_counts(void **state)
{
    ps_status status;
    assert_int_equal(generate(*state, equal_stages(*state, 4, 8, (costs){0}), PS_SCHEDULE_INTERLEAVED, &status),
                     PS_ILLEGAL);
    assert_string_equal(status.rule, "interleaved-virtual-stages");
    assert_non_null(strstr(status.hint, "use 8 stages"));
    assert_int_equal(generate(*state, looped_stages(*state, 4, 10, 8, (costs){0}), PS_SCHEDULE_INTERLEAVED, &status),
                     PS_ILLEGAL);
    assert_string_equal(status.rule, "interleaved-stages");
    assert_string_equal(status.hint, "use 8 or 12 stages");
    assert_int_equal(generate(*state, looped_stages(*state, 4, 5, 8, (costs){0}), PS_SCHEDULE_INTERLEAVED, &status),
                     PS_ILLEGAL);
    assert_string_equal(status.hint, "use 8 stages");
}

// Devices may come in any order along the pipeline, and keep it for every chunk.
static void renamed_devices_change_nothing_and_another_placement_is_refused(void **state)
{
    costs cost = {.forward_ns = 3, .backward_ns = 5, .hop_latency_ns = 1};
    ps_status status;
    ps_pipeline *plain = looped_stages(*state, 3, 6, 6, cost);
    ps_pipeline *renamed = looped_stages(*state, 3, 6, 6, cost);
    for (int32_t s = 0; s < 6; s++)
        renamed->stage[s].device = (s + 2) % 3;
    ps_pipeline_assign_lanes(*state, renamed);
    ps_timeline a = run(*state, plain, PS_SCHEDULE_INTERLEAVED);
    ps_timeline b = run(*state, renamed, PS_SCHEDULE_INTERLEAVED);
    assert_int_equal(a.makespan_ns, b.makespan_ns);
    for (int32_t d = 0; d < 3; d++)
        assert_int_equal(a.device[d].last_end_ns, b.device[(d + 2) % 3].last_end_ns);

    renamed->stage[5].device = renamed->stage[4].device;
    assert_int_equal(generate(*state, renamed, PS_SCHEDULE_INTERLEAVED, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "interleaved-placement");
    ps_pipeline *shared = equal_stages(*state, 3, 6, cost);
    shared->stage[2].device = 0;
    assert_int_equal(generate(*state, shared, PS_SCHEDULE_1F1B, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "1f1b-placement");
}

static void every_family_refuses_a_shape_without_devices_or_micro_batches(void **state)
{
    (void)state;
    static const int32_t empty[][3] = {{0, 0, 1}, {0, 4, 4}, {4, 0, 4}, {4, 4, 0}, {4, 8, -4}, {-2, -4, 2}};
    for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
            ps_schedule_shape shape = {
                .num_devices = empty[i][0], .num_stages = empty[i][1], .num_microbatches = empty[i][2]};
            ps_status status = {0};
            assert_int_equal(ps_schedule_family_at((ps_schedule_kind)kind)->legal(shape, &status), PS_BAD_INPUT);
            assert_string_equal(status.rule, "pipeline-shape");
        }
    }
}

static void every_family_is_found_by_its_name(void **state)
{
    (void)state;
    for (int kind = 0; kind < PS_SCHEDULE_KINDS; kind++) {
        const ps_schedule_family *family = ps_schedule_family_at((ps_schedule_kind)kind);
        assert_int_equal(family->kind, kind);
        assert_ptr_equal(ps_schedule_family_named(family->name), family);
        assert_true(strlen(family->summary) > 0);
    }
    assert_null(ps_schedule_family_named("1F1B"));
    assert_null(ps_schedule_family_named(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(gpipe_and_1f1b_take_the_textbook_time),
        test_in_arena(gpipe_recompute_hides_all_recomputes_but_those_of_one_stage),
        test_in_arena(a_recompute_of_its_own_is_never_slower_than_one_inside_the_backward),
        test_in_arena(idle_share_of_1f1b_and_gpipe_is_p_minus_1_over_m_plus_p_minus_1),
        test_in_arena(gpipe_and_1f1b_differ_in_memory_only),
        test_in_arena(no_order_of_the_same_work_is_faster),
        test_in_arena(in_flight_depth_falls_along_the_pipeline),
        test_in_arena(interleaving_divides_the_bubble_by_the_chunks),
        test_in_arena(zb_h1_has_closed_form_with_hops),
        test_in_arena(zb_h2_span_has_closed_form_with_hops),
        test_in_arena(zb_h1_leaves_a_third_of_the_bubble),
        test_in_arena(zb_h1_needs_the_memory_of_1f1b_and_zb_h2_twice_as_much),
        test_in_arena(every_one_stage_family_runs_any_number_of_micro_batches),
        test_in_arena(first_ops_of_each_family_are_in_the_published_order),
        test_in_arena(several_stages_on_a_device_are_refused_with_the_family_that_takes_them),
        test_in_arena(interleaved_names_the_nearest_legal_micro_batch_counts),
        test_in_arena(interleaved_says_that_there_are_fewer_micro_batches_than_devices),
        test_in_arena(interleaved_refuses_one_stage_a_device_and_uneven_counts),
        test_in_arena(renamed_devices_change_nothing_and_another_placement_is_refused),
        test_in_arena(every_family_refuses_a_shape_without_devices_or_micro_batches),
        test_in_arena(every_family_is_found_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
