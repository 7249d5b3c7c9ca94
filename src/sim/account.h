// SPDX-License-Identifier: Apache-2.0
//
// account.h: what every device did, once the times of all its ops are known.
#ifndef PS_SIM_ACCOUNT_H
#define PS_SIM_ACCOUNT_H

#include <stdbool.h>

#include "pipesched/timeline.h"

// Fill the sums and `device` of a timeline whose op times are set. Returns how many (stage, micro-batch) pairs are done
// with their backward. No op may come twice. `recomputes`: by stage whether it has R, NULL: none has. O(ops).
int64_t ps_account(const ps_pipeline *pipeline, const ps_schedule *schedule, const bool *recomputes,
                   ps_timeline *timeline);

#endif
