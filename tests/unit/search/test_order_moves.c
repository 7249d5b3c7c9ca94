// SPDX-License-Identifier: Apache-2.0
//
// test_order_moves.c: what moves, compaction and extension say of an order's times, against timing it anew.
#include <string.h>

#include "base/rng.h"
#include "search/order_compact.h"
#include "search/order_cycle.h"
#include "search/order_extend.h"
#include "search/order_graph.h"
#include "search/order_move.h"
#include "search/order_rounds.h"
#include "support/cmocka_all.h"
#include "support/pipelines.h"

// A random pipeline, folded or with one stage a device, with room for about `room` micro-batches of a stage.
static ps_pipeline *random_pipeline(ps_arena *arena, ps_rng *rng, bool folded, int32_t microbatches)
{
    int32_t devices = (int32_t)ps_rng_range(rng, 2, 6);
    int32_t stages = folded ? 2 * devices : devices;
    ps_pipeline *out = ps_new(arena, ps_pipeline, 1);
    *out = (ps_pipeline){.num_stages = stages,
                         .num_devices = devices,
                         .num_microbatches = microbatches,
                         .stage = ps_new(arena, ps_stage, stages),
                         .forward_hop = ps_new(arena, ps_hop, stages),
                         .backward_hop = ps_new(arena, ps_hop, stages),
                         .device = ps_new(arena, ps_device, devices)};
    for (int32_t s = 0; s < stages; s++) {
        ps_stage *stage = &out->stage[s];
        *stage = (ps_stage){.device = s < devices ? s : stages - 1 - s,
                            .held_after_forward = 4,
                            .held_after_backward_input = ps_rng_range(rng, 0, 5)};
        stage->duration_ns[PS_OP_FORWARD] = ps_rng_range(rng, 1, 9);
        stage->duration_ns[PS_OP_BACKWARD_INPUT] = ps_rng_range(rng, 1, 9);
        stage->duration_ns[PS_OP_BACKWARD_WEIGHT] = ps_rng_range(rng, 0, 9);
        stage->duration_ns[PS_OP_BACKWARD] =
            stage->duration_ns[PS_OP_BACKWARD_INPUT] + stage->duration_ns[PS_OP_BACKWARD_WEIGHT];
        out->forward_hop[s].latency_ns = out->backward_hop[s].latency_ns = ps_rng_range(rng, 0, 3);
    }
    for (int32_t d = 0; d < devices; d++)
        out->device[d].memory_limit = ps_rng_range(rng, 13, 60);
    ps_pipeline_assign_lanes(arena, out);
    return out;
}

// One micro-batch after the other.
static void write_in_sequence(const ps_order_problem *problem, ps_order *out)
{
    int32_t next[16];
    for (int32_t d = 0; d < problem->num_devices; d++)
        next[d] = problem->first[d];
    for (int32_t k = 0; k < problem->num_microbatches; k++) {
        for (int32_t i = 0; i < problem->num_stages; i++)
            out->op[next[problem->stage[i].device]++] = (ps_order_op){k, (uint16_t)i, PS_STEP_FORWARD};
        for (int32_t i = problem->num_stages - 1; i >= 0; i--) {
            out->op[next[problem->stage[i].device]++] = (ps_order_op){k, (uint16_t)i, PS_STEP_GRADIENT};
            if (!problem->fused)
                out->op[next[problem->stage[i].device]++] = (ps_order_op){k, (uint16_t)i, PS_STEP_WEIGHT};
        }
    }
}

