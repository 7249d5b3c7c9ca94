// SPDX-License-Identifier: Apache-2.0
//
// iteration.c: what happens once an iteration: gradient reduction, optimizer step, gathering of parameters.
//
// Gradients leave in buckets while the last micro-batch's backward runs; the last bucket has nothing left to hide
// behind: exposed = max(0, t - window * (1 - 1/buckets)) + t/buckets.
#include "cost/communication.h"
#include "cost/constants.h"

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double exposed_seconds(double seconds, double window, double buckets)
{
    double beyond = seconds - window * (1 - 1 / buckets);
    return smaller(seconds, (beyond > 0 ? beyond : 0) + seconds / buckets);
}

static double bucket_count(double parameters)
{
    double buckets = (double)(int64_t)(parameters / PS_COST_BUCKET_PARAMETERS);
    return buckets < 1 ? 1 : buckets;
}

static double step_seconds(const ps_rank_view *view, double parameters)
{
    double shards = view->layout->zero >= 1 ? (double)view->layout->dp * (double)view->layout->cp : 1;
    double bytes = view->job->optimizer == PS_OPTIMIZER_SGD ? PS_COST_SGD_STEP_BYTES : PS_COST_ADAM_STEP_BYTES;
    return view->memory_bytes_per_s > 0 ? parameters / shards * bytes / view->memory_bytes_per_s : 0;
}

ps_iteration_cost ps_cost_iteration(const ps_group *group, const ps_job *job, const ps_layout *layout,
                                    const ps_layer_cost *sum, int64_t window_ns)
{
    ps_rank_view view = ps_rank_view_of(group, job, layout);
    int64_t ranks = (int64_t)layout->dp * layout->cp;
    double parameters = (double)sum->parameters + (double)sum->copy_parameters;
    double gradient_bytes = parameters * (double)job->gradient_bytes;
    double buckets = job->overlap_grad_sync ? bucket_count(parameters) : 1;
    double window = job->overlap_grad_sync ? (double)window_ns * 1e-9 : 0;
    double sync = 0;
    double times = 1;
    double gather = 0;

    // ZeRO-3 pays for both inside its layers' times. ZeRO-2 keeps only shards, so every micro-batch reduces.
    if (layout->zero == 0)
        sync = ps_all_reduce_seconds(group, ranks, layout->tp, gradient_bytes);
    else if (layout->zero < 3)
        sync = ps_reduce_scatter_seconds(group, ranks, layout->tp, gradient_bytes);
    if (layout->zero == 2)
        times = (double)layout->num_microbatches;
    if (layout->zero == 1 || layout->zero == 2)
        gather = ps_reduce_scatter_seconds(group, ranks, layout->tp, view.element_bytes * parameters);

    // First and last pipeline rank add up the gradients of a weight they share, after both are done.
    double tied_bytes = (double)sum->copy_parameters * (double)job->gradient_bytes;
    double tied = ps_tied_all_reduce_seconds(group, layout, tied_bytes);
    double exposed = job->overlap_grad_sync ? exposed_seconds(sync, window, buckets) : sync;

    return (ps_iteration_cost){
        .grad_sync_ns = ps_ns_clamped(sync * times + tied),
        .grad_sync_exposed_ns = ps_ns_clamped(exposed * times + tied),
        .optimizer_ns = ps_ns_clamped(step_seconds(&view, parameters)),
        // The first forward, about half as long as a backward, hides it in the same way.
        .param_gather_exposed_ns =
            ps_ns_clamped(job->overlap_grad_sync ? exposed_seconds(gather, window / 2, buckets) : gather),
    };
}
