// SPDX-License-Identifier: Apache-2.0
//
// cluster_formats.h: one loader a format. cluster.c recognises the format and calls one of them.
#ifndef PS_CLUSTER_CLUSTER_FORMATS_H
#define PS_CLUSTER_CLUSTER_FORMATS_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/group.h"
#include "pipesched/cluster.h"

// cluster_json.c: pipesched/cluster/v1.
ps_code ps_cluster_read_json(ps_cluster_build *build, const char *text, int64_t size, ps_cluster *out,
                             ps_status *status);

// cluster_shorthand.c: NODESxGPUSxTYPE. The first says whether `text` is meant as one.
bool ps_cluster_is_shorthand(const char *text);
ps_code ps_cluster_read_shorthand(ps_cluster_build *build, const char *text, ps_cluster *out, ps_status *status);

// cluster_node.c: a file about one node, whatever its format; the text decides. Rules cluster-format and
// unsupported-format.
ps_code ps_node_file_read(ps_cluster_build *build, const char *source, const char *text, int64_t size,
                          ps_node_facts *facts, ps_status *status);
bool ps_is_node_file(const char *text, int64_t size);
// A cluster of --nodes copies of such a node.
ps_code ps_cluster_read_node(ps_cluster_build *build, const char *text, int64_t size, ps_cluster *out,
                             ps_status *status);
ps_code ps_cluster_read_machine(ps_cluster_build *build, ps_cluster *out, ps_status *status);

#endif
