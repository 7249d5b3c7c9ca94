// SPDX-License-Identifier: Apache-2.0
//
// schedule_zb_v.c: ZB-V, zero bubble in a V (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024).
//
// Device r of p runs stages r (chunk 0) and 2p - 1 - r (chunk 1), so that a micro-batch turns round on the last device
// and its loss is on the first: rank 0 can begin with I as soon as its own F1 is done. With F = I = W on equal stages,
// free hops and m >= 2p the span has no bubble at all and the makespan idles (p - 1) W / 2, W being the time of both
// chunks of a device. Every device holds at most p micro-batches between F and the end of W, as 1F1B's first does.
// Messages: 4 (p - 1) m. Any number of micro-batches is legal.
//
// From m = 2p - 1 on the order is a closed form, that of PyTorch's ZBVZeroBubble:
//   2 (p - r) - 1 times F0; r times F1 F0; p - r times F1 I1 W1; then F0 I0 W0 F1 I1 W1 while there are forwards;
//   r times I0 I1; p - r times I0 W0; the other W1's, then W0's.
// With fewer micro-batches that leaves gaps. There the order is what a device would run in slots of one op, taking of
// what is ready F1, I1, I0, F0, W1, W0 in this order, as long as memory for p micro-batches lasts; F0 leaves room for
// one F1. That never locks: micro-batches go in order through every list, so of the oldest one on its way the next op
// finds its room, or it is the W's turn to make it. O(p m) slots and steps a device.
#include "schedule/family.h"

// The lists of a device, in the order in which the slots above try them.
enum { F1, I1, I0, F0, W1, W0, LISTS };

static const struct {
    uint8_t kind;
    uint8_t chunk;
} LIST[LISTS] = {{PS_OP_FORWARD, 1}, {PS_OP_BACKWARD_INPUT, 1},  {PS_OP_BACKWARD_INPUT, 0},
                 {PS_OP_FORWARD, 0}, {PS_OP_BACKWARD_WEIGHT, 1}, {PS_OP_BACKWARD_WEIGHT, 0}};

// How far a device is: the next micro-batch of every list.
typedef struct device_state {
    int32_t next[LISTS];
    int32_t choice; // of this slot; LISTS: none
    ps_op *op;
} device_state;

static void put(device_state *device, ps_schedule_shape shape, int32_t rank, int list)
{
    int32_t stage = ps_schedule_stage(PS_PLACEMENT_V, shape, rank, LIST[list].chunk);
    device->op = ps_family_put(device->op, (ps_op_kind)LIST[list].kind, stage, device->next[list]++);
}

// What the stage before a list's op must have done, on this device or a neighbour, counted at the start of the slot.
static int32_t done_before(const device_state *device, int32_t devices, int32_t rank, int list)
{
    const device_state *own = &device[rank];
    switch (list) {
    case F0: return rank == 0 ? INT32_MAX : own[-1].next[F0];
    case F1: return rank == devices - 1 ? own->next[F0] : own[1].next[F1];
    case I1: return rank == 0 ? own->next[F1] : own[-1].next[I1];
    case I0: return rank == devices - 1 ? own->next[I1] : own[1].next[I0];
    case W1: return own->next[I1];
    default: return own->next[I0];
    }
}

// Held halves of chunks: two from F on, one from I to W.
static int64_t held(const device_state *device)
{
    int64_t forwards = (int64_t)device->next[F0] + device->next[F1];
    int64_t inputs = (int64_t)device->next[I0] + device->next[I1];
    return 2 * forwards - inputs - device->next[W0] - device->next[W1];
}

static bool may_run(const device_state *device, ps_schedule_shape shape, int32_t rank, int list)
{
    if (device[rank].next[list] >= shape.num_microbatches ||
        device[rank].next[list] >= done_before(device, shape.num_devices, rank, list))
        return false;
    int64_t room = 4 * (int64_t)shape.num_devices - held(&device[rank]);
    return list == F0 ? room >= 4 : list == F1 ? room >= 2 : true;
}

static void write_slots(device_state *device, ps_schedule_shape shape)
{
    int64_t left = 6 * (int64_t)shape.num_microbatches * shape.num_devices;
    while (left > 0) {
        for (int32_t rank = 0; rank < shape.num_devices; rank++) {
            device[rank].choice = 0;
            while (device[rank].choice < LISTS && !may_run(device, shape, rank, device[rank].choice))
                device[rank].choice++;
        }
        for (int32_t rank = 0; rank < shape.num_devices; rank++) {
            if (device[rank].choice == LISTS)
                continue;
            put(&device[rank], shape, rank, device[rank].choice);
            left--;
        }
    }
}

static void put_all(device_state *device, ps_schedule_shape shape, int32_t rank, const int *list, int32_t count)
{
    for (int32_t index = 0; index < count; index++)
        put(device, shape, rank, list[index]);
}

static void write_closed_form(device_state *device, ps_schedule_shape shape, int32_t rank)
{
    static const int turn[] = {F1, F0};
    static const int first_inputs[] = {F1, I1, W1};
    static const int steady[] = {F0, I0, W0, F1, I1, W1};
    static const int drain[] = {I0, I1};
    static const int last_inputs[] = {I0, W0};
    int32_t m = shape.num_microbatches;
    int32_t later = shape.num_devices - rank;

    for (int32_t i = 0; i < 2 * later - 1; i++)
        put(device, shape, rank, F0);
    for (int32_t i = 0; i < rank; i++)
        put_all(device, shape, rank, turn, 2);
    for (int32_t i = 0; i < later; i++)
        put_all(device, shape, rank, first_inputs, 3);
    while (device->next[F1] < m) {
        int32_t skip = device->next[F0] < m ? 0 : 1; // F0
        put_all(device, shape, rank, steady + skip, 6 - skip);
    }
    for (int32_t i = 0; i < rank; i++)
        put_all(device, shape, rank, drain, 2);
    for (int32_t i = 0; i < later; i++)
        put_all(device, shape, rank, last_inputs, 2);
    while (device->next[W1] < m)
        put(device, shape, rank, W1);
    while (device->next[W0] < m)
        put(device, shape, rank, W0);
}

static bool has_closed_form(ps_schedule_shape shape)
{
    return shape.num_microbatches >= 2 * (int64_t)shape.num_devices - 1;
}

static void write_all(ps_arena *arena, ps_schedule_shape shape, ps_op *op)
{
    device_state *device = ps_new(arena, device_state, shape.num_devices);
    for (int32_t rank = 0; rank < shape.num_devices; rank++)
        device[rank].op = op + 6 * (int64_t)shape.num_microbatches * rank;
    if (!has_closed_form(shape)) {
        write_slots(device, shape);
        return;
    }
    for (int32_t rank = 0; rank < shape.num_devices; rank++)
        write_closed_form(&device[rank], shape, rank);
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    return has_closed_form(shape) ? ps_family_two_stages("zb-v", shape, status)
                                  : ps_family_slots_fit("zb-v", shape, status);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_zb_v, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_zb_v = {
    .family = {.kind = PS_SCHEDULE_ZB_V,
               .name = "zb-v",
               .summary = "zero bubble with stages there and back again; the memory of 1f1b on every device",
               .splits_backward = true,
               .virtual_stages = true,
               .placement = PS_PLACEMENT_V,
               .legal = legal,
               .generate = generate},
    .write_all = write_all,
};
