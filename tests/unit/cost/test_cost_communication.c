// SPDX-License-Identifier: Apache-2.0
#include "cost/communication.h"

#include "unit/cost/fixtures.h"

// nccl-tests on eight NVLink A100, all-reduce, in us. Large messages are bandwidth, small ones a plateau.
static void nvlink_all_reduce_follows_nccl_tests(void **state)
{
    (void)state;
    ps_group group = a100_group(1);
    static const struct {
        int64_t megabytes;
        double latency_us;
        double bytes_per_s;
        int64_t ranks;
    } rows[] = {{256, 45, 189e9, 2}, {1024, 57, 217e9, 4}, {1024, 80, 229e9, 8}, {64, 80, 229e9, 8}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double n = (double)rows[i].ranks;
        double bytes = (double)rows[i].megabytes * 1e6;
        double measured = rows[i].latency_us * 1e3 + 2 * (n - 1) / n * bytes / rows[i].bytes_per_s * 1e9;
        assert_near((double)ps_cost_all_reduce_ns(&group, rows[i].ranks, 1, (int64_t)bytes), measured, 0.2);
    }
    assert_near((double)ps_cost_all_reduce_ns(&group, 8, 1, 1000000), 93e3, 0.05);
    assert_int_equal(ps_cost_all_reduce_ns(&group, 8, 1, 1), ps_cost_all_reduce_ns(&group, 8, 1, 1000));
}

static void alone_or_without_bytes_a_collective_is_free(void **state)
{
    (void)state;
    ps_group group = a100_group(2);
    assert_int_equal(ps_cost_all_reduce_ns(&group, 1, 8, 1000000), 0);
    assert_int_equal(ps_cost_reduce_scatter_ns(&group, 1, 8, 1000000), 0);
    assert_int_equal(ps_cost_all_reduce_ns(&group, 8, 1, 0), 0);
}

// Two replicas eight ranks apart stand in two nodes: each GPU sends the whole tensor once, at its own NIC's rate.
static void replicas_in_different_nodes_meet_over_the_nics(void **state)
{
    (void)state;
    ps_group group = a100_group(2);
    int64_t bytes = INT64_C(10000000000);
    assert_near((double)ps_cost_all_reduce_ns(&group, 2, 8, bytes), 10e9 / (25e9 * 0.85) * 1e9, 0.001);
    assert_near((double)ps_cost_reduce_scatter_ns(&group, 2, 8, bytes), 5e9 / (25e9 * 0.85) * 1e9, 0.001);
    assert_true(ps_cost_all_reduce_ns(&group, 2, 4, bytes) < ps_cost_all_reduce_ns(&group, 2, 8, bytes) / 5);
}

// Eight ranks of each of four nodes: reduce-scatter and all-gather inside, an eighth of the tensor between.
static void collectives_across_nodes_are_hierarchical(void **state)
{
    (void)state;
    ps_group group = a100_group(4);
    double bytes = 32e9;
    double inside = 2 * 7.0 / 8 * bytes / (300e9 * 0.77 * 0.9);
    double between = 2 * 3.0 / 4 * bytes / 8 / (25e9 * 0.85);
    assert_near((double)ps_cost_all_reduce_ns(&group, 32, 1, (int64_t)bytes), (inside + between) * 1e9, 0.001);
}

// Measured among eight ranks of one node: a line between sizes, the first's time below, the last's bandwidth beyond. It
// says nothing of other ranks, nodes or collectives.
static void a_measured_curve_takes_the_place_of_the_formula(void **state)
{
    (void)state;
    static const double bytes[] = {1e6, 3e6, 9e6};
    static const double seconds[] = {100e-6, 200e-6, 500e-6};
    const ps_collective_curve curve = {PS_COLLECTIVE_ALL_REDUCE, 8, 1, 3, bytes, seconds};
    ps_group group = a100_group(2);
    ps_group plain = group;
    group.num_curves = 1;
    group.curve = &curve;
    assert_int_equal(ps_cost_all_reduce_ns(&group, 8, 1, 1), 100000);
    assert_int_equal(ps_cost_all_reduce_ns(&group, 8, 1, 1000000), 100000);
    assert_int_equal(ps_cost_all_reduce_ns(&group, 8, 1, 2000000), 150000);
    assert_int_equal(ps_cost_all_reduce_ns(&group, 8, 1, 9000000), 500000);
    assert_int_equal(ps_cost_all_reduce_ns(&group, 8, 1, 18000000), 1000000);
    assert_int_equal(ps_cost_all_reduce_ns(&group, 4, 1, 2000000), ps_cost_all_reduce_ns(&plain, 4, 1, 2000000));
    assert_int_equal(ps_cost_all_reduce_ns(&group, 8, 2, 2000000), ps_cost_all_reduce_ns(&plain, 8, 2, 2000000));
    assert_int_equal(ps_cost_reduce_scatter_ns(&group, 8, 1, 2000000),
                     ps_cost_reduce_scatter_ns(&plain, 8, 1, 2000000));
}

