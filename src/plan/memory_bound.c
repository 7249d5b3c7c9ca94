// SPDX-License-Identifier: Apache-2.0
//
// memory_bound.c: why a layout cannot be both fast and small.
//
// Say no device works longer than T on a micro-batch. Then any set of q of the p devices works at least
// total - (p - q) T, and so holds layers of that much work. On a device whose order has n_c micro-batches of chunk c in
// flight at some instant, layers with activations A (held from F to B) that are spread over its chunks somehow take at
// least w A at some instant, where w is the value of the game in which one side picks the instant and the other spreads
// the layers: w = max over mixtures of instants of min over chunks of n_c. Any mixture gives a valid w; it is found by
// fictitious play (Brown 1951). With w the least of the set, its memory is at least that of the layers that give the
// work most cheaply, by state + w * activations, fractions allowed. If that is more than q GPUs have, no cut works
// within T. The sets tried are the q devices with the largest w.
#include "plan/memory_bound.h"

#include <stdlib.h>
#include <string.h>

#include "pipesched/schedule.h"
#include "plan/pipeline_build.h"

enum { MOST_INSTANTS = 256, MOST_FORWARDS = 4096, PLAY_ROUNDS = 256 };

// Layers times devices beyond which the bound is not worth its tables.
#define MOST_TABLE (INT64_C(1) << 22)

// Sums of doubles err by far less than this share, and err on the side of a weaker bound.
#define MARGIN 1e-9

typedef struct instants {
    int32_t chunks;
    int32_t count;
    int32_t *in_flight; // [count * chunks]
} instants;

static bool dominates(const int32_t *a, const int32_t *b, int32_t chunks)
{
    for (int32_t chunk = 0; chunk < chunks; chunk++) {
        if (a[chunk] < b[chunk])
            return false;
    }
    return true;
}

static void keep_instant(instants *kept, const int32_t *now)
{
    int32_t chunks = kept->chunks;
    for (int32_t index = 0; index < kept->count; index++) {
        if (dominates(kept->in_flight + index * chunks, now, chunks))
            return;
    }
    if (kept->count == MOST_INSTANTS)
        return;
    memcpy(kept->in_flight + kept->count * chunks, now, (size_t)chunks * sizeof *now);
    kept->count++;
}

static void read_instants(const ps_schedule *schedule, const ps_layout *layout, int32_t device, int32_t *now,
                          instants *kept)
{
    int32_t forwards = 0;
    kept->count = 0;
    memset(now, 0, (size_t)layout->vp * sizeof *now);
    for (int32_t index = schedule->first[device]; index < schedule->first[device + 1]; index++) {
        ps_op op = schedule->op[index];
        int32_t chunk = op.stage / layout->pp;
        if (op.kind == PS_OP_BACKWARD || op.kind == PS_OP_BACKWARD_INPUT)
            now[chunk]--;
        if (op.kind != PS_OP_FORWARD)
            continue;
        now[chunk]++;
        keep_instant(kept, now);
        if (++forwards == MOST_FORWARDS)
            return;
    }
}

