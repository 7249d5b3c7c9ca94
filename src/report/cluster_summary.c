// SPDX-License-Identifier: Apache-2.0
//
// cluster_summary.c: a cluster as a person reads it: what it has, and where each figure came from.
#include "report/cluster_summary.h"

#include "base/text.h"
#include "report/table.h"

// What is counted in bytes, what in 10^9 a second, and so on.
typedef enum figure_unit { IN_BYTES, IN_GB_PER_S, IN_TFLOPS, IN_US, AS_IT_IS } figure_unit;

static void put_figure(ps_table *table, const char *name, ps_figure figure, figure_unit unit)
{
    char text[32];
    if (!(figure.value > 0))
        return; // not known
    ps_table_put(table, "%s", name);
    switch (unit) {
    case IN_BYTES: ps_table_put(table, "%s", ps_format_bytes((int64_t)figure.value, text)); break;
    case IN_GB_PER_S: ps_table_put(table, "%.4g GB/s", figure.value / 1e9); break;
    case IN_TFLOPS: ps_table_put(table, "%.4g TFLOP/s", figure.value / 1e12); break;
    case IN_US: ps_table_put(table, "%.4g us", figure.value * 1e6); break;
    case AS_IT_IS: ps_table_put(table, "%.4g", figure.value); break;
    }
    ps_table_put(table, "%s", ps_origin_name(figure.origin));
    ps_table_put(table, "%s", figure.source);
}

static void put_gpu(ps_table *table, const ps_gpu *gpu)
{
    put_figure(table, "memory, nominal", gpu->memory_nominal_bytes, IN_BYTES);
    put_figure(table, "memory, usable", gpu->memory_usable_bytes, IN_BYTES);
    put_figure(table, "memory bandwidth", gpu->memory_bytes_per_s, IN_GB_PER_S);
    for (int32_t precision = 0; precision < PS_PRECISIONS; precision++) {
        char name[32];
        snprintf(name, sizeof name, "peak %s", ps_precision_name((ps_precision)precision));
        put_figure(table, name, gpu->peak_flops[precision], IN_TFLOPS);
    }
    put_figure(table, "power, W", gpu->power_watts, AS_IT_IS);
}

static void put_link(ps_table *table, const char *where, const ps_link *link)
{
    char name[128];
    snprintf(name, sizeof name, "%s: %s", where, link->name);
    put_figure(table, name, link->bytes_per_s, IN_GB_PER_S);
    snprintf(name, sizeof name, "%s: efficiency", where);
    put_figure(table, name, link->efficiency, AS_IT_IS);
    snprintf(name, sizeof name, "%s: latency", where);
    put_figure(table, name, link->latency_seconds, IN_US);
}

static void print_node(FILE *file, ps_arena *arena, const ps_group *group, bool verbose)
{
    ps_table table;
    char text[32];
    ps_table_begin(&table, arena, "llll");
    for (int32_t index = 0; index < group->num_node_gpus; index++) {
        const ps_node_gpu *gpu = &group->node_gpu[index];
        ps_table_put(&table, "%s", gpu->name);
        ps_table_put(&table, "%s", gpu->model ? gpu->model : "model not read");
        ps_table_put(&table, "%s", gpu->pci ? gpu->pci : "");
        ps_table_put(&table, "%s",
                     gpu->memory_bytes.value > 0 ? ps_format_bytes((int64_t)gpu->memory_bytes.value, text) : "");
    }
    for (int32_t index = 0; index < group->num_node_nics; index++) {
        const ps_node_nic *nic = &group->node_nic[index];
        ps_table_put(&table, "%s", nic->name);
        ps_table_put(&table, "%s", nic->kind);
        ps_table_put(&table, "%s", nic->pci ? nic->pci : "");
        ps_table_put(&table, nic->bytes_per_s.value > 0 ? "%.4g GB/s" : " ", nic->bytes_per_s.value / 1e9);
    }
    for (int32_t index = 0; verbose && index < group->num_node_links; index++) {
        const ps_node_link *link = &group->node_link[index];
        ps_table_put(&table, "%d-%d", (int)link->gpu_a, (int)link->gpu_b);
        ps_table_put(&table, "%s", link->kind);
        ps_table_put(&table, " ");
        ps_table_put(&table, "%.4g GB/s", link->bytes_per_s.value / 1e9);
    }
    if (table.num_cells > 0)
        fputc('\n', file);
    ps_table_print(file, &table, 2);
}

static void print_group(FILE *file, ps_arena *arena, const ps_group *group, bool verbose)
{
    ps_table table;
    fprintf(file, "\n%s: %d node%s of %d x %s\n", group->name, (int)group->nodes, group->nodes == 1 ? "" : "s",
            (int)group->gpus_per_node, group->gpu.name);
    if (group->nvlink_domain_nodes > 1)
        fprintf(file, "  one fast fabric joins %d nodes\n", (int)group->nvlink_domain_nodes);
    ps_table_begin(&table, arena, "lrll");
    put_gpu(&table, &group->gpu);
    put_link(&table, "in a node", &group->intra);
    put_link(&table, "between nodes, per GPU", &group->inter);
    put_figure(&table, "host memory", group->host_memory_bytes, IN_BYTES);
    put_figure(&table, "USD per GPU and hour", group->usd_per_gpu_hour, AS_IT_IS);
    put_figure(&table, "USD per kWh", group->usd_per_kwh, AS_IT_IS);
    ps_table_print(file, &table, 2);
    print_node(file, arena, group, verbose);
}

void ps_cluster_text(FILE *file, ps_arena *arena, const ps_cluster *cluster, bool verbose)
{
    char text[32];
    fprintf(file, "%s (%s): %s GPU%s\n", cluster->name, cluster->format,
            ps_format_count(ps_cluster_gpus(cluster), text), ps_cluster_gpus(cluster) == 1 ? "" : "s");
    for (int32_t group = 0; group < cluster->num_groups; group++)
        print_group(file, arena, &cluster->group[group], verbose);
    for (int32_t index = 0; index < cluster->num_warnings; index++)
        fprintf(file, "%s  note: %s\n", index == 0 ? "\n" : "", cluster->warning[index]);
}