// The desk's times are those of an order, as another desk finds them.
static void assert_times_are_those_of_the_ops(ps_arena *arena, const ps_order_problem *problem, const ps_order *order,
                                              const ps_order_desk *desk)
{
    int32_t ops = problem->first[problem->num_devices];
    ps_order copy;
    ps_order_trial anew;
    ps_order_new(arena, problem, &copy);
    ps_order_trial_new(arena, problem, &anew);
    ps_order_copy(problem, order, &copy);
    assert_true(ps_order_time(problem, &copy, &anew, INT64_MAX));
    assert_int_equal(order->value_ns, copy.value_ns);
    assert_memory_equal(desk->trial.start_ns, anew.start_ns, (size_t)ops * sizeof *anew.start_ns);
    for (int32_t i = 0; i < ops; i++) {
        ps_order_op op = order->op[i];
        int32_t kind = PS_STEPS * op.stage + op.step;
        assert_int_equal(desk->trial.position[(int64_t)kind * problem->num_microbatches + op.microbatch], i);
    }
}

// An order's value is what it takes.
static void assert_takes_its_value(ps_order *order, ps_order_desk *desk)
{
    int64_t value = order->value_ns;
    assert_true(ps_order_time(desk->problem, order, &desk->trial, INT64_MAX));
    assert_int_equal(order->value_ns, value);
}

// What a fixture needs: a random problem with an order.
typedef struct setting {
    ps_rng rng;
    ps_order_problem problem;
    ps_order_desk desk;
    ps_order order;
} setting;

static void set_up(ps_arena *arena, uint64_t seed, int32_t microbatches, setting *out)
{
    out->rng = (ps_rng){seed};
    ps_pipeline *pipeline = random_pipeline(arena, &out->rng, seed % 2 == 0, microbatches);
    ps_status status = {0};
    ps_order_problem_set(arena, pipeline, seed % 5 == 0, seed % 3 == 0, &out->problem);
    assert_ok(ps_order_problem_fits(&out->problem, &status), &status);
    ps_order_desk_new(arena, &out->problem, &out->desk);
    ps_order_new(arena, &out->problem, &out->order);
    write_in_sequence(&out->problem, &out->order);
    assert_true(ps_order_time(&out->problem, &out->order, &out->desk.trial, INT64_MAX));
}

static void moves_keep_exact_times_and_undo_themselves(void **state)
{
    int accepted = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        setting s;
        set_up(*state, seed, 6, &s);
        ps_order_graph graph;
        ps_order_graph_new(*state, &s.problem, &s.order, &s.desk.trial, &graph);
        ps_order_graph_set(&graph);
        int32_t ops = s.problem.first[s.problem.num_devices];
        for (int i = 0; i < 400; i++) {
            int32_t from = (int32_t)ps_rng_range(&s.rng, 0, ops - 1);
            int32_t device = s.problem.stage[s.order.op[from].stage].device;
            int32_t to = from + (int32_t)ps_rng_range(&s.rng, -5, 5);
            to = to < s.problem.first[device] ? s.problem.first[device] : to;
            to = to >= s.problem.first[device + 1] ? s.problem.first[device + 1] - 1 : to;
            int64_t limit = s.order.value_ns + ps_rng_range(&s.rng, -1, 4);
            bool moved = ps_order_graph_move(&graph, from, to, limit);
            assert_true(!moved || s.order.value_ns <= limit);
            accepted += moved;
            if (i % 20 == 0 || moved)
                assert_times_are_those_of_the_ops(*state, &s.problem, &s.order, &s.desk);
        }
    }
    assert_true(accepted > 2000);
}

// Every start and tail together are at most the value, and some longest path has them equal all along.
static void tails_reach_the_value_on_a_longest_path(void **state)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        setting s;
        set_up(*state, seed, 5, &s);
        ps_order_graph graph;
        ps_order_graph_new(*state, &s.problem, &s.order, &s.desk.trial, &graph);
        ps_order_graph_set(&graph);
        int32_t critical = 0;
        for (int32_t i = 0; i < s.problem.first[s.problem.num_devices]; i++) {
            assert_true(s.desk.trial.start_ns[i] + graph.tail_ns[i] <= s.order.value_ns);
            critical += s.desk.trial.start_ns[i] + graph.tail_ns[i] == s.order.value_ns;
        }
        assert_true(critical > 0);
    }
}

