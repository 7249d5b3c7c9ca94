// SPDX-License-Identifier: Apache-2.0
//
// torch_csv_check.c: what a row must hold for every stage on it: each op of each micro-batch once, after what it needs
// in the same row, and with transfers both ends of every hop between ranks.
//
// PyTorch counts F's and backwards of a stage and looks at their order, but not at repetition or range; so "0F0,0F0"
// passes there and hangs or fails later. Actions are sorted by stage, stably, and each stage is walked in the order of
// its row with one byte of marks a micro-batch. Whether a stage is complete is seen from all of its marks; one that is
// has two ops or more for every micro-batch, and one that is not ends the work, so all takes time in proportion to the
// cells.
#include <inttypes.h>

#include "pipesched/torch_csv.h"
#include "schedule/torch_cell.h"
#include "schedule/torch_csv_place.h"

// A mark for every kind that has a micro-batch in a file: all but R.
typedef uint8_t marks;

static marks mark(int32_t kind)
{
    int32_t bit = kind <= PS_OP_BACKWARD_WEIGHT ? kind : kind - PS_ACTION_SEND_F + PS_OP_BACKWARD_WEIGHT + 1;
    return (marks)(1u << bit);
}

typedef struct check {
    const ps_torch_csv *csv;
    int32_t *first; // of each stage into order, [stages + 1]
    int32_t *order; // actions by stage, then as in the file
    marks *seen;    // of one stage, [micro-batches]
    // The stage at hand.
    int32_t stage;
    bool has_before; // a stage before it, on another rank
    bool has_after;
    bool shards; // it has UNSHARD or RESHARD
    bool sharded;
} check;

typedef struct name {
    char text[32];
} name;

static name name_of(int32_t kind, int32_t stage, int32_t microbatch)
{
    name result = {{0}};
    ps_action action = {.microbatch = microbatch, .stage = (uint16_t)stage, .kind = (uint8_t)kind};
    ps_action_format(action, result.text);
    return result;
}

static void sort_by_stage(ps_arena *arena, check *c)
{
    const ps_actions *actions = &c->csv->actions;
    int32_t stages = c->csv->placement.num_stages;
    int32_t count = actions->first[actions->num_devices];
    c->first = ps_new(arena, int32_t, (int64_t)stages + 2);
    c->order = ps_new_raw(arena, int32_t, (int64_t)count + 1);
    // One place too far at first, so that filling moves each entry to its own.
    for (int32_t i = 0; i < count; i++)
        c->first[actions->action[i].stage + 2]++;
    for (int32_t stage = 0; stage < stages; stage++)
        c->first[stage + 2] += c->first[stage + 1];
    for (int32_t i = 0; i < count; i++)
        c->order[c->first[actions->action[i].stage + 1]++] = i;
}

static ps_code refuse(const check *c, int32_t action, ps_status *status)
{
    return ps_torch_csv_fail_at(c->csv, action, status);
}

// The action needs another of its stage and micro-batch before it in the row.
static ps_code need(const check *c, int32_t index, int32_t kind, const char *rule, ps_status *status)
{
    ps_action action = c->csv->actions.action[index];
    if (c->seen[action.microbatch] & mark(kind))
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, rule, "%s needs %s before it in its row",
            name_of(action.kind, c->stage, action.microbatch).text, name_of(kind, c->stage, action.microbatch).text);
    return refuse(c, index, status);
}

static ps_code check_gradient(const check *c, int32_t index, ps_status *status)
{
    ps_action action = c->csv->actions.action[index];
    marks other = action.kind == PS_OP_BACKWARD ? mark(PS_OP_BACKWARD_INPUT) : mark(PS_OP_BACKWARD);
    if (c->seen[action.microbatch] & other) {
        ps_fail(status, PS_BAD_INPUT, "mixed-backward",
                "stage %d has the backward of micro-batch %d both whole (B) and in parts (I, W)", (int)c->stage,
                (int)action.microbatch);
        return refuse(c, index, status);
    }
    PS_TRY(need(c, index, PS_OP_FORWARD, "op-order", status));
    if (c->csv->has_transfers && c->has_after)
        return need(c, index, PS_ACTION_RECV_B, "missing-transfer", status);
    return PS_OK;
}

