// SPDX-License-Identifier: Apache-2.0
#include "clusters.h"

#include "io/builtin.h"

#define ONE_GROUP(body) "{ \"format\": \"pipesched/cluster/v1\", \"name\": \"mine\", \"groups\": [ " body " ] }"
#define H100_NODE "{ \"gpu\": \"H100-SXM5-80GB\", \"gpus\": 8, \"nics\": 4, \"nic\": \"IB-NDR\" }"

static void built_in_clusters_load_without_warnings(void **state)
{
    ps_arena *arena = *state;
    int32_t count = 0;
    const char *const *names = ps_builtin_names(arena, PS_BUILTIN_CLUSTER, &count);

    assert_true(count >= 4);
    for (int32_t i = 0; i < count; i++) {
        ps_cluster cluster = load(arena, names[i], NULL);
        assert_int_equal(cluster.num_warnings, 0);
        assert_string_equal(cluster.name, names[i]);
        assert_true(cluster.group[0].inter.bytes_per_s.value > 0);
    }
    assert_int_equal(ps_cluster_gpus(&(ps_cluster){0}), 0);
    ps_cluster cluster = load(arena, "h100-8x8", NULL);
    assert_int_equal(ps_cluster_gpus(&cluster), 64);
}

static void nics_are_shared_evenly_by_the_gpus(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster = parse(arena, ONE_GROUP("{ \"nodes\": 2, \"node\": " H100_NODE " }"), NULL);

    assert_int_equal(cluster.group[0].nics, 4);
    assert_rate(cluster.group[0].inter.bytes_per_s, 25e9); // 4 of 50 GB/s for 8 GPUs
    assert_int_equal(cluster.num_warnings, 0);
}

static void the_whole_native_format_is_read(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster = parse(
        arena,
        ONE_GROUP(
            "{ \"name\": \"h100\", \"nodes\": 8, \"node\": { \"gpu\": \"H100-SXM5-80GB\", \"gpus\": 8, \"intra\": "
            "\"nvlink4\", \"intra_bandwidth\": \"400GB/s\", \"intra_latency\": \"7us\", \"nics\": 8, \"nic\": "
            "\"IB-NDR\", \"nic_bandwidth\": \"200Gb/s\", \"nic_latency\": \"12us\", \"host_memory\": \"2TiB\" }, "
            "\"nvlink_domain_nodes\": 2, \"rails\": 8, \"levels\": [ { \"name\": \"rack\", \"nodes\": 4, "
            "\"oversubscription\": 1 }, { \"name\": \"pod\", \"nodes\": 64, \"oversubscription\": 2 } ], "
            "\"usd_per_gpu_hour\": 2.5, \"usd_per_kwh\": 0.2, \"slow_gpus\": { \"3:5\": 0.9, \"7:7\": 0.5 } }"),
        NULL);
    const ps_group *group = &cluster.group[0];

    assert_string_equal(cluster.name, "mine");
    assert_string_equal(group->name, "h100");
    assert_rate(group->intra.bytes_per_s, 400e9);
    assert_close(group->intra.latency_seconds.value * 1e6, 7);
    assert_rate(group->inter.bytes_per_s, 25e9);
    assert_close(group->inter.latency_seconds.value * 1e6, 12);
    assert_close(group->host_memory_bytes.value / GIB, 2048);
    assert_int_equal(group->host_memory_bytes.origin, PS_ORIGIN_READ);
    assert_int_equal(ps_group_domain_gpus(group), 16);
    assert_int_equal(group->rails, 8);
    assert_int_equal(group->num_levels, 2);
    assert_int_equal(group->level[1].nodes, 64);
    assert_close(group->level[1].oversubscription, 2);
    assert_close(group->usd_per_gpu_hour.value, 2.5);
    assert_close(group->usd_per_kwh.value, 0.2);
    assert_int_equal(group->num_slow_gpus, 2);
}

static void groups_are_counted_together(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster = parse(
        arena, ONE_GROUP("{ \"nodes\": 2, \"node\": " H100_NODE " }, { \"nodes\": 3, \"node\": " H100_NODE " }"), NULL);

    assert_int_equal(cluster.num_groups, 2);
    assert_int_equal(ps_cluster_gpus(&cluster), 40);
    assert_string_equal(cluster.group[1].name, "group1");
}

static void the_nic_option_overrides_a_file_and_says_so(void **state)
{
    ps_arena *arena = *state;
    ps_cluster_options options = {.nic_bytes_per_s = 12.5e9};
    ps_cluster cluster = parse(arena, ONE_GROUP("{ \"nodes\": 2, \"node\": " H100_NODE " }"), &options);

    assert_rate(cluster.group[0].inter.bytes_per_s, 12.5e9);
    assert_int_equal(cluster.group[0].inter.bytes_per_s.origin, PS_ORIGIN_GIVEN);
    assert_int_equal(cluster.group[0].nics, 4);
}

static void the_number_of_nodes_of_a_native_file_cannot_be_overridden(void **state)
{
    ps_arena *arena = *state;
    ps_cluster_options options = {.nodes = 2};
    ps_cluster cluster;
    ps_status status = {0};

    assert_int_equal(ps_cluster_load(arena, "h100-8", &options, &cluster, &status), PS_USAGE);
    assert_string_equal(status.rule, "option-unused");
}

