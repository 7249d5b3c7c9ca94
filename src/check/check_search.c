// SPDX-License-Identifier: Apache-2.0
//
// check_search.c: the search's account adds up, every other layout that it names is one of the same job on the same
// GPUs that could have been found, and every launch verdict is a rule of its own target.
//
// Times and sizes of other layouts cannot be derived from this plan; what bounds them can.
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "check/check_parts.h"
#include "pipesched/limits.h"

static int64_t product4(int32_t a, int32_t b, int32_t c, int32_t d)
{
    return ps_multiply_saturating(ps_multiply_saturating(a, b), ps_multiply_saturating(c, d));
}

void ps_check_search(ps_check *check)
{
    const ps_plan *plan = check->plan;
    const ps_plan_search *search = &plan->search;
    int64_t infeasible = 0;
    for (int32_t index = 0; index < search->num_infeasible; index++)
        infeasible = ps_add_saturating(infeasible, search->infeasible[index].count);
    int64_t account = ps_add_saturating(ps_add_saturating(search->evaluated, search->pruned), infeasible);
    if (search->candidates != account)
        ps_check_find(check, "search-count", PS_AT("/search/candidates"),
                      "%" PRId64 " candidates cannot give %" PRId64 " evaluated, %" PRId64 " pruned and %" PRId64
                      " ruled out",
                      search->candidates, search->evaluated, search->pruned, infeasible);
    int64_t shown = plan->feasible ? 1 + (int64_t)search->num_alternatives : 0;
    if (search->evaluated < shown)
        ps_check_find(check, "search-count", PS_AT("/search/evaluated"),
                      "%" PRId64 " evaluated cannot give a plan and %" PRId32 " alternatives", search->evaluated,
                      search->num_alternatives);
    bool said = false;
    for (int32_t index = 0; index < plan->num_diagnostics; index++)
        said = said || strcmp(plan->diagnostic[index].code, "time-limit") == 0;
    if (search->limit_hit != said)
        ps_check_find(check, "limit-hit", PS_AT("/search/limit_hit"),
                      said ? "a diagnostic says that the time limit was hit"
                           : "no diagnostic says that the time limit was hit");
}

// By what the plans were ranked is told, with the job's own figures.
void ps_check_jitter(ps_check *check)
{
    const ps_plan *plan = check->plan;
    const ps_job *job = &plan->inputs.job;
    const char *said = NULL;
    char share[32];
    ps_text expected = {.arena = check->arena};
    if ((job->jitter_ppm > 0) != (job->jitter_samples > 0))
        ps_check_find(check, "jitter", PS_AT("/inputs/job/jitter_samples"), "jitter and its samples go together");
    for (int32_t index = 0; index < plan->num_diagnostics; index++)
        if (strcmp(plan->diagnostic[index].code, "jitter") == 0)
            said = plan->diagnostic[index].message;
    ps_text_addf(&expected,
                 "jitter %s %%, %" PRId32 " samples: ", ps_format_double((double)job->jitter_ppm / 1e4, share),
                 job->jitter_samples);
    bool good = job->jitter_ppm > 0 ? said && strncmp(said, expected.data, (size_t)expected.size) == 0 : !said;
    if (!good)
        ps_check_find(check, "jitter", PS_AT("/inputs/job/jitter_ppm"), "the diagnostics do not say the same");
}

static bool has_whole_batch(const ps_plan *plan, const ps_layout *layout)
{
    return product4(layout->dp, layout->micro_batch_size, layout->num_microbatches, 1) ==
           plan->inputs.job.global_batch_size;
}

// What the job's options leave open.
static bool is_asked_for(const ps_job *job, const ps_layout *layout)
{
    return ps_check_allows(&job->micro_batch_size, layout->micro_batch_size) && ps_check_allows(&job->tp, layout->tp) &&
           ps_check_allows(&job->pp, layout->pp) && ps_check_allows(&job->vp, layout->vp) &&
           ps_check_allows(&job->dp, layout->dp) && ps_check_allows(&job->cp, layout->cp) &&
           ps_check_allows(&job->ep, layout->ep) && ps_check_allows(&job->etp, layout->etp) &&
           ps_check_allows(&job->schedule, (int64_t)layout->schedule) &&
           ps_check_allows(&job->recompute, (int64_t)layout->recompute) && layout->zero == job->zero;
}

// Stages on a rank that a schedule takes: gpipe, 1f1b and the ZB-H pair one, a V two, interleaved ones two or
// more, a searched order any number.
static bool takes_chunks(ps_schedule_kind kind, int32_t chunks)
{
    if (ps_check_is_v(kind))
        return chunks == 2;
    switch (kind) {
    case PS_SCHEDULE_LOOPED_BFS:
    case PS_SCHEDULE_ZB: return chunks >= 1;
    case PS_SCHEDULE_INTERLEAVED:
    case PS_SCHEDULE_INTERLEAVED_ZB: return chunks >= 2;
    default: return chunks == 1;
    }
}

