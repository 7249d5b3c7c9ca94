// SPDX-License-Identifier: Apache-2.0
//
// timeline.c: what is asked of a finished timeline.
#include "pipesched/timeline.h"

#include <inttypes.h>

ps_code ps_timeline_fits(const ps_pipeline *pipeline, const ps_timeline *timeline, ps_status *status)
{
    for (int32_t device = 0; device < timeline->num_devices; device++) {
        int64_t need = timeline->device[device].peak_memory;
        int64_t have = pipeline->device[device].memory_limit;
        if (need <= have)
            continue;
        ps_fail(status, PS_INFEASIBLE, "memory",
                "device %d needs %" PRId64 " of memory at its peak, its limit is %" PRId64, (int)device, need, have);
        return ps_fail_hint(status, "%" PRId64 " of it is static, up to %" PRId64 " is held by micro-batches",
                            pipeline->device[device].static_memory, timeline->device[device].peak_activation);
    }
    return PS_OK;
}

static double idle_share(int64_t busy_ns, int32_t devices, int64_t elapsed_ns)
{
    return elapsed_ns > 0 ? 1.0 - (double)busy_ns / ((double)devices * (double)elapsed_ns) : 0.0;
}

double ps_timeline_bubble(const ps_timeline *timeline)
{
    return idle_share(timeline->busy_ns, timeline->num_devices, timeline->makespan_ns);
}

double ps_timeline_span_bubble(const ps_timeline *timeline)
{
    return idle_share(timeline->busy_ns, timeline->num_devices, timeline->span_ns);
}
