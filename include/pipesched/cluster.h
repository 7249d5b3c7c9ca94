// SPDX-License-Identifier: Apache-2.0
//
// cluster.h: devices, nodes, groups and links; latency and bandwidth between any two devices.
//
// A cluster is a list of groups of equal nodes. Every figure knows where it came from: read from the user's file,
// looked up in the catalog (configs/gpus.json), given on the command line, or assumed.
#ifndef PIPESCHED_CLUSTER_H
#define PIPESCHED_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/precision.h"
#include "pipesched/status.h"

typedef enum ps_origin { PS_ORIGIN_ASSUMED, PS_ORIGIN_LOOKED_UP, PS_ORIGIN_READ, PS_ORIGIN_GIVEN } ps_origin;
const char *ps_origin_name(ps_origin origin); // "assumed", "looked up", "read", "given"

typedef struct ps_figure {
    double value; // 0 with an empty source: not known
    ps_origin origin;
    const char *source; // "datasheet", "recalled", "measured: ...", a file; never NULL
} ps_figure;

// A GPU type: the catalog's figures, overridden by what a file gives.
typedef struct ps_gpu {
    const char *name;   // catalog name: "H100-SXM5-80GB"
    const char *vendor; // "NVIDIA", "AMD"
    ps_figure memory_nominal_bytes;
    ps_figure memory_usable_bytes; // what the driver leaves to a process
    ps_figure memory_bytes_per_s;
    ps_figure peak_flops[PS_PRECISIONS]; // dense, per second; value 0: the GPU has no such format
    const char *fabric;                  // "nvlink4", "xgmi", "none"
    ps_figure fabric_bytes_per_s;        // one direction, all links of one GPU together; 0: none
    ps_figure pcie_bytes_per_s;          // one direction
    ps_figure multiprocessors;           // streaming multiprocessors, or compute units
    ps_figure power_watts;
    ps_figure usd_per_hour;
    // Calibration constants of src/cost: reached share of the peak per class of work, and time per kernel.
    ps_figure gemm_efficiency;         // in 16 bits
    ps_figure fp8_gemm_efficiency;     // of the peak in 8 bits
    ps_figure fp4_gemm_efficiency;     // of the peak in 4 bits
    ps_figure grouped_gemm_efficiency; // many small matrices, as of experts, in 16 bits
    ps_figure batched_gemm_efficiency; // products inside other kernels, as of a scan
    ps_figure attention_efficiency;
    ps_figure attention_backward_efficiency;
    ps_figure memory_efficiency;
    ps_figure kernel_seconds;
} ps_gpu;

// alpha-beta of one kind of link, as collectives and point-to-point messages see it.
typedef struct ps_link {
    const char *name;          // "nvlink4", "pcie4", "IB-NDR"
    ps_figure bytes_per_s;     // nominal, one direction, per GPU
    ps_figure efficiency;      // reached share of it for large messages
    ps_figure latency_seconds; // of one message
    ps_figure peer_share;      // of that rate, for messages of one pair of GPUs; value 0 reads as 1
} ps_link;

typedef struct ps_level {
    const char *name;
    int32_t nodes;           // nodes below one switch of this level
    double oversubscription; // 1: none
} ps_level;

// One physical GPU, NIC or connection of a node, for `show` and for files that know them one by one.
typedef struct ps_node_gpu {
    const char *name;  // "cuda0"; "gpu0" when the file names none
    const char *model; // as read; NULL: not read
    const char *pci;   // "0000:04:00.0"; NULL: not read
    int32_t numa_node; // -1: not read
    ps_figure memory_bytes;
} ps_node_gpu;

typedef struct ps_node_link {
    int32_t gpu_a;
    int32_t gpu_b;
    const char *kind; // "nvlink", "pcie", "system"
    ps_figure bytes_per_s;
} ps_node_link;

typedef struct ps_node_nic {
    const char *name;
    const char *kind; // "infiniband", "ethernet"
    const char *pci;  // NULL: not read
    int32_t numa_node;
    ps_figure bytes_per_s;
} ps_node_nic;

