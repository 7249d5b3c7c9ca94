// SPDX-License-Identifier: Apache-2.0
//
// cost_table.c: one row a layer, and prefix sums so that a stage's cost is one subtraction.
#include "base/number.h"
#include "base/text.h"
#include "cost/constants.h"
#include "cost/layer_terms.h"
#include "cost/model_flops.h"

#include <string.h>

// Repeated layers share their block and figures: each distinct one is computed once. Most models have four or five.
enum { DISTINCT_MAX = 8 };

typedef struct distinct {
    int32_t count;
    int32_t layer[DISTINCT_MAX];
} distinct;

static int64_t output_before(const ps_model *model, int32_t layer)
{
    return layer > 0 ? model->layer[layer - 1].output_bytes : 0;
}

static bool same_cost(const ps_model *model, int32_t i, int32_t j)
{
    const ps_layer *a = &model->layer[i];
    const ps_layer *b = &model->layer[j];

    return a->class_ == b->class_ && a->block == b->block && a->parameters == b->parameters &&
           a->shared_parameters == b->shared_parameters && a->shared_with == b->shared_with &&
           a->active_parameters == b->active_parameters && a->expert_parameters == b->expert_parameters &&
           a->forward_ns == b->forward_ns && a->backward_input_ns == b->backward_input_ns &&
           a->backward_weight_ns == b->backward_weight_ns &&
           a->held_after_forward_bytes == b->held_after_forward_bytes &&
           a->held_after_backward_input_bytes == b->held_after_backward_input_bytes &&
           a->transient_bytes == b->transient_bytes && a->output_bytes == b->output_bytes &&
           output_before(model, i) == output_before(model, j) &&
           (model->num_measurements == 0 || strcmp(a->base_name, b->base_name) == 0);
}

// An earlier layer of equal cost, or -1.
static int32_t find_same(const ps_model *model, const distinct *seen, int32_t layer)
{
    for (int32_t i = 0; i < seen->count; i++)
        if (same_cost(model, layer, seen->layer[i]))
            return seen->layer[i];
    return -1;
}

static ps_code add_to(int64_t *sum, int64_t value, ps_status *status)
{
    if (ps_add_checked(*sum, value, sum))
        return PS_OK;
    return ps_fail(status, PS_BAD_INPUT, "out-of-range", "the sum over the layers is beyond 2^63");
}

static ps_code add_costs(const ps_layer_cost *a, const ps_layer_cost *b, ps_layer_cost *out, ps_status *status)
{
    *out = *a;
    out->transient_bytes = 0; // not additive
    out->output_bytes = 0;
    PS_TRY(add_to(&out->forward_ns, b->forward_ns, status));
    PS_TRY(add_to(&out->backward_input_ns, b->backward_input_ns, status));
    PS_TRY(add_to(&out->backward_weight_ns, b->backward_weight_ns, status));
    PS_TRY(add_to(&out->recompute_ns, b->recompute_ns, status));
    PS_TRY(add_to(&out->held_after_forward_bytes, b->held_after_forward_bytes, status));
    PS_TRY(add_to(&out->recomputed_bytes, b->recomputed_bytes, status));
    PS_TRY(add_to(&out->held_after_backward_input_bytes, b->held_after_backward_input_bytes, status));
    PS_TRY(add_to(&out->parameters, b->parameters, status));
    PS_TRY(add_to(&out->parameter_bytes, b->parameter_bytes, status));
    PS_TRY(add_to(&out->gradient_bytes, b->gradient_bytes, status));
    PS_TRY(add_to(&out->optimizer_bytes, b->optimizer_bytes, status));
    PS_TRY(add_to(&out->expert_parameters, b->expert_parameters, status));
    PS_TRY(add_to(&out->frozen_parameters, b->frozen_parameters, status));
    return add_to(&out->copy_parameters, b->copy_parameters, status);
}

// GPU types with published runs in the comparison of docs/cost-model.md.
static bool has_compared_runs(const char *gpu)
{
    return strncmp(gpu, "A100", 4) == 0 || strncmp(gpu, "H100", 4) == 0;
}

