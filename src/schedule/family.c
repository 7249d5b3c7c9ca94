// SPDX-License-Identifier: Apache-2.0
//
// family.c: placing the ranks of a family on the devices of a pipeline, and the rules that families share.
#include "schedule/family.h"

#include <stdio.h>
#include <string.h>

#include "base/scratch.h"
#include "base/text.h"
#include "pipesched/limits.h"

ps_schedule_shape ps_family_shape(const ps_pipeline *pipeline)
{
    return (ps_schedule_shape){.num_devices = pipeline->num_devices,
                               .num_stages = pipeline->num_stages,
                               .num_microbatches = pipeline->num_microbatches};
}

int64_t ps_family_rank_ops(const ps_family *family, ps_schedule_shape shape)
{
    int64_t ops_per_microbatch = (family->family.splits_backward ? 3 : 2) + family->family.recomputes;
    if (family->family.placement == PS_PLACEMENT_DUAL) // either stage has half of the micro-batches
        return ops_per_microbatch * shape.num_microbatches;
    return ops_per_microbatch * shape.num_microbatches * (shape.num_stages / shape.num_devices);
}

ps_code ps_family_counts(ps_schedule_shape shape, ps_status *status)
{
    if (shape.num_devices >= 1 && shape.num_stages >= 1 && shape.num_microbatches >= 1)
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "pipeline-shape",
                   "a schedule needs at least 1 device, stage and micro-batch, got %d, %d and %d",
                   (int)shape.num_devices, (int)shape.num_stages, (int)shape.num_microbatches);
}

ps_code ps_family_one_stage(const char *family, ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(ps_family_counts(shape, status));
    if (shape.num_stages == shape.num_devices)
        return PS_OK;
    char rule[sizeof status->rule];
    snprintf(rule, sizeof rule, "%s-one-stage", family);
    ps_fail(status, PS_ILLEGAL, rule, "%s puts one stage on a device, got %d stage%s on %d device%s", family,
            (int)shape.num_stages, ps_plural(shape.num_stages), (int)shape.num_devices, ps_plural(shape.num_devices));
    if (shape.num_stages > shape.num_devices && shape.num_stages % shape.num_devices == 0)
        return ps_fail_hint(status, "use %d stage%s, or interleaved, which puts %d on a device", (int)shape.num_devices,
                            ps_plural(shape.num_devices), (int)(shape.num_stages / shape.num_devices));
    return ps_fail_hint(status, "use %d stage%s", (int)shape.num_devices, ps_plural(shape.num_devices));
}

ps_code ps_family_two_stages(const char *family, ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(ps_family_counts(shape, status));
    if (shape.num_stages == 2 * (int64_t)shape.num_devices)
        return PS_OK;
    char rule[sizeof status->rule];
    snprintf(rule, sizeof rule, "%s-two-stages", family);
    ps_fail(status, PS_ILLEGAL, rule, "%s puts two stages on a device, got %d stages on %d device%s", family,
            (int)shape.num_stages, (int)shape.num_devices, shape.num_devices == 1 ? "" : "s");
    return ps_fail_hint(status, "use %lld stages", 2 * (long long)shape.num_devices);
}

int64_t ps_family_v_slots(ps_schedule_shape shape)
{
    return 6 * ((int64_t)shape.num_microbatches + shape.num_devices) + 16;
}

ps_code ps_family_slots_fit(const char *family, ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(ps_family_two_stages(family, shape, status));
    int64_t slots = ps_family_v_slots(shape) * shape.num_devices;
    if (slots <= PS_MAX_OPS)
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "too-many-slots",
                   "%s on %d devices with %d micro-batches takes %lld slots of time, limit %lld", family,
                   (int)shape.num_devices, (int)shape.num_microbatches, (long long)slots, (long long)PS_MAX_OPS);
}

ps_code ps_family_several_stages(const char *family, ps_schedule_shape shape, ps_status *status)
{
    int32_t devices = shape.num_devices;
    int32_t below = shape.num_stages / devices * devices;
    char rule[sizeof status->rule];
    if (shape.num_stages != below) {
        snprintf(rule, sizeof rule, "%s-stages", family);
        ps_fail(status, PS_ILLEGAL, rule,
                "%s puts equally many stages on every device: %d stages are not a multiple of %d devices", family,
                (int)shape.num_stages, (int)devices);
        int32_t low = below < 2 * devices ? 2 * devices : below;
        return low > shape.num_stages ? ps_fail_hint(status, "use %d stages", (int)low)
                                      : ps_fail_hint(status, "use %d or %d stages", (int)low, (int)(low + devices));
    }
    if (below >= 2 * devices)
        return PS_OK;
    snprintf(rule, sizeof rule, "%s-virtual-stages", family);
    return ps_fail(status, PS_ILLEGAL, rule, "%s needs at least 2 stages a device, got %d stages on %d device%s",
                   family, (int)shape.num_stages, (int)devices, devices == 1 ? "" : "s");
}

static ps_code refuse_placement(const ps_schedule_family *family, ps_status *status, int32_t stage, int32_t device)
{
    char rule[sizeof status->rule];
    snprintf(rule, sizeof rule, "%s-placement", family->name);
    ps_fail(status, PS_ILLEGAL, rule, "%s does not run stage %d on device %d with the stages before it as they are",
            family->name, (int)stage, (int)device);
    return ps_fail_hint(status, family->placement != PS_PLACEMENT_LOOP
                                    ? "put stages on the devices in order and then in reverse order"
                                    : "put stage s on device s mod the number of devices");
}

