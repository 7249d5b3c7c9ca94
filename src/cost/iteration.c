// SPDX-License-Identifier: Apache-2.0
//
// iteration.c: what happens once an iteration: gradient reduction, optimizer step, gathering of parameters.
//
// How much of it the ops of the pipeline hide is for step.h to say.
#include "cost/communication.h"
#include "cost/constants.h"

// By bytes, as a plan tells the size of a stage. Sharded parameters are gathered and reduced inside their layers.
static int32_t bucket_count(const ps_rank_view *view, const ps_layer_cost *sum)
{
    if (!view->job->overlap_grad_sync || view->layout->zero >= 3)
        return 1;
    int64_t buckets = sum->parameter_bytes / (int64_t)(PS_COST_BUCKET_PARAMETERS * view->element_bytes);
    return buckets < 1 ? 1 : buckets > INT32_MAX ? INT32_MAX : (int32_t)buckets;
}

static double step_seconds(const ps_rank_view *view, double parameters)
{
    double shards = view->layout->zero >= 1 ? (double)view->layout->dp * (double)view->layout->cp : 1;
    double bytes = view->job->optimizer == PS_OPTIMIZER_SGD ? PS_COST_SGD_STEP_BYTES : PS_COST_ADAM_STEP_BYTES;
    return view->memory_bytes_per_s > 0 ? parameters / shards * bytes / view->memory_bytes_per_s : 0;
}

ps_iteration_cost ps_cost_iteration(const ps_group *group, const ps_job *job, const ps_layout *layout,
                                    const ps_layer_cost *sum)
{
    ps_rank_view view = ps_rank_view_of(group, job, layout);
    int64_t ranks = (int64_t)layout->dp * layout->cp;
    double parameters = (double)sum->parameters + (double)sum->copy_parameters;
    double gradient_bytes = parameters * (double)job->gradient_bytes;
    double reduce = 0;
    double gather = 0;

    // ZeRO-3 pays for both inside its layers' times. ZeRO-2 keeps only shards, so every micro-batch reduces.
    if (layout->zero == 0)
        reduce = ps_all_reduce_seconds(group, ranks, layout->tp, gradient_bytes);
    else if (layout->zero < 3)
        reduce = ps_reduce_scatter_seconds(group, ranks, layout->tp, gradient_bytes);
    if (layout->zero == 1 || layout->zero == 2)
        gather = ps_reduce_scatter_seconds(group, ranks, layout->tp, view.element_bytes * parameters);
    return (ps_iteration_cost){
        .reduce_ns = ps_ns_clamped(reduce),
        .optimizer_ns = ps_ns_clamped(step_seconds(&view, parameters)),
        .gather_ns = ps_ns_clamped(gather),
        .buckets = bucket_count(&view, sum),
    };
}

int64_t ps_cost_tied_ns(const ps_group *group, const ps_job *job, const ps_layout *layout, int64_t parameters)
{
    return ps_ns_clamped(ps_tied_all_reduce_seconds(group, layout, (double)parameters * (double)job->gradient_bytes));
}

int64_t ps_cost_barrier_ns(const ps_group *group, const ps_layout *layout)
{
    int64_t ranks = (int64_t)layout->tp * layout->cp * layout->dp * layout->pp;
    return ps_ns_clamped(ps_all_reduce_seconds(group, ranks, 1, sizeof(float)));
}
