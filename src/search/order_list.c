// SPDX-License-Identifier: Apache-2.0
//
// order_list.c: the list scheduler.
//
// The device whose decision is due first decides; what others have started by then is known, and with it when that will
// arrive. A device with nothing to run sleeps until the next known arrival, or until a new one becomes known.
//
// No choice of rules can end in a deadlock: an F starts only where the F's of the same micro-batch at the device's
// later stages still fit beside it, in memory and in the count. So the oldest micro-batch in flight can always go on:
// at its next stage, nothing younger is held at that stage or a later one, and what is held elsewhere on the device
// left room. Memory that grows at I (held_weight above held_forward) is kept free for the one that grows the most.
#include "search/order_list.h"

#include <string.h>

static const int64_t NEVER = INT64_MAX;

typedef struct list_device {
    int64_t clock_ns;
    int64_t left_ns;
    int64_t begin_ns;
    int64_t held;
    int64_t first_gradient_ns; // the earliest that an input of a gradient op can be there
    bool warm;                 // a gradient op has run
    int64_t room;              // for what is held, with the largest transient and growth taken off
    int64_t gradient_room;     // for what is held while I runs and once it has ended
    int32_t last_step;         // of F and gradient ops
    int32_t written;
} list_device;

struct ps_list {
    const ps_order_problem *problem;
    list_device *device;
    int64_t *arrival_ns;       // [(2 stage + step) * microbatches + microbatch], NEVER: not known
    int64_t *first_forward_ns; // [stages] the earliest that any input of F can be there
    int32_t *count;            // [3 stage + step] ops written
    int64_t *due_ns;           // a tree of least due times: leaves at num_leaves + device
    int32_t num_leaves;
    int64_t *lane_free_ns;
    const ps_list_rules *rules;
    int64_t target_ns; // what some device has come to need at least
    int64_t visits;
};

// A stage's next F or gradient op and when its input is there.
typedef struct candidate {
    int32_t stage; // -1: none
    int64_t there_ns;
} candidate;

// When micro-batch 0 is there at the earliest. The first gradient op of a device is that at its last stage.
static void find_first(ps_list *list)
{
    const ps_order_problem *problem = list->problem;
    int64_t there = 0;
    for (int32_t s = 0; s < problem->num_stages; s++) {
        const ps_order_hop *hop = &problem->stage[s].hop[PS_STEP_FORWARD];
        list->first_forward_ns[s] = there;
        there += problem->stage[s].duration_ns[PS_STEP_FORWARD] + hop->occupy_ns + hop->latency_ns;
    }
    for (int32_t s = problem->num_stages - 1; s >= 0; s--) {
        const ps_order_hop *hop = &problem->stage[s].hop[PS_STEP_GRADIENT];
        list_device *device = &list->device[problem->stage[s].device];
        device->first_gradient_ns = device->first_gradient_ns > 0 ? device->first_gradient_ns : there;
        there += problem->stage[s].duration_ns[PS_STEP_GRADIENT] + hop->occupy_ns + hop->latency_ns;
    }
}

