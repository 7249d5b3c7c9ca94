// SPDX-License-Identifier: Apache-2.0
//
// layer_terms.c: times, memory and state of one layer, in the order in which `explain` shows them.
#include "cost/layer_terms.h"

#include <stddef.h>
#include <string.h>

#include "base/number.h"
#include "cost/communication.h"
#include "cost/constants.h"
#include "cost/measurements.h"
#include "cost/predicted.h"
#include "cost/state.h"
#include "pipesched/limits.h"

// Figures in a layer are those of one micro-batch of one sequence on one GPU; without an architecture they are all
// there is, and layout_rules.c has refused other layouts.
static bool given_figures_hold(const ps_rank_view *view, const ps_layer *layer)
{
    return !layer->block || (view->layout->tp == 1 && view->layout->cp == 1 && view->layout->ep == 1 &&
                             view->layout->micro_batch_size == 1);
}

static void add_given_ns(ps_ledger *ledger, ps_quantity quantity, int64_t ns)
{
    if (ns > 0)
        ps_ledger_add(ledger, quantity, "given", (double)ns * 1e-9);
}

// Share of the forward that recompute runs again: of what the architecture predicts.
static ps_code recomputed_share(const ps_rank_view *view, const ps_layer *layer, double *share, ps_status *status)
{
    ps_ledger predicted = {0};

    *share = 0;
    if (!layer->block || !ps_layer_is_recomputed(layer) || view->layout->recompute == PS_RECOMPUTE_NONE)
        return PS_OK;
    *share = 1;
    if (view->layout->recompute == PS_RECOMPUTE_FULL)
        return PS_OK;
    PS_TRY(ps_rank_view_check_gpu(view, status));
    ps_predicted_terms(view, layer, &predicted);
    *share = predicted.sum[PS_QUANTITY_RECOMPUTE] / predicted.sum[PS_QUANTITY_FORWARD];
    return PS_OK;
}

// What is known of the passes is not predicted.
static ps_code close_times(const ps_rank_view *view, const ps_layer *layer, ps_ledger *ledger, ps_status *status)
{
    double share = 0;

    PS_TRY(recomputed_share(view, layer, &share, status));
    ps_ledger_add(ledger, PS_QUANTITY_RECOMPUTE, "the forward again, as much of it as is recomputed",
                  share * ledger->sum[PS_QUANTITY_FORWARD]);
    for (ps_quantity quantity = PS_QUANTITY_FORWARD; quantity <= PS_QUANTITY_RECOMPUTE; quantity++)
        ledger->closed[quantity] = true;
    return PS_OK;
}

static ps_code add_known_times(const ps_rank_view *view, const ps_model *model, const ps_layer *layer,
                               ps_ledger *ledger, ps_time_source *source, ps_status *status)
{
    if (layer->forward_ns >= 0 && given_figures_hold(view, layer)) {
        *source = PS_TIMES_GIVEN;
        add_given_ns(ledger, PS_QUANTITY_FORWARD, layer->forward_ns);
        add_given_ns(ledger, PS_QUANTITY_BACKWARD_INPUT, layer->backward_input_ns);
        add_given_ns(ledger, PS_QUANTITY_BACKWARD_WEIGHT, layer->backward_weight_ns);
        return close_times(view, layer, ledger, status);
    }
    ps_measured_times measured;
    PS_TRY(ps_measured_times_find(view, model, layer, &measured, status));
    if (measured.found) {
        *source = PS_TIMES_MEASURED;
        ps_ledger_add(ledger, PS_QUANTITY_FORWARD, measured.how, measured.forward_seconds);
        ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_INPUT, measured.how, measured.backward_input_seconds);
        ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_WEIGHT, measured.how, measured.backward_weight_seconds);
        return close_times(view, layer, ledger, status);
    }
    *source = PS_TIMES_PREDICTED;
    return ps_rank_view_check_gpu(view, status);
}

static double gather_seconds(const ps_rank_view *view, ps_rank_weights weights, double element_bytes)
{
    const ps_layout *layout = view->layout;
    double dense = ps_reduce_scatter_seconds(view->group, ps_rank_replicas(layout), layout->tp,
                                             element_bytes * (weights.dense + weights.frozen));
    double expert = ps_reduce_scatter_seconds(view->group, ps_rank_expert_replicas(layout),
                                              ps_rank_etp(layout) * layout->ep, element_bytes * weights.expert);
    return (dense + expert) * ps_calibration_factor(view->job, PS_FACTOR_DP);
}

