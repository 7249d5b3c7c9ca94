// SPDX-License-Identifier: Apache-2.0
//
// communication.h: seconds of collectives inside the cost model; the public functions of cost.h round them.
#ifndef PS_COST_COMMUNICATION_H
#define PS_COST_COMMUNICATION_H

#include "cost/rank_view.h"

double ps_all_reduce_seconds(const ps_group *group, int64_t ranks, int64_t stride, double bytes);
// Also an all-gather: the same bytes in the other direction.
double ps_reduce_scatter_seconds(const ps_group *group, int64_t ranks, int64_t stride, double bytes);

// An all-reduce between the first and the last pipeline rank's holders of a tied weight, each pair on its own.
double ps_tied_all_reduce_seconds(const ps_group *group, const ps_layout *layout, double bytes);

// What is not hidden of one tensor parallel exchange of a tensor of `bytes`: an all-reduce, or with sequence
// parallelism a reduce-scatter and an all-gather. 0 without tensor parallelism.
double ps_tp_exchange_seconds(const ps_rank_view *view, double bytes);
// The same for half of it: with sequence parallelism one of the two, without it nothing.
double ps_tp_half_exchange_seconds(const ps_rank_view *view, double bytes);

// Seconds to nanoseconds, rounded, PS_MAX_TIME_NS when out of range.
int64_t ps_ns_clamped(double seconds);

#endif
