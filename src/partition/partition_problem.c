// SPDX-License-Identifier: Apache-2.0
//
// partition_problem.c: checks a partition problem and builds the tables that the engines share.
#include "partition/partition_problem.h"

#include <inttypes.h>

#include "base/number.h"
#include "base/text.h"
#include "pipesched/limits.h"

static ps_code check_amounts(const int64_t *amount, int32_t count, int64_t max, const char *what, ps_status *status)
{
    int64_t sum = 0;
    for (int32_t index = 0; amount && index < count; index++) {
        if (amount[index] < 0)
            return ps_fail(status, PS_BAD_INPUT, "out-of-range", "%s of layer %d is negative: %" PRId64, what,
                           (int)index, amount[index]);
        if (!ps_add_checked(sum, amount[index], &sum) || sum > max)
            return ps_fail(status, PS_BAD_INPUT, "out-of-range", "%s up to layer %d adds up to more than %" PRId64,
                           what, (int)index, max);
    }
    return PS_OK;
}

static int64_t sum_of(const int64_t *amount, int32_t count)
{
    int64_t sum = 0;
    for (int32_t index = 0; amount && index < count; index++)
        sum += amount[index];
    return sum;
}

// The largest objective that any cut can have must fit: everything on one stage, every cut paid twice.
static ps_code check_objective(const ps_partition_problem *problem, ps_status *status)
{
    int64_t times = problem->objective == PS_OBJECTIVE_ITERATION ? problem->num_microbatches : 1;
    if (times < 1 || times > PS_MAX_MICROBATCHES)
        return ps_fail(status, PS_BAD_INPUT, "out-of-range", "micro-batches must be 1 to %d, got %d",
                       (int)PS_MAX_MICROBATCHES, (int)problem->num_microbatches);
    for (int32_t type = 0; type < problem->num_types; type++) {
        int64_t most = sum_of(problem->cost_ns[type], problem->num_layers);
        most = ps_add_saturating(most, 2 * sum_of(problem->cut_ns, problem->num_layers - 1));
        if (ps_multiply_saturating(most, times + 1) > PS_MAX_TIME_NS)
            return ps_fail(status, PS_BAD_INPUT, "out-of-range",
                           "%" PRId64 " ns of layers and cuts times %" PRId64 " micro-batches is more than 2^62 ns",
                           most, times);
    }
    return PS_OK;
}

static ps_code check_stage_arrays(const ps_partition_problem *problem, ps_status *status)
{
    if (problem->num_stages == 0 && (problem->depth || problem->stage_static_bytes || problem->pinned_stage))
        return ps_fail(status, PS_BAD_INPUT, "stages-needed",
                       "depths, memory of a stage and pins need the number of stages");
    if (problem->depth && problem->depth->num_stages != problem->num_stages)
        return ps_fail(status, PS_BAD_INPUT, "out-of-range", "depths are given for %d stages, not %d",
                       (int)problem->depth->num_stages, (int)problem->num_stages);
    for (int32_t at = 0; problem->depth && at < problem->depth->first[problem->num_stages]; at++) {
        if (problem->depth->point[at].full < 0 || problem->depth->point[at].weight < 0)
            return ps_fail(status, PS_BAD_INPUT, "out-of-range", "a depth is negative: %d full, %d of weights",
                           (int)problem->depth->point[at].full, (int)problem->depth->point[at].weight);
    }
    for (int32_t layer = 0; problem->pinned_stage && layer < problem->num_layers; layer++) {
        if (problem->pinned_stage[layer] < -1 || problem->pinned_stage[layer] >= problem->num_stages)
            return ps_fail(status, PS_BAD_INPUT, "out-of-range", "layer %d is pinned to stage %d of %d", (int)layer,
                           (int)problem->pinned_stage[layer], (int)problem->num_stages);
    }
    return PS_OK;
}

