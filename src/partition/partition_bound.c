// SPDX-License-Identifier: Apache-2.0
//
// partition_bound.c: lower bounds on the largest stage and on the sum of stages.
//
// - A layer is on some stage, so the largest stage is at least the largest layer on its fastest type.
// - Load: K stages share all layers and pay 2(K - 1) cut prices, each position once.
// - Window (identical devices): for every r that divides K, some group of r consecutive stages holds at least
//   ceil(n r / K) layers, so r T is at least the lightest window of so many layers.
// - Mixed devices: with weights v_t >= 0 of which any K devices together weigh at most 1, T is at least the sum over
//   layers of min_t v_t c_t(l): the dual of spreading layers fractionally. Weights in proportion to the types' speeds.
#include "partition/partition_bound.h"

#include <stdlib.h>

#include "base/number.h"

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Sum of the `count` cheapest cut prices.
static int64_t cheapest_cuts(ps_arena *arena, const ps_cut_view *view, int32_t count)
{
    int64_t *price = ps_new(arena, int64_t, view->layers);
    int32_t found = 0;
    for (int32_t layer = 1; layer < view->layers; layer++) {
        if (view->may_cut[layer])
            price[found++] = view->cut_ns[layer];
    }
    qsort(price, (size_t)found, sizeof *price, compare_ns);
    int64_t sum = 0;
    for (int32_t index = 0; index < count && index < found; index++)
        sum += price[index];
    return sum;
}

int64_t ps_cut_bound_sum(ps_arena *arena, const ps_cut_view *view)
{
    int64_t cuts = view->stages > 1 ? cheapest_cuts(arena, view, view->stages - 1) : 0;
    return view->least_prefix_ns[view->layers] + 2 * cuts;
}

static int64_t window_bound(const ps_cut_view *view)
{
    const int64_t *prefix = view->prefix_ns[0];
    int64_t best = 0;
    for (int32_t group = 1; group < view->stages; group++) {
        if (view->stages % group != 0)
            continue;
        int32_t width = (int32_t)ps_ceil_div((int64_t)view->layers * group, view->stages);
        int64_t lightest = INT64_MAX;
        for (int32_t first = 0; first + width <= view->layers; first++) {
            int64_t sum = prefix[first + width] - prefix[first];
            lightest = sum < lightest ? sum : lightest;
        }
        int64_t bound = ps_ceil_div(lightest, group);
        best = bound > best ? bound : best;
    }
    return best;
}

// Speeds are the inverse of a type's time for all layers. Sums of doubles are off by less than one part in 10^9 for up
// to 10^6 layers, which is taken off again.
static int64_t mixed_bound(ps_arena *arena, const ps_cut_view *view)
{
    double *speed = ps_new(arena, double, view->types);
    bool *taken = ps_new(arena, bool, view->types);
    for (int32_t type = 0; type < view->types; type++) {
        if (view->prefix_ns[type][view->layers] == 0)
            return 0;
        speed[type] = 1.0 / (double)view->prefix_ns[type][view->layers];
    }
    double weight = 0; // of the fastest max_stages devices
    int32_t left = view->max_stages;
    for (int32_t round = 0; round < view->types && left > 0; round++) {
        int32_t fastest = -1;
        for (int32_t type = 0; type < view->types; type++) {
            if (!taken[type] && (fastest < 0 || speed[type] > speed[fastest]))
                fastest = type;
        }
        int32_t used = view->count[fastest] < left ? view->count[fastest] : left;
        taken[fastest] = true;
        weight += speed[fastest] * used;
        left -= used;
    }
    double sum = 0;
    for (int32_t layer = 0; layer < view->layers; layer++) {
        double least = speed[0] * (double)view->problem->cost_ns[0][layer];
        for (int32_t type = 1; type < view->types; type++) {
            double here = speed[type] * (double)view->problem->cost_ns[type][layer];
            least = here < least ? here : least;
        }
        sum += least;
    }
    return weight > 0 ? (int64_t)(sum / weight * (1 - 1e-9)) : 0;
}

int64_t ps_cut_bound_bottleneck(ps_arena *arena, const ps_cut_view *view)
{
    int64_t bound = ps_ceil_div(ps_cut_bound_sum(arena, view), view->max_stages);
    for (int32_t layer = 0; layer < view->layers; layer++) {
        int64_t cost = view->least_prefix_ns[layer + 1] - view->least_prefix_ns[layer];
        bound = cost > bound ? cost : bound;
    }
    int64_t other = view->types == 1 ? (view->stages > 0 ? window_bound(view) : 0) : mixed_bound(arena, view);
    return other > bound ? other : bound;
}

int64_t ps_cut_bound_objective(ps_arena *arena, const ps_cut_view *view, int64_t bottleneck_ns)
{
    if (view->problem->objective == PS_OBJECTIVE_BOTTLENECK)
        return bottleneck_ns;
    int64_t sum = ps_cut_bound_sum(arena, view);
    sum = sum > bottleneck_ns ? sum : bottleneck_ns;
    return sum + (int64_t)(view->problem->num_microbatches - 1) * bottleneck_ns;
}
