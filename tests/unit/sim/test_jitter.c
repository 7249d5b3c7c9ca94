// SPDX-License-Identifier: Apache-2.0
//
// test_jitter.c: makespan and span of a fixed order under random times.
#include "pipesched/jitter.h"
#include "pipesched/limits.h"
#include "support/cmocka_all.h"
#include "support/pipelines.h"

enum { PERCENT = PS_JITTER_ONE / 100 };

static ps_jitter_result sample(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule_kind kind,
                               ps_jitter_options options)
{
    ps_schedule schedule = schedule_for(arena, pipeline, kind);
    ps_jitter_result result;
    ps_status status = {0};
    assert_ok(ps_jitter_sample(arena, pipeline, &schedule, &options, &result, &status), &status);
    return result;
}

static ps_pipeline *four_stages(ps_arena *arena)
{
    return equal_stages(arena, 4, 8,
                        (costs){.forward_ns = 1000000,
                                .backward_ns = 2000000,
                                .backward_input_ns = 1000000,
                                .backward_weight_ns = 1000000,
                                .hop_latency_ns = 100000,
                                .hop_occupy_ns = 50000});
}

static void without_jitter_every_sample_is_the_simulated_time(void **state)
{
    static const ps_schedule_kind kinds[] = {PS_SCHEDULE_GPIPE, PS_SCHEDULE_1F1B, PS_SCHEDULE_ZB_H1, PS_SCHEDULE_ZB_H2};
    ps_pipeline *pipeline = four_stages(*state);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ps_timeline want = run(*state, pipeline, kinds[i]);
        ps_jitter_result got = sample(*state, pipeline, kinds[i], (ps_jitter_options){.samples = 3, .straggler = -1});
        assert_int_equal(got.makespan.p50_ns, want.makespan_ns);
        assert_int_equal(got.makespan.p95_ns, want.makespan_ns);
        assert_int_equal(got.makespan.mean_ns, want.makespan_ns);
        assert_int_equal(got.makespan.max_ns, want.makespan_ns);
        assert_int_equal(got.span.sample_ns[0], want.span_ns);
        assert_int_equal(got.span.max_ns, want.span_ns);
    }
}

// One micro-batch on three stages is a chain, F T F T F B T B T B, whose times are drawn in this order; a transfer has
// one factor for its occupancy and its latency. Base times are multiples of a million: no rounding.
static void a_chain_takes_the_sum_of_its_own_random_times(void **state)
{
    static const int64_t base_ns[] = {3, 7, 3, 7, 3, 5, 7, 5, 7, 5};
    costs cost = {.forward_ns = 3 * PS_JITTER_ONE,
                  .backward_ns = 5 * PS_JITTER_ONE,
                  .hop_latency_ns = 4 * PS_JITTER_ONE,
                  .hop_occupy_ns = 3 * PS_JITTER_ONE};
    ps_jitter_options options = {.share = 20 * PERCENT, .samples = 1, .seed = 42, .straggler = -1};
    ps_pipeline *pipeline = equal_stages(*state, 3, 1, cost);
    ps_jitter_result got = sample(*state, pipeline, PS_SCHEDULE_1F1B, options);
    ps_rng rng = {42};
    int64_t want = 0;
    for (size_t i = 0; i < sizeof base_ns / sizeof *base_ns; i++)
        want += base_ns[i] * (PS_JITTER_ONE + ps_rng_range(&rng, -PS_JITTER_ONE, PS_JITTER_ONE) / 5);
    assert_int_equal(got.makespan.max_ns, want);
    assert_int_equal(got.span.max_ns, want);
}

static void more_jitter_never_lowers_p95(void **state)
{
    static const ps_schedule_kind kinds[] = {PS_SCHEDULE_GPIPE, PS_SCHEDULE_1F1B, PS_SCHEDULE_ZB_H1};
    ps_pipeline *pipeline = four_stages(*state);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int64_t before = 0;
        for (int64_t percent = 0; percent <= 100; percent += 5) {
            ps_jitter_options options = {.share = percent * PERCENT, .samples = 500, .seed = 7, .straggler = -1};
            ps_jitter_result got = sample(*state, pipeline, kinds[i], options);
            assert_true(got.makespan.p95_ns > before);
            before = got.makespan.p95_ns;
        }
    }
}

