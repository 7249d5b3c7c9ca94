// SPDX-License-Identifier: Apache-2.0
//
// check_family.c: a plan that names a schedule runs that schedule, op by op.
//
// The definitions (Huang et al. 2019; Narayanan et al. 2021; Lamy-Poirier 2023; Qi et al. 2024; PyTorch's
// InterleavedZeroBubble) as closed forms: which op stands at a place of a rank's list, so that nothing is generated and
// nothing is kept. Of V schedules only those of check_dual.c have one that covers every number of micro-batches, h-1f1b
// is the user's own, and zb is whatever a search found: that of the others is any order that holds otherwise.
#include <inttypes.h>

#include "check/check_parts.h"

// One rank of one family. n is the forwards of the rank: micro-batches times chunks.
typedef struct family_rank {
    int64_t devices;
    int64_t chunks;
    int64_t rank;
    int64_t group; // micro-batches that go through a chunk together
    int64_t n;
    int64_t warmup;  // forwards before the first backward, beyond the one that precedes it
    int64_t delayed; // split backwards: W's that wait until the end
} family_rank;

static family_rank family_of(const ps_layout *layout, int32_t rank)
{
    int64_t to_last = layout->pp - 1 - rank;
    int64_t microbatches = layout->num_microbatches;
    int64_t more_chunks = layout->vp - 1;
    family_rank family = {.devices = layout->pp,
                          .chunks = layout->vp,
                          .rank = rank,
                          .group = layout->pp,
                          .n = microbatches * layout->vp,
                          .warmup = to_last};
    if (layout->schedule == PS_SCHEDULE_INTERLEAVED_ZB) // groups of equal size, of p or more if there are so many
        family.group = microbatches < layout->pp ? microbatches : microbatches / (microbatches / layout->pp);
    if (layout->schedule == PS_SCHEDULE_GPIPE || layout->schedule == PS_SCHEDULE_LOOPED_BFS)
        family.warmup = family.n;
    else if (layout->schedule == PS_SCHEDULE_INTERLEAVED)
        family.warmup = 2 * to_last + more_chunks * family.group;
    else if (layout->schedule == PS_SCHEDULE_INTERLEAVED_ZB)
        family.warmup = to_last + more_chunks * family.group;
    else if (layout->schedule == PS_SCHEDULE_ZB_H2)
        family.warmup = 2 * to_last;
    if (family.warmup > family.n)
        family.warmup = family.n;
    // W's begin with the round that, counted with the forwards already ahead, is as deep as the first rank's warm-up.
    family.delayed = (layout->schedule == PS_SCHEDULE_ZB_H2 ? 2 : 1) * ((int64_t)layout->pp - 1) - family.warmup;
    if (layout->schedule == PS_SCHEDULE_INTERLEAVED_ZB)
        family.delayed = rank;
    if (family.delayed > family.n)
        family.delayed = family.n;
    return family;
}

// The k-th forward, or backward, of a rank: chunk by chunk within groups of micro-batches. With one chunk that is
// micro-batch k.
static ps_op turn(const family_rank *family, ps_op_kind kind, int64_t k)
{
    int64_t per_group = family->group * family->chunks;
    if (per_group < 1) // check_shape.c has refused such degrees
        return (ps_op){0};
    int64_t chunk = k % per_group / family->group;
    int64_t microbatch = k / per_group * family->group + k % family->group;
    if (kind != PS_OP_FORWARD)
        chunk = family->chunks - 1 - chunk;
    return (ps_op){.stage = (uint16_t)(chunk * family->devices + family->rank),
                   .kind = (uint8_t)kind,
                   .microbatch = (int32_t)microbatch};
}

// Breadth first: all forwards, chunk by chunk, then all backwards in exactly the reverse order.
static ps_op breadth_first_at(const family_rank *family, int64_t place)
{
    bool forward = place < family->n;
    int64_t k = forward ? place : 2 * family->n - 1 - place;
    int64_t microbatches = family->n / family->chunks;
    return (ps_op){.stage = (uint16_t)(k / microbatches * family->devices + family->rank),
                   .kind = forward ? PS_OP_FORWARD : PS_OP_BACKWARD,
                   .microbatch = (int32_t)(k % microbatches)};
}

// Warm-up forwards; pairs of forward and backward; the other backwards.
static ps_op fused_at(const family_rank *family, int64_t place)
{
    int64_t pairs = family->n - family->warmup;
    if (place < family->warmup)
        return turn(family, PS_OP_FORWARD, place);
    int64_t after = place - family->warmup;
    if (after >= 2 * pairs)
        return turn(family, PS_OP_BACKWARD, after - pairs);
    return turn(family, after % 2 == 0 ? PS_OP_FORWARD : PS_OP_BACKWARD,
                after / 2 + (after % 2 == 0 ? family->warmup : 0));
}

// All forwards, then R and B of each micro-batch.
static ps_op recomputed_at(const family_rank *family, int64_t place)
{
    int64_t after = place - family->n;
    if (after < 0)
        return turn(family, PS_OP_FORWARD, place);
    return turn(family, after % 2 == 0 ? PS_OP_RECOMPUTE : PS_OP_BACKWARD, after / 2);
}

