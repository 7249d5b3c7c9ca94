// SPDX-License-Identifier: Apache-2.0
//
// action.h: what a rank does, transfers included, as a PyTorch schedule writes it.
//
// A ps_schedule has compute ops alone; the simulator sends a result as soon as its op ends. A list of actions also says
// when a rank sends and receives, and so whether ranks can wait for each other.
#ifndef PIPESCHED_ACTION_H
#define PIPESCHED_ACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/schedule.h"
#include "pipesched/status.h"

// The first are ps_op_kind. A transfer is written at both ends, each with the stage and micro-batch of its own end:
// 0SEND_F4 goes with 1RECV_F4, 1SEND_B4 with 0RECV_B4.
typedef enum ps_action_kind {
    PS_ACTION_SEND_F = PS_OP_KINDS,
    PS_ACTION_RECV_F,
    PS_ACTION_SEND_B,
    PS_ACTION_RECV_B,
    PS_ACTION_UNSHARD, // these three have no micro-batch
    PS_ACTION_RESHARD,
    PS_ACTION_REDUCE_GRAD,
    PS_ACTION_KINDS
} ps_action_kind;

typedef struct ps_action {
    int32_t microbatch; // -1 where the kind has none
    uint16_t stage;
    uint8_t kind;   // ps_action_kind
    uint8_t paired; // 1: this F and the action after it, a B, are one cell "(0F4;1B2)OVERLAP_F_B"
} ps_action;

// Rank r does action[first[r]] up to action[first[r + 1]].
typedef struct ps_actions {
    int32_t num_devices;
    int32_t *first;    // [num_devices + 1]
    ps_action *action; // [first[num_devices]]
} ps_actions;

static inline bool ps_action_is_transfer(uint8_t kind)
{
    return kind >= PS_ACTION_SEND_F && kind <= PS_ACTION_RECV_B;
}

static inline bool ps_action_is_send(uint8_t kind)
{
    return kind == PS_ACTION_SEND_F || kind == PS_ACTION_SEND_B;
}

// As it stands between stage and micro-batch in a cell.
static inline const char *ps_action_word(uint8_t kind)
{
    static const char *const word[] = {
        [PS_OP_FORWARD] = "F",           [PS_OP_BACKWARD] = "B",          [PS_OP_BACKWARD_INPUT] = "I",
        [PS_OP_BACKWARD_WEIGHT] = "W",   [PS_OP_RECOMPUTE] = "R",         [PS_ACTION_SEND_F] = "SEND_F",
        [PS_ACTION_RECV_F] = "RECV_F",   [PS_ACTION_SEND_B] = "SEND_B",   [PS_ACTION_RECV_B] = "RECV_B",
        [PS_ACTION_UNSHARD] = "UNSHARD", [PS_ACTION_RESHARD] = "RESHARD", [PS_ACTION_REDUCE_GRAD] = "REDUCE_GRAD",
    };
    return word[kind];
}

// Compute ops as actions, and back: transfers and what is done to parameters are left out, pairs are kept. O(actions).
void ps_actions_from_schedule(ps_arena *arena, const ps_schedule *schedule, ps_actions *out);
void ps_actions_compute(ps_arena *arena, const ps_actions *actions, ps_actions *out);

// Where the stages of a list of actions are.
typedef struct ps_stage_map {
    int32_t num_stages;
    int32_t num_microbatches;
    const int32_t *device; // [num_stages]
} ps_stage_map;

// Add the transfers that whole compute actions need: each SEND right after its op, each RECV right before the op that
// needs it, or as far ahead of it as is needed so that no ranks wait for each other when a SEND ends only once it is
// received. PS_ILLEGAL, rule deadlock: the ops themselves wait for each other. O(actions), and the length of a cycle of
// waiting ranks for every RECV that comes early.
ps_code ps_actions_add_transfers(ps_arena *arena, const ps_stage_map *placement, const ps_actions *compute,
                                 ps_actions *out, ps_status *status);

// How a rank sends: until it is received, into a buffer and on, or all adjacent transfers at once and until all are
// done.
typedef enum ps_send_mode { PS_SEND_RENDEZVOUS, PS_SEND_BUFFERED, PS_SEND_BATCH } ps_send_mode;

// Whether every transfer completes; the list need not be a whole schedule. PS_ILLEGAL with rules missing-transfer (one
// end alone), duplicate-transfer, unexpected-transfer (both ends on one rank), deadlock (the message names the cycle of
// ranks that wait for each other) or transfer-order (a rank receives from another in another order than it sends:
// buffered or in a batch, that is the wrong data). O(actions, and transfers * log transfers).
ps_code ps_actions_check_transfers(ps_arena *arena, const ps_actions *actions, ps_send_mode mode, ps_status *status);

#endif
