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

static ps_iteration_cost iteration(const ps_job *job, const ps_layout *layout, int64_t parameters, int64_t window_ns)
{
    ps_group group = a100_group(8);
    ps_layer_cost sum = {.parameters = parameters};
    return ps_cost_iteration(&group, job, layout, &sum, window_ns);
}

static void one_replica_reduces_nothing(void **state)
{
    (void)state;
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    ps_iteration_cost cost = iteration(&job, &layout, 1000000000, 0);
    assert_int_equal(cost.grad_sync_ns, 0);
    assert_int_equal(cost.grad_sync_exposed_ns, 0);
    assert_int_equal(cost.param_gather_exposed_ns, 0);
    assert_true(cost.optimizer_ns > 0);
}

// 4-byte gradients of 1e9 parameters among 8 nodes: 2 * 7/8 * 4e9 B at 21.25 GB/s; with ZeRO-1 half of it, and
// the 2-byte weights come back.
static void replicas_reduce_all_gradients_once(void **state)
{
    (void)state;
    ps_job job = plain_job(2048);
    job.overlap_grad_sync = false;
    ps_layout replicated = eight_replicas(0);
    ps_layout sharded = eight_replicas(1);
    ps_iteration_cost whole = iteration(&job, &replicated, SECOND, 0);
    ps_iteration_cost shards = iteration(&job, &sharded, SECOND, 0);
    assert_near((double)whole.grad_sync_ns, 2 * 7.0 / 8 * 4e9 / 21.25e9 * 1e9, 0.001);
    assert_int_equal(whole.grad_sync_exposed_ns, whole.grad_sync_ns);
    assert_int_equal(whole.param_gather_exposed_ns, 0);
    assert_near((double)shards.grad_sync_ns, (double)whole.grad_sync_ns / 2, 0.001);
    assert_near((double)shards.param_gather_exposed_ns, (double)whole.grad_sync_ns / 4, 0.001);
    assert_near((double)shards.optimizer_ns, (double)whole.optimizer_ns / 8, 0.001);
    assert_near((double)whole.optimizer_ns, 34e9 / (2.0e12 * 0.75) * 1e9, 0.001);
}

// However long the backward, the last of the 25 buckets of 40 million parameters cannot hide.
static void overlap_leaves_the_last_bucket(void **state)
{
    (void)state;
    ps_job job = plain_job(2048);
    ps_layout layout = eight_replicas(0);
    ps_iteration_cost hidden = iteration(&job, &layout, SECOND, INT64_C(10) * SECOND);
    assert_near((double)hidden.grad_sync_exposed_ns, (double)hidden.grad_sync_ns / 25, 1e-6);
    int64_t before = hidden.grad_sync_ns;
    for (int64_t window = 0; window <= SECOND; window += SECOND / 10) {
        ps_iteration_cost cost = iteration(&job, &layout, SECOND, window);
        assert_int_equal(cost.grad_sync_ns, hidden.grad_sync_ns);
        assert_true(cost.grad_sync_exposed_ns <= before);
        before = cost.grad_sync_exposed_ns;
    }
}

static void zero2_reduces_in_every_microbatch_and_zero3_inside_layers(void **state)
{
    (void)state;
    ps_job job = plain_job(2048);
    ps_layout one = eight_replicas(1);
    ps_layout two = eight_replicas(2);
    ps_layout three = eight_replicas(3);
    int64_t once = iteration(&job, &one, SECOND, 0).grad_sync_ns;
    assert_near((double)iteration(&job, &two, SECOND, 0).grad_sync_ns, 8 * (double)once, 1e-6);
    assert_int_equal(iteration(&job, &three, SECOND, 0).grad_sync_ns, 0);
    assert_int_equal(iteration(&job, &three, SECOND, 0).param_gather_exposed_ns, 0);
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
    ps_layer_cost sum = {.copy_parameters = 50000000};
    ps_iteration_cost cost = ps_cost_iteration(&group, &job, &layout, &sum, SECOND);
    assert_int_equal(cost.grad_sync_ns, ps_cost_all_reduce_ns(&group, 2, 56, 200000000));
    assert_int_equal(cost.grad_sync_exposed_ns, cost.grad_sync_ns);
    layout.pp = 1;
    assert_int_equal(ps_cost_iteration(&group, &job, &layout, &sum, SECOND).grad_sync_ns, 0);
}

// Both ends in one node: the pair uses the fabric, though no block of their size divides the node.
static void tied_weights_in_one_node_do_not_leave_it(void **state)
{
    (void)state;
    ps_group group = a100_group(1);
    ps_job job = plain_job(2048);
    ps_layout layout = plain_layout();
    layout.pp = 4;
    ps_layer_cost sum = {.copy_parameters = 50000000};
    ps_iteration_cost cost = ps_cost_iteration(&group, &job, &layout, &sum, SECOND);
    assert_int_equal(cost.grad_sync_ns, ps_cost_all_reduce_ns(&group, 2, 1, 200000000));
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
        test_in_arena(overlap_leaves_the_last_bucket),
        test_in_arena(zero2_reduces_in_every_microbatch_and_zero3_inside_layers),
        test_in_arena(tied_weights_are_reduced_between_the_ends),
        test_in_arena(tied_weights_in_one_node_do_not_leave_it),
        test_in_arena(ranks_with_the_same_layers_add_their_gradients_up),
        test_in_arena(zero3_layers_take_the_longer_of_compute_and_gather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
