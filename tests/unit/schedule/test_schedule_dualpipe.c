// SPDX-License-Identifier: Apache-2.0
//
// test_schedule_dualpipe.c: DualPipe's time, memory, messages, legality, and its order against a derivation of its own.
#include <stdio.h>

#include "support/cmocka_all.h"
#include "support/pipelines.h"

// One slot an op; a stage's activation counts one, until W.
static const costs UNIT = {.forward_ns = 1,
                           .backward_input_ns = 1,
                           .backward_weight_ns = 1,
                           .held_after_forward = 1,
                           .held_after_backward_input = 1};

static int64_t most_held(const ps_timeline *timeline)
{
    int64_t most = 0;
    for (int32_t device = 0; device < timeline->num_devices; device++)
        if (timeline->device[device].peak_activation > most)
            most = timeline->device[device].peak_activation;
    return most;
}

// 3 m slots of work and (p / 2 - 1) idle, which no order of the same ops beats; the authors' table has (p / 2 - 1)
// times F + B + B - 3 W = 2 without overlap. p + 1 activations, as the table has.
static void idles_half_of_the_table_and_holds_p_plus_1_activations(void **state)
{
    for (int32_t p = 2; p <= 12; p += 2) {
        for (int32_t m = 2 * p; m <= 4 * p; m += 2) {
            ps_pipeline *pipeline = dual_stages(*state, p, m, UNIT);
            ps_timeline t = run(*state, pipeline, PS_SCHEDULE_DUALPIPE);
            assert_int_equal(t.makespan_ns, 3 * m + p / 2 - 1);
            assert_true(t.makespan_ns - 3 * m <= 2 * (p / 2 - 1));
            assert_int_equal(bound_with_routes(*state, pipeline, false).makespan_ns, t.makespan_ns);
            assert_int_equal(most_held(&t), p + 1);
            assert_int_equal(t.busy_ns, (int64_t)3 * m * p);
        }
    }
}

// Two DualPipeV's of half the ranks and half the micro-batches, face to face.
static void takes_the_time_and_the_memory_of_dualpipev_on_half_of_the_ranks(void **state)
{
    costs cost = {.forward_ns = 5,
                  .backward_input_ns = 7,
                  .backward_weight_ns = 4,
                  .held_after_forward = 3,
                  .held_after_backward_input = 2};
    for (int32_t p = 2; p <= 12; p += 2) {
        for (int32_t m = 2 * p; m <= 3 * p; m += 2) {
            ps_timeline dual = run(*state, dual_stages(*state, p, m, cost), PS_SCHEDULE_DUALPIPE);
            ps_timeline v = run(*state, v_stages(*state, p / 2, m / 2, cost), PS_SCHEDULE_DUALPIPEV);
            assert_int_equal(dual.makespan_ns, v.makespan_ns);
            for (int32_t rank = 0; rank < p; rank++) {
                int32_t folded = rank < p / 2 ? rank : p - 1 - rank;
                assert_int_equal(dual.device[rank].peak_activation, v.device[folded].peak_activation);
                assert_int_equal(dual.device[rank].last_end_ns, v.device[folded].last_end_ns);
            }
        }
    }
}

// 2 (p - 1) m messages: every micro-batch goes to the other end and back, whichever it came in at.
static void every_micro_batch_passes_every_other_rank_once_each_way(void **state)
{
    for (int32_t p = 2; p <= 12; p += 2) {
        int32_t m = 2 * p + 2;
        ps_pipeline *pipeline = dual_stages(*state, p, m, UNIT);
        int32_t sent = 0;
        for (int32_t microbatch = 0; microbatch < m; microbatch++) {
            const ps_route *route = &pipeline->route[pipeline->route_of[microbatch]];
            for (int32_t stop = 0; stop + 1 < route->num_stops; stop++)
                sent += (route->forward_hop[stop].lane != PS_NO_LANE) + (route->backward_hop[stop].lane != PS_NO_LANE);
            bool up = microbatch >= m / 2;
            for (int32_t stop = 0; stop < p; stop++)
                assert_int_equal(pipeline->stage[route->stage[stop]].device, up ? p - 1 - stop : stop);
        }
        assert_int_equal(sent, 2 * (p - 1) * m);
        assert_int_equal(ps_pipeline_num_cells(pipeline), (int64_t)p * m);
    }
}

