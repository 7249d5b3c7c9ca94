// SPDX-License-Identifier: Apache-2.0
//
// check_layout.c: degrees and batch sizes multiply up, and the job allows them.
#include <inttypes.h>

#include "base/number.h"
#include "check/check_parts.h"

static int64_t product4(int32_t a, int32_t b, int32_t c, int32_t d)
{
    return ps_multiply_saturating(ps_multiply_saturating(a, b), ps_multiply_saturating(c, d));
}

bool ps_check_allows(const ps_int_set *set, int64_t value)
{
    for (int32_t index = 0; index < set->count; index++)
        if (set->value[index] == value)
            return true;
    return set->count == 0;
}

static void check_allowed(ps_check *check, const char *path, const ps_int_set *set, int64_t value)
{
    if (!ps_check_allows(set, value))
        ps_check_find(check, "not-allowed", PS_AT(path), "the job's options do not allow this value (%" PRId64 ")",
                      value);
}

const char *ps_check_expert_misfit(const ps_plan *plan, const ps_layout *layout)
{
    int64_t experts = plan->inputs.model_experts;
    if (product4(layout->tp, layout->cp, layout->dp, 1) % ps_multiply_saturating(layout->ep, layout->etp) != 0)
        return "ep * etp must divide tp * cp * dp";
    if (experts == 0 ? layout->ep > 1 : experts % layout->ep != 0)
        return "ep must divide the model's experts";
    if (plan->inputs.job.etp.count == 0 && layout->etp != layout->tp)
        return "etp is tp unless the job says otherwise";
    return NULL;
}

static void check_job(ps_check *check)
{
    const ps_layout *layout = &check->plan->layout;
    const ps_job *job = &check->plan->inputs.job;
    check_allowed(check, "/layout/micro_batch_size", &job->micro_batch_size, layout->micro_batch_size);
    check_allowed(check, "/layout/tp", &job->tp, layout->tp);
    check_allowed(check, "/layout/pp", &job->pp, layout->pp);
    check_allowed(check, "/layout/vp", &job->vp, layout->vp);
    check_allowed(check, "/layout/dp", &job->dp, layout->dp);
    check_allowed(check, "/layout/cp", &job->cp, layout->cp);
    check_allowed(check, "/layout/ep", &job->ep, layout->ep);
    check_allowed(check, "/layout/etp", &job->etp, layout->etp);
    check_allowed(check, "/layout/schedule", &job->schedule, (int64_t)layout->schedule);
    check_allowed(check, "/layout/recompute", &job->recompute, (int64_t)layout->recompute);
    ps_check_equal(check, "zero-stage", PS_AT("/layout/zero"), layout->zero, job->zero);
    int64_t replicas = product4(layout->dp, layout->micro_batch_size, layout->num_microbatches, 1);
    ps_check_equal(check, "global-batch", PS_AT("/inputs/job/global_batch_size"), job->global_batch_size, replicas);
}

void ps_check_layout(ps_check *check)
{
    const ps_plan *plan = check->plan;
    const ps_layout *layout = &plan->layout;
    int64_t ranks = product4(layout->dp, layout->tp, layout->pp, layout->cp);
    ps_check_equal(check, "rank-count", PS_AT("/ranks/count"), plan->num_ranks, ranks);
    int64_t gpus = ps_multiply_saturating(plan->inputs.cluster_nodes, plan->inputs.gpus_per_node);
    if (ranks > gpus)
        ps_check_find(check, "too-many-ranks", PS_AT("/layout"), "%" PRId64 " ranks on a cluster of %" PRId64 " GPUs",
                      ranks, gpus);
    const char *misfit = ps_check_expert_misfit(plan, layout);
    if (misfit)
        ps_check_find(check, "expert-degree", PS_AT("/layout/ep"), "%s", misfit);
    if (ps_check_recomputes(layout->schedule) && layout->recompute != PS_RECOMPUTE_FULL)
        ps_check_find(check, "schedule-recompute", PS_AT("/layout/recompute"),
                      "this schedule recomputes everything: should be \"full\"");
    check_job(check);
}