ps_list *ps_list_new(ps_arena *arena, const ps_order_problem *problem)
{
    ps_list *list = ps_new(arena, ps_list, 1);
    int64_t pairs = (int64_t)problem->num_stages * problem->num_microbatches;
    list->problem = problem;
    list->num_leaves = 1;
    while (list->num_leaves < problem->num_devices)
        list->num_leaves *= 2;
    list->device = ps_new(arena, list_device, problem->num_devices);
    list->arrival_ns = ps_new_raw(arena, int64_t, 2 * pairs);
    list->count = ps_new_raw(arena, int32_t, PS_STEPS * problem->num_stages);
    list->due_ns = ps_new_raw(arena, int64_t, 2 * (int64_t)list->num_leaves);
    list->lane_free_ns = ps_new_raw(arena, int64_t, problem->pipeline->num_lanes + 1);
    for (int32_t d = 0; d < problem->num_devices; d++) {
        int64_t transient = 0;
        int64_t growth = 0;
        for (int32_t i = problem->first_stage[d]; i < problem->first_stage[d + 1]; i++) {
            const ps_order_stage *stage = &problem->stage[problem->stage_of[i]];
            int64_t more = stage->held_weight - stage->held_forward;
            transient = stage->transient > transient ? stage->transient : transient;
            growth = more > growth ? more : growth;
        }
        list->device[d].gradient_room = problem->room[d] == INT64_MAX ? INT64_MAX : problem->room[d] - transient;
        list->device[d].room = problem->room[d] == INT64_MAX ? INT64_MAX : problem->room[d] - transient - growth;
    }
    list->first_forward_ns = ps_new_raw(arena, int64_t, problem->num_stages);
    find_first(list);
    return list;
}

int64_t ps_list_visits(const ps_list *list)
{
    return list->visits;
}

static void set_due(ps_list *list, int32_t device, int64_t due)
{
    int32_t node = list->num_leaves + device;
    list->due_ns[node] = due;
    for (node /= 2; node > 0; node /= 2) {
        int64_t left = list->due_ns[2 * node];
        int64_t right = list->due_ns[2 * node + 1];
        list->due_ns[node] = left < right ? left : right;
    }
}

// The device that is due first, the lowest of several.
static int32_t first_due(const ps_list *list)
{
    int32_t node = 1;
    while (node < list->num_leaves)
        node = list->due_ns[2 * node] == list->due_ns[node] ? 2 * node : 2 * node + 1;
    return node - list->num_leaves;
}

static void reset(ps_list *list)
{
    const ps_order_problem *problem = list->problem;
    int64_t microbatches = problem->num_microbatches;
    int64_t last = (2 * (int64_t)problem->num_stages - 1) * microbatches;
    for (int64_t i = 0; i < 2 * problem->num_stages * microbatches; i++)
        list->arrival_ns[i] = i < microbatches || i >= last ? 0 : NEVER;
    memset(list->count, 0, (size_t)PS_STEPS * (size_t)problem->num_stages * sizeof *list->count);
    memset(list->lane_free_ns, 0, (size_t)problem->pipeline->num_lanes * sizeof *list->lane_free_ns);
    for (int32_t node = 0; node < 2 * list->num_leaves; node++)
        list->due_ns[node] = NEVER;
    for (int32_t d = 0; d < problem->num_devices; d++) {
        list_device *device = &list->device[d];
        device->clock_ns = 0;
        device->left_ns = problem->work_ns[d];
        device->begin_ns = problem->span ? -1 : 0;
        device->held = 0;
        device->warm = false;
        device->last_step = PS_STEP_GRADIENT;
        device->written = problem->first[d];
        if (problem->first[d] < problem->first[d + 1])
            set_due(list, d, 0);
    }
}

static int64_t arrival(const ps_list *list, int32_t stage, int32_t step, int32_t microbatch)
{
    return list->arrival_ns[(2 * (int64_t)stage + step) * list->problem->num_microbatches + microbatch];
}

static bool may_forward(const ps_list *list, const list_device *device, int32_t s)
{
    const ps_order_stage *stage = &list->problem->stage[s];
    int32_t in_flight = list->count[PS_STEPS * s] - list->count[PS_STEPS * s + PS_STEP_GRADIENT];
    return in_flight < list->rules->most_in_flight[s] &&
           device->held <= device->room - stage->held_forward - stage->later_held;
}

// When micro-batch 0 is back at the device at the earliest: at its next stage there, or for its first gradient op.
static int64_t next_return(const ps_list *list, int32_t d)
{
    const ps_order_problem *problem = list->problem;
    for (int32_t i = problem->first_stage[d]; i < problem->first_stage[d + 1]; i++)
        if (list->count[PS_STEPS * problem->stage_of[i]] == 0)
            return list->first_forward_ns[problem->stage_of[i]];
    return list->device[d].first_gradient_ns;
}

