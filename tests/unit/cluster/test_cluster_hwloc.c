// SPDX-License-Identifier: Apache-2.0
#include "clusters.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *read_fixture(ps_arena *arena, const char *name)
{
    FILE *file = fopen(ps_text_format(arena, "%s/data/hwloc/%s", TESTS_FOLDER, name), "r");
    char *text = ps_new(arena, char, 65536);

    assert_non_null(file);
    size_t size = fread(text, 1, 65535, file);
    fclose(file);
    assert_true(size > 0);
    return text;
}

// CUDA, NVML and PCI speak of the same four GPUs; CUDA numbers them from the other end.
static void a_gpu_with_several_drivers_counts_once(void **state)
{
    ps_cluster cluster = fixture(*state, "a100-nvswitch.xml", NULL);
    const ps_group *group = &cluster.group[0];

    assert_string_equal(cluster.format, "hwloc XML");
    assert_string_equal(cluster.name, "a100-nvswitch");
    assert_int_equal(group->gpus_per_node, 4);
    assert_int_equal(group->nodes, 1);
    assert_string_equal(group->gpu.name, "A100-SXM4-80GB");
    assert_string_equal(group->node_gpu[0].name, "cuda3");
    assert_string_equal(group->node_gpu[0].pci, "0000:10:00.0");
    assert_string_equal(group->node_gpu[0].model, "NVIDIA A100-SXM4-80GB");
    assert_int_equal(group->node_gpu[3].numa_node, 1);
    assert_close(group->host_memory_bytes.value / GIB, 512);
}

static void memory_in_the_file_replaces_the_usable_figure(void **state)
{
    ps_cluster cluster = fixture(*state, "a100-nvswitch.xml", NULL);
    const ps_gpu *gpu = &cluster.group[0].gpu;

    assert_close(gpu->memory_usable_bytes.value, 82923520.0 * 1024);
    assert_int_equal(gpu->memory_usable_bytes.origin, PS_ORIGIN_READ);
    assert_close(gpu->memory_nominal_bytes.value / GIB, 80);
    assert_int_equal(gpu->memory_nominal_bytes.origin, PS_ORIGIN_LOOKED_UP);
}

static void a_gpus_rate_to_all_switches_is_its_fabric_rate(void **state)
{
    ps_cluster cluster = fixture(*state, "a100-nvswitch.xml", NULL);
    const ps_group *group = &cluster.group[0];

    assert_string_equal(group->intra.name, "nvlink3");
    assert_rate(group->intra.bytes_per_s, 300e9);
    assert_int_equal(group->intra.bytes_per_s.origin, PS_ORIGIN_READ);
    assert_int_equal(group->num_node_links, 6);
    for (int32_t i = 0; i < 6; i++) {
        assert_string_equal(group->node_link[i].kind, "nvlink");
        assert_rate(group->node_link[i].bytes_per_s, 300e9);
    }
}

// hwloc 2.9.0 writes 50000 for each 25 GB/s link of an A100.
static void a_doubled_nvlink_matrix_is_halved_and_said(void **state)
{
    ps_arena *arena = *state;
    char *text = read_fixture(arena, "a100-nvswitch.xml");
    int32_t changed = 0;

    for (char *at = strstr(text, "<distances2hetero"); at && (at = strstr(at, "150000")); at += 6, changed++)
        memcpy(at, "300000", 6);
    assert_int_equal(changed, 16);

    ps_cluster cluster;
    ps_status status = {0};
    assert_ok(ps_cluster_parse(arena, "doubled.xml", text, (int64_t)strlen(text), NULL, &cluster, &status), &status);
    assert_rate(cluster.group[0].intra.bytes_per_s, 300e9);
    assert_true(warns(&cluster, "halved"));
}

// One InfiniBand port is live, the other is down; ib0 and mlx5_0 are the same card.
static void only_live_nics_carry_traffic(void **state)
{
    ps_cluster_options options = {.nodes = 4};
    ps_cluster cluster = fixture(*state, "a100-nvswitch.xml", &options);
    const ps_group *group = &cluster.group[0];

    assert_int_equal(group->num_node_nics, 2);
    assert_string_equal(group->node_nic[0].name, "mlx5_0");
    assert_string_equal(group->node_nic[0].kind, "infiniband");
    assert_int_equal(group->nics, 1);
    assert_string_equal(group->inter.name, "IB-HDR");
    assert_rate(group->inter.bytes_per_s, 25e9 / 4);
    assert_int_equal(ps_cluster_gpus(&cluster), 16);
}

