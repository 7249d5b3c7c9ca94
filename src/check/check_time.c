// SPDX-License-Identifier: Apache-2.0
//
// check_time.c: when every op runs, by Kahn's topological order over the graph of ops.
//
// An op has at most two predecessors: the one before it on its device, and the same direction's op of the neighbouring
// stage. The device's clock carries the first, an arrival time per op the second. A device has at most one op ready, so
// the ready list is as long as there are devices. Transfers on one lane (source, destination device) go in the source's
// program order, which is the order in which its ops are taken here. O(ops) time, 9 bytes an op besides the cell table,
// 8 more for a plan with a timeline.
#include <stdlib.h>
#include <string.h>

#include "check/check_parts.h"

typedef struct op_graph {
    ps_check *check;
    const ps_plan *plan;
    const ps_cell_table *table;
    ps_hop_table hops;
    int32_t *forward_lane;  // [num_stages - 1]
    int32_t *backward_lane; // [num_stages - 1]
    int64_t *lane_free;
    int64_t *start; // [ops]; before an op is taken: when its input arrives
    int64_t *sent;  // [ops] when a transfer has its lane, -1: none; NULL when nobody asks
    uint8_t *waits; // [ops] predecessors not yet taken
    int32_t *done;  // [num_devices] ops taken
    int64_t *clock; // [num_devices] end of the last op taken
    int32_t *ready; // [num_devices] stack of devices whose next op has all it needs
    int32_t num_ready;
} op_graph;

int64_t ps_check_duration(const ps_plan *plan, const ps_plan_stage *stage, ps_op_kind kind)
{
    int64_t inside = ps_check_recomputes(plan->layout.schedule) ? 0 : stage->recompute_ns;
    int64_t work = 0;
    int64_t sends = kind == PS_OP_FORWARD                                    ? stage->send_ns[0]
                    : kind == PS_OP_BACKWARD || kind == PS_OP_BACKWARD_INPUT ? stage->send_ns[1]
                                                                             : 0;
    switch (kind) {
    case PS_OP_FORWARD: work = stage->forward_ns; break;
    case PS_OP_BACKWARD: work = inside + stage->backward_input_ns + stage->backward_weight_ns; break;
    case PS_OP_BACKWARD_INPUT: work = inside + stage->backward_input_ns; break;
    case PS_OP_BACKWARD_WEIGHT: work = stage->backward_weight_ns; break;
    case PS_OP_RECOMPUTE: work = stage->recompute_ns; break;
    case PS_OP_KINDS: break;
    }
    return work + stage->op_overhead_ns + sends;
}

int32_t ps_check_source(const ps_plan *plan, ps_op op)
{
    if (op.kind == PS_OP_FORWARD)
        return ps_check_before(plan, op.stage); // -1 for the first
    return op.kind >= PS_OP_BACKWARD_WEIGHT ? -1 : ps_check_after(plan, op.stage);
}

