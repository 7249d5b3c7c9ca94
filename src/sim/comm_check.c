// SPDX-License-Identifier: Apache-2.0
//
// comm_check.c: whether the transfers of ranks complete, with sends that wait for their receiver and with sends that do
// not.
//
// Only transfers can hold a rank up: each rank goes through its list until it comes to one that cannot take place yet.
// Waiting, a send ends when its receiver has come to the RECV; buffered, it ends at once. A RECV ends when the SEND has
// begun. In a batch, as of torch's batch_isend_irecv, adjacent transfers of a rank begin together, each ends when the
// batch of its other end has begun, and the rank goes on when all have ended. A rank that is stopped waits for an
// action that stands further on in the list of another stopped rank, so following "waits for" from any of them leads
// into a cycle. NCCL pairs transfers of two ranks by their order, not by name, so lists must also agree in it where
// they are buffered or in batches; with sends that wait, a disagreement is a deadlock already.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pipesched/action.h"

// One end of a transfer. Ends of one transfer have the same key.
typedef struct end {
    uint64_t key; // direction, stage that sends, micro-batch
    int32_t index;
    int32_t rank;
} end;

typedef struct partner {
    int32_t index; // -1: no transfer
    int32_t rank;
} partner;

typedef struct comm_run {
    const ps_actions *actions;
    ps_send_mode mode;
    const partner *partner; // [actions]
    const int32_t *batch;   // [actions]
    int32_t *next;          // [ranks] first action of the batch at which the rank stands
    int32_t *at;            // [ranks] within that batch, the action that has not ended; before it: not begun
    int32_t *ready;         // stack of ranks that can go on
    int32_t num_ready;
} comm_run;

typedef struct action_name {
    char text[32];
} action_name;

static action_name name_action(const ps_actions *actions, int32_t index)
{
    action_name name;
    ps_action action = actions->action[index];
    snprintf(name.text, sizeof name.text, "%u%s%" PRId32, (unsigned)action.stage, ps_action_word(action.kind),
             action.microbatch);
    return name;
}

static uint64_t key_of(ps_action action)
{
    bool forward = action.kind == PS_ACTION_SEND_F || action.kind == PS_ACTION_RECV_F;
    // A RECV of stage 0's input, or of the last stage's gradient, is of a stage that nobody has.
    uint64_t sender = ps_action_is_send(action.kind) ? action.stage + 1u : forward ? action.stage : action.stage + 2u;
    return (uint64_t)forward << 63 | sender << 32 | (uint32_t)action.microbatch;
}

