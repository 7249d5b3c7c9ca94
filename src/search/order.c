// SPDX-License-Identifier: Apache-2.0
//
// order.c: the problem of the order search, its memory, and orders as schedules.
#include "search/order.h"

#include <inttypes.h>
#include <string.h>

static void set_hops(const ps_pipeline *pipeline, ps_order_problem *out, int32_t s)
{
    const ps_hop *hops[2] = {s + 1 < pipeline->num_stages ? &pipeline->forward_hop[s] : NULL,
                             s > 0 ? &pipeline->backward_hop[s - 1] : NULL};
    for (int i = 0; i < 2; i++) {
        ps_order_hop *hop = &out->stage[s].hop[i];
        *hop = (ps_order_hop){.lane = PS_NO_LANE};
        if (!hops[i] || hops[i]->lane == PS_NO_LANE)
            continue;
        *hop = (ps_order_hop){hops[i]->occupy_ns, hops[i]->latency_ns, hops[i]->lane};
        out->queues = out->queues || hops[i]->occupy_ns > 0;
    }
}

static void set_devices(ps_arena *arena, const ps_pipeline *pipeline, ps_order_problem *out)
{
    int32_t devices = pipeline->num_devices;
    int32_t steps = out->fused ? PS_STEPS - 1 : PS_STEPS;
    out->first_stage = ps_new(arena, int32_t, devices + 1);
    out->stage_of = ps_new_raw(arena, int32_t, pipeline->num_stages);
    out->first = ps_new_raw(arena, int32_t, devices + 1);
    out->room = ps_new_raw(arena, int64_t, devices);
    out->work_ns = ps_new(arena, int64_t, devices);
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        out->first_stage[pipeline->stage[s].device + 1]++;
    for (int32_t d = 0; d < devices; d++) {
        const ps_device *device = &pipeline->device[d];
        out->first_stage[d + 1] += out->first_stage[d];
        out->first[d] = out->first_stage[d] * steps * pipeline->num_microbatches;
        out->room[d] = device->memory_limit == INT64_MAX ? INT64_MAX : device->memory_limit - device->static_memory;
    }
    out->first[devices] = out->first_stage[devices] * steps * pipeline->num_microbatches;

    int32_t *count = ps_new(arena, int32_t, devices);
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        int32_t d = pipeline->stage[s].device;
        out->stage_of[out->first_stage[d] + count[d]++] = s;
        for (int32_t step = 0; step < steps; step++)
            out->work_ns[d] += out->num_microbatches * out->stage[s].duration_ns[step];
    }
    for (int32_t d = 0; d < devices; d++) {
        int64_t held = 0;
        for (int32_t i = out->first_stage[d + 1] - 1; i >= out->first_stage[d]; i--) {
            ps_order_stage *stage = &out->stage[out->stage_of[i]];
            stage->later_held = held;
            held += stage->held_forward;
        }
    }
}

int64_t ps_order_bound(const ps_pipeline *pipeline, const ps_order_options *options, const char **by)
{
    int64_t least = INT64_MAX;
    for (int fused = 0; fused < 2; fused++) {
        if (options->backward == (fused ? PS_ORDER_SPLIT : PS_ORDER_FUSED))
            continue;
        ps_schedule_bound bound;
        ps_schedule_bound_compute(pipeline, fused, &bound);
        bool span = options->objective == PS_ORDER_SPAN;
        int64_t value = span ? bound.span_ns : bound.makespan_ns;
        if (value >= least)
            continue;
        least = value;
        *by = span ? bound.span_by : bound.makespan_by;
    }
    return least;
}

void ps_order_problem_set(ps_arena *arena, const ps_pipeline *pipeline, bool fused, bool span, ps_order_problem *out)
{
    *out = (ps_order_problem){.pipeline = pipeline,
                              .fused = fused,
                              .span = span,
                              .num_stages = pipeline->num_stages,
                              .num_devices = pipeline->num_devices,
                              .num_microbatches = pipeline->num_microbatches,
                              .stage = ps_new(arena, ps_order_stage, pipeline->num_stages)};
    for (int32_t s = 0; s < pipeline->num_stages; s++) {
        const ps_stage *from = &pipeline->stage[s];
        out->stage[s] = (ps_order_stage){
            .duration_ns = {from->duration_ns[PS_OP_FORWARD],
                            from->duration_ns[fused ? PS_OP_BACKWARD : PS_OP_BACKWARD_INPUT],
                            fused ? 0 : from->duration_ns[PS_OP_BACKWARD_WEIGHT]},
            .held_forward = from->held_after_forward,
            .held_weight = fused ? 0 : from->held_after_backward_input,
            .transient = from->transient,
            .device = from->device,
        };
        set_hops(pipeline, out, s);
    }
    set_devices(arena, pipeline, out);
}

