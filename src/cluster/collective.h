// SPDX-License-Identifier: Apache-2.0
//
// collective.h: measured collectives, from the logs of nccl-tests.
#ifndef PS_CLUSTER_COLLECTIVE_H
#define PS_CLUSTER_COLLECTIVE_H

#include "pipesched/cluster.h"

int ps_collective_named(const char *name); // -1: there is none of that name

#endif
