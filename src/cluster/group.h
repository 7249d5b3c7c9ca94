// SPDX-License-Identifier: Apache-2.0
//
// group.h: builds a ps_group from what is stated about its node; the catalog fills the gaps, then assumptions do.
//
// Every loader states what it read in a ps_node_settings. Order of preference for each figure: stated, read from the
// node file, looked up in the catalog, assumed with a warning.
#ifndef PS_CLUSTER_GROUP_H
#define PS_CLUSTER_GROUP_H

#include "base/vec.h"
#include "cluster/catalog.h"
#include "cluster/node_facts.h"
#include "pipesched/cluster.h"

// One load of a cluster: where results and warnings go.
typedef struct ps_cluster_build {
    ps_arena *arena;
    ps_catalog catalog;
    const char *source; // of figures that the cluster's own file states
    const ps_cluster_options *options;
    ps_vec(const char *) warnings;
} ps_cluster_build;

void ps_cluster_warn(ps_cluster_build *build, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct ps_node_settings {
    const ps_node_facts *facts;    // NULL: no node file
    const ps_catalog_entry *entry; // the GPU; NULL: as the facts say
    const char *gpu_source;        // who stated the GPU: "--gpu", or NULL
    int32_t gpus;                  // 0: as the facts say
    const char *intra;             // NULL: as the facts or the catalog say
    double intra_bytes_per_s;      // 0: not stated, as below
    int64_t intra_latency_ns;      // -1: not stated
    int32_t nics;                  // -1: not stated
    const char *nic;
    double nic_bytes_per_s; // of one NIC
    int64_t nic_latency_ns; // -1: not stated
    int64_t host_memory_bytes;
} ps_node_settings;

extern const ps_node_settings ps_node_settings_none;

// Fills all of *group but its name, levels and prices per group. --nic of the build's options overrides the NICs.
// Rules: no-nic, mixed-gpus, too-many-gpus.
ps_code ps_group_build(ps_cluster_build *build, const ps_node_settings *settings, int32_t nodes, ps_group *group,
                       ps_status *status);

// group_links.c: the parts of it about links.
ps_code ps_group_set_intra(ps_cluster_build *build, const ps_node_settings *settings, const ps_catalog_entry *entry,
                           ps_group *group, ps_status *status);
ps_code ps_group_set_inter(ps_cluster_build *build, const ps_node_settings *settings, const ps_catalog_entry *entry,
                           ps_group *group, ps_status *status);
// The node's GPUs, NICs and pairs, one by one, from the facts.
ps_code ps_group_list_node(ps_cluster_build *build, const ps_node_facts *facts, ps_group *group, ps_status *status);

#endif
