// SPDX-License-Identifier: Apache-2.0
//
// curve.h: measured collectives in place of latency and bandwidth.
#ifndef PS_COST_CURVE_H
#define PS_COST_CURVE_H

#include "cost/communication.h"

// The group's curve of this collective among as many ranks that stood alike, or NULL.
const ps_collective_curve *ps_curve_find(const ps_group *group, ps_collective collective, int64_t ranks,
                                         ps_spread spread);
double ps_curve_seconds(const ps_collective_curve *curve, double bytes);

#endif
