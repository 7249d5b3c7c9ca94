// SPDX-License-Identifier: Apache-2.0
//
// v_pattern.c: a schedule from the pattern of one micro-batch (Qi et al., "Pipeline Parallelism with Controllable
// Memory", 2024, on building blocks).
//
// Time is cut into slots of one op, F, I and W alike. Micro-batch k runs where the pattern says, 6 k slots later; as
// the six ops of a device fill six slots, the steady state has no bubble. What a device holds is the time from F to I
// of its two chunks over 6, so that the pattern alone decides memory. W's take the two slots that are left.
//
// At both ends slots stay empty. Ops move into empty slots before them in three steps, none of which lets any device
// hold more than the fullest did: first everything; then, once the last micro-batch has entered, W's step aside, what
// is left of F and I moves up, and W's take the empty slots, the oldest first. A device runs its ops in the order of
// their slots, whatever their true times.
//
// Most slots of many devices are empty, so a device is a list of its ops by slot. Between two ops nothing changes: one
// figure says what a device holds there. O(ops) a step and pass, and passes are few.
#include "schedule/v_pattern.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1, PERIOD = 6 };

// The six ops of a micro-batch on a device; an op is known by list * microbatches + microbatch.
enum { F0, F1, I1, I0, W1, W0, LISTS };

static const struct {
    uint8_t kind;
    uint8_t chunk;
} LIST[LISTS] = {{PS_OP_FORWARD, 0},        {PS_OP_FORWARD, 1},         {PS_OP_BACKWARD_INPUT, 1},
                 {PS_OP_BACKWARD_INPUT, 0}, {PS_OP_BACKWARD_WEIGHT, 1}, {PS_OP_BACKWARD_WEIGHT, 0}};

// The ops of a device in the order of their slots.
typedef struct slot_list {
    int32_t count;
    int32_t *op;
    int32_t *slot;
    int32_t *held; // chunks between F and I, both included, in the op's slot
} slot_list;

typedef struct slot_table {
    int32_t devices;
    int32_t microbatches;
    int32_t slots;
    int32_t most; // chunks that the fullest device holds
    slot_list *list;
    int32_t *slot;  // [devices][6 * microbatches] where each op is
    int32_t *first; // [slots + 1] into visit
    int32_t *visit; // [ops] devices, by the slots of their ops
    int32_t *next;  // [devices] of its list
} slot_table;

static int32_t *slot_of(const slot_table *table, int32_t device, int list, int32_t microbatch)
{
    ptrdiff_t ops = (ptrdiff_t)LISTS * table->microbatches;
    return &table->slot[device * ops + (ptrdiff_t)list * table->microbatches + microbatch];
}

static int list_of(const slot_table *table, int32_t op)
{
    return op / table->microbatches;
}

static bool is_forward(int list)
{
    return list == F0 || list == F1;
}

static bool is_input(int list)
{
    return list == I0 || list == I1;
}

// The first slot after `slot` that no residue in `taken` (bits) has.
static int32_t next_free(int32_t slot, uint32_t taken)
{
    slot++;
    while (taken >> slot % PERIOD & 1)
        slot++;
    return slot;
}

static void first_slots(ps_v_pattern pattern, int32_t first[LISTS])
{
    uint32_t taken = 0;
    first[F0] = pattern.forward[0];
    first[F1] = pattern.forward[1];
    first[I1] = pattern.input[1];
    first[I0] = pattern.input[0];
    for (int list = F0; list <= I0; list++)
        taken |= 1u << first[list] % PERIOD;
    first[W1] = next_free(first[I1], taken);
    first[W0] = next_free(first[I0], taken | 1u << first[W1] % PERIOD);
}

// Micro-batch after micro-batch of all six ops, by slot.
static void place_pattern(slot_table *table, int32_t device, ps_v_pattern pattern)
{
    slot_list *out = &table->list[device];
    int32_t at[LISTS];
    int32_t microbatch[LISTS] = {0};
    first_slots(pattern, at);
    while (out->count < LISTS * table->microbatches) {
        int least = 0;
        for (int list = 1; list < LISTS; list++)
            least = at[list] < at[least] ? list : least;
        out->op[out->count] = least * table->microbatches + microbatch[least];
        out->slot[out->count++] = at[least];
        *slot_of(table, device, least, microbatch[least]++) = at[least];
        at[least] = microbatch[least] < table->microbatches ? at[least] + PERIOD : INT32_MAX;
    }
}

static void count_held(slot_table *table, int32_t device)
{
    slot_list *list = &table->list[device];
    int32_t now = 0;
    for (int32_t index = 0; index < list->count; index++) {
        now += is_forward(list_of(table, list->op[index]));
        list->held[index] = now;
        now -= is_input(list_of(table, list->op[index]));
        table->most = list->held[index] > table->most ? list->held[index] : table->most;
    }
}

