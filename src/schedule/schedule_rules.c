// SPDX-License-Identifier: Apache-2.0
//
// schedule_rules.c: what the rules of a file make of a pipeline.
//
// Every rank is written by itself from p, m, r and the stages it has; nothing here waits for another rank. The chunks
// of a rank are its stages in ascending order. Every op is written once; an order in which ops wait for each other is
// the simulator's to refuse.
#include "schedule/rule_file.h"

#include <inttypes.h>

#include "base/text.h"
#include "pipesched/limits.h"

// Where a rank is in its list of forwards, backwards or weights: all of a group through one chunk, then the next.
typedef struct walk {
    const int32_t *chunk; // stages in the order visited up
    int32_t chunks;
    int32_t microbatches;
    int32_t group;
    bool down;
    int32_t visited; // chunks that the group is done with
    int32_t base;    // first micro-batch of the group
    int32_t in_group;
    int64_t left;
} walk;

enum { FORWARDS, BACKWARDS, WEIGHTS, RECOMPUTES, WALKS }; // as the counts in ps_rule_variable

typedef struct writer {
    const ps_rules *rules;
    int64_t variable[PS_RULE_VARIABLES];
    walk walk[WALKS];
    ps_op *op;
} writer;

static int walk_of(uint8_t kind)
{
    switch ((ps_op_kind)kind) {
    case PS_OP_FORWARD: return FORWARDS;
    case PS_OP_BACKWARD_WEIGHT: return WEIGHTS;
    case PS_OP_RECOMPUTE: return RECOMPUTES;
    default: return BACKWARDS;
    }
}

// The list is not used up.
static void put(writer *w, uint8_t kind)
{
    walk *list = &w->walk[walk_of(kind)];
    int32_t in_base = list->microbatches - list->base;
    int32_t group = list->group < in_base ? list->group : in_base;
    int32_t chunk = list->down ? list->chunks - 1 - list->visited : list->visited;
    *w->op++ = (ps_op){.microbatch = list->base + list->in_group, .stage = (uint16_t)list->chunk[chunk], .kind = kind};
    w->variable[PS_RULE_FORWARDS + walk_of(kind)]++;
    list->left--;
    if (++list->in_group < group)
        return;
    list->in_group = 0;
    if (++list->visited < list->chunks)
        return;
    list->visited = 0;
    list->base += group;
}

// R's are in the order of the backwards, so a backward comes after its own where more R's than backwards are written.
static ps_code check_recompute(const writer *w, const ps_rule_round *round, ps_status *status)
{
    int64_t backwards = w->variable[PS_RULE_BACKWARDS];
    if (!w->rules->recomputes || w->variable[PS_RULE_RECOMPUTES] > backwards)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "rules-recompute",
            "backward %" PRId64 " of rank %" PRId64 ", in round %" PRId64 ", stands before its R", backwards,
            w->variable[PS_RULE_RANK], w->variable[PS_RULE_ROUND]);
    ps_rule_fail_at(&round->place, round->place.at, status);
    return ps_fail_hint(status, "where some round has R, every backward has one before it");
}

// Ops whose list is used up are passed over, and so are those whose condition is 0.
static ps_code write_round(writer *w, const ps_rule_round *round, ps_status *status)
{
    const ps_op *start = w->op;
    for (int32_t index = 0; index < round->count; index++) {
        const ps_rule_op *op = &round->op[index];
        int64_t wanted = 1;
        if (w->walk[walk_of(op->kind)].left == 0)
            continue;
        if (op->when.count > 0)
            PS_TRY(ps_rule_expression_compute(&op->when, w->variable, &wanted, status));
        if (wanted == 0)
            continue;
        if (walk_of(op->kind) == BACKWARDS)
            PS_TRY(check_recompute(w, round, status));
        put(w, op->kind);
    }
    if (w->op > start) {
        w->variable[PS_RULE_ROUND]++;
        return PS_OK;
    }
    ps_fail(status, PS_BAD_INPUT, "rules-stall",
            "round %" PRId64 " of rank %" PRId64 " has no op, so that %" PRId64 " forwards and %" PRId64
            " backwards are left for ever",
            w->variable[PS_RULE_ROUND], w->variable[PS_RULE_RANK], w->walk[FORWARDS].left, w->walk[BACKWARDS].left);
    return ps_rule_fail_at(&round->place, round->place.at, status);
}