static void direct_links_of_all_pairs_add_up(void **state)
{
    ps_cluster cluster = fixture(*state, "v100-mesh.xml", NULL);
    const ps_group *group = &cluster.group[0];

    assert_string_equal(group->intra.name, "nvlink2");
    assert_rate(group->intra.bytes_per_s, 150e9);
    assert_rate(group->node_link[0].bytes_per_s, 50e9);
    assert_int_equal(group->gpu.memory_usable_bytes.origin, PS_ORIGIN_LOOKED_UP); // NVML states none
}

static void links_of_some_pairs_do_not_speak_for_the_node(void **state)
{
    ps_cluster cluster = fixture(*state, "v100-pairs.xml", NULL);
    const ps_group *group = &cluster.group[0];

    assert_string_equal(group->intra.name, "pcie3");
    assert_rate(group->intra.bytes_per_s, 15.75e9);
    assert_true(warns(&cluster, "some GPUs only"));
    assert_string_equal(group->node_link[0].kind, "nvlink");
    assert_rate(group->node_link[0].bytes_per_s, 75e9);
    assert_string_equal(group->node_link[1].kind, "system");
    assert_int_equal(group->node_link[1].bytes_per_s.origin, PS_ORIGIN_ASSUMED);
}

static void amd_gpus_are_named_by_their_own_driver(void **state)
{
    ps_cluster cluster = fixture(*state, "mi300x-xgmi.xml", NULL);
    const ps_group *group = &cluster.group[0];

    assert_int_equal(group->gpus_per_node, 4);
    assert_string_equal(group->gpu.name, "MI300X");
    assert_string_equal(group->node_gpu[0].name, "rsmi3");
    assert_string_equal(group->node_gpu[0].model, "AMD Instinct MI300X");
    assert_close(group->gpu.memory_usable_bytes.value, 201310208.0 * 1024);
    assert_string_equal(group->intra.name, "xgmi");
    assert_string_equal(group->node_link[0].kind, "xgmi");
}

// No driver: PCI class and device id tell, and the link speed of an idle GPU does not count.
static void gpus_without_drivers_are_found_by_pci_id(void **state)
{
    ps_cluster cluster = fixture(*state, "h100-pci-only.xml", NULL);
    const ps_group *group = &cluster.group[0];

    assert_int_equal(group->gpus_per_node, 2);
    assert_string_equal(group->gpu.name, "H100-SXM5-80GB");
    assert_null(group->node_gpu[0].model);
    assert_string_equal(group->node_gpu[0].name, "gpu0");
    assert_rate(group->gpu.pcie_bytes_per_s, 63e9);
}

static void files_of_hwloc_1_are_read(void **state)
{
    ps_cluster cluster = fixture(*state, "v100-hwloc1.xml", NULL);
    const ps_group *group = &cluster.group[0];

    assert_int_equal(group->gpus_per_node, 2);
    assert_string_equal(group->gpu.name, "V100-SXM2-32GB");
    assert_close(group->gpu.memory_usable_bytes.value, 33285120.0 * 1024);
}

static void a_gpu_that_the_catalog_lacks_is_shown_as_far_as_known(void **state)
{
    ps_cluster cluster = fixture(*state, "unknown-gpu.xml", NULL);
    const ps_gpu *gpu = &cluster.group[0].gpu;

    assert_string_equal(gpu->name, "Tesla K80");
    assert_string_equal(gpu->vendor, "NVIDIA");
    assert_close(gpu->memory_usable_bytes.value, 11721728.0 * 1024);
    for (int p = 0; p < PS_PRECISIONS; p++) {
        assert_true(gpu->peak_flops[p].value == 0);
        assert_string_equal(gpu->peak_flops[p].source, ""); // not known, rather than "has no such format"
    }
    assert_true(warns(&cluster, "not in the catalog"));
}

