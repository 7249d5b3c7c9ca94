// SPDX-License-Identifier: Apache-2.0
//
// check_dual.c: plans that name dualpipe or dualpipev run its phases.
//
// The definition (DeepSeek-AI 2024; README of DualPipe) as a table: a rank goes through eight phases, each a string of
// ops that it repeats. 'a' is F of chunk 0, 'b' of chunk 1; 'i' and 'j' are I of chunk 0 and 1; 'w' is W of the oldest
// I that has none yet. Micro-batches of every chunk come in order. Ranks are counted along the V; in dualpipe both
// halves of the pipeline run such a V, face to face, with the two chunks of different ways.
#include <inttypes.h>

#include "check/check_parts.h"

typedef struct dual_rank {
    int64_t later;        // ranks of the V behind it
    int64_t rank;         // its place
    int64_t microbatches; // of a chunk
    int32_t stage[2];
    int32_t first[2]; // first micro-batch
} dual_rank;

typedef struct dual_phase {
    int64_t times;
    const char *ops;
} dual_phase;

static dual_rank rank_of(const ps_plan *plan, int32_t device)
{
    int32_t p = plan->layout.pp;
    int32_t m = plan->layout.num_microbatches;
    if (plan->layout.schedule == PS_SCHEDULE_DUALPIPEV)
        return (dual_rank){
            .later = p - 1 - device, .rank = device, .microbatches = m, .stage = {device, 2 * p - 1 - device}};
    // Micro-batches from 0 on come in at rank 0 and pass stage `device` here, the others at rank p - 1.
    int32_t from_end = p - 1 - device;
    int32_t other = p + from_end;
    bool near_zero = device < from_end;
    int32_t place = near_zero ? device : from_end;
    return (dual_rank){.later = p / 2 - 1 - place,
                       .rank = place,
                       .microbatches = m / 2,
                       .stage = {near_zero ? device : other, near_zero ? other : device},
                       .first = {near_zero ? 0 : m / 2, near_zero ? m / 2 : 0}};
}

// Where the walk through one rank's list stands.
typedef struct walk {
    ps_check *check;
    int32_t device;
    int32_t at;       // next cell
    int32_t oldest;   // first cell that may hold an I without W
    int64_t count[4]; // of 'a', 'b', 'i', 'j' so far
    const dual_rank *rank;
} walk;

static ps_op expected(walk *w, char letter)
{
    const ps_op *op = w->check->plan->schedule.op;
    if (letter == 'w') { // every cell before `at` is as expected, so this I is there
        while (op[w->oldest].kind != PS_OP_BACKWARD_INPUT)
            w->oldest++;
        ps_op weight = op[w->oldest++];
        weight.kind = PS_OP_BACKWARD_WEIGHT;
        return weight;
    }
    int32_t chunk = letter == 'b' || letter == 'j';
    bool forward = letter == 'a' || letter == 'b';
    int64_t turn = w->count[(forward ? 0 : 2) + chunk]++;
    return (ps_op){.stage = (uint16_t)w->rank->stage[chunk],
                   .kind = forward ? PS_OP_FORWARD : PS_OP_BACKWARD_INPUT,
                   .microbatch = (int32_t)(w->rank->first[chunk] + turn)};
}

// False where the plan has another op, or no more.
static bool follow(walk *w, dual_phase phase)
{
    static const char name[] = {'F', 'B', 'I', 'W'};
    const ps_plan *plan = w->check->plan;
    for (int64_t turn = 0; turn < phase.times; turn++) {
        for (const char *letter = phase.ops; *letter; letter++) {
            if (w->at == plan->schedule.first[w->device + 1])
                return false;
            ps_op should = expected(w, *letter);
            ps_op says = plan->schedule.op[w->at++];
            if (says.stage == should.stage && says.kind == should.kind && says.microbatch == should.microbatch)
                continue;
            ps_check_find(w->check, "schedule-order",
                          PS_AT_2("/schedule/cells/#/#", w->device, w->at - 1 - plan->schedule.first[w->device]),
                          "plan says %u%c%" PRId32 ", the schedule that it names has %u%c%" PRId32,
                          (unsigned)says.stage, name[says.kind], says.microbatch, (unsigned)should.stage,
                          name[should.kind], should.microbatch);
            return false;
        }
    }
    return true;
}

static void check_rank(ps_check *check, int32_t device)
{
    dual_rank r = rank_of(check->plan, device);
    int64_t own = r.rank + 1;
    // Of the 2 * own backwards that come last, chunk 1 and 0 in turn, half keep their W's back.
    const dual_phase phases[] = {
        {2 * r.later, "a"}, {own, "ab"},       {r.later, "jwb"}, {r.microbatches - 2 * r.later - own, "ajwbiw"},
        {r.later, "jwbiw"}, {own / 2, "jwiw"}, {own % 2, "jwi"}, {own / 2, "ji"},
        {r.later, "wi"},    {own, "w"}};
    walk w = {.check = check, .device = device, .rank = &r, .at = check->plan->schedule.first[device]};
    w.oldest = w.at;
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
        if (!follow(&w, phases[i]))
            return;
}

void ps_check_dual(ps_check *check)
{
    const ps_layout *layout = &check->plan->layout;
    bool dual = layout->schedule == PS_SCHEDULE_DUALPIPE;
    bool even = layout->pp % 2 == 0 && layout->num_microbatches % 2 == 0;
    if ((dual && !even) || layout->num_microbatches < 2 * (int64_t)layout->pp) {
        ps_check_find(check, "schedule-microbatches", PS_AT("/layout/num_microbatches"),
                      "%" PRId32 " micro-batches on %" PRId32 " ranks: this schedule takes at least two a rank%s",
                      layout->num_microbatches, layout->pp, dual ? ", and an even number of both" : "");
        return;
    }
    for (int32_t device = 0; device < check->plan->num_devices; device++)
        check_rank(check, device);
}
