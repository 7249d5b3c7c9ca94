// SPDX-License-Identifier: Apache-2.0
//
// torch_csv_lower.c: where ranks send and receive, given the order of their ops.
//
// PyTorch's own lowering writes each RECV where the SEND of the other rank comes up, which may be long before the op
// that needs it; a rank whose transfers do not overlap then stands and waits with work at hand. Here every rank runs
// its cells as far as it can. It sends when a cell ends and receives when a cell needs it, and a transfer takes place
// only when both ends have come to it. When nobody can go on, following "waits for" leads into a cycle of ranks; one
// sender of the cycle is then served early, ahead of what its receiver stands at: the one whose data its receiver needs
// soonest, the lowest rank among equals. So a RECV stands right before its op unless an earlier place breaks a cycle.
//
// The lists are written in the order in which this run took place, with both ends of a transfer at the same moment.
// That moment order is one in which the lists can be run with sends that wait, and the more so with sends that do not;
// and each rank receives from another in the order in which that one sends.
#include <stdbool.h>
#include <stddef.h>

#include "pipesched/action.h"
#include "schedule/torch_cell.h"

// Of one transfer. Forward transfers are counted by the stage that sends, backward ones by the stage that receives.
enum { NOT_SENT, OFFERED, RECEIVED };

typedef struct transfer {
    int32_t consumer; // index of the op that needs it; -1: nothing is sent between these stages
    uint8_t state;
} transfer;

typedef struct rank_state {
    int32_t next;       // first action of the cell it is at
    int32_t sends;      // actions of that cell whose results are gone; -1: the cell has not run
    ps_action *out;     // end of what it has done
    int64_t visited_in; // last search for a cycle that came by
} rank_state;

typedef struct lowering {
    const ps_stage_map *placement;
    const ps_actions *compute;
    transfer *forward;  // [stages * micro-batches]
    transfer *backward; // likewise
    rank_state *rank;
    int32_t *ready; // stack of ranks that can go on
    int32_t num_ready;
    int64_t num_searches;
} lowering;

static int32_t cell_size(const lowering *l, int32_t index)
{
    return l->compute->action[index].paired ? 2 : 1;
}

static bool at_end(const lowering *l, int32_t rank)
{
    return l->rank[rank].next == l->compute->first[rank + 1];
}

static bool same_rank(const lowering *l, int32_t stage)
{
    return l->placement->device[stage] == l->placement->device[stage + 1];
}

static bool is_gradient(ps_action action)
{
    return action.kind == PS_OP_BACKWARD || action.kind == PS_OP_BACKWARD_INPUT;
}

static transfer *transfer_at(transfer *of, const lowering *l, int32_t stage, int32_t microbatch)
{
    return &of[(int64_t)stage * l->placement->num_microbatches + microbatch];
}

// What an op needs from another rank; NULL: nothing.
static transfer *input_of(const lowering *l, ps_action action)
{
    int32_t stage = action.stage;
    if (action.kind == PS_OP_FORWARD)
        return stage > 0 && !same_rank(l, stage - 1) ? transfer_at(l->forward, l, stage - 1, action.microbatch) : NULL;
    if (is_gradient(action) && stage + 1 < l->placement->num_stages && !same_rank(l, stage))
        return transfer_at(l->backward, l, stage, action.microbatch);
    return NULL;
}

// What an op gives to another rank.
static transfer *output_of(const lowering *l, ps_action action)
{
    int32_t stage = action.stage;
    if (action.kind == PS_OP_FORWARD)
        return stage + 1 < l->placement->num_stages && !same_rank(l, stage)
                   ? transfer_at(l->forward, l, stage, action.microbatch)
                   : NULL;
    if (is_gradient(action) && stage > 0 && !same_rank(l, stage - 1))
        return transfer_at(l->backward, l, stage - 1, action.microbatch);
    return NULL;
}

static int32_t producer_rank(const lowering *l, ps_action action)
{
    return l->placement->device[action.kind == PS_OP_FORWARD ? action.stage - 1 : action.stage + 1];
}