static ps_code check_weight(const check *c, int32_t index, ps_status *status)
{
    ps_action action = c->csv->actions.action[index];
    if (c->seen[action.microbatch] & mark(PS_OP_BACKWARD))
        return check_gradient(c, index, status); // refuses the mixture
    return need(c, index, PS_OP_BACKWARD_INPUT, "op-order", status);
}

static ps_code check_transfer(const check *c, int32_t index, ps_status *status)
{
    ps_action action = c->csv->actions.action[index];
    bool after = action.kind == PS_ACTION_SEND_F || action.kind == PS_ACTION_RECV_B;
    if (!(after ? c->has_after : c->has_before)) {
        ps_fail(status, PS_BAD_INPUT, "unexpected-transfer", "%s: stage %d has no stage %s it on another rank",
                name_of(action.kind, c->stage, action.microbatch).text, (int)c->stage, after ? "after" : "before");
        return refuse(c, index, status);
    }
    if (action.kind == PS_ACTION_SEND_F)
        return need(c, index, PS_OP_FORWARD, "transfer-order", status);
    if (action.kind == PS_ACTION_SEND_B && !(c->seen[action.microbatch] & mark(PS_OP_BACKWARD)))
        return need(c, index, PS_OP_BACKWARD_INPUT, "transfer-order", status);
    return PS_OK;
}

// UNSHARD and RESHARD alternate, and a stage that has them computes in between.
static ps_code check_shard(check *c, int32_t index, ps_status *status)
{
    ps_action action = c->csv->actions.action[index];
    bool wants_sharded = action.kind == PS_ACTION_UNSHARD;
    if (!c->shards || ps_action_is_transfer(action.kind) || action.kind == PS_ACTION_REDUCE_GRAD)
        return PS_OK;
    if (c->sharded != wants_sharded) {
        ps_fail(status, PS_BAD_INPUT, "shard-order", "%s, but the parameters of stage %d are %s here",
                name_of(action.kind, c->stage, action.microbatch).text, (int)c->stage,
                c->sharded ? "not gathered" : "gathered already");
        return refuse(c, index, status);
    }
    if (action.kind >= PS_OP_KINDS)
        c->sharded = !c->sharded;
    return PS_OK;
}

static ps_code check_action(check *c, int32_t index, ps_status *status)
{
    ps_action action = c->csv->actions.action[index];
    int32_t microbatches = c->csv->placement.num_microbatches;
    PS_TRY(check_shard(c, index, status));
    if (action.microbatch < 0)
        return PS_OK;
    if (action.microbatch >= microbatches) {
        ps_fail(status, PS_BAD_INPUT, "microbatch-range",
                "%s: no stage has more F's than %d, so micro-batches are 0 to %d",
                name_of(action.kind, c->stage, action.microbatch).text, (int)microbatches, (int)microbatches - 1);
        return refuse(c, index, status);
    }
    if (c->seen[action.microbatch] & mark(action.kind)) {
        ps_fail(status, PS_BAD_INPUT, "duplicate-op", "%s stands twice in its row",
                name_of(action.kind, c->stage, action.microbatch).text);
        return refuse(c, index, status);
    }
    if (action.kind == PS_OP_FORWARD && c->csv->has_transfers && c->has_before)
        PS_TRY(need(c, index, PS_ACTION_RECV_F, "missing-transfer", status));
    else if (action.kind == PS_OP_BACKWARD || action.kind == PS_OP_BACKWARD_INPUT)
        PS_TRY(check_gradient(c, index, status));
    else if (action.kind == PS_OP_BACKWARD_WEIGHT)
        PS_TRY(check_weight(c, index, status));
    else if (ps_action_is_transfer(action.kind))
        PS_TRY(check_transfer(c, index, status));
    c->seen[action.microbatch] |= mark(action.kind);
    return PS_OK;
}

