// SPDX-License-Identifier: Apache-2.0
//
// order_graph.c: starts and tails of an order as ops move about, at the cost of those that change.
//
// A move is first judged from the ops that it passes alone: their starts given what came before, their tails given what
// comes after (as in job-shop search; Taillard, 1994). Only what survives that is propagated, in about the order of
// time, until nothing changes any more or some start and tail together exceed the limit. Starts are exact when a move
// has been accepted. While it is judged, the tails are those of the order before it: a way from one op passed to
// another over other devices can make them too long.
#include "search/order_graph.h"

#include <string.h>

#include "search/order_move.h"

bool ps_order_graph_serves(const ps_order_problem *problem)
{
    if (problem->queues)
        return false;
    for (int32_t s = 0; s < problem->num_stages; s++)
        if (problem->stage[s].duration_ns[PS_STEP_FORWARD] == 0 || problem->stage[s].duration_ns[PS_STEP_GRADIENT] == 0)
            return false;
    return true;
}

enum { IN_HEAP = 1, IN_LOG = 2 };

// Few moves change more starts than the log has room for.
enum { FIRST_HEAP = 256, LOG_PARTS = 4, LEAST_LOG = 256 };

void ps_order_graph_new(ps_arena *arena, const ps_order_problem *problem, ps_order *order, ps_order_trial *trial,
                        ps_order_graph *out)
{
    int64_t ops = problem->first[problem->num_devices];
    int32_t room = (int32_t)(ops < LEAST_LOG ? ops : LEAST_LOG + ops / LOG_PARTS);
    *out = (ps_order_graph){.arena = arena,
                            .problem = problem,
                            .order = order,
                            .trial = trial,
                            .held = ps_new_raw(arena, int64_t, ops),
                            .tail_ns = trial->arrival_ns,
                            .marks = ps_new(arena, uint8_t, ops),
                            .heap = ps_new_raw(arena, ps_order_due, FIRST_HEAP),
                            .room_heap = FIRST_HEAP,
                            .changed = ps_new_raw(arena, int32_t, room),
                            .was_ns = ps_new_raw(arena, int64_t, room),
                            .room_changed = room};
}

static const ps_order_stage *stage_at(const ps_order_graph *g, int32_t position)
{
    return &g->problem->stage[g->order->op[position].stage];
}

static int64_t duration_at(const ps_order_graph *g, int32_t position)
{
    return stage_at(g, position)->duration_ns[g->order->op[position].step];
}

// Where the op of a micro-batch at a neighbouring stage is; -1: there is none.
static int32_t neighbour(const ps_order_graph *g, ps_order_op op, int32_t by)
{
    int32_t stage = op.stage + (op.step == PS_STEP_FORWARD ? by : -by);
    if (op.step == PS_STEP_WEIGHT || stage < 0 || stage >= g->problem->num_stages)
        return -1;
    return g->trial->position[((int64_t)PS_STEPS * stage + op.step) * g->problem->num_microbatches + op.microbatch];
}

static int64_t hop_ns(const ps_order_graph *g, int32_t stage, int32_t step)
{
    const ps_order_hop *hop = &g->problem->stage[stage].hop[step];
    return hop->latency_ns;
}

// When the input of the op at a position is there.
static int64_t input_ns(const ps_order_graph *g, int32_t position)
{
    int32_t sender = neighbour(g, g->order->op[position], -1);
    if (sender < 0)
        return 0;
    ps_order_op op = g->order->op[sender];
    return g->trial->start_ns[sender] + duration_at(g, sender) + hop_ns(g, op.stage, op.step);
}

// The longest way from the end of the op at a position over what it sends; what it sends nothing has none.
static int64_t sent_tail_ns(const ps_order_graph *g, int32_t position)
{
    ps_order_op op = g->order->op[position];
    int32_t receiver = neighbour(g, op, 1);
    return receiver < 0 ? INT64_MIN : hop_ns(g, op.stage, op.step) + g->tail_ns[receiver];
}