static int compare_int64(const void *a, const void *b)
{
    int64_t x;
    int64_t y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

// Key of a lane: source * devices + destination.
static int64_t lane_key(const ps_plan *plan, int32_t from, int32_t to)
{
    return (int64_t)plan->stage[from].pp_rank * plan->num_devices + plan->stage[to].pp_rank;
}

static int32_t find_lane(const int64_t *key, int32_t count, int64_t wanted)
{
    const int64_t *found = bsearch(&wanted, key, (size_t)count, sizeof *key, compare_int64);
    return (int32_t)(found - key);
}

static void number_lanes(op_graph *graph)
{
    const ps_plan *plan = graph->plan;
    ps_arena *arena = graph->check->arena;
    int32_t hops = plan->num_stages - 1;
    int64_t *key = ps_new_raw(arena, int64_t, 2 * (int64_t)hops + 1);
    graph->forward_lane = ps_new_raw(arena, int32_t, hops + 1);
    graph->backward_lane = ps_new_raw(arena, int32_t, hops + 1);
    graph->lane_free = ps_new(arena, int64_t, 2 * (int64_t)hops + 1);
    for (int32_t stage = 0; stage < hops; stage++) {
        key[2 * stage] = lane_key(plan, stage, stage + 1);
        key[2 * stage + 1] = lane_key(plan, stage + 1, stage);
    }
    qsort(key, (size_t)hops * 2, sizeof *key, compare_int64);
    int32_t count = 0;
    for (int32_t index = 0; index < 2 * hops; index++)
        if (count == 0 || key[count - 1] != key[index])
            key[count++] = key[index];
    for (int32_t stage = 0; stage < hops; stage++) {
        graph->forward_lane[stage] = find_lane(key, count, lane_key(plan, stage, stage + 1));
        graph->backward_lane[stage] = find_lane(key, count, lane_key(plan, stage + 1, stage));
    }
}

static void release(op_graph *graph, int32_t at, int32_t device)
{
    if (--graph->waits[at] == 0)
        graph->ready[graph->num_ready++] = device;
}

static void open_graph(op_graph *graph)
{
    const ps_plan *plan = graph->plan;
    ps_arena *arena = graph->check->arena;
    int64_t ops = plan->schedule.first[plan->num_devices];
    graph->start = ps_new(arena, int64_t, ops);
    if (plan->has_timeline) {
        graph->sent = ps_new_raw(arena, int64_t, ops);
        memset(graph->sent, 0xFF, (size_t)ops * sizeof *graph->sent); // all -1
    }
    graph->waits = ps_new_raw(arena, uint8_t, ops);
    graph->done = ps_new(arena, int32_t, plan->num_devices);
    graph->clock = ps_new(arena, int64_t, plan->num_devices);
    graph->ready = ps_new_raw(arena, int32_t, plan->num_devices);
    number_lanes(graph);
    for (int32_t device = 0; device < plan->num_devices; device++) {
        int32_t first = plan->schedule.first[device];
        int32_t end = plan->schedule.first[device + 1];
        for (int32_t at = first; at < end; at++)
            graph->waits[at] = (uint8_t)(1 + (ps_check_source(plan, plan->schedule.op[at]) >= 0));
        if (first < end)
            release(graph, first, device);
    }
}

// The output of an op arrives where it is needed.
static void send(op_graph *graph, int32_t from, int64_t end)
{
    const ps_plan *plan = graph->plan;
    ps_op op = plan->schedule.op[from];
    bool forward = op.kind == PS_OP_FORWARD;
    int32_t to = forward ? ps_check_after(plan, op.stage) : ps_check_before(plan, op.stage);
    if (op.kind >= PS_OP_BACKWARD_WEIGHT || to < 0)
        return;
    int32_t lower = forward ? op.stage : to;
    const ps_plan_hop *hop = forward ? graph->hops.forward[lower] : graph->hops.backward[lower];
    int64_t arrival = end;
    if (hop && plan->stage[op.stage].pp_rank != plan->stage[to].pp_rank) {
        int64_t *lane = &graph->lane_free[forward ? graph->forward_lane[lower] : graph->backward_lane[lower]];
        if (!plan->inputs.job.overlap_p2p)
            end -= hop->transfer_ns; // the op ends with it
        int64_t begin = end > *lane ? end : *lane;
        *lane = begin + hop->transfer_ns;
        arrival = *lane + hop->latency_ns;
        if (graph->sent)
            graph->sent[from] = begin;
    }
    ps_op next = op;
    next.stage = (uint16_t)to;
    int32_t at = *ps_cell_slot(graph->table, next);
    graph->start[at] = arrival;
    release(graph, at, plan->stage[to].pp_rank);
}

static void take(op_graph *graph, int32_t device)
{
    const ps_plan *plan = graph->plan;
    int32_t at = plan->schedule.first[device] + graph->done[device]++;
    ps_op op = plan->schedule.op[at];
    if (graph->start[at] < graph->clock[device])
        graph->start[at] = graph->clock[device];
    int64_t end = graph->start[at] + ps_check_duration(plan, &plan->stage[op.stage], (ps_op_kind)op.kind);
    graph->clock[device] = end;
    send(graph, at, end);
    if (at + 1 < plan->schedule.first[device + 1])
        release(graph, at + 1, device);
}

// When the first backward starts and the last forward ends, anywhere.
typedef struct phases {
    int64_t first_backward;
    int64_t last_forward;
} phases;

static phases find_phases(const op_graph *graph)
{
    const ps_plan *plan = graph->plan;
    phases phase = {.first_backward = INT64_MAX};
    for (int32_t at = 0; at < plan->schedule.first[plan->num_devices]; at++) {
        ps_op op = plan->schedule.op[at];
        int64_t end = graph->start[at] + ps_check_duration(plan, &plan->stage[op.stage], (ps_op_kind)op.kind);
        if (op.kind == PS_OP_FORWARD && end > phase.last_forward)
            phase.last_forward = end;
        if ((op.kind == PS_OP_BACKWARD || op.kind == PS_OP_BACKWARD_INPUT) && graph->start[at] < phase.first_backward)
            phase.first_backward = graph->start[at];
    }
    return phase;
}

static int64_t overlap(int64_t from, int64_t to, int64_t low, int64_t high)
{
    int64_t begin = from > low ? from : low;
    int64_t end = to < high ? to : high;
    return end > begin ? end - begin : 0;
}

static void add_idle(ps_idle *idle, phases phase, int64_t from, int64_t to)
{
    int64_t late = phase.last_forward > phase.first_backward ? phase.last_forward : phase.first_backward;
    idle->warmup_ns += overlap(from, to, INT64_MIN, phase.first_backward);
    idle->steady_ns += overlap(from, to, phase.first_backward, late);
    idle->cooldown_ns += overlap(from, to, late, INT64_MAX);
}

static void sum_up(const op_graph *graph, ps_check_times *out)
{
    const ps_plan *plan = graph->plan;
    const ps_schedule *schedule = &plan->schedule;
    int64_t first_start = INT64_MAX;
    for (int32_t device = 0; device < plan->num_devices; device++) {
        ps_check_device_times *times = &out->device[device];
        times->first_start_ns = graph->start[schedule->first[device]];
        times->last_end_ns = graph->clock[device];
        if (times->first_start_ns < first_start)
            first_start = times->first_start_ns;
        if (times->last_end_ns > out->last_end_ns)
            out->last_end_ns = times->last_end_ns;
        if (times->last_end_ns - times->first_start_ns > out->span_ns)
            out->span_ns = times->last_end_ns - times->first_start_ns;
    }
    out->makespan_ns = out->last_end_ns - first_start;
    phases phase = find_phases(graph);
    for (int32_t device = 0; device < plan->num_devices; device++) {
        ps_check_device_times *times = &out->device[device];
        int64_t free_since = first_start;
        for (int32_t at = schedule->first[device]; at < schedule->first[device + 1]; at++) {
            ps_op op = schedule->op[at];
            int64_t duration = ps_check_duration(plan, &plan->stage[op.stage], (ps_op_kind)op.kind);
            add_idle(&times->idle, phase, free_since, graph->start[at]);
            times->busy_ns += duration;
            free_since = graph->start[at] + duration;
        }
        add_idle(&times->idle, phase, free_since, out->last_end_ns);
        out->busy_ns += times->busy_ns;
    }
}

bool ps_check_times_compute(ps_check *check, const ps_cell_table *table, ps_check_times *out)
{
    const ps_plan *plan = check->plan;
    op_graph graph = {.check = check, .plan = plan, .table = table, .hops = ps_check_hop_table(check)};
    *out = (ps_check_times){.device = ps_new(check->arena, ps_check_device_times, plan->num_devices)};
    open_graph(&graph);
    int64_t taken = 0;
    for (; graph.num_ready > 0; taken++)
        take(&graph, graph.ready[--graph.num_ready]);
    if (taken < plan->schedule.first[plan->num_devices]) {
        ps_check_deadlock(check, table, graph.done);
        return false;
    }
    out->start_ns = graph.start;
    out->sent_ns = graph.sent;
    sum_up(&graph, out);
    return true;
}

void ps_check_times_compare(ps_check *check, const ps_check_times *times)
{
    const ps_plan *plan = check->plan;
    for (int32_t index = 0; index < plan->num_devices; index++) {
        const ps_plan_device *device = &plan->device[index];
        const ps_check_device_times *should = &times->device[index];
        ps_check_equal_ns(check, "busy-time", PS_AT_1("/devices/#/busy_ms", index), device->busy_ns, should->busy_ns);
        ps_check_equal_ns(check, "idle-time", PS_AT_1("/devices/#/idle_ms", index), device->idle_ns,
                          times->makespan_ns - should->busy_ns);
        ps_check_equal_ns(check, "idle-time", PS_AT_1("/devices/#/idle/warmup", index), device->idle.warmup_ns,
                          should->idle.warmup_ns);
        ps_check_equal_ns(check, "idle-time", PS_AT_1("/devices/#/idle/steady", index), device->idle.steady_ns,
                          should->idle.steady_ns);
        ps_check_equal_ns(check, "idle-time", PS_AT_1("/devices/#/idle/cooldown", index), device->idle.cooldown_ns,
                          should->idle.cooldown_ns);
    }
}