// A lower bound on the value of the game, better with every round.
static double game_value(const instants *kept, int64_t *by_chunk, int64_t *by_instant)
{
    double best = 0;
    memset(by_chunk, 0, (size_t)kept->chunks * sizeof *by_chunk);
    memset(by_instant, 0, (size_t)kept->count * sizeof *by_instant);
    for (int32_t round = 1; round <= PLAY_ROUNDS; round++) {
        int32_t weakest = 0;
        for (int32_t chunk = 1; chunk < kept->chunks; chunk++)
            weakest = by_chunk[chunk] < by_chunk[weakest] ? chunk : weakest;
        int32_t worst = 0;
        for (int32_t instant = 0; instant < kept->count; instant++) {
            by_instant[instant] += kept->in_flight[instant * kept->chunks + weakest];
            worst = by_instant[instant] > by_instant[worst] ? instant : worst;
        }
        int64_t least = INT64_MAX;
        for (int32_t chunk = 0; chunk < kept->chunks; chunk++) {
            by_chunk[chunk] += kept->in_flight[worst * kept->chunks + chunk];
            least = by_chunk[chunk] < least ? by_chunk[chunk] : least;
        }
        if ((double)least / round > best)
            best = (double)least / round;
    }
    return best;
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

// Whatever the order, each micro-batch is in flight on all stages at once when its last forward has run.
static double *depths_of_any_order(ps_arena *scratch, const ps_layout *layout)
{
    double *depth = ps_new(scratch, double, layout->pp);
    for (int32_t device = 0; device < layout->pp; device++)
        depth[device] = 1;
    return depth;
}

// In-flight depth w of every device, largest first; NULL where the family cannot order this shape. Of dualpipe's pairs
// of ranks, which hold the same layers, one counts.
static double *depths(ps_arena *scratch, const ps_layout *layout)
{
    ps_schedule schedule;
    ps_status status = {0};
    if (layout->schedule == PS_SCHEDULE_ZB)
        return depths_of_any_order(scratch, layout);
    ps_pipeline pipeline = {
        .num_stages = layout->pp * layout->vp, .num_devices = layout->pp, .num_microbatches = layout->num_microbatches};
    pipeline.stage = ps_new(scratch, ps_stage, pipeline.num_stages);
    for (int32_t stage = 0; stage < pipeline.num_stages; stage++)
        pipeline.stage[stage].device = ps_layout_device(layout, stage);
    ps_schedule_set_routes(scratch, ps_schedule_family_at(layout->schedule)->placement, &pipeline);
    if (ps_schedule_generate(scratch, layout->schedule, &pipeline, &schedule, &status))
        return NULL;

    int32_t devices = ps_layout_folded(layout).pp;
    double *depth = ps_new(scratch, double, devices);
    instants kept = {.chunks = layout->vp, .in_flight = ps_new(scratch, int32_t, (int64_t)MOST_INSTANTS * layout->vp)};
    int32_t *now = ps_new(scratch, int32_t, layout->vp);
    int64_t *by_chunk = ps_new(scratch, int64_t, layout->vp);
    int64_t *by_instant = ps_new(scratch, int64_t, MOST_INSTANTS);
    for (int32_t device = 0; device < devices; device++) {
        read_instants(&schedule, layout, device, now, &kept);
        depth[device] = game_value(&kept, by_chunk, by_instant);
    }
    qsort(depth, (size_t)devices, sizeof *depth, descending);
    return depth;
}

typedef struct priced_layer {
    double work;
    double bytes;
} priced_layer;

static int by_price(const void *a, const void *b)
{
    const priced_layer *x = a;
    const priced_layer *y = b;
    double left = x->bytes * y->work;
    double right = y->bytes * x->work;
    return left < right ? -1 : left > right;
}

// The layers that work, cheapest memory for their work first, at depth w.
static int32_t price_layers(const ps_candidate *candidate, double depth, priced_layer *out)
{
    int32_t count = 0;
    for (int32_t layer = 0; layer < candidate->table->num_layers; layer++) {
        const ps_layer_cost *cost = &candidate->table->layer[layer];
        int64_t state = cost->parameter_bytes + cost->gradient_bytes + cost->optimizer_bytes;
        int64_t work = ps_layer_work_ns(cost);
        if (work > 0)
            out[count++] = (priced_layer){(double)work, (double)state + depth * (double)cost->held_after_forward_bytes};
    }
    qsort(out, (size_t)count, sizeof *out, by_price);
    return count;
}

typedef struct work_table {
    int32_t devices;
    double total; // work of all layers
    double room;  // bytes of one device
    int32_t *count;
    priced_layer **layers; // [devices], for the set of that many and one more
} work_table;

// Least bytes of layers with this much work together.
static double least_bytes(const priced_layer *layers, int32_t count, double work)
{
    double bytes = 0;
    for (int32_t layer = 0; layer < count && work > 0; layer++) {
        double share = layers[layer].work < work ? 1 : work / layers[layer].work;
        bytes += share * layers[layer].bytes;
        work -= layers[layer].work;
    }
    return bytes;
}

static bool cannot_fit(const work_table *table, int64_t most_work)
{
    for (int32_t set = 1; set <= table->devices; set++) {
        double work = table->total - (double)(table->devices - set) * (double)most_work;
        if (work <= 0)
            continue;
        double bytes = least_bytes(table->layers[set - 1], table->count[set - 1], work);
        if (bytes * (1 - MARGIN) > table->room * set)
            return true;
    }
    return false;
}

int64_t ps_memory_bound_work(ps_arena *scratch, const ps_plan_context *context, const ps_candidate *candidate,
                             int64_t even_ns, int64_t most_ns)
{
    int32_t devices = ps_layout_folded(&candidate->layout).pp;
    int32_t layers = candidate->table->num_layers;
    const double *depth = (int64_t)devices * layers <= MOST_TABLE ? depths(scratch, &candidate->layout) : NULL;
    if (!depth || most_ns <= even_ns)
        return even_ns;

    work_table table = {
        .devices = devices,
        .total = (double)ps_layer_work_ns(&candidate->table->prefix[layers]),
        .room = (double)context->room_bytes,
        .count = ps_new(scratch, int32_t, devices),
        .layers = ps_new(scratch, priced_layer *, devices),
    };
    for (int32_t device = 0; device < devices; device++) {
        table.layers[device] = ps_new_raw(scratch, priced_layer, layers);
        table.count[device] = price_layers(candidate, depth[device], table.layers[device]);
    }
    if (!cannot_fit(&table, even_ns))
        return even_ns;
    // More time for each device only frees the sets: the answer is monotone, so it is bisected.
    int64_t low = even_ns; // cannot fit
    int64_t high = most_ns;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (cannot_fit(&table, middle))
            low = middle;
        else
            high = middle;
    }
    return high;
}
