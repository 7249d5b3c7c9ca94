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
#include "schedule/v_pattern.h"

#include <stddef.h>

enum { NONE = -1, PERIOD = 6 };

// The six ops of a micro-batch on a device; an op is known by list * microbatches + microbatch.
enum { F0, F1, I1, I0, W1, W0, LISTS };

static const struct {
    uint8_t kind;
    uint8_t chunk;
} LIST[LISTS] = {{PS_OP_FORWARD, 0},        {PS_OP_FORWARD, 1},         {PS_OP_BACKWARD_INPUT, 1},
                 {PS_OP_BACKWARD_INPUT, 0}, {PS_OP_BACKWARD_WEIGHT, 1}, {PS_OP_BACKWARD_WEIGHT, 0}};

typedef struct slot_table {
    int32_t devices;
    int32_t microbatches;
    int32_t slots;
    int32_t most;  // chunks that the fullest device holds
    int32_t *op;   // [devices][slots], or NONE
    int32_t *held; // [devices][slots] chunks between F and I, both included
    int32_t *slot; // [devices][6 * microbatches] where each op is
} slot_table;

static int32_t *row(const slot_table *table, int32_t *of, int32_t device)
{
    return of + (ptrdiff_t)device * table->slots;
}

static int32_t *slot_of(const slot_table *table, int32_t device, int list, int32_t microbatch)
{
    ptrdiff_t ops = (ptrdiff_t)LISTS * table->microbatches;
    return &table->slot[device * ops + (ptrdiff_t)list * table->microbatches + microbatch];
}

static void put(slot_table *table, int32_t device, int32_t op, int32_t slot)
{
    row(table, table->op, device)[slot] = op;
    *slot_of(table, device, op / table->microbatches, op % table->microbatches) = slot;
}

// The first slot after `slot` that no residue in `taken` (bits) has.
static int32_t next_free(int32_t slot, uint32_t taken)
{
    slot++;
    while (taken >> slot % PERIOD & 1)
        slot++;
    return slot;
}

static void place_patterns(slot_table *table, ps_v_pattern_of pattern_of)
{
    for (int32_t device = 0; device < table->devices; device++) {
        ps_v_pattern pattern = pattern_of(table->devices, device);
        int32_t first[LISTS] = {pattern.forward[0], pattern.forward[1], pattern.input[1], pattern.input[0], 0, 0};
        uint32_t taken = 0;
        for (int list = F0; list <= I0; list++)
            taken |= 1u << first[list] % PERIOD;
        first[W1] = next_free(first[I1], taken);
        first[W0] = next_free(first[I0], taken | 1u << first[W1] % PERIOD);
        for (int list = 0; list < LISTS; list++)
            for (int32_t m = 0; m < table->microbatches; m++)
                put(table, device, list * table->microbatches + m, first[list] + PERIOD * m);
    }
}

static void count_held(slot_table *table)
{
    for (int32_t device = 0; device < table->devices; device++) {
        const int32_t *op = row(table, table->op, device);
        int32_t *held = row(table, table->held, device);
        int32_t now = 0;
        for (int32_t slot = 0; slot < table->slots; slot++) {
            int list = op[slot] == NONE ? LISTS : op[slot] / table->microbatches;
            now += list == F0 || list == F1;
            held[slot] = now;
            now -= list == I0 || list == I1;
            table->most = held[slot] > table->most ? held[slot] : table->most;
        }
    }
}

// The slot after the op that this one waits for.
static int32_t earliest(const slot_table *table, int32_t device, int list, int32_t m)
{
    bool first = device == 0;
    bool last = device == table->devices - 1;
    switch (list) {
    case F0: return first ? 0 : *slot_of(table, device - 1, F0, m) + 1;
    case F1: return 1 + (last ? *slot_of(table, device, F0, m) : *slot_of(table, device + 1, F1, m));
    case I1: return 1 + (first ? *slot_of(table, device, F1, m) : *slot_of(table, device - 1, I1, m));
    case I0: return 1 + (last ? *slot_of(table, device, I1, m) : *slot_of(table, device + 1, I0, m));
    case W1: return 1 + *slot_of(table, device, I1, m);
    default: return 1 + *slot_of(table, device, I0, m);
    }
}

// The earliest empty slot that the op in `slot` may move to, or NONE. An F holds its chunk from there on.
static int32_t better_slot(const slot_table *table, int32_t device, int32_t slot)
{
    const int32_t *op = row(table, table->op, device);
    const int32_t *held = row(table, table->held, device);
    int list = op[slot] / table->microbatches;
    int32_t from = earliest(table, device, list, op[slot] % table->microbatches);
    int32_t best = NONE;
    if (list == F0 || list == F1) {
        for (int32_t to = slot - 1; to >= from && held[to] < table->most; to--)
            best = op[to] == NONE ? to : best;
        return best;
    }
    for (int32_t to = from; to < slot; to++)
        if (op[to] == NONE)
            return to;
    return NONE;
}