// Would an F, before the first gradient op of the device, be in the way of micro-batch 0?
static bool delays_first(const ps_list *list, int32_t d, int32_t s, int64_t there)
{
    const list_device *device = &list->device[d];
    if (device->warm || list->count[PS_STEPS * s] == 0 || there == NEVER)
        return false;
    int64_t start = there > device->clock_ns ? there : device->clock_ns;
    return start + list->problem->stage[s].duration_ns[PS_STEP_FORWARD] - next_return(list, d) >
           list->rules->device[d].warmup_slack_ns;
}

static bool may_gradient(const list_device *device, const ps_order_stage *stage)
{
    int64_t after = device->held - stage->held_forward + stage->held_weight;
    return after <= device->gradient_room;
}

// Of the stages of a device whose op would be there by `wish`, the one that the rule prefers; else the earliest.
static candidate choose(const ps_list *list, int32_t d, const ps_list_rule *rule, int32_t step, int64_t wish)
{
    const ps_order_problem *problem = list->problem;
    const list_device *device = &list->device[d];
    candidate best = {.stage = -1, .there_ns = NEVER};
    bool late = step == PS_STEP_FORWARD ? rule->late_forward : rule->late_gradient;
    int32_t stages = problem->first_stage[d + 1] - problem->first_stage[d];
    for (int32_t i = 0; i < stages; i++) {
        int32_t s = problem->stage_of[late ? problem->first_stage[d + 1] - 1 - i : problem->first_stage[d] + i];
        int32_t microbatch = list->count[PS_STEPS * s + step];
        if (step == PS_STEP_FORWARD) {
            if (microbatch == problem->num_microbatches || !may_forward(list, device, s))
                continue;
        } else if (microbatch == list->count[PS_STEPS * s] || !may_gradient(device, &problem->stage[s])) {
            continue;
        }
        int64_t there = arrival(list, s, step, microbatch);
        if (step == PS_STEP_FORWARD && delays_first(list, d, s, there))
            continue;
        if (there <= wish)
            return (candidate){s, there};
        if (there < best.there_ns)
            best = (candidate){s, there};
    }
    return best;
}

static int32_t pending_weight(const ps_list *list, int32_t d)
{
    const ps_order_problem *problem = list->problem;
    if (problem->fused)
        return -1;
    for (int32_t i = problem->first_stage[d + 1] - 1; i >= problem->first_stage[d]; i--) {
        int32_t s = problem->stage_of[i];
        if (list->count[PS_STEPS * s + PS_STEP_WEIGHT] < list->count[PS_STEPS * s + PS_STEP_GRADIENT])
            return s;
    }
    return -1;
}

static void post(ps_list *list, int32_t stage, int32_t step, int32_t microbatch, int64_t end)
{
    const ps_order_problem *problem = list->problem;
    int32_t to = step == PS_STEP_FORWARD ? stage + 1 : stage - 1;
    if (step == PS_STEP_WEIGHT || to < 0 || to >= problem->num_stages)
        return;
    const ps_order_hop *hop = &problem->stage[stage].hop[step];
    int64_t there = ps_order_send(problem, hop, list->lane_free_ns, end);
    list->arrival_ns[(2 * (int64_t)to + step) * problem->num_microbatches + microbatch] = there;
    int32_t receiver = problem->stage[to].device;
    int64_t due = there > list->device[receiver].clock_ns ? there : list->device[receiver].clock_ns;
    if (due < list->due_ns[list->num_leaves + receiver])
        set_due(list, receiver, due);
}

