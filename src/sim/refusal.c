// SPDX-License-Identifier: Apache-2.0
//
// refusal.c: a schedule that could not be run to its end is read once more, to name its fault.
//
// A schedule whose ops are all there, once, and on their devices can only fail by a deadlock. Every device that stopped
// then waits for an op that stands at or behind the place where its own device stopped, so following "waits for" from
// any stopped device leads into a cycle.
#include "sim/refusal.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "sim/leg.h"

typedef struct reading {
    const ps_pipeline *pipeline;
    const ps_schedule *schedule;
    const int32_t *next;
    ps_leg_table legs;
    uint8_t *seen; // by stage and micro-batch: a bit for every op kind that the schedule has
} reading;

// An op as a cell of a PyTorch schedule, "0F12".
typedef struct op_name {
    char text[24];
} op_name;

static op_name name_op(ps_op op)
{
    op_name name;
    snprintf(name.text, sizeof name.text, "%u%c%" PRId32, (unsigned)op.stage, "FBIW"[op.kind], op.microbatch);
    return name;
}

static uint8_t bit(int kind)
{
    return (uint8_t)(1u << kind);
}

static uint8_t *seen_at(const reading *r, int64_t stage, int64_t microbatch)
{
    return &r->seen[stage * r->pipeline->num_microbatches + microbatch];
}

static ps_code check_op(const reading *r, int32_t device, int32_t index, ps_status *status)
{
    const ps_pipeline *pipeline = r->pipeline;
    ps_op op = r->schedule->op[index];
    int32_t position = index - r->schedule->first[device];
    if (op.kind >= PS_OP_KINDS)
        return ps_fail(status, PS_ILLEGAL, "unknown-op", "op %d of device %d has the unknown kind %u", (int)position,
                       (int)device, (unsigned)op.kind);
    if (op.stage >= pipeline->num_stages || op.microbatch < 0 || op.microbatch >= pipeline->num_microbatches) {
        ps_fail(status, PS_ILLEGAL, "unknown-op", "op %d of device %d is %s, which the pipeline does not have",
                (int)position, (int)device, name_op(op).text);
        return ps_fail_hint(status, "stages are 0 to %d and micro-batches 0 to %d", (int)pipeline->num_stages - 1,
                            (int)pipeline->num_microbatches - 1);
    }
    if (!ps_leg_at(&r->legs, op.stage, op.microbatch)->visited)
        return ps_fail(status, PS_ILLEGAL, "off-route",
                       "op %d of device %d is %s, but micro-batch %d takes route %d, "
                       "which leaves stage %u out",
                       (int)position, (int)device, name_op(op).text, (int)op.microbatch,
                       (int)pipeline->route_of[op.microbatch], (unsigned)op.stage);
    if (pipeline->stage[op.stage].device != device)
        return ps_fail(status, PS_ILLEGAL, "wrong-device", "%s is op %d of device %d, but stage %u is on device %d",
                       name_op(op).text, (int)position, (int)device, (unsigned)op.stage,
                       (int)pipeline->stage[op.stage].device);
    uint8_t *seen = seen_at(r, op.stage, op.microbatch);
    if (*seen & bit(op.kind))
        return ps_fail(status, PS_ILLEGAL, "duplicate-op", "device %d has %s twice, the second time as op %d",
                       (int)device, name_op(op).text, (int)position);
    *seen |= bit(op.kind);
    return PS_OK;
}

static ps_code check_ops(const reading *r, ps_status *status)
{
    for (int32_t device = 0; device < r->schedule->num_devices; device++)
        for (int32_t i = r->schedule->first[device]; i < r->schedule->first[device + 1]; i++)
            PS_TRY(check_op(r, device, i, status));
    return PS_OK;
}

// One F, and one B or else one I and one W.
static ps_code check_pair(const reading *r, int32_t stage, int32_t microbatch, ps_status *status)
{
    uint8_t seen = *seen_at(r, stage, microbatch);
    uint8_t split = bit(PS_OP_BACKWARD_INPUT) | bit(PS_OP_BACKWARD_WEIGHT);
    int missing = -1;
    if (!(seen & bit(PS_OP_FORWARD)))
        missing = PS_OP_FORWARD;
    else if (!(seen & bit(PS_OP_BACKWARD)) && !(seen & split))
        missing = PS_OP_BACKWARD;
    else if (!(seen & bit(PS_OP_BACKWARD)) && (seen & split) != split)
        missing = seen & bit(PS_OP_BACKWARD_INPUT) ? PS_OP_BACKWARD_WEIGHT : PS_OP_BACKWARD_INPUT;
    else if ((seen & bit(PS_OP_BACKWARD)) && (seen & split))
        return ps_fail(status, PS_ILLEGAL, "duplicate-op",
                       "stage %d has the backward of micro-batch %d both whole (B) and in parts (I, W)", (int)stage,
                       (int)microbatch);
    if (missing < 0)
        return PS_OK;
    ps_op op = {.microbatch = microbatch, .stage = (uint16_t)stage, .kind = (uint8_t)missing};
    return ps_fail(status, PS_ILLEGAL, "incomplete-schedule", "%s%s is missing on device %d", name_op(op).text,
                   missing == PS_OP_BACKWARD ? " (or I and W)" : "", (int)r->pipeline->stage[stage].device);
}

