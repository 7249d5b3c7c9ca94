// SPDX-License-Identifier: Apache-2.0
//
// partition_memory.c: how far a stage can reach within memory.
//
// Memory of a stage is prefix sums plus the largest transient, so two pointers and a sliding maximum give the furthest
// end for every first layer: O(layers * depth points) a device type and memory class. Stages whose depths are equal
// share a class. Depth times memory may exceed 64 bits; such products stick at the largest integer.
#include "base/number.h"
#include "partition/partition_problem.h"
#include "pipesched/limits.h"

#define MAX_ENTRIES (INT64_C(1) << 28)

int64_t ps_cut_memory(const ps_partition_problem *problem, int32_t stage, int32_t first, int32_t end)
{
    int64_t full = 0;
    int64_t weight = 0;
    int64_t transient = 0;
    int64_t bytes = problem->stage_static_bytes ? problem->stage_static_bytes[stage] : 0;
    for (int32_t layer = first; layer < end; layer++) {
        bytes += problem->static_bytes ? problem->static_bytes[layer] : 0;
        full += problem->held_full ? problem->held_full[layer] : 0;
        weight += problem->held_weight ? problem->held_weight[layer] : 0;
        if (problem->transient_bytes && problem->transient_bytes[layer] > transient)
            transient = problem->transient_bytes[layer];
    }
    int64_t held = problem->depth ? 0 : full;
    for (int32_t at = problem->depth ? problem->depth->first[stage] : 0;
         problem->depth && at < problem->depth->first[stage + 1]; at++) {
        int64_t here = ps_add_saturating(ps_multiply_saturating(problem->depth->point[at].full, full),
                                         ps_multiply_saturating(problem->depth->point[at].weight, weight));
        held = here > held ? here : held;
    }
    return ps_add_saturating(ps_add_saturating(bytes, held), transient);
}

static bool same_depth(const ps_partition_problem *problem, int32_t stage)
{
    if (problem->stage_static_bytes && problem->stage_static_bytes[stage] != problem->stage_static_bytes[stage - 1])
        return false;
    if (!problem->depth)
        return true;
    const int32_t *first = problem->depth->first;
    int32_t points = first[stage + 1] - first[stage];
    if (points != first[stage] - first[stage - 1])
        return false;
    for (int32_t at = 0; at < points; at++) {
        ps_depth here = problem->depth->point[first[stage] + at];
        ps_depth before = problem->depth->point[first[stage - 1] + at];
        if (here.full != before.full || here.weight != before.weight)
            return false;
    }
    return true;
}

static bool memory_matters(const ps_partition_problem *problem)
{
    bool limited = false;
    for (int32_t type = 0; type < problem->num_types; type++)
        limited = limited || problem->type[type].memory_limit < INT64_MAX;
    return limited && (problem->static_bytes || problem->held_full || problem->held_weight ||
                       problem->transient_bytes || problem->stage_static_bytes);
}

static void build_classes(ps_arena *arena, ps_cut_view *view)
{
    bool per_stage = memory_matters(view->problem) && view->stages > 0;
    view->stage_class = ps_new(arena, int32_t, view->max_stages);
    for (int32_t stage = 1; per_stage && stage < view->stages; stage++)
        view->stage_class[stage] = view->stage_class[stage - 1] + (same_depth(view->problem, stage) ? 0 : 1);
    view->num_classes = view->stage_class[view->max_stages - 1] + 1;
}

// Prefix sums of memory, and a queue of layers whose transient falls, for a window that only moves forward.
typedef struct ps_memory_window {
    int64_t *fixed; // [layers + 1]
    int64_t *full;
    int64_t *weight;
    int32_t *queue; // [layers]
    int32_t head;
    int32_t tail;
    // Of the stage at hand.
    int64_t stage_bytes;
    int32_t points;
    const ps_depth *point;
    bool saturate; // depth times memory could overflow
} ps_memory_window;

static const ps_depth ONE_IN_FLIGHT = {1, 0};

static void select_stage(const ps_cut_view *view, ps_memory_window *window, int32_t stage)
{
    const ps_partition_problem *problem = view->problem;
    const ps_depth_list *depth = problem->depth;
    window->stage_bytes = problem->stage_static_bytes ? problem->stage_static_bytes[stage] : 0;
    window->points = depth ? depth->first[stage + 1] - depth->first[stage] : 1;
    window->point = depth ? depth->point + depth->first[stage] : &ONE_IN_FLIGHT;
    window->saturate = false;
    window->head = window->tail = 0;
    for (int32_t at = 0; at < window->points; at++) {
        int64_t full = ps_multiply_saturating(window->point[at].full, window->full[view->layers]);
        int64_t weight = ps_multiply_saturating(window->point[at].weight, window->weight[view->layers]);
        window->saturate = window->saturate || full > PS_MAX_BYTES || weight > PS_MAX_BYTES;
    }
}