// Append one op to a device; false when its remaining work cannot end within the limit.
static bool put(ps_list *list, int32_t d, ps_order_op op, int64_t start, int64_t limit_ns, ps_order *out)
{
    const ps_order_problem *problem = list->problem;
    const ps_order_stage *stage = &problem->stage[op.stage];
    list_device *device = &list->device[d];
    if (device->begin_ns < 0)
        device->begin_ns = start;
    int64_t needs = start + device->left_ns - device->begin_ns;
    if (needs > limit_ns)
        return false;
    list->target_ns = needs > list->target_ns ? needs : list->target_ns;
    out->op[device->written++] = op;
    list->visits++;
    list->count[PS_STEPS * op.stage + op.step]++;
    device->clock_ns = start + stage->duration_ns[op.step];
    device->left_ns -= stage->duration_ns[op.step];
    device->held = ps_order_held_after(stage, op.step, device->held);
    device->warm = device->warm || op.step == PS_STEP_GRADIENT;
    device->last_step = op.step == PS_STEP_WEIGHT ? device->last_step : op.step;
    set_due(list, d, device->written < problem->first[d + 1] ? device->clock_ns : NEVER);
    post(list, op.stage, op.step, op.microbatch, device->clock_ns);
    return true;
}

// Until when the device waits for an input of a step rather than run a W.
static int64_t wait_until(const ps_list *list, int32_t d, int32_t step, bool has_weight)
{
    const ps_list_rule *rule = &list->rules->device[d];
    const list_device *device = &list->device[d];
    int64_t now = list->due_ns[list->num_leaves + d];
    int64_t patience = step == PS_STEP_FORWARD ? rule->forward_patience_ns : rule->gradient_patience_ns;
    if (rule->thrifty && device->begin_ns >= 0) {
        int64_t spare = list->target_ns - (now + device->left_ns - device->begin_ns);
        patience = patience < spare ? patience : spare > 0 ? spare : 0;
    }
    return !has_weight && patience < 0 ? now : now + patience;
}

// What the device does at the time it is due: an op, or sleep. False when it is too late.
static bool decide(ps_list *list, int32_t d, int64_t limit_ns, ps_order *out)
{
    const ps_list_rule *rule = &list->rules->device[d];
    int64_t now = list->due_ns[list->num_leaves + d];
    int32_t weight = pending_weight(list, d);
    int64_t wish[2];
    candidate best[2];
    for (int32_t step = 0; step < 2; step++) {
        wish[step] = wait_until(list, d, step, weight >= 0);
        best[step] = choose(list, d, rule, step, wish[step]);
    }
    int32_t step = rule->turn == PS_TURN_FORWARD    ? PS_STEP_FORWARD
                   : rule->turn == PS_TURN_GRADIENT ? PS_STEP_GRADIENT
                                                    : 1 - list->device[d].last_step;
    if (best[step].there_ns > wish[step])
        step = 1 - step;
    if (best[step].there_ns > wish[step]) {
        if (weight < 0) {
            int64_t next = best[0].there_ns < best[1].there_ns ? best[0].there_ns : best[1].there_ns;
            set_due(list, d, next);
            return true;
        }
        step = PS_STEP_WEIGHT;
    }
    int32_t stage = step == PS_STEP_WEIGHT ? weight : best[step].stage;
    int64_t there = step == PS_STEP_WEIGHT ? now : best[step].there_ns;
    ps_order_op op = {
        .microbatch = list->count[PS_STEPS * stage + step], .stage = (uint16_t)stage, .step = (uint16_t)step};
    return put(list, d, op, there > now ? there : now, limit_ns, out);
}

bool ps_list_schedule(ps_list *list, const ps_list_rules *rules, int64_t limit_ns, ps_order *out)
{
    list->rules = rules;
    list->target_ns = rules->bound_ns;
    reset(list);
    while (list->due_ns[1] != NEVER)
        if (!decide(list, first_due(list), limit_ns, out))
            return false;
    for (int32_t d = 0; d < list->problem->num_devices; d++)
        if (list->device[d].written < list->problem->first[d + 1])
            return false;
    return true;
}
