// SPDX-License-Identifier: Apache-2.0
//
// plan_summary.c: the plan as a page of text. It formats what it is given and computes nothing but percentages.
#include "report/plan_summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

typedef struct summary_page {
    ps_arena *arena;
    FILE *file;
    const ps_plan *plan;
    const ps_report_style *style;
} summary_page;

static void print_heading(const summary_page *page, const char *label)
{
    if (page->style->color)
        fprintf(page->file, "  \033[1m%-10s\033[0m ", label);
    else
        fprintf(page->file, "  %-10s ", label);
}

static const char *time_text(int64_t ns, char text[32])
{
    return ps_format_ns(ns, text);
}

static void print_layout(const summary_page *page, const ps_layout *layout)
{
    fprintf(page->file, "tp %d  pp %d  dp %d", (int)layout->tp, (int)layout->pp, (int)layout->dp);
    if (layout->cp > 1)
        fprintf(page->file, "  cp %d", (int)layout->cp);
    if (layout->ep > 1)
        fprintf(page->file, "  ep %d", (int)layout->ep);
    if (layout->etp != layout->tp)
        fprintf(page->file, "  etp %d", (int)layout->etp);
    fprintf(page->file, "  micro-batch %d x %d  %s", (int)layout->micro_batch_size, (int)layout->num_microbatches,
            ps_schedule_family_at(layout->schedule)->name);
    if (layout->vp > 1)
        fprintf(page->file, " (%d stages a rank)", (int)layout->vp);
    fprintf(page->file, "  recompute %s  ZeRO %d", ps_recompute_name(layout->recompute), (int)layout->zero);
}

static void print_title(const summary_page *page)
{
    const ps_plan_inputs *inputs = &page->plan->inputs;
    int64_t gpus = (int64_t)inputs->cluster_nodes * inputs->gpus_per_node;
    fprintf(page->file, "%s on %s: %" PRId64 " GPU%s, global batch %" PRId64 ", sequence %" PRId64 ", %s\n\n",
            inputs->model_name, inputs->cluster_name, gpus, ps_plural(gpus), inputs->job.global_batch_size,
            inputs->job.seq_length, ps_precision_name(inputs->job.precision));
}

static void print_prediction(const summary_page *page)
{
    const ps_plan_prediction *prediction = &page->plan->prediction;
    const ps_plan_bounds *bounds = &page->plan->bounds;
    char a[32], b[32], c[32], d[32], e[32];

    print_heading(page, "Iteration");
    fprintf(page->file, "%s = pipeline %s + gradient sync %s + optimizer %s + parameter gather %s\n",
            time_text(prediction->iteration_ns, a), time_text(prediction->pipeline_ns, b),
            time_text(prediction->grad_sync_exposed_ns, c), time_text(prediction->optimizer_ns, d),
            time_text(prediction->param_gather_exposed_ns, e));
    print_heading(page, "Speed");
    fprintf(page->file, "%s tokens/s, %.1f TFLOP/s a GPU, MFU %.1f %%\n",
            ps_format_count((int64_t)prediction->tokens_per_s, a), prediction->model_tflops_per_gpu,
            100 * prediction->mfu);
    print_heading(page, "Bubble");
    fprintf(page->file, "%.2f %% of the makespan, %.2f %% of the span\n", 100 * prediction->bubble,
            100 * prediction->span_bubble);
    print_heading(page, "Bound");
    if (bounds->proved)
        fprintf(page->file, "%s: proved, no enumerated layout is faster\n", time_text(bounds->iteration_ns, a));
    else
        fprintf(page->file, "%s (%s): this plan is within %.2f %% of the best\n", time_text(bounds->iteration_ns, a),
                bounds->limited_by, 100 * bounds->gap);
    print_heading(page, "Accuracy");
    fprintf(page->file, "%s\n", prediction->accuracy);
    if (prediction->usd_per_iteration > 0) {
        print_heading(page, "Cost");
        fprintf(page->file, prediction->usd_per_iteration < 100 ? "%.3g USD an iteration\n" : "%.0f USD an iteration\n",
                prediction->usd_per_iteration);
    }
}

// "block.3" and "block.4" are neighbours: the same words and numbers that follow each other.
static bool follows(const char *name, const char *next)
{
    size_t stem = strlen(name);
    while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9')
        stem--;
    if (stem == strlen(name) || strncmp(name, next, stem) != 0 || next[stem] < '0' || next[stem] > '9')
        return false;
    return strtol(name + stem, NULL, 10) + 1 == strtol(next + stem, NULL, 10);
}

// "embedding, block.0 - block.18": runs of numbered layers are written by their ends.
static void add_layers(ps_text *text, const ps_plan_stage *stage)
{
    for (int32_t first = 0; first < stage->num_layers;) {
        int32_t last = first;
        while (last + 1 < stage->num_layers && follows(stage->layer_name[last], stage->layer_name[last + 1]))
            last++;
        ps_text_addf(text, "%s%s", text->size ? ", " : "", stage->layer_name[first]);
        if (last > first) {
            const char *dot = strrchr(stage->layer_name[last], '.');
            ps_text_addf(text, "-%s", dot ? dot + 1 : stage->layer_name[last]);
        }
        first = last + 1;
    }
}