static void nodes_joined_by_one_fabric_are_one_domain(void **state)
{
    (void)state;
    ps_group apart = a100_group(4);
    ps_group joined = a100_group(4);
    joined.nvlink_domain_nodes = 4;
    int64_t bytes = INT64_C(1000000000);
    assert_true(ps_cost_all_reduce_ns(&joined, 4, 8, bytes) < ps_cost_all_reduce_ns(&apart, 4, 8, bytes) / 4);
    ps_layout layout = plain_layout();
    layout.tp = 8;
    layout.pp = 4;
    assert_string_equal(ps_cost_pipeline_link(&apart, &layout, 0, 1).name, "nic");
    assert_string_equal(ps_cost_pipeline_link(&joined, &layout, 0, 1).name, "nvlink");
}

static void oversubscription_slows_what_leaves_the_switch(void **state)
{
    (void)state;
    ps_group group = a100_group(8);
    ps_level levels[] = {{.name = "rack", .nodes = 4, .oversubscription = 1},
                         {.name = "pod", .nodes = 4, .oversubscription = 2}};
    int64_t bytes = INT64_C(10000000000);
    int64_t inside = ps_cost_all_reduce_ns(&group, 4, 8, bytes);
    int64_t beyond = ps_cost_all_reduce_ns(&group, 8, 8, bytes);
    group.num_levels = 2;
    group.level = levels;
    assert_int_equal(ps_cost_all_reduce_ns(&group, 4, 8, bytes), inside);
    assert_near((double)ps_cost_all_reduce_ns(&group, 8, 8, bytes), 2 * (double)beyond, 0.001);

    ps_layout layout = plain_layout();
    layout.tp = 8;
    layout.pp = 8;
    assert_near(ps_cost_pipeline_link(&group, &layout, 2, 3).bytes_per_s, 25e9 * 0.85, 1e-12);
    assert_near(ps_cost_pipeline_link(&group, &layout, 3, 4).bytes_per_s, 25e9 * 0.85 / 2, 1e-12);
    assert_near(ps_cost_pipeline_link(&group, &layout, 0, 7).bytes_per_s, 25e9 * 0.85 / 2, 1e-12);
}

// The slowest of all replicas and tensor ranks decides: with 3 ranks a pipeline rank, hops 0-1 of the first replica
// stay inside a node of 8, hop 2-3 crosses.
static void pipeline_hop_is_the_worst_of_its_replicas(void **state)
{
    (void)state;
    ps_group group = a100_group(2);
    ps_layout layout = plain_layout();
    layout.tp = 3;
    layout.pp = 5;
    static const char *const expected[] = {"nvlink", "nic", "nic", "nvlink"};
    for (int32_t rank = 0; rank < 4; rank++) {
        bool crosses = false;
        for (int32_t i = 0; i < 3; i++)
            crosses |= (3 * rank + i) / 8 != (3 * rank + 3 + i) / 8;
        assert_string_equal(expected[rank], crosses ? "nic" : "nvlink");
        assert_string_equal(ps_cost_pipeline_link(&group, &layout, rank, rank + 1).name, expected[rank]);
        assert_string_equal(ps_cost_pipeline_link(&group, &layout, rank + 1, rank).name, expected[rank]);
    }
}

static void every_small_layout_agrees_with_walking_its_ranks(void **state)
{
    (void)state;
    ps_group group = a100_group(4);
    for (int32_t block = 1; block <= 12; block++) {
        ps_layout layout = plain_layout();
        layout.tp = block;
        layout.pp = 8;
        for (int32_t a = 0; a < 8; a++) {
            for (int32_t b = a + 1; b < 8; b++) {
                bool crosses = false;
                for (int32_t i = 0; i < block; i++)
                    crosses |= (block * a + i) / 8 != (block * b + i) / 8;
                assert_string_equal(ps_cost_pipeline_link(&group, &layout, a, b).name, crosses ? "nic" : "nvlink");
            }
        }
    }
}

static void a_transfer_occupies_its_link_for_bytes_over_bandwidth(void **state)
{
    (void)state;
    ps_group group = a100_group(2);
    ps_cost_link link = ps_cost_inter_link(&group);
    assert_int_equal(link.latency_ns, 15000);
    assert_int_equal(ps_cost_transfer_ns(link, INT64_C(21250000000)), 1000000000);
    assert_int_equal(ps_cost_transfer_ns(link, 0), 0);
    assert_true(ps_cost_intra_link(&group).bytes_per_s > 200e9);
    group.intra.peer_share.value = 0.25; // of one pair; collectives use all links
    ps_cost_link pair = ps_cost_intra_link(&group);
    assert_near(pair.bytes_per_s, 0.25 * group.intra.bytes_per_s.value * group.intra.efficiency.value, 1e-12);
    group.inter.bytes_per_s.value = 0; // nobody knows it: 100 Gb/s is assumed
    assert_near(ps_cost_inter_link(&group).bytes_per_s, 12.5e9, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(nvlink_all_reduce_follows_nccl_tests),
        test_in_arena(alone_or_without_bytes_a_collective_is_free),
        test_in_arena(replicas_in_different_nodes_meet_over_the_nics),
        test_in_arena(collectives_across_nodes_are_hierarchical),
        test_in_arena(a_measured_curve_takes_the_place_of_the_formula),
        test_in_arena(nodes_joined_by_one_fabric_are_one_domain),
        test_in_arena(oversubscription_slows_what_leaves_the_switch),
        test_in_arena(pipeline_hop_is_the_worst_of_its_replicas),
        test_in_arena(every_small_layout_agrees_with_walking_its_ranks),
        test_in_arena(a_transfer_occupies_its_link_for_bytes_over_bandwidth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
