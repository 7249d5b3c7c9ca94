// SPDX-License-Identifier: Apache-2.0
//
// check_layout.c: degrees and batch sizes multiply up, the job allows them, and the search's account is possible.
#include <inttypes.h>

#include "base/number.h"
#include "check/check_parts.h"

static int64_t product4(int32_t a, int32_t b, int32_t c, int32_t d)
{
    return ps_multiply_saturating(ps_multiply_saturating(a, b), ps_multiply_saturating(c, d));
}

static void check_allowed(ps_check *check, const char *path, const ps_int_set *set, int64_t value)
{
    for (int32_t index = 0; index < set->count; index++)
        if (set->value[index] == value)
            return;
    if (set->count > 0)
        ps_check_find(check, "not-allowed", PS_AT(path), "the job's options do not allow this value (%" PRId64 ")",
                      value);
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
    check_allowed(check, "/layout/schedule", &job->schedule, (int64_t)layout->schedule);
    check_allowed(check, "/layout/recompute", &job->recompute, (int64_t)layout->recompute);
    ps_check_equal(check, "zero-stage", PS_AT("/layout/zero"), layout->zero, job->zero);
    int64_t replicas = product4(layout->dp, layout->micro_batch_size, layout->num_microbatches, 1);
    ps_check_equal(check, "global-batch", PS_AT("/inputs/job/global_batch_size"), job->global_batch_size, replicas);
}

// Another layout for the same job on the same GPUs.
static void check_alternative(ps_check *check, int32_t index, const ps_layout *layout)
{
    const ps_plan_inputs *inputs = &check->plan->inputs;
    int64_t sequences = product4(layout->dp, layout->micro_batch_size, layout->num_microbatches, 1);
    int64_t ranks = product4(layout->dp, layout->tp, layout->pp, layout->cp);
    int64_t gpus = ps_multiply_saturating(inputs->cluster_nodes, inputs->gpus_per_node);
    if (sequences != inputs->job.global_batch_size || ranks > gpus || layout->zero != inputs->job.zero)
        ps_check_find(check, "alternative-layout", PS_AT_1("/search/alternatives/#/layout", index),
                      "%" PRId64 " sequences on %" PRId64 " ranks with ZeRO %d, the job has %" PRId64 " on %" PRId64
                      " GPUs with ZeRO %d",
                      sequences, ranks, (int)layout->zero, inputs->job.global_batch_size, gpus, (int)inputs->job.zero);
}

static void check_search(ps_check *check)
{
    const ps_plan_search *search = &check->plan->search;
    int64_t infeasible = 0;
    for (int32_t index = 0; index < search->num_infeasible; index++)
        infeasible = ps_add_saturating(infeasible, search->infeasible[index].count);
    int64_t account = ps_add_saturating(ps_add_saturating(search->evaluated, search->pruned), infeasible);
    if (search->candidates != account)
        ps_check_find(check, "search-count", PS_AT("/search/candidates"),
                      "%" PRId64 " candidates cannot give %" PRId64 " evaluated, %" PRId64 " pruned and %" PRId64
                      " ruled out",
                      search->candidates, search->evaluated, search->pruned, infeasible);
    int64_t best = check->plan->prediction.iteration_ns;
    int64_t before = best;
    for (int32_t index = 0; index < search->num_alternatives; index++) {
        const ps_plan_alternative *other = &search->alternative[index];
        if (other->iteration_ns < before)
            ps_check_find(check, "alternative-order", PS_AT_1("/search/alternatives/#/iteration_ms", index),
                          index == 0 ? "faster than the plan itself" : "faster than the one before");
        before = other->iteration_ns;
        double loses = best > 0 ? (double)other->iteration_ns / (double)best - 1 : 0;
        ps_check_equal_rate(check, "alternative-loss", PS_AT_1("/search/alternatives/#/loses", index), other->loses,
                            loses);
        check_alternative(check, index, &other->layout);
    }
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
    if (ps_multiply_saturating(layout->dp, layout->cp) % layout->ep != 0)
        ps_check_find(check, "expert-degree", PS_AT("/layout/ep"), "ep must divide dp * cp");
    check_job(check);
    check_search(check);
}
