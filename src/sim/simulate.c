// SPDX-License-Identifier: Apache-2.0
//
// simulate.c: the start and end of every op, as the longest path through a schedule.
//
// Each (stage, micro-batch) has a cell with the time at which its input and its gradient are there. A device runs its
// ops until one needs what is not there yet; it then waits for that one place, and whoever fills it puts the device
// back on the worklist. So every op is visited once: O(ops), and no order of devices can change a result.
//
// Cells double as the check that every op comes once and in a possible order: an op takes what it needs and leaves a
// mark, so a second one, or one before what it depends on, finds no input and its device waits for ever. Only when ops
// are left over in the end is the schedule read again, to say what is wrong with it (refusal.c).
#include <stdbool.h>
#include <string.h>

#include "pipesched/timeline.h"
#include "sim/account.h"
#include "sim/leg.h"
#include "sim/refusal.h"

// Times are 0 or later; what is no time is negative.
enum {
    NOT_YET = -1, // all bytes 0xff, so that memset can write it
    TAKEN = -2,   // F, or B or W, has run
    SPLIT = -3,   // I has run, W may follow
};

// When the input of F, and of B or I, of one stage and micro-batch is on its device.
typedef struct arrivals {
    int64_t input;
    int64_t gradient;
} arrivals;

// Where the result of an op goes. A hop inside a device is a lane of its own that costs nothing.
typedef struct outlet {
    int64_t occupy_ns;
    int64_t latency_ns;
    int32_t lane;
    int32_t device; // that waits for it
} outlet;

typedef struct sim_stage {
    arrivals *cells; // [num_microbatches]; the next and the previous stage's lie num_microbatches away
    int64_t duration_ns[PS_OP_KINDS];
    outlet forward;
    outlet backward;
    int32_t device;
} sim_stage;

// What a micro-batch of one route does with the results of a stage: outlets, and how far from its cell there those of
// the stages lie that need them.
typedef struct sim_leg {
    outlet forward;
    outlet backward;
    int64_t to_next;
    int64_t to_previous;
} sim_leg;

typedef struct sim_device {
    const ps_op *next;
    const ps_op *end;
    int64_t clock;
    const int64_t *waits_for; // place in a cell, NULL: none, it runs, is done or can never go on
} sim_device;

typedef struct simulation {
    const ps_op *first_op;
    int64_t *start_ns;
    int64_t *end_ns;
    uint32_t num_stages;
    uint32_t num_microbatches;
    sim_stage *stage;
    const int32_t *route_of; // NULL: no routes
    sim_leg *leg;            // [routes * stages]
    sim_device *device;
    int64_t *lane_free; // [lanes, then one a device for what stays on it]
    int32_t *ready;     // stack of devices that can go on
    int32_t num_ready;
} simulation;

// `to` does not count where nothing is sent.
static outlet outlet_of(const ps_pipeline *pipeline, const ps_hop *hop, int32_t from, int32_t to)
{
    int32_t source = pipeline->stage[from].device;
    if (hop && hop->lane != PS_NO_LANE)
        return (outlet){hop->occupy_ns, hop->latency_ns, hop->lane, pipeline->stage[to].device};
    return (outlet){.lane = pipeline->num_lanes + source, .device = source};
}

// Cells have a row before the first stage and one after the last, which take the results that nobody needs.
static void set_stages(ps_arena *arena, const ps_pipeline *pipeline, simulation *sim)
{
    int32_t last = pipeline->num_stages - 1;
    bool routed = pipeline->num_routes > 0; // then its hops are those of set_legs()
    int64_t row = pipeline->num_microbatches;
    int64_t count = row * (pipeline->num_stages + 2);
    arrivals *cells = ps_new_raw(arena, arrivals, count);
    memset(cells, NOT_YET, (size_t)count * sizeof *cells);
    sim->stage = ps_new_raw(arena, sim_stage, last + 1);
    for (int32_t s = 0; s <= last; s++) {
        const ps_hop *forward = !routed && s < last ? &pipeline->forward_hop[s] : NULL;
        const ps_hop *backward = !routed && s > 0 ? &pipeline->backward_hop[s - 1] : NULL;
        sim_stage *stage = &sim->stage[s];
        stage->cells = cells + row * (s + 1);
        memcpy(stage->duration_ns, pipeline->stage[s].duration_ns, sizeof stage->duration_ns);
        stage->forward = outlet_of(pipeline, forward, s, s + 1);
        stage->backward = outlet_of(pipeline, backward, s, s - 1);
        stage->device = pipeline->stage[s].device;
    }
}

