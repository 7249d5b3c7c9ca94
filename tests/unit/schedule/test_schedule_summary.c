// SPDX-License-Identifier: Apache-2.0
//
// test_schedule_summary.c: what papers' tables say of the families at equal times and free hops, over ranges of devices
// and micro-batches: idle time a device, memory, messages (Qi et al., ICLR 2024 and NeurIPS 2024; Narayanan et al., SC
// 2021; DualPipe's README).
#include "pipesched/action.h"
#include "support/cmocka_all.h"
#include "support/pipelines.h"

// A chunk's F, I and W take six units each and its recompute as well; it holds six units until I and three until W.
static const costs EQUAL = {.forward_ns = 6,
                            .backward_input_ns = 6,
                            .backward_weight_ns = 6,
                            .held_after_forward = 6,
                            .held_after_backward_input = 3};

static int32_t transfers_of(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule)
{
    int32_t *device = ps_new(arena, int32_t, pipeline->num_stages);
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        device[s] = pipeline->stage[s].device;
    ps_stage_map placement = {pipeline->num_stages, pipeline->num_microbatches, device};
    ps_actions compute;
    ps_actions all;
    ps_status status = {0};
    int32_t sends = 0;
    ps_actions_from_schedule(arena, schedule, &compute);
    assert_ok(ps_actions_add_transfers(arena, &placement, &compute, &all, &status), &status);
    for (int32_t i = 0; i < all.first[all.num_devices]; i++)
        sends += ps_action_is_transfer(all.action[i].kind) && ps_action_is_send(all.action[i].kind);
    return sends;
}

// Of one device and micro-batch: T_F = T_I = T_W = t. Idle time in t / 6, memory in sixths of a chunk.
typedef struct row {
    ps_schedule_kind kind;
    int32_t chunks;
    int64_t (*idle)(int64_t p, int64_t v);
    int64_t (*span_idle)(int64_t p, int64_t v); // NULL: as `idle`
    int64_t (*most_held)(int64_t p, int64_t v, int64_t m);
} row;

static int64_t idle_of_whole_backwards(int64_t p, int64_t v)
{
    (void)v;
    return 3 * (p - 1) * 6;
}

static int64_t idle_of_split_backwards(int64_t p, int64_t v)
{
    (void)v;
    return (p - 1) * 6;
}

static int64_t none(int64_t p, int64_t v)
{
    (void)p;
    (void)v;
    return 0;
}

static int64_t every_microbatch(int64_t p, int64_t v, int64_t m)
{
    (void)p;
    return 6 * v * m;
}

static int64_t as_many_as_devices(int64_t p, int64_t v, int64_t m)
{
    (void)m;
    return 6 * v * p;
}

static int64_t twice_as_many_but_one(int64_t p, int64_t v, int64_t m)
{
    (void)m;
    return 6 * v * (2 * p - 1);
}

static int64_t fill_of_interleaved(int64_t p, int64_t v, int64_t m)
{
    (void)m;
    return 6 * ((v - 1) * p + 2 * (p - 1) + 1);
}

static int64_t half_a_microbatch_more(int64_t p, int64_t v, int64_t m)
{
    (void)m;
    return 6 * v * p + 6;
}

// Times are of a chunk, so that idle_of_whole_backwards() is 3 (p - 1) t / v and so on. In a V both chunks share it.
static const row TABLE[] = {
    {PS_SCHEDULE_GPIPE, 1, idle_of_whole_backwards, NULL, every_microbatch},
    {PS_SCHEDULE_1F1B, 1, idle_of_whole_backwards, NULL, as_many_as_devices},
    {PS_SCHEDULE_H_1F1B, 1, idle_of_whole_backwards, NULL, as_many_as_devices},
    {PS_SCHEDULE_GPIPE_RECOMPUTE, 1, idle_of_whole_backwards, NULL, every_microbatch},
    {PS_SCHEDULE_LOOPED_BFS, 2, idle_of_whole_backwards, NULL, every_microbatch},
    {PS_SCHEDULE_LOOPED_BFS, 3, idle_of_whole_backwards, NULL, every_microbatch},
    {PS_SCHEDULE_INTERLEAVED, 2, idle_of_whole_backwards, NULL, fill_of_interleaved},
    {PS_SCHEDULE_INTERLEAVED, 4, idle_of_whole_backwards, NULL, fill_of_interleaved},
    {PS_SCHEDULE_ZB_H1, 1, idle_of_split_backwards, NULL, as_many_as_devices},
    {PS_SCHEDULE_ZB_H2, 1, idle_of_split_backwards, none, twice_as_many_but_one},
    {PS_SCHEDULE_INTERLEAVED_ZB, 2, idle_of_split_backwards, NULL, as_many_as_devices},
    {PS_SCHEDULE_INTERLEAVED_ZB, 3, idle_of_split_backwards, NULL, as_many_as_devices},
    {PS_SCHEDULE_ZB_V, 2, idle_of_split_backwards, none, as_many_as_devices},
    {PS_SCHEDULE_DUALPIPEV, 2, idle_of_split_backwards, NULL, half_a_microbatch_more},
};

