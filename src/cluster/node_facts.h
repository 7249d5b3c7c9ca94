// SPDX-License-Identifier: Apache-2.0
//
// node_facts.h: what a file about one node says, before the catalog fills the gaps.
//
// Formats of node files end here; group.c turns the facts into a ps_group. Rates are bytes per second, one direction.
#ifndef PS_CLUSTER_NODE_FACTS_H
#define PS_CLUSTER_NODE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

// More GPUs than any node has; bounds the table of pairs.
#define PS_MAX_NODE_GPUS 256
#define PS_MAX_NODE_NICS 1024
// A node file: the largest known have a few hundred thousand bytes.
#define PS_MAX_NODE_FILE_BYTES (INT64_C(1) << 26)

typedef struct ps_fact_gpu {
    const char *name;   // "cuda0"; "gpu0" when the file names none
    const char *model;  // as the driver calls it; NULL: not read
    const char *pci;    // "0000:04:00.0"; NULL: not read
    uint32_t vendor_id; // PCI; 0: not read
    uint32_t device_id;
    int32_t numa_node;         // -1: not read
    int64_t memory_bytes;      // 0: not read
    double pcie_bytes_per_s;   // 0: not read
    double switch_bytes_per_s; // to all NVSwitches together
} ps_fact_gpu;

typedef struct ps_fact_nic {
    const char *name;
    const char *kind; // "infiniband" or "ethernet", by PCI class
    const char *pci;
    uint32_t vendor_id;
    uint32_t device_id;
    int32_t numa_node;
    bool is_rdma;   // has a verbs device: what collectives use
    bool is_active; // no port is known to be down
} ps_fact_nic;

typedef struct ps_node_facts {
    const char *source; // file name, or "this machine"
    int32_t num_gpus;
    ps_fact_gpu *gpu; // in PCI order
    int32_t num_nics;
    ps_fact_nic *nic;
    double *peer_bytes_per_s; // [num_gpus * num_gpus] dedicated links of a pair; NULL: not read
    bool *peer_connected;     // [num_gpus * num_gpus] joined by a fabric of unknown rate; NULL: not read
    bool *same_pcie_root;     // [num_gpus * num_gpus] a path over PCIe alone
    bool has_switches;        // an NVSwitch joins all GPUs
    int64_t host_memory_bytes;
} ps_node_facts;

#endif
