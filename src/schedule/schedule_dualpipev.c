// SPDX-License-Identifier: Apache-2.0
//
// schedule_dualpipev.c: DualPipeV, the DualPipe of DeepSeek-V3 cut in half (V placement, one copy of the parameters).
//
// Device r of p runs stages r (chunk 0) and 2p - 1 - r (chunk 1), in eight phases:
//   1. 2 (p - 1 - r) F0          2. r + 1 times F0 F1          3. p - 1 - r times I1 W1 F1
//   4. m - 2p + r + 1 times F0 B1 F1 B0                         5. p - 1 - r times B1 F1 B0
//   6. r + 1 times B1 B0, W's kept back from the middle on      7. p - 1 - r times W I0      8. the other W's
// B stands for I and W one after the other: a pair that DualPipeV would overlap is two ops here, and no gain of the
// overlap is counted. With F = I = W = t on equal stages and free hops a device idles (p - 1) t / 2, t being the time
// of both its chunks, and holds at most p + 1/2 micro-batches. Messages: 4 (p - 1) m. Phase 4 needs m >= 2p.
#include "schedule/family.h"

typedef struct dual_writer {
    ps_op *op;
    const int32_t *stage;
    int32_t forward[2]; // next micro-batch of each chunk's F, I and W
    int32_t input[2];
    int32_t weight[2];
} dual_writer;

static void put_forward(dual_writer *w, int32_t chunk)
{
    w->op = ps_family_put(w->op, PS_OP_FORWARD, w->stage[chunk], w->forward[chunk]++);
}

static void put_input(dual_writer *w, int32_t chunk)
{
    w->op = ps_family_put(w->op, PS_OP_BACKWARD_INPUT, w->stage[chunk], w->input[chunk]++);
}

static void put_weight(dual_writer *w, int32_t chunk)
{
    w->op = ps_family_put(w->op, PS_OP_BACKWARD_WEIGHT, w->stage[chunk], w->weight[chunk]++);
}

static void put_whole(dual_writer *w, int32_t chunk)
{
    put_input(w, chunk);
    put_weight(w, chunk);
}

// Phases 1 to 5: B's run whole.
static void write_until_forwards_end(dual_writer *w, const ps_dual_rank *r)
{
    int32_t rank = r->rank;
    int32_t later = r->devices - 1 - rank;
    for (int32_t i = 0; i < 2 * later; i++)
        put_forward(w, 0);
    for (int32_t i = 0; i <= rank; i++) {
        put_forward(w, 0);
        put_forward(w, 1);
    }
    for (int32_t i = 0; i < later; i++) {
        put_whole(w, 1);
        put_forward(w, 1);
    }
    for (int32_t i = 0; i < r->microbatches - 2 * r->devices + rank + 1; i++) {
        put_forward(w, 0);
        put_whole(w, 1);
        put_forward(w, 1);
        put_whole(w, 0);
    }
    for (int32_t i = 0; i < later; i++) {
        put_whole(w, 1);
        put_forward(w, 1);
        put_whole(w, 0);
    }
}

ps_op *ps_family_write_dual(ps_dual_rank r, ps_op *op)
{
    int32_t rank = r.rank;
    int32_t later = r.devices - 1 - rank;
    dual_writer w = {.op = op,
                     .stage = r.stage,
                     .forward = {r.first[0], r.first[1]},
                     .input = {r.first[0], r.first[1]},
                     .weight = {r.first[0], r.first[1]}};
    write_until_forwards_end(&w, &r);

    // Phase 6: 2 (rank + 1) backwards, chunk 1 first, of which the last rank + 1 keep their W back.
    for (int32_t i = 0; i < 2 * (rank + 1); i++) {
        int32_t chunk = 1 - i % 2;
        if (i < rank + 1)
            put_whole(&w, chunk);
        else
            put_input(&w, chunk);
    }
    // W's run in the order of their I's: those of phase 6, in which chunks alternate, then chunk 0's of phase 7.
    int32_t kept = rank + 1;
    for (int32_t i = 0; i < later + kept; i++) {
        put_weight(&w, i < kept ? (rank + i) % 2 : 0);
        if (i < later)
            put_input(&w, 0);
    }
    return w.op;
}

static ps_op *write_rank(ps_schedule_shape shape, int32_t rank, ps_op *op)
{
    return ps_family_write_dual((ps_dual_rank){.devices = shape.num_devices,
                                               .rank = rank,
                                               .microbatches = shape.num_microbatches,
                                               .stage = {rank, 2 * shape.num_devices - 1 - rank}},
                                op);
}

static ps_code legal(ps_schedule_shape shape, ps_status *status)
{
    PS_TRY(ps_family_two_stages("dualpipev", shape, status));
    if (shape.num_microbatches >= 2 * (int64_t)shape.num_devices)
        return PS_OK;
    ps_fail(status, PS_ILLEGAL, "dualpipev-microbatches",
            "dualpipev on %d devices needs at least %lld micro-batches, got %d", (int)shape.num_devices,
            2 * (long long)shape.num_devices, (int)shape.num_microbatches);
    return ps_fail_hint(status, "use %lld micro-batches, or zb-v, which takes any number",
                        2 * (long long)shape.num_devices);
}

static ps_code generate(ps_arena *arena, const ps_pipeline *pipeline, ps_schedule *out, ps_status *status)
{
    return ps_family_generate(arena, &ps_family_dualpipev, pipeline, ps_family_shape(pipeline), out, status);
}

const ps_family ps_family_dualpipev = {
    .family = {.kind = PS_SCHEDULE_DUALPIPEV,
               .name = "dualpipev",
               .summary = "stages there and back again; forwards and backwards paired, half a micro-batch above 1f1b",
               .splits_backward = true,
               .virtual_stages = true,
               .placement = PS_PLACEMENT_V,
               .legal = legal,
               .generate = generate},
    .write_rank = write_rank,
};
