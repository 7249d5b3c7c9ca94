// SPDX-License-Identifier: Apache-2.0
//
// cluster_json.h: the part of the native format that describes one node.
#ifndef PS_CLUSTER_CLUSTER_JSON_H
#define PS_CLUSTER_CLUSTER_JSON_H

#include "cluster/group.h"
#include "io/json_read.h"

// "node": a catalog's GPU and what surrounds it, or {"from": FILE} with overrides. Facts and entries live in the arena.
ps_code ps_node_json_read(ps_cluster_build *build, ps_json node, ps_node_settings *settings, ps_status *status);

#endif
