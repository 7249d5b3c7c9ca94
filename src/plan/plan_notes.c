// SPDX-License-Identifier: Apache-2.0
//
// plan_notes.c: what a choice of schedule is worth, and what it does not go with.
//
// Predictions are good to some percent at best, so a schedule that gains less than that over a simpler one may well
// lose in practice. The plan says how much any order could gain at all, and which simpler plan is as good as equal.
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "job/dialect.h"
#include "plan/planner.h"
#include "plan/searched_layout.h"

// Gains below this share are within what even measured times are known to.
#define NOISE 0.05

typedef struct note_taker {
    ps_arena *arena;
    const ps_search_outcome *outcome;
    const ps_plan *plan;
    ps_diagnostic_list *notes;
} note_taker;

static void add(note_taker *taker, const char *level, const char *code, const char *message)
{
    *ps_vec_push(taker->arena, taker->notes) = (ps_plan_diagnostic){.level = level, .code = code, .message = message};
}

// A share as a percentage with two decimals, in whatever locale the caller runs.
static const char *percent(double share, char text[32])
{
    long long hundredths = llround(share * 1e4);
    snprintf(text, 32, "%lld.%02lld", hundredths / 100, hundredths % 100);
    return text;
}

static bool is_split(const ps_layout *layout)
{
    return ps_schedule_family_at(layout->schedule)->splits_backward;
}

// The most that any order of the same stages could gain.
static ps_code note_gain(note_taker *taker, ps_status *status)
{
    const ps_plan *plan = taker->plan;
    ps_pipeline pipeline;
    char text[32];
    char more[32];
    PS_TRY(ps_plan_pipeline(taker->arena, plan, &pipeline, status));
    int64_t least = ps_orders_bound(taker->arena, &pipeline, plan->inputs.job.optimizer_barrier);
    int64_t value = plan->prediction.pipeline_ns;
    if (least <= 0 || least >= value) {
        add(taker, "note", "schedule-gain", "no order of these stages' ops that fits is faster");
        return PS_OK;
    }
    double gain = (double)value / (double)least - 1;
    add(taker, "note", "schedule-gain",
        ps_text_format(taker->arena,
                       "no order of these stages' ops that fits runs the pipeline in less than %s: at "
                       "most %s %% faster%s",
                       ps_format_ns(least, text), percent(gain, more),
                       gain < NOISE ? ", which is within what the times are known to" : ""));
    return PS_OK;
}

static const char *targets_of(note_taker *taker, const ps_layout *layout)
{
    ps_text text = {.arena = taker->arena};
    for (int32_t index = 0; index < ps_dialect_count(); index++) {
        if (!ps_dialect_at(index)->forbids(layout))
            ps_text_addf(&text, "%s%s", text.size ? ", " : "", ps_dialect_at(index)->target);
    }
    return text.size ? text.data : "no target";
}

// ", cp 2, ep 8", what of it there is.
const char *ps_layout_rank_text(ps_arena *arena, const ps_layout *layout)
{
    ps_text text = {.arena = arena};
    ps_text_add(&text, "", 0);
    if (layout->cp > 1)
        ps_text_addf(&text, ", cp %d", (int)layout->cp);
    if (layout->ep > 1)
        ps_text_addf(&text, ", ep %d", (int)layout->ep);
    if (layout->etp != layout->tp)
        ps_text_addf(&text, ", etp %d", (int)layout->etp);
    return text.data;
}

// "1f1b at tp 4, pp 4, vp 1, dp 4, micro-batch size 1, recompute none"
static const char *name_of(ps_arena *arena, const ps_layout *layout)
{
    return ps_text_format(arena, "%s at tp %d, pp %d, vp %d, dp %d%s, micro-batch size %d, recompute %s",
                          ps_schedule_family_at(layout->schedule)->name, (int)layout->tp, (int)layout->pp,
                          (int)layout->vp, (int)layout->dp, ps_layout_rank_text(arena, layout),
                          (int)layout->micro_batch_size, ps_recompute_name(layout->recompute));
}

static void note_simpler(note_taker *taker)
{
    const ps_found_layout *whole = &taker->outcome->whole;
    char more[32];
    int64_t best = taker->plan->prediction.iteration_ns;
    if (!is_split(&taker->plan->layout) || !whole->candidate || best <= 0)
        return;
    const ps_layout *layout = &whole->candidate->layout;
    double loses = (double)whole->iteration_ns / (double)best - 1;
    if (loses < 0 || loses >= NOISE) // faster by time, but not by what the plans were ranked by
        return;
    add(taker, "note", "simpler-schedule",
        ps_text_format(taker->arena,
                       "%s, loses %s %%, which is within what the times are known to; it can be launched on %s",
                       name_of(taker->arena, layout), percent(loses, more), targets_of(taker, layout)));
}

static void note_cautions(note_taker *taker)
{
    const ps_layout *layout = &taker->plan->layout;
    if (is_split(layout) && layout->recompute != PS_RECOMPUTE_NONE)
        add(taker, "warning", "split-backward-recompute",
            "recomputing is priced as once a micro-batch; with a backward split into I and W it may run again for W and "
            "has been measured many times slower: measure before relying on this plan");
    for (int32_t index = 0; index < ps_dialect_count(); index++) {
        const ps_dialect *dialect = ps_dialect_at(index);
        const ps_caution *caution = dialect->caution && !dialect->forbids(layout) ? dialect->caution(layout) : NULL;
        if (caution)
            add(taker, "note", caution->rule, caution->message);
    }
}

ps_code ps_notes_add(ps_arena *arena, const ps_search_outcome *outcome, const ps_plan *plan, ps_diagnostic_list *notes,
                     ps_status *status)
{
    note_taker taker = {.arena = arena, .outcome = outcome, .plan = plan, .notes = notes};
    if (plan->layout.pp > 1)
        PS_TRY(note_gain(&taker, status));
    note_simpler(&taker);
    note_cautions(&taker);
    return PS_OK;
}

void ps_notes_add_jitter(ps_arena *arena, const ps_job *job, const ps_search_outcome *outcome,
                         const ps_found_layout *fastest, ps_diagnostic_list *notes)
{
    char share[32];
    char p95[32];
    char other[32];
    ps_text text = {.arena = arena};
    ps_text_addf(&text, "jitter %s %%, %d samples: ", ps_format_double((double)job->jitter_ppm / 1e4, share),
                 (int)job->jitter_samples); // the checker goes by this beginning
    if (outcome->found[0].p95_ns == 0)
        ps_text_addf(&text, "the time limit came first, so that the plans stand in the order of their times");
    else
        ps_text_addf(&text, "ranked by p95, %s of this plan", ps_format_ns(outcome->found[0].p95_ns, p95));
    for (int32_t index = 1; index < outcome->num_found; index++) {
        const ps_found_layout *found = &outcome->found[index];
        if (found->candidate != fastest->candidate || found->p95_ns == 0)
            continue;
        ps_text_addf(&text, "; %s, is the fastest without jitter, its p95 is %s",
                     name_of(arena, &found->candidate->layout), ps_format_ns(found->p95_ns, other));
    }
    *ps_vec_push(arena, notes) = (ps_plan_diagnostic){.level = "note", .code = "jitter", .message = text.data};
}
