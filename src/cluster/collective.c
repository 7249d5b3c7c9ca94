// SPDX-License-Identifier: Apache-2.0
//
// collective.c: names of collectives, as files write them.
#include <string.h>

#include "cluster/collective.h"

static const char *const names[PS_COLLECTIVES] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all"};

const char *ps_collective_name(ps_collective collective)
{
    return names[collective];
}

int ps_collective_named(const char *name)
{
    for (int collective = 0; collective < PS_COLLECTIVES; collective++)
        if (strcmp(names[collective], name) == 0)
            return collective;
    return -1;
}