// Why no pipeline has this form; NULL when one has. Interleaved takes its micro-batches in whole groups of the ranks
// (Narayanan et al. 2021).
static const char *find_misfit(const ps_plan *plan, const ps_layout *layout)
{
    bool dual = layout->schedule == PS_SCHEDULE_DUALPIPE;
    int64_t stages = ps_multiply_saturating(layout->pp, layout->vp);
    int64_t domain = ps_multiply_saturating(plan->inputs.gpus_per_node, plan->inputs.domain_nodes);
    bool interleaved = layout->schedule == PS_SCHEDULE_INTERLEAVED;
    if ((dual ? layout->pp : stages) > plan->inputs.model_layers || stages > PS_MAX_STAGES)
        return "there are more stages than layers";
    if (!takes_chunks(layout->schedule, layout->vp))
        return "its schedule does not run that many stages a rank";
    if (interleaved && layout->num_microbatches % layout->pp != 0)
        return "interleaved takes its micro-batches in groups of pp";
    if (dual && (layout->pp % 2 != 0 || layout->num_microbatches % 2 != 0 ||
                 layout->num_microbatches < 2 * (int64_t)layout->pp))
        return "dualpipe takes an even number of ranks and of micro-batches, two a rank or more";
    if (domain % layout->tp != 0)
        return "tp does not divide the GPUs that one fast fabric joins";
    if (ps_check_recomputes(layout->schedule) && layout->recompute != PS_RECOMPUTE_FULL)
        return "its schedule recomputes everything";
    return ps_check_expert_misfit(plan, layout);
}

// Another layout for the same job on the same GPUs.
static void check_layout(ps_check *check, int32_t index, const ps_layout *layout)
{
    const ps_plan *plan = check->plan;
    const ps_job *job = &plan->inputs.job;
    ps_place place = PS_AT_1("/search/alternatives/#/layout", index);
    int64_t ranks = product4(layout->dp, layout->tp, layout->pp, layout->cp);
    if (layout->dp < 1 || layout->tp < 1 || layout->pp < 1 || layout->vp < 1 || layout->cp < 1 || layout->ep < 1 ||
        layout->etp < 1) {
        ps_check_find(check, "alternative-layout", place, "every degree must be at least 1");
        return;
    }
    if (ranks != plan->num_ranks)
        ps_check_find(check, "alternative-layout", place,
                      "dp * tp * pp * cp is %" PRId64 ", the plan has %" PRId64 " ranks", ranks, plan->num_ranks);
    if (!has_whole_batch(plan, layout))
        ps_check_find(check, "alternative-layout", place,
                      "dp %" PRId32 " times %" PRId32 " micro-batches of size %" PRId32
                      " is not the global batch of %" PRId64,
                      layout->dp, layout->num_microbatches, layout->micro_batch_size, job->global_batch_size);
    if (!is_asked_for(job, layout))
        ps_check_find(check, "alternative-layout", place, "the job's options do not allow it");
    const char *misfit = find_misfit(plan, layout);
    if (misfit)
        ps_check_find(check, "alternative-layout", place, "%s", misfit);
}

void ps_check_alternatives(ps_check *check)
{
    const ps_plan *plan = check->plan;
    const ps_plan_search *search = &plan->search;
    int64_t best = plan->prediction.iteration_ns;
    int64_t before = best;
    int64_t capacity = 0;
    for (int32_t device = 0; device < plan->num_devices; device++)
        if (plan->device[device].memory.capacity > capacity)
            capacity = plan->device[device].memory.capacity;
    for (int32_t index = 0; index < search->num_alternatives; index++) {
        const ps_plan_alternative *other = &search->alternative[index];
        if (other->iteration_ns < before && plan->inputs.job.jitter_ppm == 0) // with jitter p95 decides
            ps_check_find(check, "alternative-order", PS_AT_1("/search/alternatives/#/iteration_ms", index),
                          index == 0 ? "faster than the plan itself" : "faster than the one before");
        before = other->iteration_ns;
        double loses = best > 0 ? (double)other->iteration_ns / (double)best - 1 : 0;
        ps_check_equal_rate(check, "alternative-loss", PS_AT_1("/search/alternatives/#/loses", index), other->loses,
                            loses);
        int64_t reserve = plan->inputs.job.memory_reserve_bytes;
        if (other->peak_bytes < reserve || other->peak_bytes > capacity)
            ps_check_find(check, "alternative-memory", PS_AT_1("/search/alternatives/#/peak_bytes", index),
                          "%" PRId64 " bytes: should be from the reserve, %" PRId64 ", to the capacity, %" PRId64,
                          other->peak_bytes, reserve, capacity);
        check_layout(check, index, &other->layout);
    }
}

static bool is_known_target(const char *name)
{
    static const char *const known[] = {"deepspeed", "megatron", "torchtitan"};
    for (size_t index = 0; index < sizeof known / sizeof *known; index++)
        if (strcmp(known[index], name) == 0)
            return true;
    return false;
}

// Other targets are the reader's to warn of.
void ps_check_launchable(ps_check *check)
{
    const ps_plan *plan = check->plan;
    for (int32_t index = 0; index < plan->num_launchable; index++) {
        const ps_plan_launchable *target = &plan->launchable[index];
        size_t size = strlen(target->target);
        bool of_target = strncmp(target->verdict, target->target, size) == 0 && target->verdict[size] == '-' &&
                         target->verdict[size + 1] != '\0';
        if (is_known_target(target->target) && strcmp(target->verdict, "ok") != 0 && !of_target)
            ps_check_find(check, "launch-verdict", PS_AT("/launchable"),
                          "%s is \"%.80s\": should be \"ok\" or a rule %s-...", target->target, target->verdict,
                          target->target);
    }
}