// One micro-batch by itself holds, at its F and at its I of a stage, what all of its earlier stages on the device hold.
// No order avoids that, and running one after the other needs no more.
ps_code ps_order_problem_fits(const ps_order_problem *problem, ps_status *status)
{
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int64_t earlier = 0;
        int64_t need = 0;
        for (int32_t i = problem->first_stage[d]; i < problem->first_stage[d + 1]; i++) {
            const ps_order_stage *stage = &problem->stage[problem->stage_of[i]];
            int64_t held = stage->held_forward > stage->held_weight ? stage->held_forward : stage->held_weight;
            if (earlier + held + stage->transient > need)
                need = earlier + held + stage->transient;
            earlier += stage->held_forward;
        }
        if (need <= problem->room[d])
            continue;
        const ps_device *device = &problem->pipeline->device[d];
        ps_fail(status, PS_INFEASIBLE, "memory",
                "device %d has a memory limit of %" PRId64 ", one micro-batch by itself needs %" PRId64, (int)d,
                device->memory_limit, device->static_memory + need);
        return ps_fail_hint(status, "the least limit that works for device %d is %" PRId64, (int)d,
                            device->static_memory + need);
    }
    return PS_OK;
}

void ps_order_new(ps_arena *arena, const ps_order_problem *problem, ps_order *out)
{
    *out =
        (ps_order){.op = ps_new_raw(arena, ps_order_op, problem->first[problem->num_devices]), .value_ns = INT64_MAX};
}

void ps_order_desk_new(ps_arena *arena, const ps_order_problem *problem, ps_order_desk *out)
{
    *out = (ps_order_desk){.problem = problem};
    ps_order_new(arena, problem, &out->candidate);
    ps_order_trial_new(arena, problem, &out->trial);
}

ps_code ps_order_poll(const ps_order_desk *desk)
{
    const ps_control *control = desk->control;
    return control && control->should_stop ? control->should_stop(control->context) : PS_OK;
}

void ps_order_copy(const ps_order_problem *problem, const ps_order *from, ps_order *to)
{
    memcpy(to->op, from->op, (size_t)problem->first[problem->num_devices] * sizeof *to->op);
    to->value_ns = from->value_ns;
}

int64_t ps_order_held_after(const ps_order_stage *stage, int32_t step, int64_t held)
{
    if (step == PS_STEP_FORWARD)
        return held + stage->held_forward;
    if (step == PS_STEP_GRADIENT)
        return held - stage->held_forward + stage->held_weight;
    return held - stage->held_weight;
}

int64_t ps_order_held_within(const ps_order_stage *stage, int32_t step, int64_t held)
{
    return (step == PS_STEP_FORWARD ? held + stage->held_forward : held) + stage->transient;
}

void ps_order_hold(const ps_order_problem *problem, const ps_order *order, int64_t *held)
{
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int64_t now = 0;
        for (int32_t i = problem->first[d]; i < problem->first[d + 1]; i++) {
            held[i] = now;
            now = ps_order_held_after(&problem->stage[order->op[i].stage], order->op[i].step, now);
        }
    }
}

static int32_t step_of(uint8_t kind)
{
    return kind == PS_OP_FORWARD ? PS_STEP_FORWARD : kind == PS_OP_BACKWARD_WEIGHT ? PS_STEP_WEIGHT : PS_STEP_GRADIENT;
}

// The k-th op of a kind at a stage becomes that of micro-batch k.
bool ps_order_from_schedule(const ps_order_problem *problem, const ps_schedule *schedule, ps_order_trial *trial,
                            ps_order *out)
{
    int32_t ops = problem->first[problem->num_devices];
    if (schedule->first[schedule->num_devices] != ops)
        return false;
    memset(trial->done, 0, (size_t)PS_STEPS * (size_t)problem->num_stages * sizeof *trial->done);
    for (int32_t i = 0; i < ops; i++) {
        ps_op op = schedule->op[i];
        int32_t step = step_of(op.kind);
        if (problem->fused ? op.kind > PS_OP_BACKWARD : op.kind == PS_OP_BACKWARD)
            return false;
        out->op[i] = (ps_order_op){
            .microbatch = trial->done[PS_STEPS * op.stage + step]++, .stage = op.stage, .step = (uint16_t)step};
    }
    return true;
}

void ps_order_to_schedule(const ps_order_problem *problem, const ps_order *order, ps_schedule *out)
{
    const uint8_t kind[PS_STEPS] = {PS_OP_FORWARD, problem->fused ? PS_OP_BACKWARD : PS_OP_BACKWARD_INPUT,
                                    PS_OP_BACKWARD_WEIGHT};
    int32_t devices = problem->num_devices;
    memcpy(out->first, problem->first, (size_t)(devices + 1) * sizeof *out->first);
    for (int32_t i = 0; i < problem->first[devices]; i++)
        out->op[i] = (ps_op){
            .microbatch = order->op[i].microbatch, .stage = order->op[i].stage, .kind = kind[order->op[i].step]};
}