// After the warm-up round k is F if any is left, I of micro-batch k, and from k = delayed on one W; the delayed W's
// come last. Rounds are therefore of four lengths in at most three stretches.
static ps_op split_at(const family_rank *family, int64_t place)
{
    int64_t k = place - family->warmup; // ops into the rounds
    int64_t with_forward = family->n - family->warmup;
    int64_t shorter = with_forward < family->delayed ? with_forward : family->delayed;
    int64_t longer = with_forward < family->delayed ? family->delayed : with_forward;
    if (k < 0)
        return turn(family, PS_OP_FORWARD, place);
    int64_t round;
    int64_t within;
    if (k < 2 * shorter) { // F I
        round = k / 2;
        within = k % 2;
    } else {
        k -= 2 * shorter;
        bool both = with_forward > family->delayed; // F I W, else I alone
        int64_t length = both ? 3 : 1;
        if (k < length * (longer - shorter)) {
            round = shorter + k / length;
            within = both ? k % 3 : 1;
        } else { // I W
            k -= length * (longer - shorter);
            round = longer + k / 2;
            within = 1 + k % 2;
        }
    }
    if (round >= family->n) // delayed W's
        return turn(family, PS_OP_BACKWARD_WEIGHT, family->n - family->delayed + (k - 2 * (family->n - longer)));
    if (within == 0)
        return turn(family, PS_OP_FORWARD, family->warmup + round);
    return within == 1 ? turn(family, PS_OP_BACKWARD_INPUT, round)
                       : turn(family, PS_OP_BACKWARD_WEIGHT, round - family->delayed);
}

// Chunks a device that a schedule puts there: at least, and at most (0: any number).
static bool check_chunks(ps_check *check, int32_t least, int32_t most)
{
    int32_t vp = check->plan->layout.vp;
    if (vp >= least && (most == 0 || vp <= most))
        return true;
    if (most == 1)
        ps_check_find(check, "schedule-chunks", PS_AT("/layout/vp"),
                      "this schedule puts one stage on a device, plan says %" PRId32, vp);
    else
        ps_check_find(check, "schedule-chunks", PS_AT("/layout/vp"),
                      "this schedule puts %s%" PRId32 " stages on a device, plan says %" PRId32,
                      most == 0 ? "at least " : "", least, vp);
    return false;
}

static bool check_groups(ps_check *check)
{
    const ps_layout *layout = &check->plan->layout;
    bool zero_bubble = layout->schedule == PS_SCHEDULE_INTERLEAVED_ZB;
    int32_t whole = layout->num_microbatches / layout->pp;
    int32_t unit = !zero_bubble ? layout->pp : whole > 1 ? whole : 1;
    if (layout->num_microbatches % unit == 0)
        return true;
    ps_check_find(check, "schedule-chunks", PS_AT("/layout"),
                  "interleaved schedules take groups of equal size: %" PRId32 " micro-batches are not a multiple of "
                  "%" PRId32,
                  layout->num_microbatches, unit);
    return false;
}

static bool check_legal(ps_check *check)
{
    const ps_layout *layout = &check->plan->layout;
    switch (layout->schedule) {
    case PS_SCHEDULE_INTERLEAVED:
    case PS_SCHEDULE_INTERLEAVED_ZB: return check_chunks(check, 2, 0) && check_groups(check);
    case PS_SCHEDULE_LOOPED_BFS:
    case PS_SCHEDULE_ZB: return true;
    case PS_SCHEDULE_ZB_V:
    case PS_SCHEDULE_V_HALF:
    case PS_SCHEDULE_V_MIN:
    case PS_SCHEDULE_DUALPIPEV:
    case PS_SCHEDULE_DUALPIPE: return check_chunks(check, 2, 2);
    case PS_SCHEDULE_GPIPE:
    case PS_SCHEDULE_1F1B:
    case PS_SCHEDULE_ZB_H1:
    case PS_SCHEDULE_ZB_H2:
    case PS_SCHEDULE_H_1F1B:
    case PS_SCHEDULE_GPIPE_RECOMPUTE: break;
    }
    return check_chunks(check, 1, 1);
}

void ps_check_family(ps_check *check)
{
    static const char letter[] = {'F', 'B', 'I', 'W', 'R'};
    const ps_plan *plan = check->plan;
    ps_schedule_kind kind = plan->layout.schedule;
    if (!check_legal(check) || kind == PS_SCHEDULE_H_1F1B || kind == PS_SCHEDULE_ZB)
        return;
    if (kind == PS_SCHEDULE_DUALPIPEV || kind == PS_SCHEDULE_DUALPIPE)
        ps_check_dual(check);
    if (ps_check_is_v(kind))
        return;
    bool split = ps_check_is_split(kind);
    for (int32_t rank = 0; rank < plan->num_devices; rank++) {
        family_rank family = family_of(&plan->layout, rank);
        int32_t first = plan->schedule.first[rank];
        for (int32_t at = first; at < plan->schedule.first[rank + 1]; at++) {
            ps_op says = plan->schedule.op[at];
            ps_op should = kind == PS_SCHEDULE_LOOPED_BFS ? breadth_first_at(&family, at - first)
                           : ps_check_recomputes(kind)    ? recomputed_at(&family, at - first)
                           : split                        ? split_at(&family, at - first)
                                                          : fused_at(&family, at - first);
            if (says.stage == should.stage && says.kind == should.kind && says.microbatch == should.microbatch)
                continue;
            ps_check_find(check, "schedule-order", PS_AT_2("/schedule/cells/#/#", rank, at - first),
                          "plan says %u%c%" PRId32 ", the schedule that it names has %u%c%" PRId32,
                          (unsigned)says.stage, letter[says.kind], says.microbatch, (unsigned)should.stage,
                          letter[should.kind], should.microbatch);
            break; // what follows on this rank is shifted
        }
    }
}