static int compare_ends(const void *a, const void *b)
{
    const end *x = a;
    const end *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

// One end alone, two senders or two receivers, or both ends on one rank.
static ps_code refuse_ends(const ps_actions *actions, const end *ends, int32_t count, ps_status *status)
{
    static const uint8_t other[] = {PS_ACTION_RECV_F, PS_ACTION_SEND_F, PS_ACTION_RECV_B, PS_ACTION_SEND_B};
    ps_action action = actions->action[ends[0].index];
    for (int32_t i = 0; i < count && i < 3; i++)
        for (int32_t j = i + 1; j < count && j < 3; j++)
            if (actions->action[ends[i].index].kind == actions->action[ends[j].index].kind)
                return ps_fail(status, PS_ILLEGAL, "duplicate-transfer", "%s stands twice, on rank %d and on rank %d",
                               name_action(actions, ends[i].index).text, (int)ends[i].rank, (int)ends[j].rank);
    if (count > 1)
        return ps_fail(status, PS_ILLEGAL, "unexpected-transfer", "rank %d has both ends of %s: nothing is sent",
                       (int)ends[0].rank, name_action(actions, ends[0].index).text);
    int32_t toward = action.kind == PS_ACTION_SEND_F || action.kind == PS_ACTION_RECV_B ? 1 : -1;
    return ps_fail(status, PS_ILLEGAL, "missing-transfer", "%s of rank %d has no %d%s%" PRId32 " on any rank",
                   name_action(actions, ends[0].index).text, (int)ends[0].rank, (int)action.stage + toward,
                   ps_action_word(other[action.kind - PS_ACTION_SEND_F]), action.microbatch);
}

// The other end of every transfer into partners[actions].
static ps_code find_partners(ps_arena *arena, const ps_actions *actions, partner *partners, ps_status *status)
{
    int32_t all = actions->first[actions->num_devices];
    end *ends = ps_new_raw(arena, end, (int64_t)all + 1);
    int32_t count = 0;
    for (int32_t rank = 0; rank < actions->num_devices; rank++)
        for (int32_t i = actions->first[rank]; i < actions->first[rank + 1]; i++) {
            partners[i] = (partner){.index = -1, .rank = -1};
            if (ps_action_is_transfer(actions->action[i].kind))
                ends[count++] = (end){.key = key_of(actions->action[i]), .index = i, .rank = rank};
        }
    qsort(ends, (size_t)count, sizeof *ends, compare_ends);
    for (int32_t i = 0; i < count;) {
        int32_t same = 1;
        while (i + same < count && ends[i + same].key == ends[i].key)
            same++;
        bool whole = same == 2 && ends[i].rank != ends[i + 1].rank &&
                     ps_action_is_send(actions->action[ends[i].index].kind) !=
                         ps_action_is_send(actions->action[ends[i + 1].index].kind);
        if (!whole)
            return refuse_ends(actions, &ends[i], same, status);
        partners[ends[i].index] = (partner){.index = ends[i + 1].index, .rank = ends[i + 1].rank};
        partners[ends[i + 1].index] = (partner){.index = ends[i].index, .rank = ends[i].rank};
        i += same;
    }
    return PS_OK;
}

// First action of the batch of each: itself, unless adjacent transfers are issued together.
static int32_t *find_batches(ps_arena *arena, const ps_actions *actions, ps_send_mode mode)
{
    int32_t *batch = ps_new_raw(arena, int32_t, (int64_t)actions->first[actions->num_devices] + 1);
    for (int32_t rank = 0; rank < actions->num_devices; rank++)
        for (int32_t i = actions->first[rank]; i < actions->first[rank + 1]; i++) {
            bool joins = mode == PS_SEND_BATCH && i > actions->first[rank] &&
                         ps_action_is_transfer(actions->action[i].kind) &&
                         ps_action_is_transfer(actions->action[i - 1].kind);
            batch[i] = joins ? batch[i - 1] : i;
        }
    return batch;
}

// Ranks that stand where one of our transfers has its other end can look again.
static void announce_batch(comm_run *r, int32_t first, int32_t last)
{
    for (int32_t i = first; i < last; i++) {
        partner other = r->partner[i];
        if (other.index >= 0 && r->next[other.rank] == r->batch[other.index])
            r->ready[r->num_ready++] = other.rank;
    }
}

// From batch to batch, each of which ends when all of it has.
static void run_rank(comm_run *r, int32_t rank)
{
    int32_t *next = &r->next[rank];
    int32_t *at = &r->at[rank];
    int32_t all = r->actions->first[rank + 1];
    while (*next < all) {
        int32_t last = *next + 1; // of the batch, excluded
        while (last < all && r->batch[last] == *next)
            last++;
        if (*at < *next) {
            announce_batch(r, *next, last);
            *at = *next;
        }
        for (; *at < last; ++*at) {
            partner other = r->partner[*at];
            bool buffered_send = r->mode == PS_SEND_BUFFERED && ps_action_is_send(r->actions->action[*at].kind);
            if (other.index >= 0 && !buffered_send && r->next[other.rank] < r->batch[other.index])
                return;
        }
        *next = last;
        *at = last - 1;
    }
}

static ps_code refuse_cycle(const comm_run *r, int32_t rank, ps_status *status)
{
    enum { SHOWN = 8 };
    char text[sizeof status->message];
    size_t used = 0;
    int32_t hops = 0;
    int32_t at = rank;
    do {
        partner other = r->partner[r->at[at]];
        if (hops < SHOWN && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%srank %d at %s waits for %s of rank %d",
                                     hops ? "; " : "", (int)at, name_action(r->actions, r->at[at]).text,
                                     name_action(r->actions, other.index).text, (int)other.rank);
        hops++;
        at = other.rank;
    } while (at != rank);
    if (hops > SHOWN && used < sizeof text)
        snprintf(text + used, sizeof text - used, "; and so on over %d more ranks back to rank %d", (int)(hops - SHOWN),
                 (int)rank);
    return ps_fail(status, PS_ILLEGAL, "deadlock", "%s", text);
}

// From the lowest rank that is stopped.
static ps_code check_end(ps_arena *arena, const comm_run *r, ps_status *status)
{
    const ps_actions *actions = r->actions;
    int32_t at = 0;
    while (at < actions->num_devices && r->next[at] == actions->first[at + 1])
        at++;
    if (at == actions->num_devices)
        return PS_OK;
    bool *visited = ps_new(arena, bool, actions->num_devices);
    while (!visited[at]) {
        visited[at] = true;
        at = r->partner[r->at[at]].rank;
    }
    return refuse_cycle(r, at, status);
}

// Each rank receives from each other rank in the order in which that one sends.
static ps_code check_order(ps_arena *arena, const comm_run *r, ps_status *status)
{
    const ps_actions *actions = r->actions;
    typedef struct last_seen {
        int32_t sender; // that this entry is about
        int32_t send;
        int32_t receive;
    } last_seen;
    last_seen *last = ps_new(arena, last_seen, actions->num_devices);
    for (int32_t rank = 0; rank < actions->num_devices; rank++)
        for (int32_t i = actions->first[rank]; i < actions->first[rank + 1]; i++) {
            partner other = r->partner[i];
            if (other.index < 0 || !ps_action_is_send(actions->action[i].kind))
                continue;
            last_seen *before = &last[other.rank];
            if (before->sender == rank + 1 && before->receive > other.index)
                return ps_fail(status, PS_ILLEGAL, "transfer-order",
                               "rank %d sends %s before %s, but rank %d receives %s before %s", (int)rank,
                               name_action(actions, before->send).text, name_action(actions, i).text, (int)other.rank,
                               name_action(actions, other.index).text, name_action(actions, before->receive).text);
            *before = (last_seen){.sender = rank + 1, .send = i, .receive = other.index};
        }
    return PS_OK;
}

ps_code ps_actions_check_transfers(ps_arena *arena, const ps_actions *actions, ps_send_mode mode, ps_status *status)
{
    partner *partners = ps_new_raw(arena, partner, (int64_t)actions->first[actions->num_devices] + 1);
    PS_TRY(find_partners(arena, actions, partners, status));
    comm_run r = {.actions = actions, .mode = mode, .partner = partners};
    r.batch = find_batches(arena, actions, mode);
    r.at = ps_new_raw(arena, int32_t, actions->num_devices);
    r.next = ps_new_raw(arena, int32_t, actions->num_devices);
    // Each action of a rank readies another once at most, and every rank stands there at the start.
    r.ready = ps_new_raw(arena, int32_t, (int64_t)actions->first[actions->num_devices] + actions->num_devices + 1);
    for (int32_t rank = actions->num_devices - 1; rank >= 0; rank--) {
        r.next[rank] = actions->first[rank];
        r.at[rank] = actions->first[rank] - 1;
        r.ready[r.num_ready++] = rank;
    }
    while (r.num_ready > 0)
        run_rank(&r, r.ready[--r.num_ready]);
    PS_TRY(check_end(arena, &r, status));
    return mode != PS_SEND_RENDEZVOUS ? check_order(arena, &r, status) : PS_OK;
}