static ps_code check(const ps_partition_problem *problem, ps_status *status)
{
    int32_t layers = problem->num_layers;
    if (layers < 1 || layers > PS_MAX_LAYERS)
        return ps_fail(status, PS_BAD_INPUT, "out-of-range", "layers must be 1 to %d, got %d", (int)PS_MAX_LAYERS,
                       (int)layers);
    if (problem->num_stages < 0 || problem->num_stages > PS_MAX_STAGES)
        return ps_fail(status, PS_BAD_INPUT, "out-of-range", "stages must be at most %d, got %d", (int)PS_MAX_STAGES,
                       (int)problem->num_stages);
    if (problem->num_types < 1 || problem->min_layers < 0 || problem->max_layers < 0)
        return ps_fail(status, PS_BAD_INPUT, "out-of-range",
                       "device types (%d) must be at least 1, layers of a stage (%d to %d) not negative",
                       (int)problem->num_types, (int)problem->min_layers, (int)problem->max_layers);
    for (int32_t type = 0; type < problem->num_types; type++) {
        if (problem->type[type].count < 0 || problem->type[type].memory_limit < 0)
            return ps_fail(status, PS_BAD_INPUT, "out-of-range", "count and memory of %s must not be negative",
                           problem->type[type].name);
        PS_TRY(check_amounts(problem->cost_ns[type], layers, PS_MAX_TIME_NS, "the cost", status));
    }
    PS_TRY(check_amounts(problem->cut_ns, layers - 1, PS_MAX_TIME_NS / 4, "the cost of a cut", status));
    PS_TRY(check_amounts(problem->static_bytes, layers, PS_MAX_BYTES, "static memory", status));
    PS_TRY(check_amounts(problem->held_full, layers, PS_MAX_BYTES, "held memory", status));
    PS_TRY(check_amounts(problem->held_weight, layers, PS_MAX_BYTES, "memory held for weights", status));
    PS_TRY(check_amounts(problem->transient_bytes, layers, PS_MAX_BYTES, "transient memory", status));
    PS_TRY(check_stage_arrays(problem, status));
    PS_TRY(check_amounts(problem->stage_static_bytes, problem->num_stages, PS_MAX_BYTES, "memory of stages", status));
    return check_objective(problem, status);
}

static void hint_stages(int64_t most, ps_status *status)
{
    ps_fail_hint(status, "use %" PRId64 " stage%s%s", most, ps_plural(most), most > 1 ? " or fewer" : "");
}

static ps_code check_counts(const ps_partition_problem *problem, ps_status *status)
{
    int64_t devices = 0;
    for (int32_t type = 0; type < problem->num_types; type++)
        devices += problem->type[type].count;
    int64_t least = problem->min_layers > 1 ? problem->min_layers : 1;
    int64_t stages = problem->num_stages > 0 ? problem->num_stages : 1;
    if (least * stages > problem->num_layers) {
        ps_fail(status, PS_INFEASIBLE, "fewer-layers-than-stages",
                "%d layer%s cannot fill %" PRId64 " stage%s of at least %" PRId64 " layer%s", (int)problem->num_layers,
                ps_plural(problem->num_layers), stages, ps_plural(stages), least, ps_plural(least));
        if (problem->num_layers >= least)
            hint_stages(problem->num_layers / least, status);
        return PS_INFEASIBLE;
    }
    if (stages > devices) {
        ps_fail(status, PS_INFEASIBLE, "fewer-devices-than-stages",
                "%" PRId64 " stage%s need a device each, got %" PRId64, stages, ps_plural(stages), devices);
        if (devices > 0)
            hint_stages(devices, status);
        return PS_INFEASIBLE;
    }
    return PS_OK;
}

int64_t ps_cut_most_ns(const ps_cut_view *view)
{
    int64_t most = 0;
    int64_t cut = 0;
    for (int32_t type = 0; type < view->types; type++)
        most = view->prefix_ns[type][view->layers] > most ? view->prefix_ns[type][view->layers] : most;
    for (int32_t layer = 0; layer < view->layers; layer++)
        cut = view->cut_ns[layer] > cut ? view->cut_ns[layer] : cut;
    return most + 2 * cut;
}

static void build_costs(ps_arena *arena, ps_cut_view *view)
{
    const ps_partition_problem *problem = view->problem;
    int32_t layers = view->layers;
    view->prefix_ns = ps_new(arena, int64_t *, view->types);
    view->least_prefix_ns = ps_new(arena, int64_t, layers + 1);
    view->cut_ns = ps_new(arena, int64_t, layers + 1);
    view->may_cut = ps_new(arena, bool, layers + 1);
    for (int32_t type = 0; type < view->types; type++) {
        view->prefix_ns[type] = ps_new(arena, int64_t, layers + 1);
        for (int32_t layer = 0; layer < layers; layer++)
            view->prefix_ns[type][layer + 1] = view->prefix_ns[type][layer] + problem->cost_ns[type][layer];
    }
    for (int32_t layer = 0; layer < layers; layer++) {
        int64_t least = problem->cost_ns[0][layer];
        for (int32_t type = 1; type < view->types; type++)
            least = problem->cost_ns[type][layer] < least ? problem->cost_ns[type][layer] : least;
        view->least_prefix_ns[layer + 1] = view->least_prefix_ns[layer] + least;
        view->cut_ns[layer] = layer > 0 && problem->cut_ns ? problem->cut_ns[layer - 1] : 0;
        view->may_cut[layer] = layer == 0 || !problem->keep_with_next || !problem->keep_with_next[layer - 1];
    }
    view->may_cut[layers] = true;
}

