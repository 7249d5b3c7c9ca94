// SPDX-License-Identifier: Apache-2.0
//
// order_curve.c: what memory buys.
//
// Every rung is searched in scratch memory of its own; only the best order so far is kept, in two places by turns.
#include <string.h>

#include "search/order.h"

typedef struct curve {
    ps_pipeline pipeline;
    ps_order_options options;
    ps_schedule kept; // the order of the rung before, once there is one
    bool has_kept;
    int64_t floor_ns; // bound without any memory limit
    ps_order_rung *rung;
    ps_arena *scratch;
} curve;

static void set_limit(curve *c, int64_t limit)
{
    for (int32_t d = 0; d < c->pipeline.num_devices; d++)
        c->pipeline.device[d].memory_limit = limit;
}

static void keep_order(curve *c, const ps_schedule *schedule)
{
    int32_t ops = schedule->first[schedule->num_devices];
    c->kept.num_devices = schedule->num_devices;
    memcpy(c->kept.first, schedule->first, (size_t)(schedule->num_devices + 1) * sizeof *schedule->first);
    memcpy(c->kept.op, schedule->op, (size_t)ops * sizeof *schedule->op);
    c->has_kept = true;
}

static ps_code search_rung(void *context, ps_status *status)
{
    curve *c = context;
    ps_order_rung *rung = c->rung;
    ps_order_result result;
    int64_t before =
        rung->fits ? (c->options.objective == PS_ORDER_SPAN ? rung->span_ns : rung->makespan_ns) : INT64_MAX;
    c->options.start = c->has_kept ? &c->kept : NULL;
    PS_TRY(ps_order_search(c->scratch, &c->pipeline, &c->options, &result, status));
    rung->fits = true;
    rung->fused = result.fused;
    rung->carried = result.value_ns >= before;
    rung->makespan_ns = result.timeline.makespan_ns;
    rung->span_ns = result.timeline.span_ns;
    rung->bubble = c->options.objective == PS_ORDER_SPAN ? ps_timeline_span_bubble(&result.timeline)
                                                         : ps_timeline_bubble(&result.timeline);
    rung->bound_ns = result.bound_ns;
    rung->bound_by = result.bound_by;
    rung->proved = result.proved;
    keep_order(c, &result.schedule);
    // Whatever ended it still holds.
    return result.limit_hit ? c->options.control->should_stop(c->options.control->context) : PS_OK;
}

static ps_code run_rung(curve *c, ps_status *status)
{
    c->scratch = ps_arena_new(0);
    if (!c->scratch)
        return ps_fail(status, PS_EXHAUSTED, "out-of-memory", "no memory for a search");
    ps_code code = ps_guard(search_rung, c, c->scratch, status);
    ps_arena_free(c->scratch);
    return code;
}

static void begin(ps_arena *arena, const ps_pipeline *pipeline, const ps_order_options *options, curve *c)
{
    const char *by;
    int64_t ops = 3 * (int64_t)pipeline->num_stages * pipeline->num_microbatches;
    *c = (curve){.pipeline = *pipeline, .options = *options};
    c->pipeline.device = ps_new(arena, ps_device, pipeline->num_devices);
    memcpy(c->pipeline.device, pipeline->device, (size_t)pipeline->num_devices * sizeof *pipeline->device);
    c->kept.first = ps_new(arena, int32_t, pipeline->num_devices + 1);
    c->kept.op = ps_new_raw(arena, ps_op, ops);
    set_limit(c, INT64_MAX);
    c->floor_ns = ps_order_bound(&c->pipeline, options, &by);
}

ps_code ps_order_curve(ps_arena *arena, const ps_pipeline *pipeline, const ps_order_options *options, int32_t count,
                       const int64_t *limit, ps_order_rung *rung, int32_t *done, ps_status *status)
{
    curve c;
    *done = 0;
    PS_TRY(ps_order_searchable(pipeline, status));
    begin(arena, pipeline, options, &c);
    for (int32_t i = 0; i < count; i++) {
        rung[i] = i > 0 ? rung[i - 1] : (ps_order_rung){0};
        rung[i].memory_limit = limit[i];
        rung[i].carried = rung[i].fits;
        c.rung = &rung[i];
        set_limit(&c, limit[i]);
        ps_status misfit = {0};
        bool settled = rung[i].proved && rung[i].bound_ns == c.floor_ns;
        ps_code code = settled ? PS_OK : run_rung(&c, &misfit);
        if (code != PS_OK && code != PS_INFEASIBLE && code != PS_STOPPED && code != PS_TIME_LIMIT) {
            *status = misfit;
            return code;
        }
        *done = i + 1;
        if (code == PS_STOPPED || code == PS_TIME_LIMIT)
            return code;
    }
    return PS_OK;
}
