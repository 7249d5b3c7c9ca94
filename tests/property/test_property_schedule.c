// SPDX-License-Identifier: Apache-2.0
//
// test_property_schedule.c: what holds for every family on any pipeline it is legal on.
#include "support/cmocka_all.h"
#include "support/pipelines.h"

enum { ROUNDS = 300 };

typedef struct sample {
    ps_schedule_kind kind;
    ps_schedule_shape shape;
    ps_pipeline *pipeline;
} sample;

static sample draw(ps_arena *arena, ps_rng *rng, int32_t round)
{
    sample s = {.kind = (ps_schedule_kind)(round % PS_SCHEDULE_KINDS)};
    s.shape = random_shape(rng, s.kind);
    s.pipeline = random_stages(arena, rng, s.shape.num_devices, s.shape.num_stages, s.shape.num_microbatches);
    place_for(arena, s.pipeline, s.kind);
    return s;
}

static bool is_on_route(const ps_pipeline *pipeline, int32_t stage, int32_t microbatch)
{
    ps_route route = ps_pipeline_route(pipeline, pipeline->num_routes > 0 ? pipeline->route_of[microbatch] : 0);
    for (int32_t stop = 0; stop < route.num_stops; stop++)
        if (ps_route_stage(&route, stop) == stage)
            return true;
    return false;
}

// Each stage has one F of each micro-batch that it is on the route of, and one B or one I and one W, on its own device
// and in a possible order.
static void every_family_orders_every_op_once(void **state)
{
    ps_rng rng = {1};
    for (int32_t round = 0; round < ROUNDS; round++) {
        sample s = draw(*state, &rng, round);
        const ps_schedule_family *family = ps_schedule_family_at(s.kind);
        ps_schedule schedule = schedule_for(*state, s.pipeline, s.kind);
        int64_t pairs = (int64_t)s.shape.num_stages * s.shape.num_microbatches;
        uint8_t *seen = ps_new(*state, uint8_t, pairs);
        for (int32_t device = 0; device < s.shape.num_devices; device++) {
            for (int32_t i = schedule.first[device]; i < schedule.first[device + 1]; i++) {
                ps_op op = schedule.op[i];
                uint8_t *bits = &seen[op.stage * s.shape.num_microbatches + op.microbatch];
                assert_int_equal(s.pipeline->stage[op.stage].device, device);
                assert_false(*bits & 1u << op.kind);
                assert_true(op.kind == PS_OP_FORWARD || *bits & 1u << PS_OP_FORWARD);
                assert_true(op.kind != PS_OP_BACKWARD_WEIGHT || *bits & 1u << PS_OP_BACKWARD_INPUT);
                *bits |= (uint8_t)(1u << op.kind);
            }
        }
        unsigned whole = 1u << PS_OP_FORWARD | 1u << PS_OP_BACKWARD;
        unsigned split = 1u << PS_OP_FORWARD | 1u << PS_OP_BACKWARD_INPUT | 1u << PS_OP_BACKWARD_WEIGHT;
        for (int64_t i = 0; i < pairs; i++) {
            bool passes = is_on_route(s.pipeline, (int32_t)(i / s.shape.num_microbatches),
                                      (int32_t)(i % s.shape.num_microbatches));
            assert_int_equal(seen[i], !passes ? 0 : family->splits_backward ? split : whole);
        }
    }
}

// A device of several stages peaks when none of them need, so every stage is measured with the others holding nothing.
static void depths_give_the_simulated_peak_of_any_held_sizes(void **state)
{
    ps_rng rng = {2};
    for (int32_t round = 0; round < ROUNDS; round++) {
        sample s = draw(*state, &rng, round);
        ps_depth_list list;
        ps_status status = {0};
        assert_ok(ps_schedule_depths(*state, s.kind, s.shape, &list, &status), &status);
        for (int32_t stage = 0; stage < s.shape.num_stages; stage++) {
            int64_t full = ps_rng_range(&rng, 0, 100);
            int64_t weight = ps_rng_range(&rng, 0, 100);
            for (int32_t other = 0; other < s.shape.num_stages; other++) {
                s.pipeline->stage[other].held_after_forward = other == stage ? full : 0;
                s.pipeline->stage[other].held_after_backward_input = other == stage ? weight : 0;
            }
            int64_t most = 0;
            for (int32_t i = list.first[stage]; i < list.first[stage + 1]; i++) {
                int64_t held = list.point[i].full * full + list.point[i].weight * weight;
                most = held > most ? held : most;
            }
            ps_timeline timeline = run(*state, s.pipeline, s.kind);
            assert_int_equal(timeline.device[s.pipeline->stage[stage].device].peak_activation, most);
        }
    }
}

static void no_point_of_a_depth_list_is_useless(void **state)
{
    ps_rng rng = {3};
    for (int32_t round = 0; round < ROUNDS; round++) {
        ps_schedule_kind kind = (ps_schedule_kind)(round % PS_SCHEDULE_KINDS);
        ps_schedule_shape shape = random_shape(&rng, kind);
        ps_depth_list list;
        ps_status status = {0};
        assert_ok(ps_schedule_depths(*state, kind, shape, &list, &status), &status);
        for (int32_t stage = 0; stage < shape.num_stages; stage++) {
            assert_true(list.first[stage + 1] > list.first[stage]);
            for (int32_t i = list.first[stage] + 1; i < list.first[stage + 1]; i++) {
                assert_true(list.point[i].full < list.point[i - 1].full);
                assert_true(list.point[i].weight > list.point[i - 1].weight);
            }
        }
    }
}

static void the_bound_is_below_every_family(void **state)
{
    ps_rng rng = {4};
    for (int32_t round = 0; round < 4 * ROUNDS; round++) {
        sample s = draw(*state, &rng, round);
        ps_timeline timeline = run(*state, s.pipeline, s.kind);
        ps_schedule_bound bound =
            bound_with_routes(*state, s.pipeline, !ps_schedule_family_at(s.kind)->splits_backward);
        assert_true(bound.makespan_ns <= timeline.makespan_ns);
        assert_true(bound.span_ns <= timeline.span_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(every_family_orders_every_op_once),
        test_in_arena(depths_give_the_simulated_peak_of_any_held_sizes),
        test_in_arena(no_point_of_a_depth_list_is_useless),
        test_in_arena(the_bound_is_below_every_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
