// SPDX-License-Identifier: Apache-2.0
#include "clusters.h"

#include "cluster/catalog.h"

static void assert_sourced(const char *gpu, const char *what, ps_figure figure)
{
    if (!figure.source || !figure.source[0])
        fail_msg("%s: %s has no source", gpu, what);
    if (!(figure.value >= 0))
        fail_msg("%s: %s is %g", gpu, what, figure.value);
}

static void every_figure_of_every_gpu_has_a_source(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    const char *const *names;
    int32_t count;

    assert_ok(ps_catalog_names(arena, &names, &count, &status), &status);
    assert_true(count >= 15);
    for (int32_t i = 0; i < count; i++) {
        ps_gpu gpu;
        assert_ok(ps_catalog_gpu(arena, names[i], &gpu, &status), &status);
        assert_sourced(names[i], "nominal memory", gpu.memory_nominal_bytes);
        assert_sourced(names[i], "usable memory", gpu.memory_usable_bytes);
        assert_sourced(names[i], "memory bandwidth", gpu.memory_bytes_per_s);
        for (int p = 0; p < PS_PRECISIONS; p++)
            assert_sourced(names[i], ps_precision_name((ps_precision)p), gpu.peak_flops[p]);
        assert_sourced(names[i], "fabric", gpu.fabric_bytes_per_s);
        assert_sourced(names[i], "PCIe", gpu.pcie_bytes_per_s);
        assert_sourced(names[i], "power", gpu.power_watts);
        assert_sourced(names[i], "price", gpu.usd_per_hour);
        assert_sourced(names[i], "GEMM efficiency", gpu.gemm_efficiency);
        assert_sourced(names[i], "attention efficiency", gpu.attention_efficiency);
        assert_sourced(names[i], "memory efficiency", gpu.memory_efficiency);
        assert_sourced(names[i], "kernel time", gpu.kernel_seconds);
    }
}

static void figures_of_a_gpu_agree_with_each_other(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    const char *const *names;
    int32_t count;

    assert_ok(ps_catalog_names(arena, &names, &count, &status), &status);
    for (int32_t i = 0; i < count; i++) {
        ps_gpu gpu;
        assert_ok(ps_catalog_gpu(arena, names[i], &gpu, &status), &status);
        assert_true(gpu.memory_usable_bytes.value <= gpu.memory_nominal_bytes.value);
        assert_true(gpu.memory_usable_bytes.value >= 0.9 * gpu.memory_nominal_bytes.value);
        assert_true(gpu.memory_bytes_per_s.value > 10 * gpu.pcie_bytes_per_s.value);
        assert_true(gpu.peak_flops[PS_PRECISION_FP16].value > gpu.peak_flops[PS_PRECISION_FP32].value);
        assert_true(gpu.peak_flops[PS_PRECISION_FP8].value == 0 ||
                    gpu.peak_flops[PS_PRECISION_FP8].value > gpu.peak_flops[PS_PRECISION_BF16].value);
        assert_true(gpu.gemm_efficiency.value > 0 && gpu.gemm_efficiency.value <= 1);
        assert_true(gpu.kernel_seconds.value > 0 && gpu.kernel_seconds.value < 1e-3);
        assert_int_equal(strcmp(gpu.fabric, "none") == 0, gpu.fabric_bytes_per_s.value == 0);
    }
}

static void links_and_nics_that_gpus_refer_to_exist(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    ps_catalog catalog;
    ps_link link;

    assert_ok(ps_catalog_open(arena, &catalog, &status), &status);
    for (int32_t i = 0; i < catalog.num_gpus; i++) {
        ps_catalog_entry entry;
        const char *alias_of;
        assert_ok(ps_catalog_find(arena, &catalog, catalog.gpu_name[i], &entry, &alias_of, &status), &status);
        assert_null(alias_of);
        assert_ok(ps_catalog_find_link(arena, &catalog, entry.intra, &link, &status), &status);
        assert_false(ps_catalog_link_is_nic(&catalog, entry.intra));
        assert_ok(ps_catalog_find_link(arena, &catalog, entry.nic, &link, &status), &status);
        assert_true(ps_catalog_link_is_nic(&catalog, entry.nic));
        assert_true(strcmp(entry.gpu.fabric, "none") == 0 || strcmp(entry.gpu.fabric, entry.intra) == 0);
        assert_non_null(ps_catalog_pcie_of_rate(arena, &catalog, entry.gpu.pcie_bytes_per_s.value));
    }
    for (int32_t i = 0; i < catalog.num_links; i++) {
        assert_ok(ps_catalog_link(arena, catalog.link_name[i], &link, &status), &status);
        assert_sourced(link.name, "bandwidth", link.bytes_per_s);
        assert_sourced(link.name, "efficiency", link.efficiency);
        assert_sourced(link.name, "latency", link.latency_seconds);
        if (link.peer_share.value != 0) // 0: a pair uses the whole rate
            assert_sourced(link.name, "peer_share", link.peer_share);
        assert_true(link.bytes_per_s.value > 0 && link.efficiency.value > 0 && link.latency_seconds.value > 0);
    }
}

