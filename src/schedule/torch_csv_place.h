// SPDX-License-Identifier: Apache-2.0
//
// torch_csv_place.h: where an action stands in the file that it was read from.
#ifndef PS_SCHEDULE_TORCH_CSV_PLACE_H
#define PS_SCHEDULE_TORCH_CSV_PLACE_H

#include "pipesched/torch_csv.h"

// Add source, row and column of the cell of an action (index as in ps_actions) to a status just filled. O(size).
ps_code ps_torch_csv_fail_at(const ps_torch_csv *csv, int32_t action, ps_status *status);

#endif
