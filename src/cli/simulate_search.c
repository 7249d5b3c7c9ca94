// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate_search.h"

#include "cli/control.h"
#include "cli/simulate_curve.h"
#include "cli/terminal.h"
#include "pipesched/order_search.h"

ps_code ps_search_options_refuse(const ps_run *run, const char *schedule, ps_status *status)
{
    static const char *const of_search[] = {"effort", "time-limit"};
    for (size_t index = 0; index < sizeof of_search / sizeof *of_search; index++) {
        if (!ps_option_given(&run->parsed, of_search[index]))
            continue;
        ps_fail(status, PS_USAGE, "conflicting-options", "--%s is for a search, and %s is no search", of_search[index],
                schedule);
        return ps_fail_hint(status, "use --schedule zb or auto, or leave --%s out", of_search[index]);
    }
    return PS_OK;
}

void ps_search_start(ps_run *run, int64_t time_limit)
{
    ps_cli_control_start(&run->control, ps_option_given(&run->parsed, "time-limit") ? time_limit : -1, false);
    if (ps_terminal_shows_progress() && !run->common->quiet)
        run->control.elapsed_of = "searching for an order";
}

void ps_search_end(ps_run *run, bool limit_hit)
{
    ps_cli_control_end(&run->control);
    if (!limit_hit || ps_cli_interrupted())
        return;
    ps_run_note(run, "the time limit was hit: this is the best order so far");
    run->verdict = PS_TIME_LIMIT;
}

// Without --backward-weight there is nothing to split.
ps_code ps_simulate_search(ps_run *run, const ps_search_call *call, ps_simulation *simulation, ps_status *status)
{
    ps_order_result *found = ps_new(run->arena, ps_order_result, 1);
    ps_order_options search = {
        .objective = call->of_span ? PS_ORDER_SPAN : PS_ORDER_MAKESPAN,
        .backward = call->family->splits_backward           ? PS_ORDER_SPLIT
                    : call->bare->backward_weight.count > 0 ? PS_ORDER_EITHER
                                                            : PS_ORDER_FUSED,
        .effort = call->effort,
        .control = &run->control.control,
    };
    ps_search_start(run, call->time_limit);
    if (call->bare->memory_curve.count > 0) {
        ps_curve_call curve = {.name = call->family->name,
                               .limit = &call->bare->memory_curve,
                               .pipeline = call->pipeline,
                               .search = &search,
                               .in_bytes = simulation->in_bytes};
        PS_TRY(ps_simulate_curve(run, &curve, status));
        ps_search_end(run, run->verdict == PS_TIME_LIMIT);
        return PS_OK;
    }
    PS_TRY(ps_order_search(run->arena, call->pipeline, &search, found, status));
    ps_search_end(run, found->limit_hit);
    simulation->searched = true;
    simulation->limit_hit = found->limit_hit;
    simulation->schedule = &found->schedule;
    simulation->timeline = &found->timeline;
    simulation->bound_ns = found->bound_ns;
    simulation->limited_by = found->bound_by;
    return PS_OK;
}