// The kind that a micro-batch of the stage at hand lacks; -1: none.
static int32_t missing_kind(const check *c, marks seen)
{
    if (!(seen & mark(PS_OP_FORWARD)))
        return PS_OP_FORWARD;
    if (!(seen & (mark(PS_OP_BACKWARD) | mark(PS_OP_BACKWARD_INPUT))))
        return PS_OP_BACKWARD;
    if (!(seen & (mark(PS_OP_BACKWARD) | mark(PS_OP_BACKWARD_WEIGHT))))
        return PS_OP_BACKWARD_WEIGHT;
    if (c->csv->has_transfers && c->has_after && !(seen & mark(PS_ACTION_SEND_F)))
        return PS_ACTION_SEND_F;
    if (c->csv->has_transfers && c->has_before && !(seen & mark(PS_ACTION_SEND_B)))
        return PS_ACTION_SEND_B;
    return -1;
}

// At the last action of the micro-batch, or of the stage when it has none.
static ps_code refuse_incomplete(const check *c, int32_t microbatch, int32_t kind, ps_status *status)
{
    int32_t place = c->order[c->first[c->stage + 1] - 1];
    for (int32_t i = c->first[c->stage]; i < c->first[c->stage + 1]; i++)
        if (c->csv->actions.action[c->order[i]].microbatch == microbatch)
            place = c->order[i];
    const char *rule = kind < PS_OP_KINDS ? "incomplete-schedule" : "missing-transfer";
    ps_fail(status, PS_BAD_INPUT, rule, "%s%s is missing in the row of rank %d",
            name_of(kind, c->stage, microbatch).text, kind == PS_OP_BACKWARD ? " (or I and W)" : "",
            (int)c->csv->placement.device[c->stage]);
    return refuse(c, place, status);
}

static ps_code check_complete(const check *c, ps_status *status)
{
    for (int32_t microbatch = 0; microbatch < c->csv->placement.num_microbatches; microbatch++) {
        int32_t missing = missing_kind(c, c->seen[microbatch]);
        if (missing >= 0)
            return refuse_incomplete(c, microbatch, missing, status);
    }
    return PS_OK;
}

static void begin_stage(check *c, int32_t stage)
{
    const ps_stage_map *placement = &c->csv->placement;
    const ps_action *action = c->csv->actions.action;
    int32_t rank = placement->device[stage];
    c->stage = stage;
    c->has_before = stage > 0 && placement->device[stage - 1] != rank;
    c->has_after = stage + 1 < placement->num_stages && placement->device[stage + 1] != rank;
    c->shards = false;
    c->sharded = true;
    for (int32_t i = c->first[stage]; i < c->first[stage + 1]; i++)
        c->shards |= action[c->order[i]].kind == PS_ACTION_UNSHARD || action[c->order[i]].kind == PS_ACTION_RESHARD;
}

static void end_stage(check *c)
{
    for (int32_t i = c->first[c->stage]; i < c->first[c->stage + 1]; i++) {
        int32_t microbatch = c->csv->actions.action[c->order[i]].microbatch;
        if (microbatch >= 0)
            c->seen[microbatch] = 0;
    }
}

// What is there comes first, since an F too many on one stage makes all others look incomplete.
ps_code ps_torch_csv_check(ps_arena *arena, const ps_torch_csv *csv, ps_status *status)
{
    check c = {.csv = csv};
    sort_by_stage(arena, &c);
    c.seen = ps_new(arena, marks, (int64_t)csv->placement.num_microbatches + 1);
    for (int32_t complete = 0; complete < 2; complete++)
        for (int32_t stage = 0; stage < csv->placement.num_stages; stage++) {
            begin_stage(&c, stage);
            for (int32_t i = c.first[stage]; i < c.first[stage + 1]; i++)
                PS_TRY(check_action(&c, c.order[i], status));
            if (complete)
                PS_TRY(check_complete(&c, status));
            end_stage(&c);
        }
    return PS_OK;
}