static ps_code check_complete(const reading *r, ps_status *status)
{
    for (int32_t stage = 0; stage < r->pipeline->num_stages; stage++)
        for (int32_t microbatch = 0; microbatch < r->pipeline->num_microbatches; microbatch++)
            if (ps_leg_at(&r->legs, stage, microbatch)->visited)
                PS_TRY(check_pair(r, stage, microbatch, status));
    return PS_OK;
}

static bool has_run(const reading *r, ps_op wanted)
{
    int32_t device = r->pipeline->stage[wanted.stage].device;
    for (int32_t i = r->schedule->first[device]; i < r->next[device]; i++) {
        ps_op op = r->schedule->op[i];
        if (op.stage == wanted.stage && op.microbatch == wanted.microbatch && op.kind == wanted.kind)
            return true;
    }
    return false;
}

// The op that a stopped op waits for. With all ops there, F, B and I wait for their neighbour or their own F, W for I.
static ps_op needed_by(const reading *r, ps_op op)
{
    ps_op own = op;
    own.kind = op.kind == PS_OP_BACKWARD_WEIGHT ? PS_OP_BACKWARD_INPUT : PS_OP_FORWARD;
    if (op.kind == PS_OP_FORWARD) {
        own.stage = (uint16_t)ps_leg_at(&r->legs, op.stage, op.microbatch)->previous;
        return own;
    }
    if (op.kind == PS_OP_BACKWARD_WEIGHT || !has_run(r, own))
        return own;
    ps_op above = op;
    above.stage = (uint16_t)ps_leg_at(&r->legs, op.stage, op.microbatch)->next;
    above.kind =
        *seen_at(r, above.stage, above.microbatch) & bit(PS_OP_BACKWARD) ? PS_OP_BACKWARD : PS_OP_BACKWARD_INPUT;
    return above;
}

static int32_t stopped_device(const reading *r, ps_op needed)
{
    return r->pipeline->stage[needed.stage].device;
}

// "0B3 (device 0) waits for 1B3 (device 1), which waits behind 1F5, which waits for ...": the cycle through `device`.
// A long one is cut in its middle.
static ps_code refuse_cycle(const reading *r, int32_t device, ps_status *status)
{
    enum { SHOWN = 8 };
    char text[sizeof status->message];
    size_t used = 0;
    int32_t hops = 0;
    int32_t at = device;
    do {
        ps_op op = r->schedule->op[r->next[at]];
        ps_op needed = needed_by(r, op);
        int32_t other = stopped_device(r, needed);
        ps_op behind = r->schedule->op[r->next[other]];
        bool is_next =
            behind.stage == needed.stage && behind.microbatch == needed.microbatch && behind.kind == needed.kind;
        if (hops++ < SHOWN && used < sizeof text) {
            if (at == device)
                used += (size_t)snprintf(text, sizeof text, "%s (device %d)", name_op(op).text, (int)at);
            used += (size_t)snprintf(text + used, sizeof text - used, "%s waits for %s (device %d)",
                                     at == device ? "" : ", which", name_op(needed).text, (int)other);
        }
        if (hops <= SHOWN && used < sizeof text && !is_next)
            used += (size_t)snprintf(text + used, sizeof text - used, ", which waits behind %s", name_op(behind).text);
        at = other;
    } while (at != device);
    if (hops > SHOWN && used < sizeof text)
        snprintf(text + used, sizeof text - used, ", and so on over %d more ops back to %s", (int)(hops - SHOWN),
                 name_op(r->schedule->op[r->next[device]]).text);
    return ps_fail(status, PS_ILLEGAL, "deadlock", "%s", text);
}

static ps_code refuse_deadlock(ps_arena *arena, const reading *r, ps_status *status)
{
    int32_t at = 0;
    while (r->next[at] == r->schedule->first[at + 1])
        at++;
    bool *visited = ps_new(arena, bool, r->schedule->num_devices);
    while (!visited[at]) {
        visited[at] = true;
        at = stopped_device(r, needed_by(r, r->schedule->op[r->next[at]]));
    }
    return refuse_cycle(r, at, status);
}

ps_code ps_simulate_refuse(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule,
                           const int32_t *next, ps_status *status)
{
    reading r = {.pipeline = pipeline, .schedule = schedule, .next = next, .legs = ps_leg_table_of(arena, pipeline)};
    r.seen = ps_new(arena, uint8_t, (int64_t)pipeline->num_stages * pipeline->num_microbatches);
    PS_TRY(check_ops(&r, status));
    PS_TRY(check_complete(&r, status));
    return refuse_deadlock(arena, &r, status);
}