double ps_cost_expected_error(const char *gpu)
{
    return has_compared_runs(gpu) ? 0.10 : 0.20;
}

static const char *uncalibrated_text(bool mixed, const char *gpu)
{
    if (has_compared_runs(gpu))
        return mixed ? "partly predicted, uncalibrated: expect +-10 % of those layers"
                     : "uncalibrated: expect +-10 % of the iteration time";
    return mixed ? "partly predicted, uncalibrated: expect +-20 % of those layers"
                 : "uncalibrated: expect +-20 % of the iteration time";
}

static const char *accuracy_text(ps_arena *arena, const int32_t count[PS_TIMES_PREDICTED + 1], const ps_rank_view *view)
{
    const ps_calibration *calibration = view->job->calibration;
    bool mixed = count[PS_TIMES_GIVEN] + count[PS_TIMES_MEASURED] > 0;

    if (count[PS_TIMES_PREDICTED] == 0)
        return count[PS_TIMES_MEASURED] == 0 ? "times given" : "times measured";
    if (!calibration || calibration->runs == 0)
        return uncalibrated_text(mixed, view->group->gpu.name);
    const char *what = mixed ? "partly predicted, calibrated" : "calibrated";
    if (calibration->leave_one_out < 0)
        return ps_text_format(arena, "%s on %d run%s, which no other judges: expect +-%d %% of the iteration time",
                              what, (int)calibration->runs, ps_plural(calibration->runs),
                              has_compared_runs(view->group->gpu.name) ? (int)PS_COST_ONE_RUN_PERCENT
                                                                       : (int)PS_COST_ONE_RUN_PERCENT_ELSEWHERE);
    return ps_text_format(arena, "%s on %d runs: +-%.1f %% of the iteration time where one is left out", what,
                          (int)calibration->runs, 100 * calibration->leave_one_out);
}

ps_code ps_cost_table_build(ps_arena *arena, const ps_model *model, const ps_group *group, const ps_job *job,
                            const ps_layout *layout, ps_cost_table *out, ps_status *status)
{
    ps_rank_view view = ps_rank_view_of(group, job, layout);
    int32_t count[PS_TIMES_PREDICTED + 1] = {0};
    ps_time_source source = PS_TIMES_GIVEN;
    distinct seen = {0};

    PS_TRY(ps_rank_view_check(&view, model, status));
    *out = (ps_cost_table){.layout = *layout, .num_layers = model->num_layers};
    out->layer = ps_new(arena, ps_layer_cost, model->num_layers);
    out->prefix = ps_new(arena, ps_layer_cost, (int64_t)model->num_layers + 1);
    ps_time_source *sources = ps_new(arena, ps_time_source, model->num_layers);

    for (int32_t i = 0; i < model->num_layers; i++) {
        int32_t same = find_same(model, &seen, i);
        if (same >= 0) {
            out->layer[i] = out->layer[same];
            source = sources[same];
        } else {
            ps_ledger ledger = {0};
            PS_TRY(ps_layer_terms(&view, model, i, &ledger, &source, status));
            if (ps_layer_cost_of(&ledger, &out->layer[i], status) != PS_OK)
                return ps_fail_hint(status, "layer %s with micro-batches of %d sequences of %lld tokens",
                                    model->layer[i].name, (int)layout->micro_batch_size, (long long)job->seq_length);
            seen.layer[seen.count < DISTINCT_MAX ? seen.count++ : DISTINCT_MAX - 1] = i;
        }
        sources[i] = source;
        count[source]++;
        out->model_flops += ps_layer_model_flops(&model->layer[i], job->seq_length);
        PS_TRY(add_costs(&out->prefix[i], &out->layer[i], &out->prefix[i + 1], status));
    }
    out->num_measured = count[PS_TIMES_GIVEN] + count[PS_TIMES_MEASURED];
    out->accuracy = accuracy_text(arena, count, &view);
    return PS_OK;
}
