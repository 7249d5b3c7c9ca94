// SPDX-License-Identifier: Apache-2.0
#include "unit/cost/fixtures.h"

enum { SECOND = 1000000000 };

static ps_layout eight_replicas(int32_t zero)
{
    ps_layout layout = plain_layout();
    layout.tp = 8;
    layout.dp = 8;
    layout.zero = zero;
    return layout;
}

static ps_iteration_cost iteration(const ps_job *job, const ps_layout *layout, int64_t parameters)
{
    ps_group group = a100_group(8);
    ps_layer_cost sum = {.parameters = parameters, .parameter_bytes = 2 * parameters};
    return ps_cost_iteration(&group, job, layout, &sum);
}

static void one_replica_reduces_nothing(void **state)
{
    (void)state;
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    ps_iteration_cost cost = iteration(&job, &layout, 1000000000);
    assert_int_equal(cost.reduce_ns, 0);
    assert_int_equal(cost.gather_ns, 0);
    assert_true(cost.optimizer_ns > 0);
}

// 4-byte gradients of 1e9 parameters among 8 nodes: 2 * 7/8 * 4e9 B at 21.25 GB/s; with ZeRO-1 half of it, and
// the 2-byte weights come back.
static void replicas_reduce_all_gradients_once(void **state)
{
    (void)state;
    ps_job job = plain_job(2048);
    ps_layout replicated = eight_replicas(0);
    ps_layout sharded = eight_replicas(1);
    ps_iteration_cost whole = iteration(&job, &replicated, SECOND);
    ps_iteration_cost shards = iteration(&job, &sharded, SECOND);
    assert_near((double)whole.reduce_ns, 2 * 7.0 / 8 * 4e9 / 21.25e9 * 1e9, 0.001);
    assert_int_equal(whole.gather_ns, 0);
    assert_near((double)shards.reduce_ns, (double)whole.reduce_ns / 2, 0.001);
    assert_near((double)shards.gather_ns, (double)whole.reduce_ns / 4, 0.001);
    assert_near((double)shards.optimizer_ns, (double)whole.optimizer_ns / 8, 0.001);
    assert_near((double)whole.optimizer_ns, 34e9 / (2.0e12 * 0.75) * 1e9, 0.001);
}

// 25 of 40 million parameters; whole without overlap, and where layers gather their own.
static void buckets_hold_forty_million_parameters(void **state)
{
    (void)state;
    ps_job job = plain_job(2048);
    ps_layout layout = eight_replicas(0);
    ps_layout three = eight_replicas(3);
    assert_int_equal(iteration(&job, &layout, SECOND).buckets, 25);
    assert_int_equal(iteration(&job, &layout, 79999999).buckets, 1);
    assert_int_equal(iteration(&job, &layout, 80000000).buckets, 2);
    assert_int_equal(iteration(&job, &layout, 0).buckets, 1);
    assert_int_equal(iteration(&job, &three, SECOND).buckets, 1);
    job.overlap_grad_sync = false;
    assert_int_equal(iteration(&job, &layout, SECOND).buckets, 1);
}

static void zero2_reduces_as_much_each_time_and_zero3_inside_layers(void **state)
{
    (void)state;
    ps_job job = plain_job(2048);
    ps_layout one = eight_replicas(1);
    ps_layout two = eight_replicas(2);
    ps_layout three = eight_replicas(3);
    assert_int_equal(iteration(&job, &two, SECOND).reduce_ns, iteration(&job, &one, SECOND).reduce_ns);
    assert_int_equal(iteration(&job, &three, SECOND).reduce_ns, 0);
    assert_int_equal(iteration(&job, &three, SECOND).gather_ns, 0);
}

// First and last rank of the pipeline add up the gradients of a weight they share, every iteration.
static void tied_weights_are_reduced_between_the_ends(void **state)
{
    (void)state;
    ps_group group = a100_group(8);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    layout.tp = 8;
    layout.pp = 8;
    int64_t time = ps_cost_tied_ns(&group, &job, &layout, 50000000);
    assert_int_equal(time, ps_cost_all_reduce_ns(&group, 2, 56, 200000000));
    layout.pp = 1;
    assert_int_equal(ps_cost_tied_ns(&group, &job, &layout, 50000000), 0);
}