static void add_beyond(ps_ledger *ledger, ps_quantity quantity, double seconds)
{
    static const char formula[] = "ZeRO-3: gather of w*P or scatter of gradients beyond the pass that hides it";

    if (seconds > ledger->sum[quantity])
        ps_ledger_add(ledger, quantity, formula, seconds - ledger->sum[quantity]);
}

// ZeRO-3 gathers a layer's weights before each pass and scatters its gradients after; what the pass does not hide is
// added, which makes each pass max(compute, communication).
static void add_zero3_exposed(const ps_rank_view *view, ps_rank_weights weights, ps_ledger *ledger)
{
    ps_rank_weights trained = {.dense = weights.dense, .expert = weights.expert};

    if (view->layout->zero < 3)
        return;
    double gather = gather_seconds(view, weights, view->element_bytes);
    add_beyond(ledger, PS_QUANTITY_FORWARD, gather);
    add_beyond(ledger, PS_QUANTITY_BACKWARD_INPUT, gather);
    add_beyond(ledger, PS_QUANTITY_BACKWARD_WEIGHT, gather_seconds(view, trained, (double)view->job->gradient_bytes));
}

// A layer without architecture recomputes from its input, which is the output of the layer before, where that is
// known and smaller than what the layer holds.
static void add_timed_recompute(const ps_model *model, int32_t index, ps_ledger *ledger)
{
    const ps_layer *layer = &model->layer[index];
    int64_t held = layer->held_after_forward_bytes > 0 ? layer->held_after_forward_bytes : 0;
    int64_t input = index > 0 ? model->layer[index - 1].output_bytes : 0;

    if (input <= 0 || input >= held) {
        ps_ledger_add(ledger, PS_QUANTITY_HELD_FORWARD, "given", (double)held);
        return;
    }
    ledger->closed[PS_QUANTITY_RECOMPUTE] = false;
    ps_ledger_add(ledger, PS_QUANTITY_RECOMPUTE, "the forward again", ledger->sum[PS_QUANTITY_FORWARD]);
    ps_ledger_add(ledger, PS_QUANTITY_HELD_FORWARD, "input: output of the layer before", (double)input);
    ps_ledger_add(ledger, PS_QUANTITY_RECOMPUTED, "given", (double)held);
    ps_ledger_add(ledger, PS_QUANTITY_TRANSIENT, "what one recomputed layer holds, given", (double)held);
}

static int64_t given_or_none(int64_t figure)
{
    return figure > 0 ? figure : 0;
}

static void add_timed_memory(const ps_rank_view *view, const ps_model *model, int32_t index, ps_ledger *ledger)
{
    const ps_layer *layer = &model->layer[index];

    if (view->layout->recompute == PS_RECOMPUTE_FULL)
        add_timed_recompute(model, index, ledger);
    else
        ps_ledger_add(ledger, PS_QUANTITY_HELD_FORWARD, "given",
                      (double)given_or_none(layer->held_after_forward_bytes));
    ps_ledger_add(ledger, PS_QUANTITY_HELD_BACKWARD_INPUT, "given",
                  (double)given_or_none(layer->held_after_backward_input_bytes));
    ps_ledger_add(ledger, PS_QUANTITY_TRANSIENT, "given", (double)given_or_none(layer->transient_bytes));
    ps_ledger_add(ledger, PS_QUANTITY_OUTPUT, "given", (double)given_or_none(layer->output_bytes));
}

// A figure that the user gives replaces what the architecture predicts.
static void add_given_bytes(ps_ledger *ledger, ps_quantity quantity, int64_t bytes)
{
    if (bytes < 0)
        return;
    ps_ledger_add(ledger, quantity, "given", (double)bytes);
    ledger->closed[quantity] = true;
}

// Recompute changes what is held and while a layer runs, so given figures of those hold only without it.
static void add_given_memory(const ps_rank_view *view, const ps_layer *layer, ps_ledger *ledger)
{
    bool changed = view->layout->recompute != PS_RECOMPUTE_NONE && ps_layer_is_recomputed(layer);

    if (!given_figures_hold(view, layer))
        return;
    add_given_bytes(ledger, PS_QUANTITY_HELD_FORWARD, changed ? PS_NOT_GIVEN : layer->held_after_forward_bytes);
    add_given_bytes(ledger, PS_QUANTITY_HELD_BACKWARD_INPUT, layer->held_after_backward_input_bytes);
    add_given_bytes(ledger, PS_QUANTITY_TRANSIENT, changed ? PS_NOT_GIVEN : layer->transient_bytes);
    add_given_bytes(ledger, PS_QUANTITY_OUTPUT, layer->output_bytes);
}

