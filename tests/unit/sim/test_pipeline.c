// SPDX-License-Identifier: Apache-2.0
#include "pipesched/pipeline.h"

#include "pipesched/limits.h"
#include "support/cmocka_all.h"
#include "support/pipelines.h"

static const costs SOME = {.forward_ns = 1, .backward_input_ns = 1, .backward_weight_ns = 1, .hop_latency_ns = 1};

static void assert_refused(const ps_pipeline *pipeline, const char *rule, const char *part)
{
    ps_status status = {0};
    assert_int_equal(ps_pipeline_validate(pipeline, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, rule);
    if (!strstr(status.message, part))
        fail_msg("'%s' does not say '%s'", status.message, part);
}

static void hops_of_one_pair_of_devices_share_a_lane(void **state)
{
    // Devices 0 1 2 0 1 1: pairs 0>1 (twice), 1>2, 2>0 forward and their reverses.
    ps_pipeline *pipeline = looped_stages(*state, 3, 6, 2, SOME);
    pipeline->stage[5].device = 1;
    ps_pipeline_assign_lanes(*state, pipeline);
    assert_int_equal(pipeline->num_lanes, 6);
    assert_int_equal(pipeline->forward_hop[0].lane, pipeline->forward_hop[3].lane);
    assert_int_equal(pipeline->backward_hop[0].lane, pipeline->backward_hop[3].lane);
    assert_int_not_equal(pipeline->forward_hop[0].lane, pipeline->backward_hop[0].lane);
    assert_int_not_equal(pipeline->forward_hop[0].lane, pipeline->forward_hop[1].lane);
    assert_int_equal(pipeline->forward_hop[4].lane, PS_NO_LANE);
    assert_int_equal(pipeline->backward_hop[4].lane, PS_NO_LANE);
    ps_status status = {0};
    assert_ok(ps_pipeline_validate(pipeline, &status), &status);
}

// In a ring of two devices the wrap-around hop goes the way of the backward hops and shares their lane.
static void two_devices_have_two_lanes(void **state)
{
    ps_pipeline *pipeline = looped_stages(*state, 2, 4, 2, SOME);
    assert_int_equal(pipeline->num_lanes, 2);
    assert_int_equal(pipeline->forward_hop[1].lane, pipeline->backward_hop[0].lane);
}

static void a_pipeline_without_anything_is_refused(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 2, 2, SOME);
    pipeline->num_microbatches = 0;
    assert_refused(pipeline, "pipeline-shape", "micro-batches, got 0");
    pipeline->num_microbatches = PS_MAX_MICROBATCHES + 1;
    assert_refused(pipeline, "pipeline-shape", "1 to 16777216 micro-batches");
    pipeline->num_microbatches = 2;
    pipeline->num_devices = 0;
    assert_refused(pipeline, "pipeline-shape", "devices, got 0");
    pipeline->num_devices = 2;
    pipeline->num_stages = -1;
    assert_refused(pipeline, "pipeline-shape", "stages, got -1");
}

static void a_stage_on_a_device_that_is_not_there_is_refused(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 2, 2, SOME);
    pipeline->stage[1].device = 2;
    assert_refused(pipeline, "stage-device", "stage 1 is on device 2");
}

static void negative_figures_are_refused(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 2, 2, SOME);
    pipeline->stage[1].duration_ns[PS_OP_BACKWARD_WEIGHT] = -5;
    assert_refused(pipeline, "negative-time", "stage 1 takes -5 ns");
    pipeline = equal_stages(*state, 2, 2, SOME);
    pipeline->backward_hop[0].latency_ns = -1;
    assert_refused(pipeline, "negative-time", "from stage 1 to 0");
    pipeline = equal_stages(*state, 2, 2, SOME);
    pipeline->stage[0].held_after_backward_input = -1;
    assert_refused(pipeline, "negative-memory", "-1 after I");
    pipeline = equal_stages(*state, 2, 2, SOME);
    pipeline->device[1].static_memory = -1;
    assert_refused(pipeline, "negative-memory", "device 1");
    pipeline = equal_stages(*state, 2, 2, SOME);
    pipeline->device[0].memory_limit = -1;
    assert_refused(pipeline, "negative-memory", "limit of -1");
}

static void lanes_must_match_the_placement(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 3, 2, SOME);
    pipeline->forward_hop[1].lane = PS_NO_LANE;
    assert_refused(pipeline, "pipeline-shape", "from stage 1 to 2");
    pipeline->forward_hop[1].lane = pipeline->num_lanes;
    assert_refused(pipeline, "pipeline-shape", "on different devices");
    pipeline = looped_stages(*state, 1, 2, 2, SOME);
    pipeline->num_lanes = 1;
    pipeline->backward_hop[0].lane = 0;
    assert_refused(pipeline, "pipeline-shape", "both on one device");
}

static void a_lane_with_two_sources_is_refused(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 3, 2, SOME);
    pipeline->forward_hop[1].lane = pipeline->forward_hop[0].lane;
    ps_schedule schedule = schedule_for(*state, pipeline, PS_SCHEDULE_1F1B);
    ps_timeline timeline;
    ps_status status = {0};
    assert_int_equal(ps_simulate(*state, pipeline, &schedule, &timeline, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "pipeline-shape");
    assert_non_null(strstr(status.message, "devices 0 and 1 both send on lane"));
}

