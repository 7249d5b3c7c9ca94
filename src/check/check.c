// SPDX-License-Identifier: Apache-2.0
//
// check.c: the independent checker, part by part.
//
// Every figure of a plan is derived again from others, or tied to another that is, so that changing any one of them is
// found. What only names something (methods, accuracy, sources, layer names) cannot be.
#include "pipesched/check.h"

#include "check/check_parts.h"

static void check_order(ps_check *check)
{
    ps_cell_table table;
    ps_check_times times;
    if (!ps_check_cells(check, &table))
        return;
    ps_check_family(check);
    ps_check_activations(check);
    if (!ps_check_times_compute(check, &table, &times))
        return;
    ps_check_times_compare(check, &times);
    ps_check_timeline(check, &table, &times);
    ps_check_step step;
    ps_check_step_compute(check, &times, &step);
    ps_check_step_timeline(check, &table, &step);
    ps_check_prediction(check, &times);
}

ps_code ps_check_plan(ps_arena *arena, const ps_plan *plan, ps_check_result *out, ps_status *status)
{
    (void)status; // only memory can run out, and that lands in the caller's guard
    *out = (ps_check_result){0};
    ps_check check = {.arena = arena, .plan = plan, .result = out};
    ps_check_search(&check);
    if (!plan->feasible) {
        if (plan->num_reasons == 0)
            ps_check_find(&check, "reason-missing", PS_AT("/reasons"),
                          "the verdict is infeasible and no reason is given");
        return PS_OK;
    }
    if (plan->num_reasons > 0)
        ps_check_find(&check, "reason-feasible", PS_AT("/reasons"), "the verdict is feasible, yet reasons say why not");
    if (!ps_check_shape(&check))
        return PS_OK;
    ps_check_below_bound(&check);
    ps_check_layers(&check);
    ps_check_ways_agree(&check);
    ps_check_placement(&check);
    ps_check_layout(&check);
    ps_check_alternatives(&check);
    ps_check_jitter(&check);
    ps_check_launchable(&check);
    ps_check_hops(&check);
    ps_check_ranks(&check);
    ps_check_memory(&check);
    check_order(&check);
    ps_check_bounds(&check);
    return PS_OK;
}
