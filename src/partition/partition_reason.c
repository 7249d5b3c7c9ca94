// SPDX-License-Identifier: Apache-2.0
//
// partition_reason.c: why no cut exists. Lifts one kind of rule after the other until a cut appears.
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/number.h"
#include "base/text.h"
#include "partition/partition_lattice.h"
#include "partition/partition_problem.h"

const char *ps_cut_format_memory(const ps_partition_problem *problem, int64_t size, char text[64])
{
    if (problem->memory_is_bytes)
        return ps_format_bytes(size, text);
    snprintf(text, 64, "%" PRId64, size);
    return text;
}

const char *ps_cut_format_memory_exact(const ps_partition_problem *problem, int64_t size, char text[64])
{
    char rounded[32];
    if (problem->memory_is_bytes)
        snprintf(text, 64, "%s (%" PRId64 "B)", ps_format_bytes(size, rounded), size);
    else
        snprintf(text, 64, "%" PRId64, size);
    return text;
}

static bool has_cut(ps_arena *arena, const ps_partition_problem *problem)
{
    ps_cut_view view;
    ps_status unused = {0};
    if (ps_cut_view_build(arena, problem, &view, &unused) != PS_OK)
        return false;
    ps_lattice lattice;
    ps_lattice_all(arena, &view, &lattice);
    return ps_lattice_probe(&lattice, ps_cut_most_ns(&view));
}

typedef struct memory_search {
    ps_cut_view *view;
    ps_lattice *lattice;
} memory_search;

static bool fits_with(void *context, int64_t extra_bytes)
{
    memory_search *search = context;
    ps_cut_view_fit(search->view, extra_bytes);
    return ps_lattice_probe(search->lattice, ps_cut_most_ns(search->view));
}

// The least memory that, added to every device, lets some cut fit; and the stage of that cut that needs it.
static ps_code explain_memory(ps_arena *arena, const ps_partition_problem *problem, ps_status *status)
{
    ps_cut_view view;
    ps_lattice lattice;
    ps_code stopped = PS_OK;
    PS_TRY(ps_cut_view_build(arena, problem, &view, status));
    ps_lattice_all(arena, &view, &lattice);
    memory_search search = {&view, &lattice};
    int64_t extra = ps_lattice_least(fits_with, &search, (ps_span){1, INT64_MAX}, NULL, &stopped);
    fits_with(&search, extra);
    ps_partition *cut = ps_lattice_first_cut(arena, &lattice, ps_cut_most_ns(&view));
    int32_t worst = 0;
    int64_t missing = INT64_MIN;
    for (int32_t stage = 0; stage < cut->num_stages; stage++) {
        int64_t need = ps_cut_memory(problem, stage, cut->first_layer[stage], cut->first_layer[stage + 1]);
        if (need - problem->type[cut->type[stage]].memory_limit > missing) {
            missing = need - problem->type[cut->type[stage]].memory_limit;
            worst = stage;
        }
    }
    const ps_device_type *type = &problem->type[cut->type[worst]];
    char need[64], have[64];
    ps_fail(
        status, PS_INFEASIBLE, "memory",
        "no cut of %d layer%s into %d stage%s fits: at best stage %d (layers %d to %d) needs %s of memory, a device of "
        "type %s has %s",
        (int)problem->num_layers, ps_plural(problem->num_layers), (int)cut->num_stages, ps_plural(cut->num_stages),
        (int)worst, (int)cut->first_layer[worst], (int)cut->first_layer[worst + 1] - 1,
        ps_cut_format_memory(problem, ps_add_saturating(type->memory_limit, missing), need), type->name,
        ps_cut_format_memory(problem, type->memory_limit, have));
    return ps_fail_hint(status, "it would fit with %s more on every device",
                        ps_cut_format_memory_exact(problem, missing, need));
}

ps_code ps_cut_explain_infeasible(ps_arena *arena, const ps_partition_problem *problem, ps_status *status)
{
    ps_cut_view view;
    PS_TRY(ps_cut_view_build(arena, problem, &view, status));
    if (ps_lattice_states(&view) > PS_LATTICE_MAX_STATES)
        return ps_fail(status, PS_INFEASIBLE, "no-cut",
                       "no cut of %d layers obeys memory, pins and layers that stay together",
                       (int)problem->num_layers);
    ps_partition_problem relaxed = *problem;
    ps_device_type *type = ps_new(arena, ps_device_type, problem->num_types);
    for (int32_t index = 0; index < problem->num_types; index++) {
        type[index] = problem->type[index];
        type[index].memory_limit = INT64_MAX;
    }
    relaxed.type = type;
    if (has_cut(arena, &relaxed))
        return problem->rule_only ? ps_fail(status, PS_INFEASIBLE, "memory", "no cut of %d layers into %d stages fits",
                                            (int)problem->num_layers, (int)problem->num_stages)
                                  : explain_memory(arena, problem, status);
    relaxed.pinned_stage = NULL;
    if (has_cut(arena, &relaxed)) {
        ps_fail(status, PS_INFEASIBLE, "pins", "no cut into %d stage%s puts every pinned layer on its stage",
                (int)problem->num_stages, ps_plural(problem->num_stages));
        return ps_fail_hint(status, "pins must not fall along the layers, and every stage needs layers of its own");
    }
    relaxed.max_layers = 0;
    if (has_cut(arena, &relaxed)) {
        ps_fail(status, PS_INFEASIBLE, "max-layers", "stages of at most %d layer%s cannot hold %d layers",
                (int)problem->max_layers, ps_plural(problem->max_layers), (int)problem->num_layers);
        return ps_fail_hint(status, "allow more layers a stage, or use more stages");
    }
    int32_t cuts = 0;
    for (int32_t layer = 0; layer + 1 < problem->num_layers; layer++)
        cuts += !problem->keep_with_next || !problem->keep_with_next[layer];
    int32_t least = problem->min_layers > 1 ? problem->min_layers : 1;
    ps_fail(status, PS_INFEASIBLE, "keep-with-next",
            "layers that stay together leave %d place%s to cut, too few for %d stage%s of at least %d layer%s",
            (int)cuts, ps_plural(cuts), (int)problem->num_stages, ps_plural(problem->num_stages), (int)least,
            ps_plural(least));
    return ps_fail_hint(status, "use %d stage%s%s, or let fewer layers stay together", (int)cuts + 1,
                        ps_plural(cuts + 1), cuts > 0 ? " or fewer" : "");
}
