// SPDX-License-Identifier: Apache-2.0
//
// cluster_summary.h: what was understood of a cluster: GPUs, links, NICs, nodes, and where every figure came from.
#ifndef PS_REPORT_CLUSTER_SUMMARY_H
#define PS_REPORT_CLUSTER_SUMMARY_H

#include <stdio.h>

#include "pipesched/arena.h"
#include "pipesched/cluster.h"
#include "pipesched/status.h"

ps_code ps_cluster_json(FILE *file, const ps_cluster *cluster, ps_status *status);
// `verbose` lists every link of a node that was read one by one.
void ps_cluster_text(FILE *file, ps_arena *arena, const ps_cluster *cluster, bool verbose);

#endif
