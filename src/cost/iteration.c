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

// Elements of one kind on a rank, and the ranks `stride` apart that hold the same.
typedef struct replicated {
    double elements;
    int64_t ranks;
    int64_t stride;
} replicated;

static replicated dense_of(const ps_layout *layout, const ps_layer_cost *sum)
{
    int64_t dense = sum->parameters - sum->expert_parameters - sum->frozen_parameters + sum->copy_parameters;
    return (replicated){(double)(dense > 0 ? dense : 0), ps_rank_replicas(layout), layout->tp};
}

static replicated experts_of(const ps_layout *layout, const ps_layer_cost *sum)
{
    return (replicated){(double)sum->expert_parameters, ps_rank_expert_replicas(layout),
                        ps_rank_etp(layout) * layout->ep};
}

static double step_bytes(ps_optimizer optimizer)
{
    switch (optimizer) {
    case PS_OPTIMIZER_SGD: return PS_COST_SGD_STEP_BYTES;
    case PS_OPTIMIZER_ADAM:
    case PS_OPTIMIZER_ADAMW:
    case PS_OPTIMIZERS: break;
    }
    return PS_COST_ADAM_STEP_BYTES;
}

// Offloaded, gradients go to the host and weights come back over PCIe, and the host's memory moves the state.
static double step_seconds(const ps_rank_view *view, replicated r)
{
    double elements = r.elements / (view->layout->zero >= 1 ? (double)r.ranks : 1);
    double bytes = elements * step_bytes(view->job->optimizer);

    if (view->job->offload_optimizer) {
        double pcie = view->group->gpu.pcie_bytes_per_s.value > 0 ? view->group->gpu.pcie_bytes_per_s.value
                                                                  : PS_COST_LINK_BYTES_PER_S;
        return elements * ((double)view->job->gradient_bytes + view->element_bytes) / pcie +
               bytes / PS_COST_HOST_BYTES_PER_S;
    }
    return view->memory_bytes_per_s > 0 ? bytes / view->memory_bytes_per_s : 0;
}

// ZeRO-3 pays for both inside its layers' times. ZeRO-2 keeps only shards, so every micro-batch reduces.
static double reduce_seconds(const ps_rank_view *view, replicated r)
{
    double bytes = r.elements * (double)view->job->gradient_bytes;

    if (view->layout->zero == 0)
        return ps_all_reduce_seconds(view->group, r.ranks, r.stride, bytes);
    return view->layout->zero < 3 ? ps_reduce_scatter_seconds(view->group, r.ranks, r.stride, bytes) : 0;
}

static double gather_seconds(const ps_rank_view *view, replicated r)
{
    if (view->layout->zero != 1 && view->layout->zero != 2)
        return 0;
    return ps_reduce_scatter_seconds(view->group, r.ranks, r.stride, r.elements * view->element_bytes);
}

ps_iteration_cost ps_cost_iteration(const ps_group *group, const ps_job *job, const ps_layout *layout,
                                    const ps_layer_cost *sum)
{
    ps_rank_view view = ps_rank_view_of(group, job, layout);
    replicated dense = dense_of(layout, sum);
    replicated experts = experts_of(layout, sum);
    double factor = ps_calibration_factor(job, PS_FACTOR_DP);

    return (ps_iteration_cost){
        .reduce_ns = ps_ns_clamped(factor * (reduce_seconds(&view, dense) + reduce_seconds(&view, experts))),
        .optimizer_ns = ps_ns_clamped(step_seconds(&view, dense) + step_seconds(&view, experts)),
        .gather_ns = ps_ns_clamped(factor * (gather_seconds(&view, dense) + gather_seconds(&view, experts))),
        .buckets = bucket_count(&view, sum),
    };
}

int64_t ps_cost_tied_ns(const ps_group *group, const ps_job *job, const ps_layout *layout, int64_t parameters)
{
    double bytes = (double)parameters * (double)job->gradient_bytes;
    return ps_ns_clamped(ps_calibration_factor(job, PS_FACTOR_DP) * ps_tied_all_reduce_seconds(group, layout, bytes));
}

int64_t ps_cost_barrier_ns(const ps_group *group, const ps_layout *layout)
{
    int64_t ranks = (int64_t)layout->tp * layout->cp * layout->dp * layout->pp;
    return ps_ns_clamped(ps_all_reduce_seconds(group, ranks, 1, sizeof(float)));
}
