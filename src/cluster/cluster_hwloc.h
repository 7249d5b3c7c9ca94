// SPDX-License-Identifier: Apache-2.0
//
// cluster_hwloc.h: one node, from hwloc XML or from the machine that runs this.
#ifndef PS_CLUSTER_CLUSTER_HWLOC_H
#define PS_CLUSTER_CLUSTER_HWLOC_H

#include "cluster/node_facts.h"
#include "pipesched/arena.h"
#include "pipesched/status.h"

// hwloc XML of versions 1 and 2; text[size] is a NUL. Rules hwloc-version, hwloc-object, hwloc-load, no-gpu,
// too-many-gpus and those of ps_xml_parse().
ps_code ps_hwloc_read_xml(ps_arena *arena, const char *source, const char *text, int64_t size, ps_node_facts *facts,
                          ps_status *status);
// The same of this machine; `sha256` becomes the digest of its topology. Rules hwloc-load and no-gpu.
ps_code ps_hwloc_read_machine(ps_arena *arena, ps_node_facts *facts, char sha256[65], ps_status *status);

#endif