static ps_code write_rank(writer *w, ps_status *status)
{
    for (int64_t index = 0; index < w->variable[PS_RULE_WARMUP]; index++)
        put(w, PS_OP_FORWARD);
    while (w->walk[FORWARDS].left > 0)
        PS_TRY(write_round(w, &w->rules->steady, status));
    while (w->walk[BACKWARDS].left > 0)
        PS_TRY(write_round(w, &w->rules->drain, status));
    while (w->rules->splits_backward && w->walk[WEIGHTS].left > 0)
        put(w, PS_OP_BACKWARD_WEIGHT);
    return PS_OK;
}

static ps_code check_requires(const writer *w, ps_status *status)
{
    for (int32_t index = 0; index < w->rules->num_requires; index++) {
        const ps_rule_require *require = &w->rules->require[index];
        int64_t met;
        PS_TRY(ps_rule_expression_compute(&require->expression, w->variable, &met, status));
        if (met != 0)
            continue;
        ps_fail(status, PS_ILLEGAL, "rules-require",
                "the rules require %.200s, not so with p = %" PRId64 ", m = %" PRId64 ", v = %" PRId64
                " on rank %" PRId64,
                require->text, w->variable[PS_RULE_RANKS], w->variable[PS_RULE_MICROBATCHES],
                w->variable[PS_RULE_CHUNKS], w->variable[PS_RULE_RANK]);
        return ps_fail_at(status, require->expression.source, require->expression.line, require->column, NULL);
    }
    return PS_OK;
}

// Warm-up and group of a rank, and its walks.
static ps_code begin_rank(writer *w, const int32_t *chunk, ps_status *status)
{
    const ps_rules *rules = w->rules;
    int64_t microbatches = w->variable[PS_RULE_MICROBATCHES];
    int64_t total = microbatches * w->variable[PS_RULE_CHUNKS];
    int64_t group = microbatches;
    int64_t warmup;
    PS_TRY(check_requires(w, status));
    if (rules->group.count > 0)
        PS_TRY(ps_rule_expression_compute(&rules->group, w->variable, &group, status));
    if (group < 1) {
        ps_fail(status, PS_BAD_INPUT, "rules-group", "the group of rank %" PRId64 " is %" PRId64 ", at least 1",
                w->variable[PS_RULE_RANK], group);
        return ps_rule_fail_at(&rules->group_place, rules->group_place.at, status);
    }
    PS_TRY(ps_rule_expression_compute(&rules->warmup, w->variable, &warmup, status));
    if (warmup < 0) {
        ps_fail(status, PS_BAD_INPUT, "rules-warmup", "the warm-up of rank %" PRId64 " is %" PRId64 ", at least 0",
                w->variable[PS_RULE_RANK], warmup);
        return ps_rule_fail_at(&rules->warmup_place, rules->warmup_place.at, status);
    }
    w->variable[PS_RULE_WARMUP] = warmup < total ? warmup : total;
    for (int index = 0; index < WALKS; index++)
        w->walk[index] = (walk){.chunk = chunk,
                                .chunks = (int32_t)w->variable[PS_RULE_CHUNKS],
                                .microbatches = (int32_t)microbatches,
                                .group = (int32_t)(group < microbatches ? group : microbatches),
                                .down = index == FORWARDS ? rules->forward_down : !rules->backward_up,
                                .left = total};
    return PS_OK;
}

// Stages by rank: those of rank r are stage[first[r]] up to stage[first[r + 1]], ascending.
static void sort_stages(ps_arena *arena, const ps_pipeline *pipeline, int32_t **first, int32_t **stage)
{
    int32_t *next = ps_new(arena, int32_t, pipeline->num_devices + 2);
    *stage = ps_new_raw(arena, int32_t, pipeline->num_stages);
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        next[pipeline->stage[s].device + 2]++;
    for (int32_t rank = 0; rank < pipeline->num_devices; rank++)
        next[rank + 2] += next[rank + 1];
    for (int32_t s = 0; s < pipeline->num_stages; s++)
        (*stage)[next[pipeline->stage[s].device + 1]++] = s;
    *first = next;
}