static void the_same_seed_gives_the_same_samples_and_another_seed_others(void **state)
{
    ps_pipeline *pipeline = four_stages(*state);
    ps_jitter_options options = {.share = 5 * PERCENT, .samples = 100, .seed = 1, .straggler = -1};
    ps_jitter_result first = sample(*state, pipeline, PS_SCHEDULE_ZB_H1, options);
    ps_jitter_result again = sample(*state, pipeline, PS_SCHEDULE_ZB_H1, options);
    options.seed = 2;
    ps_jitter_result other = sample(*state, pipeline, PS_SCHEDULE_ZB_H1, options);
    assert_memory_equal(first.makespan.sample_ns, again.makespan.sample_ns, 100 * sizeof(int64_t));
    assert_memory_equal(first.span.sample_ns, again.span.sample_ns, 100 * sizeof(int64_t));
    assert_memory_not_equal(first.makespan.sample_ns, other.makespan.sample_ns, 100 * sizeof(int64_t));
}

static void a_straggler_on_the_slowest_rank_raises_the_median(void **state)
{
    ps_pipeline *pipeline = four_stages(*state);
    pipeline->stage[2].duration_ns[PS_OP_FORWARD] = 1500000;
    ps_jitter_options options = {.share = 5 * PERCENT, .samples = 200, .seed = 1, .straggler = -1};
    ps_jitter_result even = sample(*state, pipeline, PS_SCHEDULE_1F1B, options);
    options.straggler = 2;
    options.factor = 2 * PS_JITTER_ONE;
    ps_jitter_result slow = sample(*state, pipeline, PS_SCHEDULE_1F1B, options);
    assert_true(slow.makespan.p50_ns > even.makespan.p50_ns);
    // Eight micro-batches of 7 ms on one rank take at least 95 % of that in every sample.
    assert_true(slow.makespan.sample_ns[0] > 8 * 6650000);
    assert_true(slow.makespan.sample_ns[0] > even.makespan.max_ns);
}

static void percentiles_are_of_nearest_rank(void **state)
{
    ps_pipeline *pipeline = four_stages(*state);
    ps_jitter_options options = {.share = 5 * PERCENT, .samples = 41, .seed = 3, .straggler = -1};
    ps_jitter_statistics got = sample(*state, pipeline, PS_SCHEDULE_1F1B, options).makespan;
    int64_t sum = 0;
    for (int32_t i = 0; i < 41; i++) {
        sum += got.sample_ns[i];
        assert_true(i == 0 || got.sample_ns[i - 1] <= got.sample_ns[i]);
    }
    assert_int_equal(got.p50_ns, got.sample_ns[20]); // 20.5 rounded up: the 21st
    assert_int_equal(got.p95_ns, got.sample_ns[38]); // 38.95 rounded up: the 39th
    assert_int_equal(got.max_ns, got.sample_ns[40]);
    assert_int_equal(got.mean_ns, sum / 41);
}

static void times_that_a_straggler_makes_too_long_are_refused(void **state)
{
    costs cost = {.forward_ns = PS_MAX_TIME_NS / 64, .backward_ns = PS_MAX_TIME_NS / 64};
    ps_pipeline *pipeline = equal_stages(*state, 2, 2, cost);
    ps_schedule schedule = schedule_for(*state, pipeline, PS_SCHEDULE_1F1B);
    ps_jitter_options options = {.share = PS_JITTER_ONE, .samples = 1, .straggler = -1};
    ps_jitter_result result;
    ps_status status = {0};
    assert_ok(ps_jitter_sample(*state, pipeline, &schedule, &options, &result, &status), &status);
    options.straggler = 1;
    options.factor = PS_JITTER_MAX_FACTOR;
    assert_int_equal(ps_jitter_sample(*state, pipeline, &schedule, &options, &result, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "time-overflow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(without_jitter_every_sample_is_the_simulated_time),
        test_in_arena(a_chain_takes_the_sum_of_its_own_random_times),
        test_in_arena(more_jitter_never_lowers_p95),
        test_in_arena(the_same_seed_gives_the_same_samples_and_another_seed_others),
        test_in_arena(a_straggler_on_the_slowest_rank_raises_the_median),
        test_in_arena(percentiles_are_of_nearest_rank),
        test_in_arena(times_that_a_straggler_makes_too_long_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
