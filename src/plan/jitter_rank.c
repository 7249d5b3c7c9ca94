// SPDX-License-Identifier: Apache-2.0
#include "plan/jitter_rank.h"

#include <string.h>

#include "base/parallel.h"
#include "pipesched/jitter.h"

enum { SEED = 1 };

typedef struct ranking {
    const ps_plan_context *context;
    const ps_control *control;
    ps_found_layout *found;
    ps_code stopped[PS_SEARCH_KEPT];
} ranking;

// Only the pipeline varies; what happens once an iteration stays.
static ps_code sample_one(void *context, int64_t index, ps_arena *scratch, ps_status *status)
{
    ranking *r = context;
    ps_found_layout *found = &r->found[index];
    const ps_job *job = r->context->job;
    const ps_control *control = r->control;
    ps_jitter_options options = {.share = job->jitter_ppm,
                                 .samples = job->jitter_samples,
                                 .seed = SEED,
                                 .straggler = -1,
                                 .factor = PS_JITTER_ONE};
    ps_jitter_result result;
    ps_run run;
    r->stopped[index] = control && control->should_stop ? control->should_stop(control->context) : PS_OK;
    if (r->stopped[index] != PS_OK)
        return PS_OK;
    PS_TRY(ps_run_order(scratch, r->context, found->candidate, found->first_layer, found->order, &run, status));
    PS_TRY(ps_jitter_sample(scratch, &run.pipeline, &run.schedule, &options, &result, status));
    int64_t p95 = job->optimizer_barrier ? result.makespan.p95_ns : result.span.p95_ns;
    found->p95_ns = run.prediction.iteration_ns - run.prediction.pipeline_ns + p95;
    return PS_OK;
}

static void sort_by_p95(ps_found_layout *found, int32_t count)
{
    for (int32_t index = 1; index < count; index++) {
        ps_found_layout moved = found[index];
        int32_t place = index;
        for (; place > 0 && found[place - 1].p95_ns > moved.p95_ns; place--)
            found[place] = found[place - 1];
        found[place] = moved;
    }
}

ps_code ps_rank_by_jitter(ps_arena *arena, const ps_plan_context *context, const ps_control *control,
                          ps_search_outcome *out, ps_status *status)
{
    int32_t count = 0;
    ranking *r = ps_new(arena, ranking, 1);
    *r = (ranking){.context = context, .control = control, .found = ps_new(arena, ps_found_layout, PS_SEARCH_KEPT)};
    for (int32_t index = 0; index < out->num_found; index++) {
        if (out->found[index].first_layer)
            r->found[count++] = out->found[index];
    }
    PS_TRY(ps_parallel_for(count, context->job->threads, 0, sample_one, r, status));
    for (int32_t index = 0; index < count; index++) {
        if (r->stopped[index] == PS_STOPPED)
            return ps_fail(status, PS_STOPPED, "interrupted", "interrupted while plans were run with jitter");
        out->limit_hit |= r->stopped[index] == PS_TIME_LIMIT;
        if (r->stopped[index] != PS_OK)
            return PS_OK;
    }
    sort_by_p95(r->found, count);
    memcpy(out->found, r->found, (size_t)count * sizeof *out->found);
    out->num_found = count;
    return PS_OK;
}