ps_code ps_rules_generate(ps_arena *arena, const ps_rules *rules, const ps_pipeline *pipeline, ps_schedule *out,
                          ps_status *status)
{
    int32_t *first;
    int32_t *stage;
    int64_t ops_per_stage =
        ((rules->splits_backward ? 3 : 2) + rules->recomputes) * (int64_t)pipeline->num_microbatches;
    if (ops_per_stage * pipeline->num_stages > PS_MAX_OPS)
        return ps_fail(status, PS_BAD_INPUT, "too-many-ops",
                       "%d stages and %d micro-batches make %" PRId64 " ops, limit %" PRId64, (int)pipeline->num_stages,
                       (int)pipeline->num_microbatches, ops_per_stage * pipeline->num_stages, PS_MAX_OPS);
    sort_stages(arena, pipeline, &first, &stage);
    out->num_devices = pipeline->num_devices;
    out->first = ps_new(arena, int32_t, pipeline->num_devices + 1);
    out->op = ps_new_raw(arena, ps_op, ops_per_stage * pipeline->num_stages);
    writer w = {.rules = rules, .op = out->op};
    for (int32_t rank = 0; rank < pipeline->num_devices; rank++) {
        for (int index = 0; index < PS_RULE_VARIABLES; index++)
            w.variable[index] = 0;
        w.variable[PS_RULE_RANKS] = pipeline->num_devices;
        w.variable[PS_RULE_MICROBATCHES] = pipeline->num_microbatches;
        w.variable[PS_RULE_CHUNKS] = first[rank + 1] - first[rank];
        w.variable[PS_RULE_RANK] = rank;
        w.variable[PS_RULE_STAGES] = pipeline->num_stages;
        PS_TRY(begin_rank(&w, stage + first[rank], status));
        PS_TRY(write_rank(&w, status));
        out->first[rank + 1] = (int32_t)(w.op - out->op);
    }
    return PS_OK;
}

static ps_code place_given(ps_arena *arena, const ps_rules *rules, ps_schedule_shape *shape, ps_status *status)
{
    bool *used = ps_new(arena, bool, shape->num_devices);
    for (int32_t stage = 0; stage < rules->num_given; stage++) {
        int32_t rank = rules->given_device[stage];
        if (rank < shape->num_devices) {
            used[rank] = true;
            continue;
        }
        ps_fail(status, PS_BAD_INPUT, "rules-placement", "stage %d is on rank %d, and there %s %d rank%s", (int)stage,
                (int)rank, shape->num_devices == 1 ? "is" : "are", (int)shape->num_devices,
                ps_plural(shape->num_devices));
        return ps_rule_fail_at(&rules->placement_place, rules->placement_place.at, status);
    }
    for (int32_t rank = 0; rank < shape->num_devices; rank++) {
        if (used[rank])
            continue;
        ps_fail(status, PS_BAD_INPUT, "rules-placement", "no stage is on rank %d of %d", (int)rank,
                (int)shape->num_devices);
        return ps_rule_fail_at(&rules->placement_place, rules->placement_place.at, status);
    }
    shape->num_stages = rules->num_given;
    return PS_OK;
}

ps_code ps_rules_place(ps_arena *arena, const ps_rules *rules, ps_schedule_shape *shape, const int32_t **device,
                       ps_status *status)
{
    *device = rules->given_device;
    if (rules->placement == PS_RULE_GIVEN)
        return place_given(arena, rules, shape, status);
    ps_placement placement = rules->placement == PS_RULE_V ? PS_PLACEMENT_V : PS_PLACEMENT_LOOP;
    int32_t *loop = ps_new_raw(arena, int32_t, shape->num_stages);
    for (int32_t stage = 0; stage < shape->num_stages; stage++)
        loop[stage] = ps_schedule_device(placement, *shape, stage);
    *device = loop;
    return PS_OK;
}