static int32_t consumer_rank(const lowering *l, ps_action action)
{
    return l->placement->device[action.kind == PS_OP_FORWARD ? action.stage + 1 : action.stage - 1];
}

// The op of its cell whose result a rank offers; the cell has run.
static ps_action offered_by(const lowering *l, int32_t rank)
{
    return l->compute->action[l->rank[rank].next + l->rank[rank].sends];
}

// Both ends at this moment.
static void exchange(lowering *l, int32_t sender)
{
    ps_action action = offered_by(l, sender);
    bool forward = action.kind == PS_OP_FORWARD;
    int32_t receiver = consumer_rank(l, action);
    output_of(l, action)->state = RECEIVED;
    *l->rank[sender].out++ = (ps_action){
        .microbatch = action.microbatch, .stage = action.stage, .kind = forward ? PS_ACTION_SEND_F : PS_ACTION_SEND_B};
    *l->rank[receiver].out++ = (ps_action){.microbatch = action.microbatch,
                                           .stage = (uint16_t)(forward ? action.stage + 1 : action.stage - 1),
                                           .kind = forward ? PS_ACTION_RECV_F : PS_ACTION_RECV_B};
    l->rank[sender].sends++;
}

// The first op of the cell a rank is at that still lacks its input; -1: none.
static int32_t lacking(const lowering *l, int32_t rank)
{
    int32_t first = l->rank[rank].next;
    for (int32_t i = first; i < first + cell_size(l, first); i++) {
        const transfer *input = input_of(l, l->compute->action[i]);
        if (input && input->state != RECEIVED)
            return i;
    }
    return -1;
}

// Receive what the cell needs, then run it. False: it has to wait.
static bool begin_cell(lowering *l, int32_t rank)
{
    rank_state *state = &l->rank[rank];
    for (int32_t i = lacking(l, rank); i >= 0; i = lacking(l, rank)) {
        ps_action action = l->compute->action[i];
        if (input_of(l, action)->state == NOT_SENT)
            return false;
        int32_t sender = producer_rank(l, action);
        exchange(l, sender);
        l->ready[l->num_ready++] = sender;
    }
    for (int32_t i = 0; i < cell_size(l, state->next); i++)
        *state->out++ = l->compute->action[state->next + i];
    state->sends = 0;
    return true;
}

// Whether a rank stands before a cell that lacks just this.
static bool waits_for(const lowering *l, int32_t rank, const transfer *offer)
{
    if (at_end(l, rank) || l->rank[rank].sends >= 0)
        return false;
    int32_t lacks = lacking(l, rank);
    return lacks >= 0 && input_of(l, l->compute->action[lacks]) == offer;
}

// Offer the results of the cell one after another. False: one is not received yet.
static bool end_cell(lowering *l, int32_t rank)
{
    rank_state *state = &l->rank[rank];
    while (state->sends < cell_size(l, state->next)) {
        ps_action action = offered_by(l, rank);
        transfer *output = output_of(l, action);
        if (!output) {
            state->sends++;
            continue;
        }
        output->state = OFFERED;
        int32_t receiver = consumer_rank(l, action);
        if (!waits_for(l, receiver, output))
            return false;
        exchange(l, rank);
        l->ready[l->num_ready++] = receiver;
    }
    state->next += cell_size(l, state->next);
    state->sends = -1;
    return true;
}

static void run_rank(lowering *l, int32_t rank)
{
    while (!at_end(l, rank)) {
        if (l->rank[rank].sends < 0 && !begin_cell(l, rank))
            return;
        if (!end_cell(l, rank))
            return;
    }
}

static int32_t waited_for(const lowering *l, int32_t rank)
{
    if (l->rank[rank].sends >= 0)
        return consumer_rank(l, offered_by(l, rank));
    return producer_rank(l, l->compute->action[lacking(l, rank)]);
}