// The second derivation: a rank as its programmer sees it, with one queue of micro-batches for each stage and pass, and
// a store of weight gradients that are put off, first in, first out.
typedef struct rank_program {
    char text[8192];
    size_t size;
    int32_t ranks;
    int32_t rank;
    int32_t half_batch;
    int32_t done[3][2]; // by pass (F, I, W) and phase
    int32_t stored[64]; // phases whose W is put off
    int32_t oldest;
    int32_t newest;
} rank_program;

// Phase 0 is the way whose entrance is nearer.
static void compute(rank_program *r, int pass, int32_t phase)
{
    bool second_half = r->rank >= r->ranks / 2;
    bool up = (phase == 1) != second_half;
    int32_t stage = up ? 2 * r->ranks - 1 - r->rank : r->rank;
    int32_t microbatch = r->done[pass][phase]++ + (up ? r->half_batch : 0);
    r->size += (size_t)snprintf(r->text + r->size, sizeof r->text - r->size, "%d%c%d ", (int)stage, "FIW"[pass],
                                (int)microbatch);
}

static void backward(rank_program *r, int32_t phase, bool put_off)
{
    compute(r, 1, phase);
    if (put_off)
        r->stored[r->newest++] = phase;
    else
        compute(r, 2, phase);
}

static void weight(rank_program *r)
{
    compute(r, 2, r->stored[r->oldest++]);
}

static void run_program(rank_program *r)
{
    int32_t half_ranks = r->ranks / 2;
    int32_t from_end = r->rank < half_ranks ? r->rank : r->ranks - 1 - r->rank;
    int32_t rest = half_ranks - from_end - 1;
    for (int32_t i = 0; i < 2 * rest; i++)
        compute(r, 0, 0);
    for (int32_t i = 0; i <= from_end; i++)
        for (int32_t phase = 0; phase < 2; phase++)
            compute(r, 0, phase);
    for (int32_t i = 0; i < rest; i++) {
        backward(r, 1, true);
        weight(r);
        compute(r, 0, 1);
    }
    for (int32_t i = 0; r->done[0][0] < r->half_batch; i++) {
        compute(r, 0, 0);
        backward(r, 1, false);
        compute(r, 0, 1);
        backward(r, 0, false);
    }
    while (r->done[0][1] < r->half_batch) {
        backward(r, 1, false);
        compute(r, 0, 1);
        backward(r, 0, false);
    }
    for (int32_t left = 2 * (from_end + 1); left > 0; left--)
        backward(r, left % 2 ? 0 : 1, left <= from_end + 1);
    while (r->done[1][0] < r->half_batch) {
        weight(r);
        backward(r, 0, true);
    }
    while (r->oldest < r->newest)
        weight(r);
}

static void is_what_every_ranks_own_program_runs(void **state)
{
    for (int32_t p = 2; p <= 12; p += 2) {
        for (int32_t m = 2 * p; m <= 3 * p + 2; m += 2) {
            ps_schedule schedule = schedule_for(*state, dual_stages(*state, p, m, UNIT), PS_SCHEDULE_DUALPIPE);
            for (int32_t rank = 0; rank < p; rank++) {
                rank_program program = {.ranks = p, .rank = rank, .half_batch = m / 2};
                run_program(&program);
                const char *const cells[] = {program.text};
                ps_schedule wanted = schedule_from_cells(*state, cells, 1);
                int32_t first = schedule.first[rank];
                assert_int_equal(schedule.first[rank + 1] - first, wanted.first[1]);
                for (int32_t i = 0; i < wanted.first[1]; i++) {
                    assert_int_equal(schedule.op[first + i].stage, wanted.op[i].stage);
                    assert_int_equal(schedule.op[first + i].kind, wanted.op[i].kind);
                    assert_int_equal(schedule.op[first + i].microbatch, wanted.op[i].microbatch);
                }
            }
        }
    }
}

