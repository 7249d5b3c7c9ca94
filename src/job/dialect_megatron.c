// SPDX-License-Identifier: Apache-2.0
//
// dialect_megatron.c: Megatron-LM (main of August 2026: schedules.py and arguments.py).
//
// 1. Pipeline schedules are 1F1B and its interleaved form. There is no GPipe and no zero-bubble schedule, and stages
//    that go there and back again (V) cannot be written down.
// 2. Interleaving takes micro-batches in groups of the pipeline size, so their number is a multiple of it.
// 3. Virtual stages need more than one pipeline rank.
#include "job/dialect.h"

#include <stddef.h>

const char *ps_dialect_megatron(const ps_layout *layout)
{
    bool interleaved = layout->schedule == PS_SCHEDULE_INTERLEAVED;
    if (layout->pp > 1 && !interleaved && layout->schedule != PS_SCHEDULE_1F1B)
        return "megatron-1-schedule";
    if (interleaved && layout->num_microbatches % layout->pp != 0)
        return "megatron-2-interleaved-microbatches";
    if (layout->vp > 1 && layout->pp == 1)
        return "megatron-3-virtual-stages";
    return NULL;
}