static int64_t *prefix_of(ps_arena *arena, const int64_t *amount, int32_t count)
{
    int64_t *prefix = ps_new(arena, int64_t, count + 1);
    for (int32_t index = 0; amount && index < count; index++)
        prefix[index + 1] = prefix[index] + amount[index];
    return prefix;
}

static inline int64_t memory_within(const ps_partition_problem *problem, const ps_memory_window *window, int32_t first,
                                    int32_t end)
{
    int64_t full = window->full[end] - window->full[first];
    int64_t weight = window->weight[end] - window->weight[first];
    int64_t bytes = window->fixed[end] - window->fixed[first] + window->stage_bytes;
    if (window->head < window->tail)
        bytes += problem->transient_bytes[window->queue[window->head]];
    int64_t held = 0;
    for (int32_t at = 0; at < window->points; at++) {
        ps_depth depth = window->point[at];
        int64_t here = window->saturate ? ps_add_saturating(ps_multiply_saturating(depth.full, full),
                                                            ps_multiply_saturating(depth.weight, weight))
                                        : depth.full * full + depth.weight * weight;
        held = here > held ? here : held;
    }
    return ps_add_saturating(bytes, held);
}

static void push_layer(const ps_partition_problem *problem, ps_memory_window *window, int32_t layer)
{
    if (!problem->transient_bytes)
        return;
    while (window->tail > window->head &&
           problem->transient_bytes[window->queue[window->tail - 1]] <= problem->transient_bytes[layer])
        window->tail--;
    window->queue[window->tail++] = layer;
}

// Two pointers: the furthest end never moves back as the start moves on. O(layers * depth points).
static void fit_class(const ps_cut_view *view, ps_memory_window *window, int64_t limit, int32_t *end)
{
    const ps_partition_problem *problem = view->problem;
    int32_t most = problem->max_layers > 0 && problem->max_layers < view->layers ? problem->max_layers : view->layers;
    int32_t reach = 0;
    int32_t pushed = 0; // layers before it have been in the queue
    for (int32_t first = 0; first <= view->layers; first++) {
        if (reach < first)
            reach = first;
        while (window->head < window->tail && window->queue[window->head] < first)
            window->head++;
        while (reach < view->layers && reach - first < most) {
            if (reach == pushed)
                push_layer(problem, window, pushed++);
            if (memory_within(problem, window, first, reach + 1) > limit)
                break;
            reach++;
        }
        end[first] = reach;
    }
}

static void build_window(ps_arena *arena, ps_cut_view *view)
{
    const ps_partition_problem *problem = view->problem;
    int32_t layers = view->layers;
    view->window = ps_new(arena, ps_memory_window, 1);
    view->window->fixed = prefix_of(arena, problem->static_bytes, layers);
    view->window->full = prefix_of(arena, problem->held_full, layers);
    view->window->weight = prefix_of(arena, problem->held_weight, layers);
    view->window->queue = ps_new(arena, int32_t, layers);
    view->end = ps_new(arena, int32_t *, (int64_t)view->types * view->num_classes);
    for (int64_t row = 0; row < (int64_t)view->types * view->num_classes; row++)
        view->end[row] = ps_new_raw(arena, int32_t, layers + 1);
}

void ps_cut_view_fit(ps_cut_view *view, int64_t extra_bytes)
{
    const ps_partition_problem *problem = view->problem;
    int32_t done = -1;
    for (int32_t stage = 0; stage < view->max_stages; stage++) {
        if (view->stage_class[stage] == done)
            continue;
        done = view->stage_class[stage];
        for (int32_t type = 0; type < view->types; type++) {
            int64_t limit = ps_add_saturating(problem->type[type].memory_limit, extra_bytes);
            select_stage(view, view->window, stage);
            fit_class(view, view->window, limit, view->end[(int64_t)type * view->num_classes + done]);
        }
    }
}

ps_code ps_cut_memory_build(ps_arena *arena, ps_cut_view *view, ps_status *status)
{
    build_classes(arena, view);
    int64_t entries = ps_multiply_saturating((int64_t)view->types * view->num_classes, view->layers + 1);
    if (entries > MAX_ENTRIES)
        return ps_fail(status, PS_ILLEGAL, "engine-cannot",
                       "%d layers times %d memory depths times %d device types is too large to cut", (int)view->layers,
                       (int)view->num_classes, (int)view->types);
    build_window(arena, view);
    ps_cut_view_fit(view, 0);
    return PS_OK;
}
