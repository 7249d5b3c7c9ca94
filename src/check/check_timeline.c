// SPDX-License-Identifier: Apache-2.0
//
// check_timeline.c: a plan that lists when its ops and transfers run lists each of them once, at the time that its own
// durations give.
#include <inttypes.h>

#include "check/check_parts.h"

enum { LISTED_OP = 1, LISTED_TRANSFER = 2 };

typedef struct timeline_check {
    ps_check *check;
    const ps_cell_table *table;
    const ps_check_times *times;
    ps_hop_table hops;
    uint8_t *listed; // [ops] what has been seen of it
} timeline_check;

// Index of the op in the schedule, -1 when there is none such.
static int32_t find_op(const timeline_check *run, ps_op op)
{
    const ps_plan *plan = run->check->plan;
    if (op.stage >= plan->num_stages || op.microbatch < 0 || op.microbatch >= plan->layout.num_microbatches)
        return -1;
    bool split = op.kind == PS_OP_BACKWARD_INPUT || op.kind == PS_OP_BACKWARD_WEIGHT;
    if (op.kind == PS_OP_RECOMPUTE ? !ps_check_recomputes(plan->layout.schedule)
                                   : op.kind != PS_OP_FORWARD && split != ps_check_is_split(plan->layout.schedule))
        return -1;
    return *ps_cell_slot(run->table, op);
}

// True the first time.
static bool list_once(const timeline_check *run, int32_t at, uint8_t what, int32_t index)
{
    if (run->listed[at] & what) {
        ps_check_find(run->check, "timeline-twice", PS_AT_1("/timeline/#", index), "this %s is listed twice",
                      what == LISTED_OP ? "op" : "transfer");
        return false;
    }
    run->listed[at] |= what;
    return true;
}

static void compare_span(const timeline_check *run, int32_t index, int64_t start_ns, int64_t end_ns)
{
    const ps_plan_event *event = &run->check->plan->event[index];
    ps_check_equal_ns(run->check, "timeline-time", PS_AT_1("/timeline/#/start_ms", index), event->start_ns, start_ns);
    ps_check_equal_ns(run->check, "timeline-time", PS_AT_1("/timeline/#/end_ms", index), event->end_ns, end_ns);
}

static void check_op(const timeline_check *run, int32_t index)
{
    const ps_plan *plan = run->check->plan;
    const ps_plan_event *event = &plan->event[index];
    int32_t at = find_op(run, event->op);
    if (at < 0) {
        ps_check_find(run->check, "timeline-op", PS_AT_1("/timeline/#/cell", index), "the schedule has no such op");
        return;
    }
    if (!list_once(run, at, LISTED_OP, index))
        return;
    const ps_plan_stage *stage = &plan->stage[event->op.stage];
    ps_check_equal(run->check, "timeline-device", PS_AT_1("/timeline/#/pp_rank", index), event->pp_rank,
                   stage->pp_rank);
    int64_t start = run->times->start_ns[at];
    compare_span(run, index, start, start + ps_check_duration(plan, stage, (ps_op_kind)event->op.kind));
}

// A transfer is known by the op that starts it: F sends upwards, B or I downwards.
static void check_transfer(const timeline_check *run, int32_t index)
{
    const ps_plan *plan = run->check->plan;
    const ps_plan_event *event = &plan->event[index];
    bool forward = event->to_stage == event->from_stage + 1;
    bool neighbours = forward || event->to_stage == event->from_stage - 1;
    bool split = ps_check_is_split(plan->layout.schedule);
    bool in_range = neighbours && event->from_stage >= 0 && event->from_stage < plan->num_stages;
    int32_t at = -1;
    if (in_range)
        at = find_op(run, (ps_op){.stage = (uint16_t)event->from_stage,
                                  .kind = forward ? PS_OP_FORWARD
                                          : split ? PS_OP_BACKWARD_INPUT
                                                  : PS_OP_BACKWARD,
                                  .microbatch = event->microbatch});
    if (at < 0 || run->times->sent_ns[at] < 0) {
        ps_check_find(run->check, "timeline-transfer", PS_AT_1("/timeline/#", index),
                      "nothing of micro-batch %" PRId32 " is sent from stage %" PRId32 " to stage %" PRId32,
                      event->microbatch, event->from_stage, event->to_stage);
        return;
    }
    if (!list_once(run, at, LISTED_TRANSFER, index))
        return;
    const ps_plan_hop *hop = forward ? run->hops.forward[event->from_stage] : run->hops.backward[event->to_stage];
    int64_t start = run->times->sent_ns[at];
    compare_span(run, index, start, start + hop->transfer_ns + hop->latency_ns);
}

static void find_missing(const timeline_check *run)
{
    static const char letter[] = {'F', 'B', 'I', 'W', 'R'};
    const ps_plan *plan = run->check->plan;
    for (int32_t at = 0; at < plan->schedule.first[plan->num_devices]; at++) {
        ps_op op = plan->schedule.op[at];
        bool sends = run->times->sent_ns[at] >= 0;
        if (!(run->listed[at] & LISTED_OP))
            ps_check_find(run->check, "timeline-missing", PS_AT("/timeline"), "%u%c%" PRId32 " is not listed",
                          (unsigned)op.stage, letter[op.kind], op.microbatch);
        if (sends && !(run->listed[at] & LISTED_TRANSFER))
            ps_check_find(run->check, "timeline-missing", PS_AT("/timeline"),
                          "the transfer after %u%c%" PRId32 " is not listed", (unsigned)op.stage, letter[op.kind],
                          op.microbatch);
    }
}

void ps_check_timeline(ps_check *check, const ps_cell_table *table, const ps_check_times *times)
{
    const ps_plan *plan = check->plan;
    if (!plan->has_timeline)
        return;
    timeline_check run = {.check = check,
                          .table = table,
                          .times = times,
                          .hops = ps_check_hop_table(check),
                          .listed = ps_new(check->arena, uint8_t, plan->schedule.first[plan->num_devices])};
    for (int32_t index = 0; index < plan->num_events; index++) {
        if (plan->event[index].is_transfer)
            check_transfer(&run, index);
        else if (!plan->event[index].ends_step)
            check_op(&run, index);
    }
    find_missing(&run);
}