typedef enum ps_collective {
    PS_COLLECTIVE_ALL_REDUCE,
    PS_COLLECTIVE_REDUCE_SCATTER,
    PS_COLLECTIVE_ALL_GATHER,
    PS_COLLECTIVE_ALL_TO_ALL,
    PS_COLLECTIVES
} ps_collective;
const char *ps_collective_name(ps_collective collective); // "all_reduce", "reduce_scatter", "all_gather", "all_to_all"

// Measured seconds of one collective among `ranks` GPUs by the bytes of the full tensor, ascending. Between two sizes a
// line is drawn; below the first it takes the first's time, beyond the last the last's bandwidth.
typedef struct ps_collective_curve {
    ps_collective collective;
    int32_t ranks;
    int32_t nodes; // on which they stood, as many on each
    int32_t num_points;
    const double *bytes;
    const double *seconds;
} ps_collective_curve;

typedef struct ps_group {
    const char *name;
    int32_t nodes;
    int32_t gpus_per_node;
    ps_gpu gpu;
    ps_link intra; // between GPUs of one node (or NVLink domain)
    ps_link inter; // between nodes, per GPU: NICs are shared evenly by the node's GPUs
    int32_t nics;  // per node; 0: none
    ps_figure host_memory_bytes;
    int32_t nvlink_domain_nodes; // nodes that one fast fabric joins; 1: the node alone
    int32_t rails;               // 0: not stated
    int32_t num_levels;
    ps_level *level; // from the leaf up
    ps_figure usd_per_gpu_hour;
    ps_figure usd_per_kwh;
    int32_t num_slow_gpus; // listed in "slow_gpus"
    int32_t num_node_gpus; // entries of node_gpu: gpus_per_node where read one by one, else 0
    ps_node_gpu *node_gpu;
    int32_t num_node_links;
    ps_node_link *node_link;
    int32_t num_node_nics;
    ps_node_nic *node_nic;
    int32_t num_curves; // from a calibration
    const ps_collective_curve *curve;
    double hop_factor; // of a calibration, of the time of hops between stages; 0 reads as 1
} ps_group;

typedef struct ps_cluster {
    const char *name;
    const char *source;
    const char *format; // "pipesched/cluster/v1", "shorthand", "hwloc XML 2", "this machine"
    char sha256[65];
    int32_t num_groups;
    ps_group *group;
    int32_t num_warnings;
    const char **warning;
} ps_cluster;

// What the command line adds to a cluster argument; empty fields are NULL or 0.
typedef struct ps_cluster_options {
    double nic_bytes_per_s; // --nic: per GPU
    const char *gpu;        // --gpu: the type, where a node file does not name it
    int32_t nodes;          // --nodes: copies of a node file; 0 reads as 1
} ps_cluster_options;

// `name` is a file, "-", the shorthand NODESxGPUSxTYPE, a built-in cluster, or "this-machine".
ps_code ps_cluster_load(ps_arena *arena, const char *name, const ps_cluster_options *options, ps_cluster *out,
                        ps_status *status);
ps_code ps_cluster_parse(ps_arena *arena, const char *source, const char *text, int64_t size,
                         const ps_cluster_options *options, ps_cluster *out, ps_status *status);

int64_t ps_cluster_gpus(const ps_cluster *cluster); // all groups
// GPUs that one fast fabric joins: gpus_per_node * nvlink_domain_nodes.
int64_t ps_group_domain_gpus(const ps_group *group);

// The catalog, compiled in from configs/gpus.json.
ps_code ps_catalog_gpu(ps_arena *arena, const char *name, ps_gpu *out, ps_status *status); // rule unknown-gpu
// A marketing or driver name ("NVIDIA H100 80GB HBM3") to the catalog's; NULL: none matches.
const char *ps_catalog_match(ps_arena *arena, const char *text, int64_t memory_bytes);
ps_code ps_catalog_names(ps_arena *arena, const char *const **names, int32_t *count, ps_status *status);
ps_code ps_catalog_link(ps_arena *arena, const char *name, ps_link *out, ps_status *status); // rule unknown-link

#endif