// Both ends in one node: the pair uses the fabric, though no block of their size divides the node.
static void tied_weights_in_one_node_do_not_leave_it(void **state)
{
    (void)state;
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    layout.pp = 4;
    assert_int_equal(ps_cost_tied_ns(&group, &job, &layout, 50000000), ps_cost_all_reduce_ns(&group, 2, 1, 200000000));
}

static void a_barrier_is_an_all_reduce_of_one_number_among_all(void **state)
{
    (void)state;
    ps_group group = a100_group(8);
    ps_layout layout = eight_replicas(1);
    assert_int_equal(ps_cost_barrier_ns(&group, &layout), ps_cost_all_reduce_ns(&group, 64, 1, 4));
    layout = plain_layout();
    assert_int_equal(ps_cost_barrier_ns(&group, &layout), 0);
}

// Dualpipe's holders of the same layers: ranks 0 and 7 over seven nodes, ranks 3 and 4 over one, each with its shard.
static void ranks_with_the_same_layers_add_their_gradients_up(void **state)
{
    (void)state;
    ps_group group = a100_group(8);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    layout.tp = 8;
    layout.pp = 8;
    layout.zero = 0;
    for (int32_t rank = 0; rank < 8; rank++)
        assert_int_equal(ps_cost_pair_sync_ns(&group, &job, &layout, rank, 50000000),
                         ps_cost_all_reduce_ns(&group, 2, 56, 200000000));
    layout.tp = 1;
    layout.dp = 2; // ranks 3 and 4 of 8 stand side by side in one node
    group = a100_group(2);
    assert_int_equal(ps_cost_pair_sync_ns(&group, &job, &layout, 2, 50000000),
                     ps_cost_pair_sync_ns(&group, &job, &layout, 5, 50000000));
    int64_t whole = ps_cost_pair_sync_ns(&group, &job, &layout, 0, 50000000);
    layout.zero = 1;
    assert_int_equal(ps_cost_pair_sync_ns(&group, &job, &layout, 0, 100000000), whole);
}

// ZeRO-3 over slow NICs: a layer takes as long as gathering its weights when that is more than computing.
static void zero3_layers_take_the_longer_of_compute_and_gather(void **state)
{
    ps_block block = llama3_8b_block();
    ps_model model = transformer(*state, &block, 1, false);
    ps_group group = h100_group(8);
    ps_layout layout = plain_layout();
    layout.tp = 8;
    layout.dp = 8;
    ps_job few = plain_job(128);
    ps_job many = plain_job(131072);
    ps_layer_cost few1 = cost_of(*state, &model, &group, &few, &layout).layer[1];
    ps_layer_cost many1 = cost_of(*state, &model, &group, &many, &layout).layer[1];
    layout.zero = 3;
    ps_layer_cost few3 = cost_of(*state, &model, &group, &few, &layout).layer[1];
    ps_layer_cost many3 = cost_of(*state, &model, &group, &many, &layout).layer[1];
    int64_t gather = ps_cost_reduce_scatter_ns(&group, 8, 8, 2 * few1.parameters);
    assert_true(few1.forward_ns < gather);
    assert_int_equal(few3.forward_ns, gather);
    assert_int_equal(many3.forward_ns, many1.forward_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(one_replica_reduces_nothing),
        test_in_arena(replicas_reduce_all_gradients_once),
        test_in_arena(buckets_hold_forty_million_parameters),
        test_in_arena(zero2_reduces_as_much_each_time_and_zero3_inside_layers),
        test_in_arena(tied_weights_are_reduced_between_the_ends),
        test_in_arena(tied_weights_in_one_node_do_not_leave_it),
        test_in_arena(ranks_with_the_same_layers_add_their_gradients_up),
        test_in_arena(a_barrier_is_an_all_reduce_of_one_number_among_all),
        test_in_arena(zero3_layers_take_the_longer_of_compute_and_gather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