static ps_pipeline *equal_pipeline(ps_arena *arena, ps_schedule_kind kind, int32_t p, int32_t v, int32_t m)
{
    costs cost = EQUAL;
    cost.recompute_ns = ps_schedule_family_at(kind)->recomputes ? 6 : 0;
    ps_pipeline *pipeline = looped_stages(arena, p, p * v, m, cost);
    if (ps_schedule_family_at(kind)->placement == PS_PLACEMENT_V)
        place_for(arena, pipeline, kind);
    return pipeline;
}

static void check_row(const row *r, int32_t p, int32_t m)
{
    ps_arena *arena = ps_arena_new(0);
    ps_pipeline *pipeline = equal_pipeline(arena, r->kind, p, r->chunks, m);
    ps_schedule schedule = schedule_for(arena, pipeline, r->kind);
    ps_timeline t = simulate(arena, pipeline, &schedule);
    const ps_schedule_family *family = ps_schedule_family_at(r->kind);
    int64_t work = (int64_t)m * r->chunks * (18 + pipeline->stage[0].duration_ns[PS_OP_RECOMPUTE]);
    int64_t most = 0;
    for (int32_t device = 0; device < p; device++) {
        assert_int_equal(t.device[device].busy_ns, work);
        most = t.device[device].peak_activation > most ? t.device[device].peak_activation : most;
    }
    int64_t want_span = work + (r->span_idle ? r->span_idle : r->idle)(p, r->chunks);
    bool alone = p == 1; // nothing is sent, and the memory is that of devices that wait for each other
    if (t.makespan_ns != work + r->idle(p, r->chunks) || (r->span_idle && t.span_ns != want_span) ||
        (alone ? most > r->most_held(p, r->chunks, m) : most != r->most_held(p, r->chunks, m)))
        fail_msg("%s, p %d, v %d, m %d: makespan %d, span %d, held %d", family->name, (int)p, (int)r->chunks, (int)m,
                 (int)t.makespan_ns, (int)t.span_ns, (int)most);
    bool is_v = family->placement == PS_PLACEMENT_V;
    int32_t hops = alone ? 0 : is_v ? 2 * (p - 1) : p * r->chunks - 1;
    assert_int_equal(transfers_of(arena, pipeline, &schedule), 2 * hops * m);
    ps_arena_free(arena);
}

// From two micro-batches a device on, odd numbers of both among them.
static void idle_time_memory_and_messages_are_as_published(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof TABLE / sizeof TABLE[0]; i++) {
        for (int32_t p = 1; p <= 9; p++) {
            int32_t checked = 0;
            for (int32_t m = 2 * p; m <= 4 * p; m++) {
                ps_schedule_shape shape = {p, p * TABLE[i].chunks, m, 0, NULL};
                ps_status status = {0};
                // Interleaved ones take groups of p; for others interleaved-zb is legal, but idles more.
                bool groups = TABLE[i].kind == PS_SCHEDULE_INTERLEAVED_ZB && m % p != 0;
                if (groups || ps_schedule_family_at(TABLE[i].kind)->legal(shape, &status) != PS_OK)
                    continue;
                check_row(&TABLE[i], p, m);
                checked++;
            }
            assert_in_range(checked, 3, 40);
        }
    }
}

