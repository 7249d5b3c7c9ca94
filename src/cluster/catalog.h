// SPDX-License-Identifier: Apache-2.0
//
// catalog.h: the catalog of GPUs, links and NICs, opened once for many look-ups.
//
// It is configs/gpus.json, compiled in. Only entries that are asked for are turned into structs.
#ifndef PS_CLUSTER_CATALOG_H
#define PS_CLUSTER_CATALOG_H

#include "io/json_read.h"
#include "pipesched/cluster.h"

typedef struct ps_catalog_word {
    const char *text; // a name or an alias
    int32_t entry;
    bool is_alias;
} ps_catalog_word;

typedef struct ps_catalog {
    ps_json root;
    int32_t num_gpus;
    ps_json *gpu;
    const char **gpu_name;
    int32_t num_words;
    ps_catalog_word *word; // names first, then aliases
    const char **word_text;
    int32_t num_links; // links between GPUs first, then NICs
    int32_t first_nic;
    ps_json *link;
    const char **link_name;
} ps_catalog;

// A GPU with what a node of its generation usually has.
typedef struct ps_catalog_entry {
    ps_gpu gpu;
    const char *intra; // link between the GPUs of a node
    const char *nic;   // one per GPU
} ps_catalog_entry;

ps_code ps_catalog_open(ps_arena *arena, ps_catalog *catalog, ps_status *status);

// By name or alias; *alias_of becomes the name when an alias was used, else NULL. Rule unknown-gpu.
ps_code ps_catalog_find(ps_arena *arena, const ps_catalog *catalog, const char *name, ps_catalog_entry *entry,
                        const char **alias_of, ps_status *status);
// Rule unknown-link.
ps_code ps_catalog_find_link(ps_arena *arena, const ps_catalog *catalog, const char *name, ps_link *out,
                             ps_status *status);
bool ps_catalog_link_is_nic(const ps_catalog *catalog, const char *name);

// A driver's or a label's name of a GPU; memory_bytes 0: not known. NULL: none matches.
const char *ps_catalog_match_text(ps_arena *arena, const ps_catalog *catalog, const char *text, int64_t memory_bytes);
// A GPU's PCI vendor and device; NULL: none.
const char *ps_catalog_match_pci(ps_arena *arena, const ps_catalog *catalog, uint32_t vendor, uint32_t device,
                                 int64_t memory_bytes);
// A NIC's PCI vendor and device; `kind` is "infiniband" or "ethernet". NULL: none.
const char *ps_catalog_match_nic(const ps_catalog *catalog, const char *kind, uint32_t vendor, uint32_t device);
// The NIC of this rate: `preferred` if it has it, else the first that has. NULL: none.
const char *ps_catalog_nic_of_rate(ps_arena *arena, const ps_catalog *catalog, const char *preferred,
                                   double bytes_per_s);
// The PCIe link of this rate, or NULL.
const char *ps_catalog_pcie_of_rate(ps_arena *arena, const ps_catalog *catalog, double bytes_per_s);

#endif
