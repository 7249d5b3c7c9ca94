// SPDX-License-Identifier: Apache-2.0
//
// check_step_timeline.c: a plan that lists when things run lists what ends the step too, each once, at its time.
#include <inttypes.h>

#include "check/check_parts.h"

typedef struct listing {
    ps_check *check;
    const ps_cell_table *table;
    const ps_check_step *step;
    uint8_t *op;    // [ops] its reduction has been listed
    uint8_t *stage; // [num_stages] a bit for each kind listed
    uint8_t *rank;  // [num_devices]
} listing;

// What an entry should say. `mark` NULL: there is nothing of the kind.
typedef struct expected {
    uint8_t *mark;
    int32_t rank;
    int64_t start_ns;
    int64_t end_ns;
} expected;

static expected expect_reduction(const listing *l, int32_t stage, int32_t microbatch)
{
    const ps_plan *plan = l->check->plan;
    bool every = plan->layout.zero == 2;
    bool split = ps_check_is_split(plan->layout.schedule);
    int32_t at = l->step->last_gradient[stage];
    if (plan->stage[stage].grad_sync_ns == 0 || every != (microbatch >= 0) ||
        microbatch >= plan->layout.num_microbatches)
        return (expected){0};
    if (every)
        at = *ps_cell_slot(l->table, (ps_op){.stage = (uint16_t)stage,
                                             .kind = split ? PS_OP_BACKWARD_WEIGHT : PS_OP_BACKWARD,
                                             .microbatch = microbatch});
    return (expected){.mark = &l->op[at],
                      .rank = plan->stage[stage].pp_rank,
                      .start_ns = l->step->reduce_start_ns[at],
                      .end_ns = l->step->reduce_end_ns[at]};
}

static expected expect_of_stage(const listing *l, const ps_step_op *op)
{
    const ps_plan *plan = l->check->plan;
    if (op->stage >= plan->num_stages)
        return (expected){0};
    if (op->kind == PS_STEP_REDUCE_GRAD)
        return expect_reduction(l, op->stage, op->microbatch);
    const ps_plan_stage *stage = &plan->stage[op->stage];
    bool tied = op->kind == PS_STEP_REDUCE_TIED;
    int64_t takes = tied ? stage->tied_sync_ns : stage->param_gather_ns;
    int64_t start = tied ? l->step->tied_start_ns[op->stage] : l->step->gather_start_ns[op->stage];
    return (expected){.mark = takes > 0 ? &l->stage[op->stage] : NULL,
                      .rank = stage->pp_rank,
                      .start_ns = start,
                      .end_ns = start + takes};
}

static expected expect_of_rank(const listing *l, int32_t rank, uint8_t kind)
{
    const ps_plan *plan = l->check->plan;
    bool barrier = plan->inputs.job.optimizer_barrier;
    if (rank < 0 || rank >= plan->num_devices || (kind == PS_STEP_BARRIER && !barrier) ||
        (kind == PS_STEP_VALIDATE && (barrier || plan->num_devices == 1)))
        return (expected){0};
    const ps_check_rank_step *step = &l->step->rank[rank];
    expected out = {.mark = &l->rank[rank], .rank = rank, .start_ns = step->synced_ns, .end_ns = step->validated_ns};
    if (kind == PS_STEP_VALIDATE && rank + 1 < plan->num_devices)
        out.start_ns = l->step->rank[rank + 1].validated_ns;
    if (kind == PS_STEP_OPTIMIZER) {
        out.start_ns = step->steps_ns;
        out.end_ns = step->steps_ns + plan->device[rank].optimizer_ns;
    }
    return out;
}

static void check_entry(const listing *l, int32_t index)
{
    const ps_plan_event *event = &l->check->plan->event[index];
    bool of_stage = event->step.stage >= 0;
    expected should = of_stage ? expect_of_stage(l, &event->step) : expect_of_rank(l, event->pp_rank, event->step.kind);
    uint8_t bit = (uint8_t)(1u << event->step.kind);
    if (!should.mark) {
        ps_check_find(l->check, "timeline-op", PS_AT_1("/timeline/#/cell", index), "the step has no such end");
        return;
    }
    if (*should.mark & bit) {
        ps_check_find(l->check, "timeline-twice", PS_AT_1("/timeline/#", index), "this is listed twice");
        return;
    }
    *should.mark |= bit;
    ps_check_equal(l->check, "timeline-device", PS_AT_1("/timeline/#/pp_rank", index), event->pp_rank, should.rank);
    ps_check_equal_ns(l->check, "timeline-time", PS_AT_1("/timeline/#/start_ms", index), event->start_ns,
                      should.start_ns);
    ps_check_equal_ns(l->check, "timeline-time", PS_AT_1("/timeline/#/end_ms", index), event->end_ns, should.end_ns);
}

static void expect_listed(const listing *l, expected should, uint8_t kind, const char *what, int32_t which)
{
    if (should.mark && !(*should.mark & (1u << kind)))
        ps_check_find(
            l->check, "timeline-missing", PS_AT("/timeline"), "%s of %s %" PRId32 " is not listed", what,
            kind == PS_STEP_BARRIER || kind == PS_STEP_VALIDATE || kind == PS_STEP_OPTIMIZER ? "rank" : "stage", which);
}

static void find_missing(const listing *l)
{
    const ps_plan *plan = l->check->plan;
    int32_t reductions = plan->layout.zero == 2 ? plan->layout.num_microbatches : 1;
    for (int32_t stage = 0; stage < plan->num_stages; stage++) {
        for (int32_t count = 0; count < reductions; count++)
            expect_listed(l, expect_reduction(l, stage, plan->layout.zero == 2 ? count : -1), PS_STEP_REDUCE_GRAD,
                          "REDUCE_GRAD", stage);
        ps_step_op op = {.stage = stage, .kind = PS_STEP_REDUCE_TIED};
        expect_listed(l, expect_of_stage(l, &op), PS_STEP_REDUCE_TIED, "REDUCE_TIED", stage);
        op.kind = PS_STEP_GATHER;
        expect_listed(l, expect_of_stage(l, &op), PS_STEP_GATHER, "GATHER", stage);
    }
    for (int32_t rank = 0; rank < plan->num_devices; rank++) {
        expect_listed(l, expect_of_rank(l, rank, PS_STEP_BARRIER), PS_STEP_BARRIER, "BARRIER", rank);
        expect_listed(l, expect_of_rank(l, rank, PS_STEP_VALIDATE), PS_STEP_VALIDATE, "VALIDATE", rank);
        expect_listed(l, expect_of_rank(l, rank, PS_STEP_OPTIMIZER), PS_STEP_OPTIMIZER, "OPTIMIZER", rank);
    }
}

void ps_check_step_timeline(ps_check *check, const ps_cell_table *table, const ps_check_step *step)
{
    const ps_plan *plan = check->plan;
    if (!plan->has_timeline)
        return;
    listing l = {.check = check,
                 .table = table,
                 .step = step,
                 .op = ps_new(check->arena, uint8_t, plan->schedule.first[plan->num_devices]),
                 .stage = ps_new(check->arena, uint8_t, plan->num_stages),
                 .rank = ps_new(check->arena, uint8_t, plan->num_devices)};
    for (int32_t index = 0; index < plan->num_events; index++)
        if (!plan->event[index].is_transfer && plan->event[index].ends_step)
            check_entry(&l, index);
    find_missing(&l);
}
