// SPDX-License-Identifier: Apache-2.0
//
// torch_cell.h: one cell of a PyTorch schedule.
#ifndef PS_SCHEDULE_TORCH_CELL_H
#define PS_SCHEDULE_TORCH_CELL_H

#include "pipesched/action.h"

// One action into action[0], or the two of an overlapped pair; `count` says which. NULL when the cell is right, else
// what is wrong with it. Strict: no blanks inside, no sign, no leading zeros but "0", nothing after.
const char *ps_torch_cell_parse(const char *text, int64_t size, ps_action action[2], int32_t *count);

// The reverse, for an action alone. Writes at most 32 bytes, returns the length.
int32_t ps_action_format(ps_action action, char text[32]);

#endif
