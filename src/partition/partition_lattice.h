// SPDX-License-Identifier: Apache-2.0
//
// partition_lattice.h: cuts as paths, and all questions about stages that cost at most T.
//
// A node of the lattice says which devices are left; an arc takes one of a type for the next stage. A state is a node
// and the first layer of its stage; a cut is a path of states from (start, 0) to (final node, layers). With one device
// type the nodes are the numbers of stages left. With several they are the vectors of counts left, so that mixed
// devices in any order are cut exactly as long as the product of the counts is small. A fixed sequence of types is a
// lattice of one path.
#ifndef PS_PARTITION_LATTICE_H
#define PS_PARTITION_LATTICE_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/partition_problem.h"

typedef struct ps_lattice {
    const ps_cut_view *view;
    int32_t num_nodes; // arcs lead to smaller nodes
    int32_t start;
    int32_t *stage;     // [num_nodes] stage that starts here; -1: not reachable
    int32_t *first_arc; // [num_nodes + 1]
    int32_t *arc_type;
    int32_t *arc_next;
    // What T leaves of a stage's first layers; valid after ps_lattice_probe() or ps_lattice_narrow().
    int32_t *low;  // [max_stages + 1]
    int32_t *high; // [max_stages + 1]
    uint8_t *can;  // [num_nodes][layers + 1] the rest can be cut within T; valid within low .. high
    int32_t *queue;
    int64_t states; // visited so far
} ps_lattice;

// Tables of a lattice hold a few bytes a state.
#define PS_LATTICE_MAX_STATES (INT64_C(1) << 27)

// States that a lattice of all devices would have; sticks at INT64_MAX.
int64_t ps_lattice_states(const ps_cut_view *view);

void ps_lattice_all(ps_arena *arena, const ps_cut_view *view, ps_lattice *out);
// Stage s on type sequence[s].
void ps_lattice_fixed(ps_arena *arena, const ps_cut_view *view, const int32_t *sequence, int32_t stages,
                      ps_lattice *out);

static inline bool ps_lattice_final(const ps_lattice *lattice, int32_t node)
{
    int32_t stages = lattice->view->stages;
    return stages > 0 ? lattice->stage[node] == stages : lattice->stage[node] > 0;
}

// After a probe: whether a stage that takes `arc` as number `stage` may end before layer `end`, as far as the rest of
// the cut is concerned.
static inline bool ps_lattice_open(const ps_lattice *lattice, int32_t arc, int32_t stage, int32_t end)
{
    int32_t next = lattice->arc_next[arc];
    if (end == lattice->view->layers)
        return ps_lattice_final(lattice, next);
    return end >= lattice->low[stage + 1] && end <= lattice->high[stage + 1] &&
           lattice->can[(int64_t)next * (lattice->view->layers + 1) + end];
}

// Set low and high to the first layers that stages of cost at most `most_ns` can have, by cost and memory alone.
void ps_lattice_narrow(ps_lattice *lattice, int64_t most_ns);

// Whether a cut with no stage above `most_ns` exists; fills `can`. O(arcs * layers).
bool ps_lattice_probe(void *lattice, int64_t most_ns);

// The least T that passes a test which every larger T passes too, given that high_ns does and nothing below low_ns
// does. `control` may stop it early: then *stopped says so and a T that passes is returned.
typedef bool (*ps_lattice_test)(void *context, int64_t most_ns);
typedef struct ps_span {
    int64_t low_ns;
    int64_t high_ns;
} ps_span;
int64_t ps_lattice_least(ps_lattice_test test, void *context, ps_span span, const ps_control *control,
                         ps_code *stopped);

// The first cut, in the order of ps_cut_compare(), with no stage above `most_ns`. Needs a probe of the same T that
// succeeded. O(stages + layers) but for arcs.
ps_partition *ps_lattice_first_cut(ps_arena *arena, const ps_lattice *lattice, int64_t most_ns);

#endif
