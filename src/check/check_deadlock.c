// SPDX-License-Identifier: Apache-2.0
//
// check_deadlock.c: the cycle of ops that wait for each other.
//
// Every device that is stuck waits, with its next op, for an op of another device that is itself stuck at or before it.
// Following that from any stuck device must come back to one seen before.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check/check_parts.h"

enum { SHOWN_OPS = 8 };

typedef struct chain_text {
    char data[400];
    size_t size;
} chain_text;

static void add_op(chain_text *text, const char *before, ps_op op)
{
    static const char letter[] = {'F', 'B', 'I', 'W', 'R'};
    if (text->size + 64 > sizeof text->data)
        return;
    text->size += (size_t)snprintf(text->data + text->size, sizeof text->data - text->size, "%s%u%c%" PRId32, before,
                                   (unsigned)op.stage, letter[op.kind], op.microbatch);
}

static ps_op stuck_op(const ps_plan *plan, const int32_t *done, int32_t device)
{
    return plan->schedule.op[plan->schedule.first[device] + done[device]];
}

static int32_t waits_for_device(const ps_plan *plan, ps_op op)
{
    return plan->stage[ps_check_source(plan, op)].pp_rank;
}

void ps_check_deadlock(ps_check *check, const ps_cell_table *table, const int32_t *done)
{
    const ps_plan *plan = check->plan;
    bool *seen = ps_new(check->arena, bool, plan->num_devices);
    int32_t device = 0;
    while (plan->schedule.first[device] + done[device] == plan->schedule.first[device + 1])
        device++; // a device that has finished waits for nothing
    while (!seen[device]) {
        seen[device] = true;
        device = waits_for_device(plan, stuck_op(plan, done, device));
    }
    int32_t start = device;
    int32_t length = 0;
    chain_text text = {.size = 0};
    do {
        ps_op op = stuck_op(plan, done, device);
        ps_op needs = op;
        needs.stage = (uint16_t)ps_check_source(plan, op);
        device = waits_for_device(plan, op);
        if (length++ >= SHOWN_OPS)
            continue;
        add_op(&text, length == 1 ? "" : "; ", op);
        add_op(&text, " waits for ", needs);
        ps_op ahead = stuck_op(plan, done, device);
        if (*ps_cell_slot(table, needs) != plan->schedule.first[device] + done[device])
            add_op(&text, ", which is behind ", ahead);
    } while (device != start);
    ps_check_find(check, "deadlock", PS_AT_2("/schedule/cells/#/#", start, done[start]), "%s%s", text.data,
                  length > SHOWN_OPS ? "; and so on round the cycle" : "");
}