static void a_gpu_like_another_keeps_what_is_not_stated(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster =
        parse(arena,
              ONE_GROUP("{ \"nodes\": 1, \"node\": { \"gpus\": 8, \"gpu\": { \"name\": \"H20\", \"like\": "
                        "\"H100-SXM5-80GB\", \"memory_nominal\": \"96GiB\", \"memory_usable\": { \"value\": \"95GiB\", "
                        "\"source\": \"measured: here\" }, \"peak_tflops\": { \"bf16\": 148 } } } }"),
              NULL);
    const ps_gpu *gpu = &cluster.group[0].gpu;

    assert_string_equal(gpu->name, "H20");
    assert_rate(gpu->peak_flops[PS_PRECISION_BF16], 148e12);
    assert_int_equal(gpu->peak_flops[PS_PRECISION_BF16].origin, PS_ORIGIN_READ);
    assert_rate(gpu->memory_bytes_per_s, 3350e9);
    assert_int_equal(gpu->memory_bytes_per_s.origin, PS_ORIGIN_LOOKED_UP);
    assert_string_equal(gpu->memory_usable_bytes.source, "measured: here");
    assert_rate(cluster.group[0].intra.bytes_per_s, 450e9);
}

static void a_gpu_can_be_described_in_full(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster =
        parse(arena,
              ONE_GROUP("{ \"nodes\": 1, \"node\": { \"gpus\": 4, \"intra\": \"pcie5\", \"gpu\": { \"name\": \"X1\", "
                        "\"memory_nominal\": \"64GiB\", \"memory_bandwidth\": \"2TB/s\", \"peak_tflops\": { \"bf16\": "
                        "400 } } } }"),
              NULL);
    const ps_gpu *gpu = &cluster.group[0].gpu;

    assert_close(gpu->memory_usable_bytes.value / GIB, 0.97 * 64);
    assert_int_equal(gpu->memory_usable_bytes.origin, PS_ORIGIN_ASSUMED);
    assert_int_equal(gpu->gemm_efficiency.origin, PS_ORIGIN_ASSUMED);
    assert_true(gpu->gemm_efficiency.value > 0);
    assert_true(gpu->peak_flops[PS_PRECISION_FP8].value == 0);
    assert_string_equal(cluster.group[0].intra.name, "pcie5");
}

static void a_node_file_is_found_beside_the_cluster_file(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster =
        parse(arena, ONE_GROUP("{ \"nodes\": 16, \"node\": { \"from\": \"a100-nvswitch.xml\" } }"), NULL);
    const ps_group *group = &cluster.group[0];

    assert_int_equal(ps_cluster_gpus(&cluster), 64);
    assert_string_equal(group->gpu.name, "A100-SXM4-80GB");
    assert_int_equal(group->num_node_gpus, 4);
    assert_rate(group->inter.bytes_per_s, 25e9 / 4); // one live NIC for 4 GPUs
}

static void keys_beside_a_node_file_override_it(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster = parse(arena,
                               ONE_GROUP("{ \"nodes\": 2, \"node\": { \"from\": \"a100-nvswitch.xml\", \"gpu\": "
                                         "\"A100-SXM4-40GB\", \"gpus\": 2, \"nics\": 2, \"nic\": \"IB-EDR\", "
                                         "\"host_memory\": \"1TiB\" } }"),
                               NULL);
    const ps_group *group = &cluster.group[0];

    assert_string_equal(group->gpu.name, "A100-SXM4-40GB");
    assert_close(group->gpu.memory_usable_bytes.value / GIB, 39.39); // the file's 79 GiB are no 40GB GPU's
    assert_int_equal(group->gpus_per_node, 2);
    assert_int_equal(group->num_node_gpus, 0);
    assert_rate(group->inter.bytes_per_s, 12.5e9);
    assert_close(group->host_memory_bytes.value / GIB, 1024);
    assert_true(warns(&cluster, "A100-SXM4-80GB"));
    assert_true(warns(&cluster, "not listed one by one"));
}

static void a_fabric_that_the_gpu_lacks_is_warned_of(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster = parse(
        arena, ONE_GROUP("{ \"nodes\": 1, \"node\": { \"gpu\": \"L40S\", \"gpus\": 8, \"intra\": \"nvlink4\" } }"),
        NULL);

    assert_true(warns(&cluster, "but the fabric of L40S is none"));
}

static void comments_in_a_file_are_allowed(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster =
        parse(arena, ONE_GROUP("{ \"_why\": \"test rack\", \"nodes\": 1, \"node\": " H100_NODE " }"), NULL);

    assert_int_equal(ps_cluster_gpus(&cluster), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(built_in_clusters_load_without_warnings),
        test_in_arena(nics_are_shared_evenly_by_the_gpus),
        test_in_arena(the_whole_native_format_is_read),
        test_in_arena(groups_are_counted_together),
        test_in_arena(the_nic_option_overrides_a_file_and_says_so),
        test_in_arena(the_number_of_nodes_of_a_native_file_cannot_be_overridden),
        test_in_arena(a_gpu_like_another_keeps_what_is_not_stated),
        test_in_arena(a_gpu_can_be_described_in_full),
        test_in_arena(a_node_file_is_found_beside_the_cluster_file),
        test_in_arena(keys_beside_a_node_file_override_it),
        test_in_arena(a_fabric_that_the_gpu_lacks_is_warned_of),
        test_in_arena(comments_in_a_file_are_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