// Copies to the host run beside the forward, copies back beside the backward; one layer's share is back at a time.
static void add_offload(const ps_rank_view *view, ps_ledger *ledger)
{
    static const char beyond[] = "offload: share of what is held / PCIe rate, beyond the pass that hides it";
    double share = (double)view->job->offload_activations_ppm / 1e6;
    double bytes = share * ledger->sum[PS_QUANTITY_HELD_FORWARD];
    double pcie = view->group->gpu.pcie_bytes_per_s.value;
    double seconds = bytes / (pcie > 0 ? pcie : PS_COST_LINK_BYTES_PER_S);
    double backward = ledger->sum[PS_QUANTITY_BACKWARD_INPUT] + ledger->sum[PS_QUANTITY_BACKWARD_WEIGHT] +
                      ledger->sum[PS_QUANTITY_RECOMPUTE];

    if (bytes <= 0)
        return;
    if (seconds > ledger->sum[PS_QUANTITY_FORWARD])
        ps_ledger_add(ledger, PS_QUANTITY_FORWARD, beyond, seconds - ledger->sum[PS_QUANTITY_FORWARD]);
    if (seconds > backward)
        ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_INPUT, beyond, seconds - backward);
    ps_ledger_add(ledger, PS_QUANTITY_HELD_FORWARD, "offload: share that waits in host memory", -bytes);
    ps_ledger_add(ledger, PS_QUANTITY_TRANSIENT, "offload: what is back for this layer", bytes);
}

ps_code ps_layer_terms(const ps_rank_view *view, const ps_model *model, int32_t layer, ps_ledger *ledger,
                       ps_time_source *source, ps_status *status)
{
    const ps_layer *l = &model->layer[layer];
    ps_rank_weights weights = ps_rank_weights_of(view, l);

    ledger->layer = l->name;
    PS_TRY(add_known_times(view, model, l, ledger, source, status));
    if (l->block) {
        add_given_memory(view, l, ledger);
        ps_predicted_terms(view, l, ledger);
    } else {
        add_timed_memory(view, model, layer, ledger);
    }
    memset(ledger->closed, 0, sizeof ledger->closed); // what follows comes on top of given figures too
    add_zero3_exposed(view, weights, ledger);
    add_offload(view, ledger);
    ps_state_terms(view, weights, ledger);
    return PS_OK;
}

ps_code ps_layer_cost_of(const ps_ledger *ledger, ps_layer_cost *out, ps_status *status)
{
    const double *sum = ledger->sum;

    PS_TRY(ps_ns_from_seconds(sum[PS_QUANTITY_FORWARD], PS_MAX_LAYER_NS, &out->forward_ns, status));
    PS_TRY(ps_ns_from_seconds(sum[PS_QUANTITY_BACKWARD_INPUT], PS_MAX_LAYER_NS, &out->backward_input_ns, status));
    PS_TRY(ps_ns_from_seconds(sum[PS_QUANTITY_BACKWARD_WEIGHT], PS_MAX_LAYER_NS, &out->backward_weight_ns, status));
    PS_TRY(ps_ns_from_seconds(sum[PS_QUANTITY_RECOMPUTE], PS_MAX_LAYER_NS, &out->recompute_ns, status));

    const struct {
        ps_quantity quantity;
        int64_t *bytes;
    } sizes[] = {
        {PS_QUANTITY_HELD_FORWARD, &out->held_after_forward_bytes},
        {PS_QUANTITY_RECOMPUTED, &out->recomputed_bytes},
        {PS_QUANTITY_HELD_BACKWARD_INPUT, &out->held_after_backward_input_bytes},
        {PS_QUANTITY_TRANSIENT, &out->transient_bytes},
        {PS_QUANTITY_OUTPUT, &out->output_bytes},
        {PS_QUANTITY_PARAMETERS, &out->parameters},
        {PS_QUANTITY_EXPERT_PARAMETERS, &out->expert_parameters},
        {PS_QUANTITY_FROZEN_PARAMETERS, &out->frozen_parameters},
        {PS_QUANTITY_COPY_PARAMETERS, &out->copy_parameters},
        {PS_QUANTITY_PARAMETER_BYTES, &out->parameter_bytes},
        {PS_QUANTITY_GRADIENT_BYTES, &out->gradient_bytes},
        {PS_QUANTITY_OPTIMIZER_BYTES, &out->optimizer_bytes},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        PS_TRY(ps_bytes_from_double(sum[sizes[i].quantity], PS_MAX_BYTES, sizes[i].bytes, status));
    return PS_OK;
}