// 1F1B and GPipe take the same time whatever F and B, also with fewer micro-batches than devices; GPipe holds all of
// them, 1F1B as many as there are devices behind.
static void gpipe_and_1f1b_differ_in_memory_only_for_any_shape(void **state)
{
    (void)state;
    for (int32_t p = 1; p <= 8; p++) {
        for (int32_t m = 1; m <= 32; m += 1 + (m > 8) * 4) {
            for (int64_t b = 1; b <= 3; b++) {
                ps_arena *arena = ps_arena_new(0);
                ps_pipeline *pipeline = equal_stages(arena, p, m, (costs){.forward_ns = 1, .backward_ns = b});
                ps_timeline gpipe = run(arena, pipeline, PS_SCHEDULE_GPIPE);
                ps_timeline one = run(arena, pipeline, PS_SCHEDULE_1F1B);
                ps_schedule_bound bound;
                ps_schedule_bound_compute(pipeline, true, &bound);
                assert_int_equal(gpipe.makespan_ns, (m + p - 1) * (1 + b));
                assert_int_equal(one.makespan_ns, gpipe.makespan_ns);
                assert_int_equal(bound.makespan_ns, gpipe.makespan_ns); // nothing faster may be claimed
                assert_near(ps_timeline_bubble(&one), (p - 1.0) / (m + p - 1.0), 1e-12);
                for (int32_t d = 0; d < p; d++) {
                    assert_int_equal(gpipe.device[d].in_flight_peak, m);
                    assert_int_equal(one.device[d].in_flight_peak, m < p - d ? m : p - d);
                }
                ps_arena_free(arena);
            }
        }
    }
}

// Idle (p - 1) of 3 m + p - 1 units at F = I = W, a third of 1F1B's time and less than a third of its share; held by
// ZB-H2, zb-v, v-half and v-min at most twice, once, half and a third as much, and messages of a V are twice as many.
static void zero_bubble_trades_memory_and_messages_for_idle_time(void **state)
{
    (void)state;
    static const struct {
        ps_schedule_kind kind;
        int32_t chunks;
        int32_t times; // of p micro-batches, in sixths, beside what rounding up adds
        int32_t more;
    } memory[] = {{PS_SCHEDULE_ZB_H1, 1, 6, 0},
                  {PS_SCHEDULE_ZB_H2, 1, 12, 0},
                  {PS_SCHEDULE_ZB_V, 2, 6, 0},
                  {PS_SCHEDULE_V_HALF, 2, 3, 6},
                  {PS_SCHEDULE_V_MIN, 2, 2, 8}};
    for (int32_t p = 2; p <= 12; p++) {
        for (int32_t m = 2 * p; m <= 4 * p; m += p - 1) {
            ps_arena *arena = ps_arena_new(0);
            costs cost = EQUAL;
            cost.held_after_backward_input = 0;
            ps_timeline h1 = run(arena, equal_stages(arena, p, m, cost), PS_SCHEDULE_ZB_H1);
            assert_int_equal(h1.makespan_ns, 6 * (3 * m + p - 1));
            assert_near(ps_timeline_bubble(&h1), (p - 1.0) / (3.0 * m + p - 1), 1e-12);
            for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
                ps_pipeline *pipeline = looped_stages(arena, p, p * memory[i].chunks, m, cost);
                if (memory[i].chunks == 2)
                    place_for(arena, pipeline, memory[i].kind);
                ps_schedule schedule = schedule_for(arena, pipeline, memory[i].kind);
                ps_timeline t = simulate(arena, pipeline, &schedule);
                for (int32_t d = 0; d < p; d++)
                    assert_true(t.device[d].peak_activation <=
                                memory[i].chunks * (memory[i].times * p + memory[i].more));
                assert_int_equal(transfers_of(arena, pipeline, &schedule), 2 * (p - 1) * m * memory[i].chunks);
            }
            ps_arena_free(arena);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_time_memory_and_messages_are_as_published),
        cmocka_unit_test(gpipe_and_1f1b_differ_in_memory_only_for_any_shape),
        cmocka_unit_test(zero_bubble_trades_memory_and_messages_for_idle_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