static void compaction_never_lengthens_an_order(void **state)
{
    int shorter = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        setting s;
        set_up(*state, seed, 6, &s);
        int64_t before = s.order.value_ns;
        ps_compact_scratch scratch;
        ps_compact_scratch_new(*state, &s.problem, &scratch);
        ps_order_compact(&s.problem, &s.order, &scratch, &s.desk.trial);
        assert_true(s.order.value_ns <= before);
        assert_times_are_those_of_the_ops(*state, &s.problem, &s.order, &s.desk);
        shorter += s.order.value_ns < before;
    }
    assert_true(shorter > 30);
}

// Whatever is found fits and keeps its times; where neither finds anything, the order is left alone.
static void patterns_and_rounds_give_orders_that_fit(void **state)
{
    int patterns = 0;
    int rounds = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        setting s;
        set_up(*state, seed, 8, &s);
        int64_t before = s.order.value_ns;
        ps_order steady;
        ps_order_new(*state, &s.problem, &steady);
        assert_int_equal(ps_order_cycles(*state, &s.desk, 20000, 0, &steady), PS_OK);
        if (steady.value_ns < INT64_MAX) {
            patterns++;
            assert_takes_its_value(&steady, &s.desk);
        }
        assert_int_equal(ps_order_rounds(*state, &s.desk, &s.order), PS_OK);
        assert_takes_its_value(&s.order, &s.desk);
        rounds += s.order.value_ns < before;
    }
    assert_true(patterns > 20);
    assert_true(rounds > 10);
}

// Each further micro-batch of a schedule that keeps its pace costs what the fullest device needs for it.
static void extended_order_keeps_the_pace(void **state)
{
    costs cost = {.forward_ns = 1000,
                  .backward_input_ns = 1000,
                  .backward_weight_ns = 1000,
                  .held_after_forward = 2,
                  .held_after_backward_input = 1};
    ps_pipeline *large = equal_stages(*state, 4, 100, cost);
    for (int32_t d = 0; d < 4; d++)
        large->device[d].memory_limit = 8;
    ps_pipeline small = *large;
    ps_order_problem problem;
    ps_order_problem core;
    ps_order_problem_set(*state, large, false, false, &problem);
    small.num_microbatches = ps_order_core_microbatches(&problem);
    assert_true(small.num_microbatches > 12 && small.num_microbatches < 100);
    assert_int_equal((100 - small.num_microbatches) % 12, 0);
    ps_order_problem_set(*state, &small, false, false, &core);

    ps_schedule schedule;
    ps_status status = {0};
    ps_order_desk desk;
    ps_order_desk core_desk;
    ps_order core_order;
    ps_order order;
    ps_order_desk_new(*state, &core, &core_desk);
    ps_order_desk_new(*state, &problem, &desk);
    ps_order_new(*state, &core, &core_order);
    ps_order_new(*state, &problem, &order);
    assert_ok(ps_schedule_generate(*state, PS_SCHEDULE_ZB_H1, &small, &schedule, &status), &status);
    assert_true(ps_order_from_schedule(&core, &schedule, &core_desk.trial, &core_order));
    assert_true(ps_order_time(&core, &core_order, &core_desk.trial, INT64_MAX));
    write_in_sequence(&problem, &order);
    assert_true(ps_order_time(&problem, &order, &desk.trial, INT64_MAX));
    ps_order_extend(*state, &core, &core_order, &desk, &order);
    assert_int_equal(order.value_ns, core_order.value_ns + (100 - small.num_microbatches) * INT64_C(3000));
    assert_takes_its_value(&order, &desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(moves_keep_exact_times_and_undo_themselves),
        test_in_arena(tails_reach_the_value_on_a_longest_path),
        test_in_arena(compaction_never_lengthens_an_order),
        test_in_arena(patterns_and_rounds_give_orders_that_fit),
        test_in_arena(extended_order_keeps_the_pace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
