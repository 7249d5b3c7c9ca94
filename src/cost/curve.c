// SPDX-License-Identifier: Apache-2.0
//
// curve.c: a line between two measured sizes. A curve holds only for ranks that stand as those measured did: so many on
// each of so many nodes.
#include "cost/curve.h"

const ps_collective_curve *ps_curve_find(const ps_group *group, ps_collective collective, int64_t ranks,
                                         ps_spread spread)
{
    for (int32_t index = 0; index < group->num_curves; index++) {
        const ps_collective_curve *curve = &group->curve[index];
        bool alike = curve->nodes == 1 ? spread.domains == 1
                                       : curve->nodes == spread.domains && group->nvlink_domain_nodes <= 1 &&
                                             spread.local * (double)curve->nodes == (double)curve->ranks;
        if (curve->collective == collective && curve->ranks == ranks && alike)
            return curve;
    }
    return NULL;
}

double ps_curve_seconds(const ps_collective_curve *curve, double bytes)
{
    int32_t last = curve->num_points - 1;
    int32_t above = 0;

    while (above <= last && curve->bytes[above] < bytes)
        above++;
    if (above == 0)
        return curve->seconds[0];
    if (above > last)
        return curve->seconds[last] * bytes / curve->bytes[last];
    double share = (bytes - curve->bytes[above - 1]) / (curve->bytes[above] - curve->bytes[above - 1]);
    return curve->seconds[above - 1] + share * (curve->seconds[above] - curve->seconds[above - 1]);
}