// The slot after the op that this one waits for.
static int32_t earliest(const slot_table *table, int32_t device, int32_t op)
{
    bool first = device == 0;
    bool last = device == table->devices - 1;
    int32_t m = op % table->microbatches;
    switch (list_of(table, op)) {
    case F0: return first ? 0 : *slot_of(table, device - 1, F0, m) + 1;
    case F1: return 1 + (last ? *slot_of(table, device, F0, m) : *slot_of(table, device + 1, F1, m));
    case I1: return 1 + (first ? *slot_of(table, device, F1, m) : *slot_of(table, device - 1, I1, m));
    case I0: return 1 + (last ? *slot_of(table, device, I1, m) : *slot_of(table, device + 1, I0, m));
    case W1: return 1 + *slot_of(table, device, I1, m);
    default: return 1 + *slot_of(table, device, I0, m);
    }
}

// Held in the empty slots before an op of the list.
static int32_t held_before(const slot_table *table, const slot_list *list, int32_t index)
{
    return index == 0 ? 0 : list->held[index - 1] - is_input(list_of(table, list->op[index - 1]));
}

// The earliest empty slot that an op of the list may move to, or NONE, and the op before which that is. An F holds its
// chunk from there on.
static int32_t better_slot(const slot_table *table, int32_t device, int32_t index, int32_t *before)
{
    const slot_list *list = &table->list[device];
    bool holds = is_forward(list_of(table, list->op[index]));
    int32_t from = earliest(table, device, list->op[index]);
    int32_t best = NONE;
    for (;; index--) {
        int32_t gap = index == 0 ? 0 : list->slot[index - 1] + 1;
        int32_t low = gap > from ? gap : from;
        if (low < list->slot[index]) {
            if (holds && held_before(table, list, index) >= table->most)
                return best;
            best = low;
            *before = index;
        }
        if (gap <= from || (holds && list->held[index - 1] >= table->most))
            return best;
    }
}

static bool move_up(slot_table *table, int32_t device, int32_t index)
{
    slot_list *list = &table->list[device];
    int32_t before = 0;
    int32_t to = better_slot(table, device, index, &before);
    if (to == NONE)
        return false;
    int32_t op = list->op[index];
    int kind = list_of(table, op);
    int32_t held = held_before(table, list, before) + is_forward(kind);
    for (int32_t at = index; at > before; at--) {
        list->op[at] = list->op[at - 1];
        list->slot[at] = list->slot[at - 1];
        list->held[at] = list->held[at - 1] + is_forward(kind) - is_input(kind);
    }
    list->op[before] = op;
    list->slot[before] = to;
    list->held[before] = held;
    *slot_of(table, device, kind, op % table->microbatches) = to;
    return true;
}

// Devices by the slots of their ops from `from` on, lower devices first; and where each device's list has them.
static void order_visits(slot_table *table, int32_t from)
{
    memset(table->first, 0, ((size_t)table->slots + 1) * sizeof *table->first);
    for (int32_t device = 0; device < table->devices; device++) {
        const slot_list *list = &table->list[device];
        int32_t index = 0;
        while (index < list->count && list->slot[index] < from)
            index++;
        table->next[device] = index;
        for (; index < list->count; index++)
            table->first[list->slot[index] + 1]++;
    }
    for (int32_t slot = 0; slot < table->slots; slot++)
        table->first[slot + 1] += table->first[slot];
    for (int32_t device = 0; device < table->devices; device++) {
        const slot_list *list = &table->list[device];
        for (int32_t index = table->next[device]; index < list->count; index++)
            table->visit[table->first[list->slot[index]]++] = device;
    }
}

// Slot by slot, so that what an op waits for has moved before it; again until nothing moves. Every move lowers the sum
// of slots, so it ends. An op that has moved stands before all that are still to be visited.
static void move_all_up(slot_table *table, int32_t from)
{
    for (bool moved = true; moved;) {
        moved = false;
        order_visits(table, from);
        int32_t visits = table->first[table->slots];
        for (int32_t visit = 0; visit < visits; visit++) {
            int32_t device = table->visit[visit];
            moved |= move_up(table, device, table->next[device]++);
        }
    }
}

// Take the W's of a device from `from` on out of its list, by slot.
static int32_t take_weights(slot_table *table, int32_t device, int32_t from, int32_t *taken)
{
    slot_list *list = &table->list[device];
    int32_t count = 0;
    int32_t kept = 0;
    for (int32_t index = 0; index < list->count; index++) {
        int32_t op = list->op[index];
        if (list->slot[index] >= from && LIST[list_of(table, op)].kind == PS_OP_BACKWARD_WEIGHT) {
            taken[count++] = op;
            continue;
        }
        list->op[kept] = op;
        list->held[kept] = list->held[index];
        list->slot[kept++] = list->slot[index];
    }
    list->count = kept;
    return count;
}

// A W that waits for its I, and its place among those taken.
typedef struct waiting {
    int32_t earliest;
    int32_t age;
} waiting;

static int by_earliest(const void *a, const void *b)
{
    const waiting *x = a;
    const waiting *y = b;
    if (x->earliest != y->earliest)
        return x->earliest < y->earliest ? -1 : 1;
    return x->age < y->age ? -1 : x->age > y->age;
}