// A layer pinned to stage p starts no later than p + 1 does, and p starts no later than the layer; other stages follow,
// as first layers rise by at least min_layers.
static void build_bands(ps_arena *arena, ps_cut_view *view)
{
    view->band_low = ps_new(arena, int32_t, view->max_stages + 1);
    view->band_high = ps_new(arena, int32_t, view->max_stages + 1);
    for (int32_t stage = 0; stage <= view->max_stages; stage++) {
        int32_t after = view->stages > 0 ? view->stages - stage : 0;
        view->band_low[stage] = stage * view->min_layers;
        view->band_high[stage] = view->layers - after * view->min_layers;
    }
    view->band_high[0] = 0;
    for (int32_t layer = 0; view->problem->pinned_stage && layer < view->layers; layer++) {
        int32_t stage = view->problem->pinned_stage[layer];
        if (stage >= 0 && view->band_high[stage] > layer)
            view->band_high[stage] = layer;
        if (stage >= 0 && view->band_low[stage + 1] < layer + 1)
            view->band_low[stage + 1] = layer + 1;
    }
    for (int32_t stage = 1; view->stages > 0 && stage <= view->stages; stage++) {
        if (view->band_low[stage] < view->band_low[stage - 1] + view->min_layers)
            view->band_low[stage] = view->band_low[stage - 1] + view->min_layers;
    }
    for (int32_t stage = view->stages; stage > 0; stage--) {
        if (view->band_high[stage - 1] > view->band_high[stage] - view->min_layers)
            view->band_high[stage - 1] = view->band_high[stage] - view->min_layers;
    }
    // Pins that contradict each other push bands past the ends; some band past the first stage is empty then, and
    // stays.
    for (int32_t stage = 0; stage <= view->max_stages; stage++) {
        if (view->band_low[stage] > view->layers)
            view->band_low[stage] = view->layers;
        if (view->band_high[stage] < 0)
            view->band_high[stage] = 0;
    }
}

// A layer that fits on no device as any stage, named with the place where it comes closest.
static ps_code check_layers_fit(const ps_cut_view *view, ps_status *status)
{
    const ps_partition_problem *problem = view->problem;
    for (int32_t layer = 0; layer < view->layers; layer++) {
        bool fits = false;
        for (int64_t row = 0; !fits && row < (int64_t)view->types * view->num_classes; row++)
            fits = view->end[row][layer] > layer;
        if (fits)
            continue;
        int32_t best_stage = 0;
        int32_t best_type = 0;
        int64_t best_missing = INT64_MAX;
        for (int32_t stage = 0; stage < view->max_stages; stage++) {
            int64_t need = ps_cut_memory(problem, stage, layer, layer + 1);
            for (int32_t type = 0; type < view->types; type++) {
                if (need - problem->type[type].memory_limit < best_missing) {
                    best_missing = need - problem->type[type].memory_limit;
                    best_stage = stage;
                    best_type = type;
                }
            }
        }
        const ps_device_type *type = &problem->type[best_type];
        char need[64], have[64];
        ps_fail(status, PS_INFEASIBLE, "memory",
                "layer %d alone needs %s of memory as stage %d, a device of type %s has %s", (int)layer,
                ps_cut_format_memory(problem, ps_cut_memory(problem, best_stage, layer, layer + 1), need),
                (int)best_stage, type->name, ps_cut_format_memory(problem, type->memory_limit, have));
        return ps_fail_hint(status, "it would fit with a memory limit of %s",
                            ps_cut_format_memory_exact(problem, type->memory_limit + best_missing, need));
    }
    return PS_OK;
}

ps_code ps_cut_view_build(ps_arena *arena, const ps_partition_problem *problem, ps_cut_view *out, ps_status *status)
{
    PS_TRY(check(problem, status));
    PS_TRY(check_counts(problem, status));
    int32_t least = problem->min_layers > 1 ? problem->min_layers : 1;
    int64_t devices = 0;
    for (int32_t type = 0; type < problem->num_types; type++)
        devices += problem->type[type].count;
    int64_t most = problem->num_layers / least;
    most = devices < most ? devices : most;
    *out = (ps_cut_view){.problem = problem,
                         .layers = problem->num_layers,
                         .types = problem->num_types,
                         .stages = problem->num_stages,
                         .max_stages = problem->num_stages > 0 ? problem->num_stages : (int32_t)most,
                         .min_layers = least,
                         .count = ps_new(arena, int32_t, problem->num_types)};
    for (int32_t type = 0; type < out->types; type++)
        out->count[type] = problem->type[type].count < out->max_stages ? problem->type[type].count : out->max_stages;
    build_costs(arena, out);
    build_bands(arena, out);
    PS_TRY(ps_cut_memory_build(arena, out, status));
    return check_layers_fit(out, status);
}
