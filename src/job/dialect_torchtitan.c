// SPDX-License-Identifier: Apache-2.0
//
// dialect_torchtitan.c: torchtitan on torch.distributed.pipelining (2.8). Schedules that PyTorch has no class for are
// given to it as a CSV file.
//
// 1. GPipe and 1F1B refuse fewer micro-batches than pipeline ranks.
// 2. Interleaved 1F1B runs max(1, m / p) rounds and needs m to be a multiple of that number.
// 3. Stages go there and back again (V) only under the names ZBVZeroBubble and DualPipeV, also those of a CSV file, and
//    these take exactly two stages a rank.
// 4. Every micro-batch passes all stages, in a CSV file too: there is nothing for dualpipe's two ways in from both
// ends.
// 5. A backward split into I and W runs without torch.compile only: a caution, as no layout says whether it is on.
// 6. There is no recompute op: PyTorch recomputes inside the backward.
#include "job/dialect.h"

#include <stddef.h>

const char *ps_dialect_torchtitan(const ps_layout *layout)
{
    int32_t microbatches = layout->num_microbatches;
    if (layout->schedule == PS_SCHEDULE_GPIPE || layout->schedule == PS_SCHEDULE_1F1B) {
        if (layout->pp > 1 && microbatches < layout->pp)
            return "torchtitan-1-microbatches";
    }
    if (layout->schedule == PS_SCHEDULE_INTERLEAVED) {
        int32_t rounds = microbatches / layout->pp > 1 ? microbatches / layout->pp : 1;
        if (microbatches % rounds != 0)
            return "torchtitan-2-interleaved-rounds";
    }
    if (layout->schedule == PS_SCHEDULE_GPIPE_RECOMPUTE)
        return "torchtitan-6-recompute";
    bool there_and_back = layout->schedule == PS_SCHEDULE_ZB_V || layout->schedule == PS_SCHEDULE_V_HALF ||
                          layout->schedule == PS_SCHEDULE_V_MIN || layout->schedule == PS_SCHEDULE_DUALPIPEV ||
                          (layout->schedule == PS_SCHEDULE_ZB && layout->placement == PS_PLACEMENT_V);
    if (there_and_back && layout->vp != 2)
        return "torchtitan-3-v-stages";
    if (layout->schedule == PS_SCHEDULE_DUALPIPE)
        return "torchtitan-4-both-ways";
    return NULL;
}

static bool splits_backward(ps_schedule_kind schedule)
{
    switch (schedule) {
    case PS_SCHEDULE_GPIPE:
    case PS_SCHEDULE_GPIPE_RECOMPUTE:
    case PS_SCHEDULE_1F1B:
    case PS_SCHEDULE_H_1F1B:
    case PS_SCHEDULE_INTERLEAVED:
    case PS_SCHEDULE_LOOPED_BFS: return false;
    default: return true;
    }
}

const ps_caution *ps_caution_torchtitan(const ps_layout *layout)
{
    static const ps_caution compile = {
        "torchtitan-5-compile",
        "torchtitan: torch.compile does not support a backward split into I and W; leave it off"};
    return layout->pp > 1 && splits_backward(layout->schedule) ? &compile : NULL;
}