static ps_code refuse_cycle(const lowering *l, int32_t rank, ps_status *status)
{
    char stands[32];
    char lacks[32];
    ps_action_format(l->compute->action[l->rank[rank].next], stands);
    ps_action_format(l->compute->action[lacking(l, rank)], lacks);
    ps_fail(status, PS_ILLEGAL, "deadlock",
            "rank %d stands at %s, whose input for %s comes from rank %d, which waits in turn, round to rank %d",
            (int)rank, stands, lacks, (int)waited_for(l, rank), (int)rank);
    return ps_fail_hint(status, "an overlapped pair begins only when both of its inputs are there");
}

// Nobody can go on: serve one sender of a cycle early. `from` is a rank that waits.
static ps_code break_cycle(lowering *l, int32_t from, ps_status *status)
{
    int64_t search = ++l->num_searches;
    int32_t at = from;
    for (; l->rank[at].visited_in != search; at = waited_for(l, at))
        l->rank[at].visited_in = search;

    int32_t best = -1;
    int32_t best_ahead = INT32_MAX;
    int32_t rank = at;
    do {
        if (l->rank[rank].sends >= 0) {
            ps_action action = offered_by(l, rank);
            int32_t ahead = output_of(l, action)->consumer - l->rank[consumer_rank(l, action)].next;
            if (ahead < best_ahead || (ahead == best_ahead && rank < best)) {
                best = rank;
                best_ahead = ahead;
            }
        }
        rank = waited_for(l, rank);
    } while (rank != at);
    if (best < 0)
        return refuse_cycle(l, at, status);
    exchange(l, best);
    l->ready[l->num_ready++] = best;
    return PS_OK;
}

static ps_code run_all(lowering *l, ps_status *status)
{
    int32_t first = 0; // ranks below it are done
    for (int32_t rank = l->compute->num_devices - 1; rank >= 0; rank--)
        l->ready[l->num_ready++] = rank;
    for (;;) {
        while (l->num_ready > 0)
            run_rank(l, l->ready[--l->num_ready]);
        while (first < l->compute->num_devices && at_end(l, first))
            first++;
        if (first == l->compute->num_devices)
            return PS_OK;
        PS_TRY(break_cycle(l, first, status));
    }
}

// Consumers of all transfers, and room for each rank's list.
static void prepare(ps_arena *arena, lowering *l, ps_actions *out)
{
    const ps_actions *compute = l->compute;
    int64_t cells = (int64_t)l->placement->num_stages * l->placement->num_microbatches;
    l->forward = ps_new(arena, transfer, cells);
    l->backward = ps_new(arena, transfer, cells);
    l->rank = ps_new(arena, rank_state, compute->num_devices);
    // A rank is put there at the start, and for each of the two inputs that its cell may wait for.
    l->ready = ps_new_raw(arena, int32_t, 3 * (int64_t)compute->num_devices);
    *out = (ps_actions){.num_devices = compute->num_devices, .first = ps_new(arena, int32_t, compute->num_devices + 1)};
    for (int32_t rank = 0; rank < compute->num_devices; rank++) {
        int32_t count = 0;
        for (int32_t i = compute->first[rank]; i < compute->first[rank + 1]; i++) {
            transfer *input = input_of(l, compute->action[i]);
            if (input)
                input->consumer = i;
            count += 1 + (input != NULL) + (output_of(l, compute->action[i]) != NULL);
        }
        out->first[rank + 1] = out->first[rank] + count;
    }
    out->action = ps_new_raw(arena, ps_action, (int64_t)out->first[compute->num_devices] + 1);
    for (int32_t rank = 0; rank < compute->num_devices; rank++)
        l->rank[rank] = (rank_state){.next = compute->first[rank], .sends = -1, .out = out->action + out->first[rank]};
}

ps_code ps_actions_add_transfers(ps_arena *arena, const ps_stage_map *placement, const ps_actions *compute,
                                 ps_actions *out, ps_status *status)
{
    lowering l = {.placement = placement, .compute = compute};
    prepare(arena, &l, out);
    return run_all(&l, status);
}