static bool is_both_ways(const ps_pipeline *pipeline)
{
    int32_t half = pipeline->num_stages / 2;
    if (pipeline->num_routes != 2)
        return false;
    for (int32_t r = 0; r < 2; r++) {
        const ps_route *route = &pipeline->route[r];
        for (int32_t stop = 0; stop < route->num_stops; stop++)
            if (route->num_stops != half || ps_route_stage(route, stop) != r * half + stop)
                return false;
    }
    for (int32_t microbatch = 0; microbatch < pipeline->num_microbatches; microbatch++)
        if (pipeline->route_of[microbatch] != (microbatch >= pipeline->num_microbatches / 2))
            return false;
    return true;
}

static ps_code check_routes(const ps_schedule_family *family, const ps_pipeline *pipeline, ps_status *status)
{
    bool dual = family->placement == PS_PLACEMENT_DUAL;
    if (dual ? is_both_ways(pipeline) : pipeline->num_routes == 0)
        return PS_OK;
    char rule[sizeof status->rule];
    snprintf(rule, sizeof rule, "%s-routes", family->name);
    if (dual)
        return ps_fail(status, PS_ILLEGAL, rule,
                       "%s sends the first half of the micro-batches through stages 0 to %d and the others through the "
                       "rest, the pipeline does not",
                       family->name, (int)(pipeline->num_stages / 2 - 1));
    ps_fail(status, PS_ILLEGAL, rule,
            "%s sends every micro-batch through all stages in order, the pipeline has %d route%s", family->name,
            (int)pipeline->num_routes, ps_plural(pipeline->num_routes));
    return ps_fail_hint(status, "dualpipe is the family for two routes from both ends");
}

// Fill the rank of every device, or refuse.
static ps_code rank_devices(const ps_schedule_family *family, const ps_pipeline *pipeline, int32_t *rank_of,
                            ps_status *status)
{
    int32_t devices = pipeline->num_devices;
    const ps_stage *stage = pipeline->stage;
    ps_schedule_shape shape = ps_family_shape(pipeline);
    for (int32_t device = 0; device < devices; device++)
        rank_of[device] = -1;
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        bool first_chunk = s < devices;
        if (first_chunk ? rank_of[stage[s].device] >= 0
                        : rank_of[stage[s].device] != ps_schedule_device(family->placement, shape, s))
            return refuse_placement(family, status, s, stage[s].device);
        if (first_chunk)
            rank_of[stage[s].device] = s;
    }
    return PS_OK;
}

ps_code ps_family_ops_fit(const ps_family *family, ps_schedule_shape shape, ps_status *status)
{
    int64_t ops = ps_family_rank_ops(family, shape) * shape.num_devices;
    if (ops <= PS_MAX_OPS)
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "too-many-ops", "%d stages and %d micro-batches make %lld ops, limit %lld",
                   (int)shape.num_stages, (int)shape.num_microbatches, (long long)ops, (long long)PS_MAX_OPS);
}

// All ranks at once, in the order of ranks, which need not be that of devices.
typedef struct ranks_call {
    const ps_family *family;
    ps_schedule_shape shape;
    const int32_t *rank_of;
    ps_op *op;
} ranks_call;

static ps_code write_ranks(void *context, ps_arena *scratch, ps_status *status)
{
    ranks_call *call = context;
    int64_t rank_ops = ps_family_rank_ops(call->family, call->shape);
    int32_t devices = call->shape.num_devices;
    bool in_order = true;
    (void)status;
    for (int32_t device = 0; device < devices; device++)
        in_order = in_order && call->rank_of[device] == device;
    ps_op *written = in_order ? call->op : ps_new_raw(scratch, ps_op, rank_ops * devices);
    call->family->write_all(scratch, call->shape, written);
    for (int32_t device = 0; device < devices && !in_order; device++)
        memcpy(call->op + device * rank_ops, written + call->rank_of[device] * rank_ops,
               (size_t)rank_ops * sizeof *written);
    return PS_OK;
}

ps_code ps_family_generate(ps_arena *arena, const ps_family *family, const ps_pipeline *pipeline,
                           ps_schedule_shape shape, ps_schedule *out, ps_status *status)
{
    int32_t devices = pipeline->num_devices;
    int32_t *rank_of = ps_new_raw(arena, int32_t, devices);
    PS_TRY(family->family.legal(shape, status));
    PS_TRY(check_routes(&family->family, pipeline, status));
    PS_TRY(rank_devices(&family->family, pipeline, rank_of, status));
    PS_TRY(ps_family_ops_fit(family, shape, status));

    int64_t rank_ops = ps_family_rank_ops(family, shape);
    out->num_devices = devices;
    out->first = ps_new_raw(arena, int32_t, devices + 1);
    out->op = ps_new_raw(arena, ps_op, rank_ops * devices);
    for (int32_t device = 0; device <= devices; device++)
        out->first[device] = (int32_t)(device * rank_ops);
    if (family->write_all) {
        ranks_call call = {.family = family, .shape = shape, .rank_of = rank_of, .op = out->op};
        return ps_in_scratch(write_ranks, &call, status);
    }
    ps_op *op = out->op;
    for (int32_t device = 0; device < devices; device++)
        op = family->write_rank(shape, rank_of[device], op);
    return PS_OK;
}