static void names_and_aliases_are_unique(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    ps_catalog catalog;

    assert_ok(ps_catalog_open(arena, &catalog, &status), &status);
    for (int32_t i = 0; i < catalog.num_words; i++)
        for (int32_t j = 0; j < i; j++)
            assert_string_not_equal(catalog.word_text[i], catalog.word_text[j]);
}

static void known_gpus_have_their_known_figures(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    ps_gpu gpu;

    assert_ok(ps_catalog_gpu(arena, "V100-SXM2-32GB", &gpu, &status), &status);
    assert_true(gpu.peak_flops[PS_PRECISION_BF16].value == 0);
    assert_rate(gpu.peak_flops[PS_PRECISION_FP16], 125e12);

    assert_ok(ps_catalog_gpu(arena, "H100-SXM5-80GB", &gpu, &status), &status);
    assert_rate(gpu.peak_flops[PS_PRECISION_BF16], 989e12);
    assert_rate(gpu.memory_bytes_per_s, 3350e9);
    assert_close(gpu.memory_usable_bytes.value / GIB, 79.1); // 80 GiB is only its nominal size
    assert_true(gpu.memory_usable_bytes.origin == PS_ORIGIN_LOOKED_UP);

    assert_ok(ps_catalog_gpu(arena, "H800-SXM5-80GB", &gpu, &status), &status);
    assert_rate(gpu.fabric_bytes_per_s, 200e9);

    ps_link nic;
    assert_ok(ps_catalog_link(arena, "IB-NDR", &nic, &status), &status);
    assert_rate(nic.bytes_per_s, 50e9);
}

static void a_figure_that_is_assumed_says_so(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    ps_gpu gpu;

    assert_ok(ps_catalog_gpu(arena, "MI300X", &gpu, &status), &status);
    assert_int_equal(gpu.gemm_efficiency.origin, PS_ORIGIN_ASSUMED);
    assert_int_equal(gpu.peak_flops[PS_PRECISION_BF16].origin, PS_ORIGIN_LOOKED_UP);
}

static void a_typo_gets_the_nearest_type(void **state)
{
    ps_arena *arena = *state;
    ps_status status = {0};
    ps_gpu gpu;

    assert_int_equal(ps_catalog_gpu(arena, "A100-SXM4-8OGB", &gpu, &status), PS_BAD_INPUT);
    assert_string_equal(status.rule, "unknown-gpu");
    assert_string_equal(status.hint, "did you mean \"A100-SXM4-80GB\"?");
}

static void driver_names_and_labels_find_their_type(void **state)
{
    ps_arena *arena = *state;
    static const struct {
        const char *text;
        double memory_gib; // 0: not known
        const char *name;  // NULL: not in the catalog
    } cases[] = {
        {"NVIDIA H100 80GB HBM3", 79.6, "H100-SXM5-80GB"},
        {"NVIDIA-H100-80GB-HBM3", 0, "H100-SXM5-80GB"},
        {"NVIDIA H100 PCIe", 79.6, NULL},
        {"NVIDIA H200", 140.4, "H200-SXM-141GB"},
        {"NVIDIA H200 NVL", 140.4, NULL},
        {"NVIDIA GH200 480GB", 95, NULL},
        {"NVIDIA B200", 179, "B200-SXM-180GB"},
        {"NVIDIA GB200", 185, NULL},
        {"NVIDIA A100-SXM4-40GB", 39.4, "A100-SXM4-40GB"},
        {"A100-SXM-80GB", 79.2, "A100-SXM4-80GB"},
        {"NVIDIA A100-PCIE-40GB", 39.4, NULL},
        {"Tesla V100-SXM2-16GB", 15.75, "V100-SXM2-16GB"},
        {"Tesla V100-SXM3-32GB-H", 0, "V100-SXM3-32GB"},
        {"NVIDIA L40S", 44.99, "L40S"},
        {"NVIDIA L40", 44.99, NULL},
        {"NVIDIA GeForce RTX 4090", 23.99, "RTX-4090"},
        {"NVIDIA GeForce RTX 4090 D", 23.99, NULL},
        {"NVIDIA GeForce RTX 4090 Laptop GPU", 16, NULL},
        {"AMD Instinct MI300X", 191.98, "MI300X"},
        {"AMD Instinct MI50", 15.98, "MI50-16GB"},
        {"AMD Instinct MI50", 31.98, "MI50-32GB"},
        {"AMD Instinct MI50 32GB", 0, "MI50-32GB"},
        {"", 0, NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = ps_catalog_match(arena, cases[i].text, (int64_t)(cases[i].memory_gib * GIB));
        if ((name == NULL) != (cases[i].name == NULL) || (name && strcmp(name, cases[i].name) != 0))
            fail_msg("\"%s\" is %s, not %s", cases[i].text, name ? name : "nothing",
                     cases[i].name ? cases[i].name : "nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_in_arena(every_figure_of_every_gpu_has_a_source),
        test_in_arena(figures_of_a_gpu_agree_with_each_other),
        test_in_arena(links_and_nics_that_gpus_refer_to_exist),
        test_in_arena(names_and_aliases_are_unique),
        test_in_arena(known_gpus_have_their_known_figures),
        test_in_arena(a_figure_that_is_assumed_says_so),
        test_in_arena(a_typo_gets_the_nearest_type),
        test_in_arena(driver_names_and_labels_find_their_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
