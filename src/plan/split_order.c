// SPDX-License-Identifier: Apache-2.0
#include "plan/split_order.h"

enum { KINDS = 3 }; // F, I, W

void ps_order_in_sequence(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out)
{
    int32_t devices = pipeline->num_devices;
    int32_t *next = ps_new(arena, int32_t, devices);
    *out = (ps_schedule){
        .num_devices = devices,
        .first = ps_new(arena, int32_t, devices + 1),
        .op = ps_new_raw(arena, ps_op, KINDS * (int64_t)pipeline->num_stages * pipeline->num_microbatches)};
    for (int32_t stage = 0; stage < pipeline->num_stages; stage++)
        out->first[pipeline->stage[stage].device + 1] += KINDS * pipeline->num_microbatches;
    for (int32_t device = 0; device < devices; device++) {
        out->first[device + 1] += out->first[device];
        next[device] = out->first[device];
    }
    for (int32_t microbatch = 0; microbatch < pipeline->num_microbatches; microbatch++) {
        for (int32_t stage = 0; stage < pipeline->num_stages; stage++)
            out->op[next[pipeline->stage[stage].device]++] =
                (ps_op){.microbatch = microbatch, .stage = (uint16_t)stage, .kind = PS_OP_FORWARD};
        for (int32_t stage = pipeline->num_stages - 1; stage >= 0; stage--) {
            int32_t *at = &next[pipeline->stage[stage].device];
            out->op[(*at)++] =
                (ps_op){.microbatch = microbatch, .stage = (uint16_t)stage, .kind = PS_OP_BACKWARD_INPUT};
            out->op[(*at)++] =
                (ps_op){.microbatch = microbatch, .stage = (uint16_t)stage, .kind = PS_OP_BACKWARD_WEIGHT};
        }
    }
}

ps_schedule ps_order_split(ps_arena *arena, const ps_schedule *order)
{
    int32_t listed = order->first[order->num_devices];
    int32_t at = 0;
    ps_schedule out = {.num_devices = order->num_devices,
                       .first = ps_new(arena, int32_t, order->num_devices + 1),
                       .op = ps_new_raw(arena, ps_op, 2 * (int64_t)listed)};
    for (int32_t device = 0; device < order->num_devices; device++) {
        for (int32_t index = order->first[device]; index < order->first[device + 1]; index++) {
            ps_op op = order->op[index];
            if (op.kind == PS_OP_BACKWARD) {
                op.kind = PS_OP_BACKWARD_INPUT;
                out.op[at++] = op;
                op.kind = PS_OP_BACKWARD_WEIGHT;
            }
            out.op[at++] = op;
        }
        out.first[device + 1] = at;
    }
    return out;
}