static bool move_up(slot_table *table, int32_t device, int32_t slot)
{
    int32_t *op = row(table, table->op, device);
    int32_t *held = row(table, table->held, device);
    int32_t to = better_slot(table, device, slot);
    if (to == NONE)
        return false;
    int list = op[slot] / table->microbatches;
    put(table, device, op[slot], to);
    op[slot] = NONE;
    if (list == F0 || list == F1)
        for (int32_t at = to; at < slot; at++)
            held[at]++;
    if (list == I0 || list == I1)
        for (int32_t at = to + 1; at <= slot; at++)
            held[at]--;
    return true;
}

// Slot by slot, so that what an op waits for has moved before it; again until nothing moves. Every move lowers the sum
// of slots, so it ends.
static void move_all_up(slot_table *table, int32_t from)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t slot = from; slot < table->slots; slot++)
            for (int32_t device = 0; device < table->devices; device++)
                if (row(table, table->op, device)[slot] != NONE)
                    moved |= move_up(table, device, slot);
    }
}

// Take the W's of a device from `from` on out of their slots, oldest slot first.
static int32_t take_weights(slot_table *table, int32_t device, int32_t from, int32_t *taken)
{
    int32_t *op = row(table, table->op, device);
    int32_t count = 0;
    for (int32_t slot = from; slot < table->slots; slot++) {
        if (op[slot] == NONE || LIST[op[slot] / table->microbatches].kind != PS_OP_BACKWARD_WEIGHT)
            continue;
        taken[count++] = op[slot];
        op[slot] = NONE;
    }
    return count;
}

// Put them into empty slots from `from` on, the oldest of which the I has run first.
static void return_weights(slot_table *table, int32_t device, int32_t from, int32_t *taken, int32_t count)
{
    const int32_t *op = row(table, table->op, device);
    for (int32_t slot = from; count > 0; slot++) {
        if (op[slot] != NONE)
            continue;
        int32_t index = 0;
        while (index < count &&
               earliest(table, device, taken[index] / table->microbatches, taken[index] % table->microbatches) > slot)
            index++;
        if (index == count)
            continue;
        put(table, device, taken[index], slot);
        count--;
        for (; index < count; index++)
            taken[index] = taken[index + 1];
    }
}

static void write_ops(const slot_table *table, ps_schedule_shape shape, ps_op *op)
{
    for (int32_t device = 0; device < table->devices; device++) {
        const int32_t *at = row(table, table->op, device);
        for (int32_t slot = 0; slot < table->slots; slot++) {
            if (at[slot] == NONE)
                continue;
            int list = at[slot] / table->microbatches;
            int32_t stage = ps_schedule_stage(PS_PLACEMENT_V, shape, device, LIST[list].chunk);
            op = ps_family_put(op, (ps_op_kind)LIST[list].kind, stage, at[slot] % table->microbatches);
        }
    }
}

void ps_v_pattern_write(ps_arena *arena, ps_schedule_shape shape, ps_v_pattern_of pattern_of, ps_op *op)
{
    int64_t slots = ps_family_v_slots(shape); // patterns end before 6p + 16
    int64_t ops = LISTS * (int64_t)shape.num_microbatches;
    slot_table table = {.devices = shape.num_devices,
                        .microbatches = shape.num_microbatches,
                        .slots = (int32_t)slots,
                        .op = ps_new_raw(arena, int32_t, slots * shape.num_devices),
                        .held = ps_new_raw(arena, int32_t, slots * shape.num_devices),
                        .slot = ps_new_raw(arena, int32_t, ops * shape.num_devices)};
    for (int64_t cell = 0; cell < slots * shape.num_devices; cell++)
        table.op[cell] = NONE;
    place_patterns(&table, pattern_of);
    count_held(&table);
    move_all_up(&table, 0);

    int32_t entered = *slot_of(&table, 0, F0, shape.num_microbatches - 1) + 1;
    int32_t **taken = ps_new_raw(arena, int32_t *, shape.num_devices);
    int32_t *count = ps_new_raw(arena, int32_t, shape.num_devices);
    for (int32_t device = 0; device < shape.num_devices; device++) {
        taken[device] = ps_new_raw(arena, int32_t, 2 * (int64_t)shape.num_microbatches);
        count[device] = take_weights(&table, device, entered, taken[device]);
    }
    move_all_up(&table, entered);
    for (int32_t device = 0; device < shape.num_devices; device++)
        return_weights(&table, device, entered - 1, taken[device], count[device]);
    write_ops(&table, shape, op);
}