static void the_gpu_option_names_the_type(void **state)
{
    ps_arena *arena = *state;
    ps_cluster_options options = {.gpu = "V100"};
    ps_cluster cluster = fixture(arena, "unknown-gpu.xml", &options);
    assert_string_equal(cluster.group[0].gpu.name, "V100-SXM2-32GB");
    assert_true(warns(&cluster, "V100 is read as V100-SXM2-32GB"));

    options.gpu = "H100-SXM5-80GB";
    cluster = fixture(arena, "v100-mesh.xml", &options);
    assert_string_equal(cluster.group[0].gpu.name, "H100-SXM5-80GB");
    assert_true(warns(&cluster, "says V100-SXM2-16GB"));

    ps_status status = {0};
    options.gpu = "H100-SXM6";
    assert_int_equal(ps_cluster_load(arena, TESTS_FOLDER "/data/hwloc/v100-mesh.xml", &options, &cluster, &status),
                     PS_BAD_INPUT);
    assert_string_equal(status.source, "--gpu");
}

static void nodes_without_known_nics_get_assumed_ones(void **state)
{
    ps_cluster_options options = {.nodes = 2};
    ps_cluster cluster = fixture(*state, "v100-mesh.xml", &options);

    assert_string_equal(cluster.group[0].inter.name, "IB-EDR");
    assert_int_equal(cluster.group[0].inter.bytes_per_s.origin, PS_ORIGIN_ASSUMED);
    assert_true(warns(&cluster, "no NIC is stated"));
}

// HWLOC_XMLFILE makes hwloc take a file for the machine that it runs on.
static void this_machine_is_read_like_a_file(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    ps_cluster cluster;

    assert_int_equal(setenv("HWLOC_XMLFILE", TESTS_FOLDER "/data/hwloc/v100-mesh.xml", 1), 0);
    cluster = load(arena, "this-machine", NULL);
    assert_string_equal(cluster.format, "this machine");
    assert_int_equal(cluster.group[0].gpus_per_node, 4);
    assert_int_equal(strlen(cluster.sha256), 64);

    assert_int_equal(setenv("HWLOC_XMLFILE", TESTS_FOLDER "/data/hwloc/no-gpu.xml", 1), 0);
    assert_int_equal(ps_cluster_load(arena, "this-machine", NULL, &cluster, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "no-gpu");
    assert_non_null(strstr(status.hint, "1x8xH100-SXM5-80GB"));
    unsetenv("HWLOC_XMLFILE");
}

static void broken_files_leave_the_terminal_alone(void **state)
{
    ps_arena *arena = *state;
    static const char *const files[] = {"hwloc-object-no-sets.xml", "xml-syntax.xml", "hwloc-version.xml",
                                        "no-gpu.xml"};
    FILE *capture = tmpfile();
    int saved = dup(STDERR_FILENO);

    assert_non_null(capture);
    fflush(stderr);
    dup2(fileno(capture), STDERR_FILENO);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ps_cluster cluster;
        ps_status status = {0};
        ps_cluster_load(arena, ps_text_format(arena, "%s/bad/cluster/%s", TESTS_FOLDER, files[i]), NULL, &cluster,
                        &status);
    }
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    fseek(capture, 0, SEEK_END);
    long written = ftell(capture);
    fclose(capture);
    assert_int_equal(written, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(a_gpu_with_several_drivers_counts_once),
        test_in_arena(memory_in_the_file_replaces_the_usable_figure),
        test_in_arena(a_gpus_rate_to_all_switches_is_its_fabric_rate),
        test_in_arena(a_doubled_nvlink_matrix_is_halved_and_said),
        test_in_arena(only_live_nics_carry_traffic),
        test_in_arena(direct_links_of_all_pairs_add_up),
        test_in_arena(links_of_some_pairs_do_not_speak_for_the_node),
        test_in_arena(amd_gpus_are_named_by_their_own_driver),
        test_in_arena(gpus_without_drivers_are_found_by_pci_id),
        test_in_arena(files_of_hwloc_1_are_read),
        test_in_arena(a_gpu_that_the_catalog_lacks_is_shown_as_far_as_known),
        test_in_arena(the_gpu_option_names_the_type),
        test_in_arena(nodes_without_known_nics_get_assumed_ones),
        test_in_arena(this_machine_is_read_like_a_file),
        test_in_arena(broken_files_leave_the_terminal_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
