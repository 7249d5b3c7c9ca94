// SPDX-License-Identifier: Apache-2.0
//
// hwloc_xml.h: looks at hwloc XML before hwloc does.
//
// hwloc says no more than "invalid" of a file that it cannot read, and some of it on the terminal. So whether the text
// is well formed, and of a version that it can read, is found out here, with line and column.
#ifndef PS_CLUSTER_HWLOC_XML_H
#define PS_CLUSTER_HWLOC_XML_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

// Rules xml-syntax and the like, cluster-format (another root element), hwloc-version and hwloc-object.
ps_code ps_hwloc_xml_check(ps_arena *arena, const char *source, const char *text, int64_t size, ps_status *status);

// Name of the root element into `name`, cut to its size; false when there is none.
bool ps_xml_root_name(const char *text, int64_t size, char name[64]);

#endif
