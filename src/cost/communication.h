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

// How the members of a collective stand: `local` in each of `domains` fast domains.
typedef struct ps_spread {
    double local;
    int64_t domains;
    double intra_bytes_per_s;
    double inter_bytes_per_s;
} ps_spread;
ps_spread ps_spread_of(const ps_group *group, int64_t ranks, int64_t stride);
// The slowest link between neighbours of a ring of such members.
ps_cost_link ps_cost_spread_link(const ps_group *group, int64_t ranks, int64_t stride);

// Every rank sends an equal part of its `bytes` to each of the others.
double ps_all_to_all_seconds(const ps_group *group, int64_t ranks, int64_t stride, double bytes);
// Every rank sends `local_bytes` to others of its domain and, at the same time, `remote_bytes` to other domains.
double ps_two_level_exchange_seconds(const ps_group *group, ps_spread spread, double local_bytes, double remote_bytes);

// Seconds to nanoseconds, rounded, PS_MAX_TIME_NS when out of range.
int64_t ps_ns_clamped(double seconds);

#endif