static void print_device(const summary_page *page, const ps_plan_device *device)
{
    char busy[32], idle[32], peak[32], head[32];
    ps_text layers = {.arena = page->arena};

    for (int32_t chunk = 0; chunk < device->num_stages; chunk++) {
        ps_text one = {.arena = page->arena};
        add_layers(&one, &page->plan->stage[device->stage[chunk]]);
        ps_text_addf(&layers, "%s%s", chunk ? " | " : "", one.data);
    }
    fprintf(page->file, "  %4d  %9s %9s  %10s  %10s  %9d  %s\n", (int)device->pp_rank, time_text(device->busy_ns, busy),
            time_text(device->idle_ns, idle), ps_format_bytes(device->memory.total_peak, peak),
            ps_format_bytes(device->memory.headroom, head), (int)device->in_flight_peak, layers.data);
}

static void print_devices(const summary_page *page)
{
    const ps_plan *plan = page->plan;
    char capacity[32];
    fprintf(page->file, "\n  rank       busy      idle        peak    headroom  in flight  layers   (capacity %s)\n",
            ps_format_bytes(plan->device[0].memory.capacity, capacity));
    for (int32_t device = 0; device < plan->num_devices; device++)
        print_device(page, &plan->device[device]);
}

static void print_alternatives(const summary_page *page, bool verbose)
{
    const ps_plan_search *search = &page->plan->search;
    int32_t shown = verbose || search->num_alternatives < 3 ? search->num_alternatives : 3;
    char peak[32];

    if (shown > 0)
        fputs("\n  Next best\n", page->file);
    for (int32_t index = 0; index < shown; index++) {
        const ps_plan_alternative *other = &search->alternative[index];
        // Ranked by p95, the next may be faster.
        fprintf(page->file, other->loses < 0 ? "    %6.2f %%  " : "    +%5.2f %%  ", 100 * other->loses);
        print_layout(page, &other->layout);
        fprintf(page->file, "  peak %s\n", ps_format_bytes(other->peak_bytes, peak));
    }
}

static void print_launchable(const summary_page *page)
{
    const ps_plan *plan = page->plan;
    print_heading(page, "Launch");
    for (int32_t index = 0; index < plan->num_launchable; index++) {
        const ps_plan_launchable *target = &plan->launchable[index];
        bool runs = strcmp(target->verdict, "ok") == 0;
        fprintf(page->file, "%s%s", index ? ", " : "", target->target);
        if (!runs)
            fprintf(page->file, " no (%s)", target->verdict);
    }
    fputs("\n", page->file);
}

static void print_search(const summary_page *page, bool verbose)
{
    const ps_plan_search *search = &page->plan->search;
    fprintf(page->file, "\n  %" PRId64 " layout%s: %" PRId64 " evaluated, %" PRId64 " pruned by bound",
            search->candidates, ps_plural(search->candidates), search->evaluated, search->pruned);
    for (int32_t index = 0; index < search->num_infeasible; index++)
        fprintf(page->file, "%s %" PRId64 " %s", index ? "," : "; ruled out:", search->infeasible[index].count,
                search->infeasible[index].rule);
    fputs("\n", page->file);
    if (!verbose)
        return;
    for (int32_t index = 0; index < page->plan->num_hops; index++) {
        const ps_plan_hop *hop = &page->plan->hop[index];
        char bytes[32], latency[32], transfer[32];
        fprintf(page->file, "  hop %d -> %d: %s over %s, latency %s, transfer %s\n", (int)hop->from_stage,
                (int)hop->to_stage, ps_format_bytes(hop->bytes, bytes), hop->link, time_text(hop->latency_ns, latency),
                time_text(hop->transfer_ns, transfer));
    }
}

static void print_diagnostics(const summary_page *page)
{
    for (int32_t index = 0; index < page->plan->num_diagnostics; index++) {
        const ps_plan_diagnostic *diagnostic = &page->plan->diagnostic[index];
        fprintf(page->file, "  %s: %s\n", diagnostic->level, diagnostic->message);
    }
}

static void print_reasons(const summary_page *page)
{
    fprintf(page->file, "  Infeasible: no layout works\n");
    for (int32_t index = 0; index < page->plan->num_reasons; index++) {
        const ps_reason *reason = &page->plan->reason[index];
        fprintf(page->file, "  %s: %s\n", reason->rule, reason->message);
        if (reason->dominant)
            fprintf(page->file, "    largest term: %s\n", reason->dominant);
        if (reason->hint)
            fprintf(page->file, "    would fit: %s\n", reason->hint);
    }
}

void ps_report_plan(ps_arena *arena, FILE *file, const ps_plan *plan, bool verbose, const ps_report_style *style)
{
    summary_page page = {.arena = arena, .file = file, .plan = plan, .style = style};
    print_title(&page);
    if (plan->feasible) {
        print_heading(&page, "Layout");
        print_layout(&page, &plan->layout);
        fputs("\n", file);
        print_prediction(&page);
        print_launchable(&page);
        print_devices(&page);
        print_alternatives(&page, verbose);
    } else {
        print_reasons(&page);
    }
    print_search(&page, verbose);
    print_diagnostics(&page);
}