// The first stage's input and, once its F has run, the last one's gradient are there from the start.
static void set_ends(const ps_pipeline *pipeline, simulation *sim)
{
    for (int32_t microbatch = 0; microbatch < pipeline->num_microbatches; microbatch++) {
        ps_route route = ps_pipeline_route(pipeline, pipeline->num_routes > 0 ? pipeline->route_of[microbatch] : 0);
        sim->stage[ps_route_stage(&route, 0)].cells[microbatch].input = 0;
        sim->stage[ps_route_stage(&route, route.num_stops - 1)].cells[microbatch].gradient = 0;
    }
}

// What follows the last stop and what comes before the first are the rows that nobody needs.
static void set_legs(ps_arena *arena, const ps_pipeline *pipeline, simulation *sim)
{
    if (pipeline->num_routes == 0)
        return;
    int32_t stages = pipeline->num_stages;
    int64_t row = pipeline->num_microbatches;
    ps_leg_table table = ps_leg_table_of(arena, pipeline);
    sim->route_of = pipeline->route_of;
    sim->leg = ps_new(arena, sim_leg, (int64_t)pipeline->num_routes * stages);
    for (int64_t i = 0; i < (int64_t)pipeline->num_routes * stages; i++) {
        const ps_leg *leg = &table.leg[i];
        int32_t stage = (int32_t)(i % stages);
        if (!leg->visited)
            continue;
        int32_t next = leg->next == PS_NO_STAGE ? stages : leg->next;
        sim->leg[i] = (sim_leg){.forward = outlet_of(pipeline, leg->forward_hop, stage, leg->next),
                                .backward = outlet_of(pipeline, leg->backward_hop, stage, leg->previous),
                                .to_next = row * (next - stage),
                                .to_previous = row * (leg->previous - stage)};
    }
}

static inline void send(simulation *sim, const outlet *to, int64_t *place, int64_t sent)
{
    int64_t *lane_free = &sim->lane_free[to->lane];
    int64_t passed = (sent > *lane_free ? sent : *lane_free) + to->occupy_ns;
    *lane_free = passed;
    *place = passed + to->latency_ns;
    sim_device *receiver = &sim->device[to->device];
    if (receiver->waits_for == place) {
        receiver->waits_for = NULL;
        sim->ready[sim->num_ready++] = to->device;
    }
}

static inline void pass_on(simulation *sim, ps_op op, arrivals *cell, int64_t sent, bool routed)
{
    int64_t row = sim->num_microbatches;
    if (op.kind == PS_OP_BACKWARD_WEIGHT)
        return;
    bool forward = op.kind == PS_OP_FORWARD;
    if (!routed) {
        const sim_stage *stage = &sim->stage[op.stage];
        if (forward)
            send(sim, &stage->forward, &cell[row].input, sent);
        else
            send(sim, &stage->backward, &cell[-row].gradient, sent);
        return;
    }
    const sim_leg *leg = &sim->leg[(int64_t)sim->route_of[op.microbatch] * sim->num_stages + op.stage];
    if (forward)
        send(sim, &leg->forward, &cell[leg->to_next].input, sent);
    else
        send(sim, &leg->backward, &cell[leg->to_previous].gradient, sent);
}

// Run a device from where it stands until it has to wait. The first op that is impossible for any reason stops it.
// Cells that a route leaves out get no input, so an op there is one. `routed` is a constant in both callers: pipelines
// without routes pay nothing for them.
static inline __attribute__((always_inline)) void run_device(simulation *sim, int32_t device, bool routed)
{
    sim_device *state = &sim->device[device];
    const ps_op *op = state->next;
    const ps_op *end = state->end;
    int64_t row = sim->num_microbatches;
    int64_t clock = state->clock;
    int64_t *start_ns = sim->start_ns + (op - sim->first_op);
    int64_t *end_ns = sim->end_ns + (op - sim->first_op);

    for (; op < end; op++) {
        if (op->stage >= sim->num_stages || (uint32_t)op->microbatch >= (uint32_t)row || op->kind >= PS_OP_KINDS)
            break;
        const sim_stage *stage = &sim->stage[op->stage];
        arrivals *cell = &stage->cells[op->microbatch];
        if (stage->device != device)
            break;
        int64_t there = 0;
        if (op->kind == PS_OP_BACKWARD_WEIGHT) {
            if (cell->gradient != SPLIT)
                break;
            cell->gradient = TAKEN;
        } else {
            bool is_forward = op->kind == PS_OP_FORWARD;
            int64_t *place = is_forward ? &cell->input : &cell->gradient;
            there = *place;
            if (there < 0 || (!is_forward && cell->input != TAKEN)) {
                state->waits_for = there == NOT_YET ? place : NULL;
                break;
            }
            *place = op->kind == PS_OP_BACKWARD_INPUT ? SPLIT : TAKEN;
        }
        int64_t begin = there > clock ? there : clock;
        clock = begin + stage->duration_ns[op->kind];
        *start_ns++ = begin;
        *end_ns++ = clock;
        pass_on(sim, *op, cell, clock, routed);
    }
    state->next = op;
    state->clock = clock;
}

