// SPDX-License-Identifier: Apache-2.0
//
// simulate_curve.c: `simulate --memory-curve`: a search at each of several memory limits.
#include "cli/simulate_curve.h"

#include <inttypes.h>

#include "cli/step_options.h"
#include "report/curve.h"

enum { MOST_RUNGS = 4096 };

static ps_code check_limits(const ps_number_list *limit, ps_status *status)
{
    if (limit->count > MOST_RUNGS)
        return ps_fail(status, PS_USAGE, "bad-value", "--memory-curve has %d limits, at most %d", (int)limit->count,
                       (int)MOST_RUNGS);
    for (int64_t i = 0; i < limit->count; i++) {
        int64_t before = i > 0 ? limit->value[i - 1] : 0;
        if (limit->value[i] > before)
            continue;
        if (i == 0)
            ps_fail(status, PS_USAGE, "bad-value", "--memory-curve: a limit of %" PRId64 " holds nothing",
                    limit->value[i]);
        else
            ps_fail(status, PS_USAGE, "bad-value", "--memory-curve: limit %" PRId64 " comes after %" PRId64,
                    limit->value[i], before);
        return ps_fail_hint(status, "list limits above 0 that rise, as in 8,12,16");
    }
    return PS_OK;
}

static ps_code refuse_others(const ps_run *run, ps_status *status)
{
    static const char *const others[] = {"memory-limit", "draw", "to-csv", "jitter", "timeline"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        PS_TRY(ps_run_exclude(run, "memory-curve", others[i], status));
    return ps_step_options_exclude(run, "memory-curve", status);
}

ps_code ps_simulate_curve(ps_run *run, const ps_curve_call *call, ps_status *status)
{
    PS_TRY(refuse_others(run, status));
    PS_TRY(check_limits(call->limit, status));
    ps_order_rung *rung = ps_new(run->arena, ps_order_rung, call->limit->count);
    int32_t done = 0;
    ps_code code = ps_order_curve(run->arena, call->pipeline, call->search, (int32_t)call->limit->count,
                                  call->limit->value, rung, &done, status);
    if (code != PS_OK && code != PS_TIME_LIMIT)
        return code;
    bool any = false;
    for (int32_t i = 0; i < done; i++)
        any = any || rung[i].fits;
    if (!any)
        run->verdict = PS_INFEASIBLE;
    else if (code == PS_TIME_LIMIT)
        run->verdict = PS_TIME_LIMIT;
    ps_curve curve = {.name = call->name,
                      .ranks = call->pipeline->num_devices,
                      .virtual_stages =
                          (call->pipeline->num_stages + call->pipeline->num_devices - 1) / call->pipeline->num_devices,
                      .num_microbatches = call->pipeline->num_microbatches,
                      .objective = call->search->objective == PS_ORDER_SPAN ? "span" : "makespan",
                      .in_bytes = call->in_bytes,
                      .rung = rung,
                      .count = done};
    if (run->common->json)
        return ps_curve_json(run->out, &curve, status);
    ps_curve_text(run->out, run->arena, &curve);
    return PS_OK;
}
