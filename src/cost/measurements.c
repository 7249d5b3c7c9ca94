// SPDX-License-Identifier: Apache-2.0
//
// measurements.c: find, interpolate, or refuse.
//
// Linear in tokens is what GEMMs and elementwise work are once they fill the GPU (t = a*T + b). Attention is quadratic
// in the sequence, so sets of the layout's own sequence length come first.
#include "cost/measurements.h"

#include <string.h>

typedef struct point {
    const ps_measured_layer *times;
    int64_t tokens;
    bool same_sequence;
} point;

static const ps_measured_layer *times_in(const ps_measurement *set, const char *base_name)
{
    for (int32_t i = 0; i < set->num_layers; i++)
        if (strcmp(set->layer[i].base_name, base_name) == 0)
            return &set->layer[i];
    return NULL;
}

static bool same_conditions(const ps_rank_view *view, const ps_measurement *set)
{
    const ps_layout *layout = view->layout;
    return strcmp(set->gpu, view->group->gpu.name) == 0 && set->precision == view->job->precision &&
           set->tp == layout->tp && set->cp == layout->cp && set->ep == layout->ep;
}

static int64_t distance(int64_t a, int64_t b)
{
    return a > b ? a - b : b - a;
}

// Nearer in tokens, then of the same sequence length, then earlier in the file.
static bool is_nearer(point candidate, point best, int64_t tokens)
{
    int64_t mine = distance(candidate.tokens, tokens);
    int64_t other = distance(best.tokens, tokens);

    if (!best.times || mine != other)
        return !best.times || mine < other;
    return candidate.same_sequence && !best.same_sequence;
}

typedef struct neighbours {
    point below; // at most the wanted tokens
    point above; // at least
    point nearest;
    point second;      // next nearest of another size
    int32_t elsewhere; // sets that time the layer under other conditions
} neighbours;

static neighbours find_neighbours(const ps_rank_view *view, const ps_model *model, const ps_layer *layer,
                                  int64_t tokens)
{
    neighbours n = {0};

    for (int32_t i = 0; i < model->num_measurements; i++) {
        const ps_measurement *set = &model->measurement[i];
        point candidate = {.times = times_in(set, layer->base_name),
                           .tokens = set->micro_batch_size * set->seq_length,
                           .same_sequence = set->seq_length == view->job->seq_length};
        if (!candidate.times)
            continue;
        if (!same_conditions(view, set)) {
            n.elsewhere++;
            continue;
        }
        if (candidate.tokens <= tokens && is_nearer(candidate, n.below, tokens))
            n.below = candidate;
        if (candidate.tokens >= tokens && is_nearer(candidate, n.above, tokens))
            n.above = candidate;
        if (is_nearer(candidate, n.nearest, tokens)) {
            if (n.nearest.times && n.nearest.tokens != candidate.tokens)
                n.second = n.nearest;
            n.nearest = candidate;
        } else if (candidate.tokens != n.nearest.tokens && is_nearer(candidate, n.second, tokens)) {
            n.second = candidate;
        }
    }
    return n;
}

static double line(int64_t ns_a, int64_t ns_b, double share)
{
    double ns = (double)ns_a + ((double)ns_b - (double)ns_a) * share;
    return ns > 0 ? ns * 1e-9 : 0;
}

static ps_measured_times on_line(point a, point b, int64_t tokens, const char *how)
{
    double share = a.tokens == b.tokens ? 0 : (double)(tokens - a.tokens) / (double)(b.tokens - a.tokens);
    return (ps_measured_times){
        .found = true,
        .how = how,
        .forward_seconds = line(a.times->forward_ns, b.times->forward_ns, share),
        .backward_input_seconds = line(a.times->backward_input_ns, b.times->backward_input_ns, share),
        .backward_weight_seconds = line(a.times->backward_weight_ns, b.times->backward_weight_ns, share),
    };
}

// From one size only: in proportion to tokens, a line through the origin.
static ps_measured_times in_proportion(point a, int64_t tokens)
{
    double share = (double)tokens / (double)a.tokens;
    return (ps_measured_times){
        .found = true,
        .how = "measured at one size, in proportion to tokens",
        .forward_seconds = (double)a.times->forward_ns * share * 1e-9,
        .backward_input_seconds = (double)a.times->backward_input_ns * share * 1e-9,
        .backward_weight_seconds = (double)a.times->backward_weight_ns * share * 1e-9,
    };
}

static ps_code refuse(const ps_rank_view *view, const ps_layer *layer, neighbours n, ps_status *status)
{
    const ps_layout *layout = view->layout;

    ps_fail(
        status, PS_ILLEGAL, "measurement-missing",
        "layer %s is not measured on %s in %s with tp %d, cp %d, ep %d, micro-batches of %d and %lld tokens a sequence",
        layer->name, view->group->gpu.name, ps_precision_name(view->job->precision), (int)layout->tp, (int)layout->cp,
        (int)layout->ep, (int)layout->micro_batch_size, (long long)view->job->seq_length);
    if (n.nearest.times)
        return ps_fail_hint(status,
                            "the nearest measurement has %lld tokens a micro-batch; measure a size beyond, or use "
                            "--extrapolate",
                            (long long)n.nearest.tokens);
    if (layer->block)
        return ps_fail_hint(status, "measure these conditions, or use --extrapolate to predict from the architecture");
    return ps_fail_hint(status, "measure these conditions, or give the layer's times or architecture");
}

ps_code ps_measured_times_find(const ps_rank_view *view, const ps_model *model, const ps_layer *layer,
                               ps_measured_times *out, ps_status *status)
{
    int64_t tokens = (int64_t)view->layout->micro_batch_size * view->job->seq_length;
    neighbours n = find_neighbours(view, model, layer, tokens);

    *out = (ps_measured_times){0};
    if (n.below.times && n.above.times) {
        bool exact = n.below.tokens == tokens;
        *out = on_line(n.below, exact ? n.below : n.above, tokens,
                       exact ? "measured" : "measured, between two sizes of micro-batch");
        return PS_OK;
    }
    if (!n.nearest.times && n.elsewhere == 0 && layer->block)
        return PS_OK; // measured nowhere: predicted
    if (!view->job->extrapolate)
        return refuse(view, layer, n, status);
    if (n.second.times)
        *out = on_line(n.nearest, n.second, tokens, "measured, beyond the measured sizes");
    else if (n.nearest.times)
        *out = in_proportion(n.nearest, tokens);
    else if (!layer->block)
        return refuse(view, layer, n, status);
    return PS_OK;
}