static void assert_illegal(int32_t p, int32_t m, const char *rule, const char *hint)
{
    ps_schedule_shape shape = {.num_devices = p, .num_stages = 2 * p, .num_microbatches = m};
    ps_status status = {0};
    assert_int_equal(ps_schedule_family_at(PS_SCHEDULE_DUALPIPE)->legal(shape, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, rule);
    assert_string_equal(status.hint, hint);
}

static void odd_sizes_and_too_few_micro_batches_are_refused_with_the_nearest(void **state)
{
    (void)state;
    assert_illegal(5, 20, "dualpipe-ranks", "use 4 or 6 ranks");
    assert_illegal(1, 8, "dualpipe-ranks", "use 2 ranks");
    assert_illegal(4, 9, "dualpipe-halves", "use 8 or 10 micro-batches");
    assert_illegal(4, 4, "dualpipe-microbatches", "use 8 micro-batches, or zb-v, which takes any number");
    assert_illegal(4, 7, "dualpipe-microbatches", "use 8 micro-batches, or zb-v, which takes any number");
    ps_schedule_shape one = {.num_devices = 4, .num_stages = 4, .num_microbatches = 8};
    ps_status status = {0};
    assert_int_equal(ps_schedule_family_at(PS_SCHEDULE_DUALPIPE)->legal(one, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, "dualpipe-two-stages");
}

static void whatever_is_legal_runs_with_hops_that_queue(void **state)
{
    (void)state;
    costs cost = {
        .forward_ns = 5, .backward_input_ns = 6, .backward_weight_ns = 4, .hop_latency_ns = 1, .hop_occupy_ns = 2};
    for (int32_t p = 1; p <= 12; p++) {
        ps_arena *arena = ps_arena_new(0);
        for (int32_t m = 1; m <= 3 * p; m++) {
            ps_schedule_shape shape = {.num_devices = p, .num_stages = 2 * p, .num_microbatches = m};
            ps_status status = {0};
            bool legal = ps_schedule_family_at(PS_SCHEDULE_DUALPIPE)->legal(shape, &status) == PS_OK;
            assert_int_equal(legal, p % 2 == 0 && m % 2 == 0 && m >= 2 * p);
            if (!legal)
                continue;
            ps_pipeline *pipeline = dual_stages(arena, p, m, cost);
            ps_timeline t = run(arena, pipeline, PS_SCHEDULE_DUALPIPE);
            assert_true(t.makespan_ns >= bound_with_routes(arena, pipeline, false).makespan_ns);
            assert_true(t.makespan_ns >= 15 * m);
        }
        ps_arena_free(arena);
    }
}

static void refuse(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule_kind kind, const char *rule)
{
    ps_schedule schedule;
    ps_status status = {0};
    assert_int_equal(ps_schedule_generate(arena, kind, pipeline, &schedule, &status), PS_ILLEGAL);
    assert_string_equal(status.rule, rule);
}

static void families_refuse_routes_that_are_not_theirs(void **state)
{
    refuse(*state, dual_stages(*state, 4, 8, UNIT), PS_SCHEDULE_DUALPIPEV, "dualpipev-routes");
    refuse(*state, v_stages(*state, 4, 8, UNIT), PS_SCHEDULE_DUALPIPE, "dualpipe-routes");
    ps_pipeline *pipeline = dual_stages(*state, 4, 8, UNIT);
    pipeline->route_of[3] = 1;
    refuse(*state, pipeline, PS_SCHEDULE_DUALPIPE, "dualpipe-routes");
    pipeline = dual_stages(*state, 4, 8, UNIT);
    pipeline->route[1].num_stops = 3;
    refuse(*state, pipeline, PS_SCHEDULE_DUALPIPE, "dualpipe-routes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(idles_half_of_the_table_and_holds_p_plus_1_activations),
        test_in_arena(takes_the_time_and_the_memory_of_dualpipev_on_half_of_the_ranks),
        test_in_arena(every_micro_batch_passes_every_other_rank_once_each_way),
        test_in_arena(is_what_every_ranks_own_program_runs),
        test_in_arena(odd_sizes_and_too_few_micro_batches_are_refused_with_the_nearest),
        test_in_arena(whatever_is_legal_runs_with_hops_that_queue),
        test_in_arena(families_refuse_routes_that_are_not_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