// From the end of a device's op at `position` over those behind it.
static int64_t tail_behind(const ps_order_graph *g, int32_t device, int32_t position)
{
    if (position + 1 < g->problem->first[device + 1])
        return g->tail_ns[position + 1];
    return g->problem->span ? -g->trial->start_ns[g->problem->first[device]] : 0;
}

static void swap(ps_order_graph *g, int32_t a, int32_t b)
{
    ps_order_due kept = g->heap[a];
    g->heap[a] = g->heap[b];
    g->heap[b] = kept;
}

static void grow_heap(ps_order_graph *g)
{
    ps_order_due *larger = ps_new_raw(g->arena, ps_order_due, 2 * (int64_t)g->room_heap);
    memcpy(larger, g->heap, (size_t)g->num_heap * sizeof *larger);
    g->heap = larger;
    g->room_heap *= 2;
}

static void push(ps_order_graph *g, int32_t position, int64_t key_ns)
{
    if (g->marks[position] & IN_HEAP)
        return;
    if (g->num_heap == g->room_heap)
        grow_heap(g);
    g->marks[position] |= IN_HEAP;
    int32_t at = g->num_heap++;
    g->heap[at] = (ps_order_due){key_ns, position};
    while (at > 0 && g->heap[(at - 1) / 2].key_ns > key_ns) {
        swap(g, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static int32_t pop(ps_order_graph *g)
{
    int32_t top = g->heap[0].position;
    g->heap[0] = g->heap[--g->num_heap];
    for (int32_t at = 0;;) {
        int32_t least = at;
        for (int32_t child = 2 * at + 1; child <= 2 * at + 2 && child < g->num_heap; child++)
            if (g->heap[child].key_ns < g->heap[least].key_ns)
                least = child;
        if (least == at)
            break;
        swap(g, at, least);
        at = least;
    }
    g->marks[top] &= (uint8_t)~IN_HEAP;
    g->visits++;
    return top;
}

static void drop_heap(ps_order_graph *g)
{
    while (g->num_heap > 0)
        g->marks[g->heap[--g->num_heap].position] &= (uint8_t)~IN_HEAP;
}

static int64_t tail_at(const ps_order_graph *g, int32_t device, int32_t position)
{
    int64_t behind = tail_behind(g, device, position);
    int64_t sent = sent_tail_ns(g, position);
    return duration_at(g, position) + (sent > behind ? sent : behind);
}

static void update_tails(ps_order_graph *g)
{
    while (g->num_heap > 0) {
        int32_t at = pop(g);
        int32_t device = stage_at(g, at)->device;
        int64_t tail = tail_at(g, device, at);
        if (tail == g->tail_ns[at])
            continue;
        g->tail_ns[at] = tail;
        if (at > g->problem->first[device])
            push(g, at - 1, -g->trial->start_ns[at - 1]);
        int32_t sender = neighbour(g, g->order->op[at], -1);
        if (sender >= 0)
            push(g, sender, -g->trial->start_ns[sender]);
    }
}

// The tails of a device's ops from its `next` backwards, as far as those of what they send are known. Devices that wait
// for a tail found here go onto the stack.
static void run_back(ps_order_graph *g, int32_t d, int32_t *num_ready)
{
    const ps_order_problem *problem = g->problem;
    ps_order_trial *trial = g->trial;
    int32_t at = trial->next[d];
    for (; at >= problem->first[d]; at--) {
        ps_order_op op = g->order->op[at];
        int32_t receiver = neighbour(g, op, 1);
        if (receiver >= 0 && receiver <= trial->next[stage_at(g, receiver)->device]) {
            trial->waits[d] = receiver;
            break;
        }
        g->tail_ns[at] = tail_at(g, d, at);
        trial->next[d] = at - 1;
        g->visits++;
        int32_t sender = neighbour(g, op, -1);
        int32_t other = sender < 0 ? -1 : stage_at(g, sender)->device;
        if (other < 0 || trial->waits[other] != at)
            continue;
        trial->waits[other] = -1;
        trial->ready[(*num_ready)++] = other;
    }
}

// As the timing of an order, the other way round.
static void set_tails(ps_order_graph *g)
{
    const ps_order_problem *problem = g->problem;
    ps_order_trial *trial = g->trial;
    int32_t num_ready = 0;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        trial->next[d] = problem->first[d + 1] - 1;
        trial->waits[d] = -1;
        trial->ready[num_ready++] = d;
    }
    while (num_ready > 0)
        run_back(g, trial->ready[--num_ready], &num_ready);
}

void ps_order_graph_set(ps_order_graph *g)
{
    ps_order_hold(g->problem, g->order, g->held);
    set_tails(g);
}

// Judge the positions low .. high of a device, whose ops have just been moved about.
static bool window_promises(const ps_order_graph *g, int32_t device, int32_t low, int32_t high, int64_t limit_ns,
                            int64_t *start)
{
    int64_t clock = low > g->problem->first[device] ? g->trial->start_ns[low - 1] + duration_at(g, low - 1) : 0;
    for (int32_t i = low; i <= high; i++) {
        int64_t there = input_ns(g, i);
        start[i - low] = there > clock ? there : clock;
        clock = start[i - low] + duration_at(g, i);
    }
    int64_t tail = tail_behind(g, device, high);
    for (int32_t i = high; i >= low; i--) {
        int64_t sent = sent_tail_ns(g, i);
        tail = duration_at(g, i) + (sent > tail ? sent : tail);
        if (start[i - low] + tail > limit_ns)
            return false;
    }
    return true;
}

static void log_start(ps_order_graph *g, int32_t at)
{
    if (g->marks[at] & IN_LOG)
        return;
    g->marks[at] |= IN_LOG;
    if (g->num_changed < g->room_changed) {
        g->changed[g->num_changed] = at;
        g->was_ns[g->num_changed] = g->trial->start_ns[at];
    }
    g->num_changed++;
}

// A move that makes devices wait for each other sends starts round in a circle, until some exceeds the limit. Where the
// circle is of short ops and the limit far away that would take for ever, so that it also ends after as many looks as
// no other move needs.
static bool update_starts(ps_order_graph *g, int32_t low, int32_t high, int64_t limit_ns)
{
    enum { LOOKS = 8 };
    int64_t most = g->visits + LOOKS * (int64_t)g->problem->first[g->problem->num_devices];
    while (g->num_heap > 0) {
        if (g->visits > most)
            return false;
        int32_t at = pop(g);
        int32_t device = stage_at(g, at)->device;
        int64_t there = input_ns(g, at);
        int64_t clock = at > g->problem->first[device] ? g->trial->start_ns[at - 1] + duration_at(g, at - 1) : 0;
        int64_t start = there > clock ? there : clock;
        if (start == g->trial->start_ns[at])
            continue;
        log_start(g, at);
        g->trial->start_ns[at] = start;
        if ((at < low || at > high) && start + g->tail_ns[at] > limit_ns)
            return false;
        if (start > limit_ns + (g->problem->span ? g->trial->start_ns[g->problem->first[device]] : 0))
            return false;
        if (at + 1 < g->problem->first[device + 1])
            push(g, at + 1, g->trial->start_ns[at + 1]);
        int32_t receiver = neighbour(g, g->order->op[at], 1);
        if (receiver >= 0)
            push(g, receiver, g->trial->start_ns[receiver]);
    }
    return true;
}

static int64_t value_of(const ps_order_graph *g)
{
    const ps_order_problem *problem = g->problem;
    int64_t value = 0;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int32_t last = problem->first[d + 1] - 1;
        if (last < problem->first[d])
            continue;
        int64_t begin = problem->span ? g->trial->start_ns[problem->first[d]] : 0;
        int64_t took = g->trial->start_ns[last] + duration_at(g, last) - begin;
        value = took > value ? took : value;
    }
    return value;
}

static bool log_is_whole(const ps_order_graph *g)
{
    return g->num_changed <= g->room_changed;
}

static void forget_log(ps_order_graph *g)
{
    int32_t ops = g->problem->first[g->problem->num_devices];
    if (log_is_whole(g))
        for (int32_t i = 0; i < g->num_changed; i++)
            g->marks[g->changed[i]] &= (uint8_t)~IN_LOG;
    else
        for (int32_t i = 0; i < ops; i++)
            g->marks[i] &= (uint8_t)~IN_LOG;
    g->num_changed = 0;
}

static void undo_starts(ps_order_graph *g)
{
    if (log_is_whole(g))
        for (int32_t i = 0; i < g->num_changed; i++)
            g->trial->start_ns[g->changed[i]] = g->was_ns[i];
    drop_heap(g);
    forget_log(g);
}

// Starts, and tails, which timing spoils, of an order that was timed before. What was looked at twice counts once.
static void time_again(ps_order_graph *g)
{
    int64_t before = g->visits;
    int64_t timed = g->trial->visits;
    ps_order_time(g->problem, g->order, g->trial, INT64_MAX);
    set_tails(g);
    g->trial->visits = timed;
    g->visits = before;
}

// Starts travel with their ops.
static void rotate_starts(ps_order_graph *g, int32_t from, int32_t to)
{
    int64_t *start = g->trial->start_ns;
    int64_t moved = start[from];
    if (from < to)
        memmove(start + from, start + from + 1, (size_t)(to - from) * sizeof *start);
    else
        memmove(start + to + 1, start + to, (size_t)(from - to) * sizeof *start);
    start[to] = moved;
}

static bool begins_anew(const ps_order_graph *g, int32_t device)
{
    return g->marks[g->problem->first[device]] & IN_LOG;
}

// Tails after a move that was accepted.
static void settle_tails(ps_order_graph *g, int32_t device, int32_t low, int32_t high)
{
    bool anew = false;
    for (int32_t d = 0; d < g->problem->num_devices && g->problem->span; d++)
        anew = anew || (g->problem->first[d] < g->problem->first[d + 1] && begins_anew(g, d));
    forget_log(g);
    if (anew) {
        set_tails(g);
        return;
    }
    int32_t first = low > g->problem->first[device] ? low - 1 : low;
    for (int32_t i = first; i <= high; i++)
        push(g, i, -g->trial->start_ns[i]);
    update_tails(g);
}

bool ps_order_graph_move(ps_order_graph *g, int32_t from, int32_t to, int64_t limit_ns)
{
    enum { WINDOW = 64 };
    int64_t start[WINDOW + 1];
    int32_t device = stage_at(g, from)->device;
    int32_t at = ps_order_shift(g->order->op, from, to);
    int32_t low = at < from ? at : from;
    int32_t high = at < from ? from : at;
    g->visits += 1 + high - low;
    if (at == from || high - low > WINDOW)
        return false;
    bool whole = true;
    bool promises = ps_order_window_fits(g->problem, g->order, g->held, low, high);
    if (promises) {
        rotate_starts(g, from, at);
        ps_order_settle(g->problem, g->order, g->trial->position, g->held, low, high);
        promises = window_promises(g, device, low, high, limit_ns, start);
        if (promises) {
            for (int32_t i = low; i <= high + 1 && i < g->problem->first[device + 1]; i++)
                push(g, i, i <= high ? start[i - low] : g->trial->start_ns[i]);
            promises = update_starts(g, low, high, limit_ns) && value_of(g) <= limit_ns;
        }
        if (promises) {
            g->order->value_ns = value_of(g);
            settle_tails(g, device, low, high);
            return true;
        }
        whole = log_is_whole(g);
        undo_starts(g);
        rotate_starts(g, at, from);
    }
    ps_order_shift(g->order->op, at, from);
    ps_order_settle(g->problem, g->order, g->trial->position, g->held, low, high);
    if (!whole)
        time_again(g);
    return false;
}
