// SPDX-License-Identifier: Apache-2.0
#include "clusters.h"

static void nodes_gpus_and_type_make_a_cluster(void **state)
{
    ps_arena *arena = *state;
    ps_cluster_options options = {.nic_bytes_per_s = 50e9};
    ps_cluster cluster = load(arena, "8x4xH100-SXM5-80GB", &options);
    const ps_group *group = &cluster.group[0];

    assert_int_equal(cluster.num_groups, 1);
    assert_int_equal(cluster.num_warnings, 0);
    assert_int_equal(group->nodes, 8);
    assert_int_equal(group->gpus_per_node, 4);
    assert_int_equal(ps_cluster_gpus(&cluster), 32);
    assert_int_equal(ps_group_domain_gpus(group), 4);
    assert_string_equal(cluster.format, "shorthand");
    assert_string_equal(group->gpu.name, "H100-SXM5-80GB");
    assert_string_equal(group->intra.name, "nvlink4");
    assert_rate(group->intra.bytes_per_s, 450e9);
}

static void the_nic_option_is_the_rate_of_one_gpu(void **state)
{
    ps_arena *arena = *state;
    ps_cluster_options options = {.nic_bytes_per_s = 50e9};
    ps_cluster cluster = load(arena, "2x8xH100-SXM5-80GB", &options);
    const ps_link *inter = &cluster.group[0].inter;

    assert_rate(inter->bytes_per_s, 50e9);
    assert_int_equal(inter->bytes_per_s.origin, PS_ORIGIN_GIVEN);
    assert_string_equal(inter->bytes_per_s.source, "--nic");
    assert_string_equal(inter->name, "IB-NDR"); // the usual NIC of that rate
    assert_int_equal(inter->efficiency.origin, PS_ORIGIN_ASSUMED);

    options.nic_bytes_per_s = 3.7e9;
    cluster = load(arena, "2x8xH100-SXM5-80GB", &options);
    assert_rate(cluster.group[0].inter.bytes_per_s, 3.7e9);
    assert_string_equal(cluster.group[0].inter.name, "NIC");
    assert_true(cluster.group[0].inter.efficiency.value > 0);
}

static void a_nic_is_assumed_by_generation_and_said(void **state)
{
    ps_arena *arena = *state;
    static const struct {
        const char *cluster;
        const char *nic;
        double bytes_per_s;
    } cases[] = {
        {"2x8xV100-SXM2-32GB", "IB-EDR", 12.5e9}, {"2x8xA100-SXM4-80GB", "IB-HDR", 25e9},
        {"2x8xH100-SXM5-80GB", "IB-NDR", 50e9},   {"2x8xMI300X", "RoCE-400", 50e9},
        {"2x8xRTX-4090", "Ethernet-25", 3.125e9},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ps_cluster cluster = load(arena, cases[i].cluster, NULL);
        const ps_link *inter = &cluster.group[0].inter;
        assert_string_equal(inter->name, cases[i].nic);
        assert_rate(inter->bytes_per_s, cases[i].bytes_per_s);
        assert_int_equal(inter->bytes_per_s.origin, PS_ORIGIN_ASSUMED);
        assert_true(warns(&cluster, "no NIC is stated"));
    }
}

static void one_node_needs_no_nic(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster = load(arena, "1x8xA100-SXM4-80GB", NULL);

    assert_int_equal(cluster.num_warnings, 0);
    assert_int_equal(cluster.group[0].nics, 0);
    assert_true(cluster.group[0].inter.bytes_per_s.value == 0);
}

static void an_alias_is_read_as_its_type_and_said(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster = load(arena, "1x8xh100", NULL);

    assert_string_equal(cluster.group[0].gpu.name, "H100-SXM5-80GB");
    assert_true(warns(&cluster, "h100 is read as H100-SXM5-80GB"));
}

static void a_gpu_with_fewer_links_than_its_fabric_keeps_its_own_rate(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster = load(arena, "1x8xH800-SXM5-80GB", NULL);

    assert_string_equal(cluster.group[0].intra.name, "nvlink4");
    assert_rate(cluster.group[0].intra.bytes_per_s, 200e9);
}

static void malformed_shorthand_is_refused_with_an_example(void **state)
{
    ps_arena *arena = *state;
    static const struct {
        const char *text;
        const char *rule;
    } cases[] = {
        {"8xH100-SXM5-80GB", "shorthand"},
        {"8x8", "shorthand"},
        {"8x8x", "shorthand"},
        {"0x8xH100-SXM5-80GB", "out-of-range"},
        {"8x0xH100-SXM5-80GB", "out-of-range"},
        {"1048577x1xH100-SXM5-80GB", "out-of-range"},
        {"99999999999999999999x8xH100-SXM5-80GB", "out-of-range"},
        {"1048576x8xH100-SXM5-80GB", "too-many-gpus"},
        {"8x8xH100-SXM9-80GB", "unknown-gpu"},
        {"8x8xpotato", "unknown-gpu"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ps_cluster cluster;
        ps_status status = {0};
        assert_int_equal(ps_cluster_load(arena, cases[i].text, NULL, &cluster, &status), PS_BAD_INPUT);
        if (strcmp(status.rule, cases[i].rule) != 0)
            fail_msg("%s: rule %s, not %s: %s", cases[i].text, status.rule, cases[i].rule, status.message);
    }
}

static void options_for_node_files_are_refused(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster;
    ps_status status = {0};
    ps_cluster_options options = {.nodes = 4};

    assert_int_equal(ps_cluster_load(arena, "8x8xH100-SXM5-80GB", &options, &cluster, &status), PS_USAGE);
    assert_string_equal(status.rule, "option-unused");

    status = (ps_status){0};
    options = (ps_cluster_options){.nic_bytes_per_s = -1};
    assert_int_equal(ps_cluster_load(arena, "8x8xH100-SXM5-80GB", &options, &cluster, &status), PS_USAGE);
    assert_string_equal(status.source, "--nic");
}

static void a_name_that_is_nothing_gets_the_nearest_built_in(void **state)
{
    ps_arena *arena = *state;
    ps_cluster cluster;
    ps_status status = {0};

    assert_int_equal(ps_cluster_load(arena, "h100-8x9", NULL, &cluster, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "unknown-cluster");
    assert_string_equal(status.hint, "did you mean \"h100-8x8\"?");

    status = (ps_status){0};
    assert_int_equal(ps_cluster_load(arena, "no-such-file.json", NULL, &cluster, &status), PS_IO);
    assert_string_equal(status.rule, "file-missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(nodes_gpus_and_type_make_a_cluster),
        test_in_arena(the_nic_option_is_the_rate_of_one_gpu),
        test_in_arena(a_nic_is_assumed_by_generation_and_said),
        test_in_arena(one_node_needs_no_nic),
        test_in_arena(an_alias_is_read_as_its_type_and_said),
        test_in_arena(a_gpu_with_fewer_links_than_its_fabric_keeps_its_own_rate),
        test_in_arena(malformed_shorthand_is_refused_with_an_example),
        test_in_arena(options_for_node_files_are_refused),
        test_in_arena(a_name_that_is_nothing_gets_the_nearest_built_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