static void run_in_order(simulation *sim)
{
    while (sim->num_ready > 0)
        run_device(sim, sim->ready[--sim->num_ready], false);
}

// Out of line, so that it does not take registers from the other.
static __attribute__((noinline)) void run_on_routes(simulation *sim)
{
    while (sim->num_ready > 0)
        run_device(sim, sim->ready[--sim->num_ready], true);
}

// A lane is a queue in its source's program order, so it has one source.
static ps_code check_lanes(ps_arena *arena, const ps_pipeline *pipeline, ps_status *status)
{
    int32_t *source = ps_new_raw(arena, int32_t, pipeline->num_lanes + 1);
    for (int32_t lane = 0; lane < pipeline->num_lanes; lane++)
        source[lane] = -1;
    for (int32_t r = 0; r < ps_pipeline_num_routes(pipeline); r++) {
        ps_route route = ps_pipeline_route(pipeline, r);
        for (int32_t hop = 0; hop < 2 * (route.num_stops - 1); hop++) {
            int32_t lane = hop % 2 ? route.backward_hop[hop / 2].lane : route.forward_hop[hop / 2].lane;
            int32_t from = pipeline->stage[ps_route_stage(&route, hop / 2 + hop % 2)].device;
            if (lane == PS_NO_LANE)
                continue;
            if (source[lane] >= 0 && source[lane] != from)
                return ps_fail(status, PS_BAD_INPUT, "pipeline-shape", "devices %d and %d both send on lane %d",
                               (int)source[lane], (int)from, (int)lane);
            source[lane] = from;
        }
    }
    return PS_OK;
}

static void set_devices(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule, simulation *sim)
{
    int32_t devices = schedule->num_devices;
    sim->device = ps_new(arena, sim_device, devices);
    sim->lane_free = ps_new(arena, int64_t, (int64_t)pipeline->num_lanes + devices);
    sim->ready = ps_new_raw(arena, int32_t, devices);
    for (int32_t device = devices - 1; device >= 0; device--) {
        sim->device[device].next = schedule->op + schedule->first[device];
        sim->device[device].end = schedule->op + schedule->first[device + 1];
        sim->ready[sim->num_ready++] = device;
    }
}

static bool all_done(const simulation *sim, int32_t devices)
{
    for (int32_t device = 0; device < devices; device++)
        if (sim->device[device].next < sim->device[device].end)
            return false;
    return true;
}

static ps_code refuse(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule, const simulation *sim,
                      ps_status *status)
{
    int32_t *next = ps_new_raw(arena, int32_t, schedule->num_devices);
    for (int32_t device = 0; device < schedule->num_devices; device++)
        next[device] = (int32_t)(sim->device[device].next - schedule->op);
    return ps_simulate_refuse(arena, pipeline, schedule, next, status);
}

ps_code ps_simulate(ps_arena *arena, const ps_pipeline *pipeline, const ps_schedule *schedule, ps_timeline *out,
                    ps_status *status)
{
    if (schedule->num_devices != pipeline->num_devices)
        return ps_fail(status, PS_ILLEGAL, "wrong-device", "the schedule is for %d devices, the pipeline has %d",
                       (int)schedule->num_devices, (int)pipeline->num_devices);
    PS_TRY(check_lanes(arena, pipeline, status));
    int64_t ops = schedule->first[schedule->num_devices];
    *out = (ps_timeline){.num_devices = schedule->num_devices,
                         .device = ps_new(arena, ps_device_timeline, schedule->num_devices),
                         .start_ns = ps_new_raw(arena, int64_t, ops),
                         .end_ns = ps_new_raw(arena, int64_t, ops)};
    simulation sim = {.first_op = schedule->op,
                      .start_ns = out->start_ns,
                      .end_ns = out->end_ns,
                      .num_stages = (uint32_t)pipeline->num_stages,
                      .num_microbatches = (uint32_t)pipeline->num_microbatches};
    set_stages(arena, pipeline, &sim);
    set_ends(pipeline, &sim);
    set_legs(arena, pipeline, &sim);
    set_devices(arena, pipeline, schedule, &sim);
    if (sim.route_of)
        run_on_routes(&sim);
    else
        run_in_order(&sim);
    // Every op that ran is a different one; only whole micro-batches make a whole schedule.
    if (!all_done(&sim, schedule->num_devices) ||
        ps_account(pipeline, schedule, out) != ps_pipeline_num_cells(pipeline))
        return refuse(arena, pipeline, schedule, &sim, status);
    return PS_OK;
}
