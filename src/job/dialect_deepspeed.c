// SPDX-License-Identifier: Apache-2.0
//
// dialect_deepspeed.c: DeepSpeed's pipeline engine.
//
// 1. Its training schedule is 1F1B with one stage a rank.
// 2. With pipeline parallelism only the optimizer state may be sharded (ZeRO 1).
#include "job/dialect.h"

#include <stddef.h>

const char *ps_dialect_deepspeed(const ps_layout *layout)
{
    if (layout->pp > 1 && layout->schedule != PS_SCHEDULE_1F1B)
        return "deepspeed-1-schedule";
    if (layout->pp > 1 && layout->zero > 1)
        return "deepspeed-2-zero";
    return NULL;
}