// A heap of ages, the oldest on top.
static void push_age(int32_t *heap, int32_t size, int32_t age)
{
    int32_t at = size;
    for (; at > 0 && heap[(at - 1) / 2] > age; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = age;
}

static int32_t pop_age(int32_t *heap, int32_t size)
{
    int32_t top = heap[0];
    int32_t last = heap[size - 1];
    int32_t at = 0;
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child + 1 < size - 1 && heap[child + 1] < heap[child])
            child++;
        if (child >= size - 1 || heap[child] >= last)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

// What is needed to put W's back, for as many as there may be.
typedef struct weight_room {
    int32_t *taken;
    waiting *wait;
    int32_t *heap;
    int32_t *op; // a device's ops with the W's among them
} weight_room;

// Merge the W's into empty slots from `from` on, in each the oldest of which the I has run.
static void return_weights(slot_table *table, int32_t device, int32_t from, int32_t count, weight_room *room)
{
    slot_list *list = &table->list[device];
    int32_t item = 0;
    int32_t next = 0; // of those that wait
    int32_t ready = 0;
    int32_t written = 0;
    for (int32_t age = 0; age < count; age++)
        room->wait[age] = (waiting){earliest(table, device, room->taken[age]), age};
    qsort(room->wait, (size_t)count, sizeof *room->wait, by_earliest);
    for (int32_t slot = from, left = count; left > 0;) {
        while (item < list->count && list->slot[item] < slot)
            room->op[written++] = list->op[item++];
        if (item < list->count && list->slot[item] == slot) {
            slot++;
            continue;
        }
        while (next < count && room->wait[next].earliest <= slot)
            push_age(room->heap, ready++, room->wait[next++].age);
        if (ready == 0) {
            slot = room->wait[next].earliest;
            continue;
        }
        room->op[written++] = room->taken[pop_age(room->heap, ready--)];
        left--;
        slot++;
    }
    while (item < list->count)
        room->op[written++] = list->op[item++];
    memcpy(list->op, room->op, (size_t)written * sizeof *list->op);
    list->count = written;
}

static ps_op *write_ops(const slot_table *table, ps_schedule_shape shape, int32_t device, ps_op *op)
{
    const slot_list *from = &table->list[device];
    for (int32_t index = 0; index < from->count; index++) {
        int list = list_of(table, from->op[index]);
        int32_t stage = ps_schedule_stage(PS_PLACEMENT_V, shape, device, LIST[list].chunk);
        op = ps_family_put(op, (ps_op_kind)LIST[list].kind, stage, from->op[index] % table->microbatches);
    }
    return op;
}

static void allocate(ps_arena *arena, ps_schedule_shape shape, slot_table *out)
{
    int64_t ops = LISTS * (int64_t)shape.num_microbatches;
    *out = (slot_table){.devices = shape.num_devices,
                        .microbatches = shape.num_microbatches,
                        .slots = (int32_t)ps_family_v_slots(shape), // patterns end before 6p + 16
                        .list = ps_new(arena, slot_list, shape.num_devices),
                        .slot = ps_new_raw(arena, int32_t, ops * shape.num_devices),
                        .visit = ps_new_raw(arena, int32_t, ops * shape.num_devices),
                        .next = ps_new_raw(arena, int32_t, shape.num_devices)};
    out->first = ps_new_raw(arena, int32_t, (int64_t)out->slots + 1);
    for (int32_t device = 0; device < shape.num_devices; device++)
        out->list[device] = (slot_list){.op = ps_new_raw(arena, int32_t, ops),
                                        .slot = ps_new_raw(arena, int32_t, ops),
                                        .held = ps_new_raw(arena, int32_t, ops)};
}

void ps_v_pattern_write(ps_arena *arena, ps_schedule_shape shape, ps_v_pattern_of pattern_of, ps_op *op)
{
    slot_table table;
    allocate(arena, shape, &table);
    for (int32_t device = 0; device < shape.num_devices; device++)
        place_pattern(&table, device, pattern_of(shape.num_devices, device));
    for (int32_t device = 0; device < shape.num_devices; device++)
        count_held(&table, device);
    move_all_up(&table, 0);

    int32_t entered = *slot_of(&table, 0, F0, shape.num_microbatches - 1) + 1;
    int64_t weights = 2 * (int64_t)shape.num_microbatches;
    int32_t **taken = ps_new_raw(arena, int32_t *, shape.num_devices);
    int32_t *count = ps_new_raw(arena, int32_t, shape.num_devices);
    for (int32_t device = 0; device < shape.num_devices; device++) {
        taken[device] = ps_new_raw(arena, int32_t, weights);
        count[device] = take_weights(&table, device, entered, taken[device]);
    }
    move_all_up(&table, entered);
    weight_room room = {.wait = ps_new_raw(arena, waiting, weights),
                        .heap = ps_new_raw(arena, int32_t, weights),
                        .op = ps_new_raw(arena, int32_t, LISTS * (int64_t)shape.num_microbatches)};
    for (int32_t device = 0; device < shape.num_devices; device++) {
        room.taken = taken[device];
        return_weights(&table, device, entered - 1, count[device], &room);
        op = write_ops(&table, shape, device, op);
    }
}