static void too_many_ops_shows_the_product_and_what_fits(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 64, 2, SOME);
    pipeline->num_microbatches = 1000000;
    ps_status status = {0};
    assert_int_equal(ps_pipeline_validate(pipeline, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "too-many-ops");
    assert_string_equal(status.message,
                        "64 stages * 1000000 micro-batches * 3 ops (F, I, W) = 192000000 ops, limit 134217728");
    assert_non_null(strstr(status.hint, "699050 micro-batches"));
    pipeline->num_microbatches = 699050;
    status = (ps_status){0};
    assert_ok(ps_pipeline_validate(pipeline, &status), &status);
}

static void sums_that_would_overflow_are_refused(void **state)
{
    ps_pipeline *pipeline = equal_stages(*state, 2, 1000, SOME);
    pipeline->stage[0].duration_ns[PS_OP_FORWARD] = PS_MAX_TIME_NS / 1000;
    assert_refused(pipeline, "time-overflow", "1000 micro-batches");
    pipeline->stage[0].duration_ns[PS_OP_FORWARD] = INT64_MAX;
    assert_refused(pipeline, "time-overflow", "1000 micro-batches");
    pipeline = equal_stages(*state, 2, 1000, SOME);
    pipeline->forward_hop[0].occupy_ns = INT64_MAX;
    assert_refused(pipeline, "time-overflow", "hops");
    pipeline = equal_stages(*state, 2, 1000, SOME);
    pipeline->stage[1].held_after_forward = PS_MAX_BYTES / 500;
    assert_refused(pipeline, "memory-overflow", "1000 micro-batches");
    pipeline->stage[1].held_after_forward = 0;
    pipeline->device[0].static_memory = INT64_MAX;
    assert_refused(pipeline, "memory-overflow", "hold more than");
}

// Stages 0 1 2 on three devices; micro-batch 0 takes all of them backwards, micro-batch 1 the last alone.
static ps_pipeline *with_routes(ps_arena *arena)
{
    static const int32_t back[] = {2, 1, 0};
    static const int32_t last[] = {2};
    ps_pipeline *pipeline = equal_stages(arena, 3, 2, SOME);
    pipeline->num_routes = 2;
    pipeline->route = ps_new(arena, ps_route, 2);
    pipeline->route_of = ps_new(arena, int32_t, 2);
    pipeline->route_of[1] = 1;
    pipeline->route[0] = (ps_route){.num_stops = 3,
                                    .stage = back,
                                    .forward_hop = ps_new(arena, ps_hop, 2),
                                    .backward_hop = ps_new(arena, ps_hop, 2)};
    pipeline->route[1] = (ps_route){.num_stops = 1, .stage = last};
    ps_pipeline_assign_lanes(arena, pipeline);
    return pipeline;
}

static void routes_have_lanes_and_cells_of_their_own(void **state)
{
    ps_pipeline *pipeline = with_routes(*state);
    ps_status status = {0};
    assert_ok(ps_pipeline_validate(pipeline, &status), &status);
    assert_int_equal(pipeline->num_lanes, 4);
    assert_int_equal(ps_pipeline_num_cells(pipeline), 4);
    assert_int_equal(ps_pipeline_num_routes(pipeline), 2);
    ps_route plain = ps_pipeline_route(equal_stages(*state, 3, 2, SOME), 0);
    assert_int_equal(plain.num_stops, 3);
    assert_int_equal(ps_route_stage(&plain, 2), 2);
}

static void routes_that_lead_nowhere_are_refused(void **state)
{
    static const int32_t twice[] = {2, 1, 2};
    static const int32_t beyond[] = {2, 3, 0};
    ps_pipeline *pipeline = with_routes(*state);
    pipeline->route[0].stage = twice;
    assert_refused(pipeline, "pipeline-route", "route 0 visits stage 2 twice");
    pipeline->route[0].stage = beyond;
    assert_refused(pipeline, "pipeline-route", "stop 1 of route 0 is stage 3, stages are 0 to 2");
    pipeline = with_routes(*state);
    pipeline->route[1].num_stops = 0;
    assert_refused(pipeline, "pipeline-route", "route 1 has 0 stops");
    pipeline = with_routes(*state);
    pipeline->route_of[1] = 2;
    assert_refused(pipeline, "pipeline-route", "micro-batch 1 takes route 2, routes are 0 to 1");
    pipeline->num_routes = 3;
    assert_refused(pipeline, "pipeline-route", "2 micro-batches have at most as many routes, got 3");
    pipeline = with_routes(*state);
    pipeline->route[0].backward_hop[1].latency_ns = -1;
    assert_refused(pipeline, "negative-time", "from stage 0 to 1");
    pipeline = with_routes(*state);
    pipeline->route[0].forward_hop[0].lane = PS_NO_LANE;
    assert_refused(pipeline, "pipeline-shape", "from stage 2 to 1, on different devices");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(routes_have_lanes_and_cells_of_their_own),
        test_in_arena(routes_that_lead_nowhere_are_refused),
        test_in_arena(hops_of_one_pair_of_devices_share_a_lane),
        test_in_arena(two_devices_have_two_lanes),
        test_in_arena(a_pipeline_without_anything_is_refused),
        test_in_arena(a_stage_on_a_device_that_is_not_there_is_refused),
        test_in_arena(negative_figures_are_refused),
        test_in_arena(lanes_must_match_the_placement),
        test_in_arena(a_lane_with_two_sources_is_refused),
        test_in_arena(too_many_ops_shows_the_product_and_what_fits),
        test_in_arena(sums_that_would_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
