// SPDX-License-Identifier: Apache-2.0
#include "clusters.h"

static void real_nodes_have_the_gpus_they_were_built_with(void **state)
{
    ps_arena *arena = *state;
    static const struct {
        const char *file;
        int32_t gpus;
        const char *gpu;
        const char *intra;
        double intra_bytes_per_s;
        int32_t nics;
    } cases[] = {
        {"hwlocv2x-nvidiaDGX2.xml", 16, "V100-SXM3-32GB", "nvlink2", 150e9, 0},
        {"hwloc29-power8gpudistances.xml", 4, "P100-SXM2-16GB", "pcie3", 15.75e9, 0},
        {"mpibind-coral-lassen.xml", 4, "V100-SXM2-16GB", "nvlink2", 150e9, 4},
        {"flux-lassen0.xml", 4, "V100-SXM2-16GB", "nvlink2", 150e9, 4},
        {"mpibind-coral-lassen-hwloc1.xml", 4, "V100-SXM2-16GB", "nvlink2", 150e9, 4},
        {"mpibind-coral-ea-hwloc1.xml", 4, "P100-SXM2-16GB", "nvlink1", 80e9, 2},
        {"mpibind-epyc-corona-p2.xml", 8, "MI50-32GB", "pcie4", 31.5e9, 1},
        {"flux-rsmi_corona240.xml", 8, "MI50-32GB", "pcie4", 31.5e9, 1},
        {"mpibind-cts1-pascal.xml", 2, "P100-PCIE-16GB", "pcie3", 15.75e9, 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].file);
        ps_cluster cluster = load(arena, ps_text_format(arena, "%s/hwloc/%s", reference_data(), cases[i].file), NULL);
        const ps_group *group = &cluster.group[0];
        assert_int_equal(group->gpus_per_node, cases[i].gpus);
        assert_int_equal(group->num_node_gpus, cases[i].gpus);
        assert_int_equal(group->num_node_links, cases[i].gpus * (cases[i].gpus - 1) / 2);
        assert_string_equal(group->gpu.name, cases[i].gpu);
        assert_string_equal(group->intra.name, cases[i].intra);
        assert_rate(group->intra.bytes_per_s, cases[i].intra_bytes_per_s);
        assert_int_equal(group->nics, cases[i].nics);
    }

    ps_cluster cluster;
    ps_status status = {0};
    const char *newer = ps_text_format(arena, "%s/hwloc/v3-nvidiaDGX2.xml", reference_data());
    assert_int_equal(ps_cluster_load(arena, newer, NULL, &cluster, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "hwloc-version");
}

int main(void)
{
    const struct CMUnitTest tests[] = {test_in_arena(real_nodes_have_the_gpus_they_were_built_with)};
    return run_reference_tests(tests);
}
