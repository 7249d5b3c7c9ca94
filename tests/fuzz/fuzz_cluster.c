// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include "pipesched/cluster.h"
#include "pipesched/limits.h"

ps_code fuzz_one(ps_arena *arena, const char *text, int64_t size, ps_status *status)
{
    ps_cluster cluster;
    ps_cluster_options options = {0};
    PS_TRY(ps_cluster_parse(arena, "fuzz", text, size, &options, &cluster, status));
    if (cluster.num_groups < 1 || ps_cluster_gpus(&cluster) < 1 || ps_cluster_gpus(&cluster) > PS_MAX_GPUS)
        abort();
    return PS_OK;
}
