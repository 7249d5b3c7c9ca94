// SPDX-License-Identifier: Apache-2.0
//
// state.c: ZeRO and what it divides by whom (Rajbhandari et al. 2020): dense weights among D*c ranks, experts among the
// ranks that hold the same ones.
#include "cost/state.h"

static double moments(ps_optimizer optimizer)
{
    return optimizer == PS_OPTIMIZER_ADAM || optimizer == PS_OPTIMIZER_ADAMW ? 2 : 1;
}

// A copy in 32 bits beside the moments, unless the weights are that already.
static double optimizer_bytes(const ps_job *job)
{
    double master = job->precision == PS_PRECISION_FP32 ? 0 : 4;
    return master + moments(job->optimizer) * (double)job->optimizer_bytes;
}

static double weight_bytes(const ps_job *job)
{
    return job->precision == PS_PRECISION_FP32 ? 4 : 2;
}

static ps_state_bytes sharded(const ps_job *job, const ps_layout *layout, double ranks)
{
    return (ps_state_bytes){
        .parameters = weight_bytes(job) / (layout->zero >= 3 ? ranks : 1),
        .gradients = (double)job->gradient_bytes / (layout->zero >= 2 ? ranks : 1),
        // Offloaded, it lies in host memory.
        .optimizer = job->offload_optimizer ? 0 : optimizer_bytes(job) / (layout->zero >= 1 ? ranks : 1),
    };
}

ps_state_bytes ps_cost_state_bytes(const ps_job *job, const ps_layout *layout)
{
    return sharded(job, layout, (double)ps_rank_replicas(layout));
}

// Of a frozen parameter there is the weight alone.
double ps_cost_least_state_bytes(const ps_job *job)
{
    if (job->lora_rank > 0)
        return weight_bytes(job);
    return weight_bytes(job) + (double)job->gradient_bytes + (job->offload_optimizer ? 0 : optimizer_bytes(job));
}

void ps_state_terms(const ps_rank_view *view, ps_rank_weights weights, ps_ledger *ledger)
{
    ps_state_bytes dense = ps_cost_state_bytes(view->job, view->layout);
    ps_state_bytes expert = sharded(view->job, view->layout, (double)ps_rank_expert_replicas(view->layout));
    double all = weights.dense + weights.expert + weights.frozen;

    ps_ledger_add(ledger, PS_QUANTITY_PARAMETERS, "elements on this rank: P", all);
    ps_ledger_add(ledger, PS_QUANTITY_EXPERT_PARAMETERS, "of these trained, in routed experts: P_e", weights.expert);
    ps_ledger_add(ledger, PS_QUANTITY_FROZEN_PARAMETERS, "of these frozen: P_f", weights.frozen);
    ps_ledger_add(ledger, PS_QUANTITY_COPY_PARAMETERS, "elements shared with another layer: P of a copy", weights.copy);

    ps_ledger_add(ledger, PS_QUANTITY_PARAMETER_BYTES, "w*P, over D*c from ZeRO-3",
                  (weights.dense + weights.frozen) * dense.parameters);
    ps_ledger_add(ledger, PS_QUANTITY_GRADIENT_BYTES, "gradient bytes*P, over D*c from ZeRO-2",
                  weights.dense * dense.gradients);
    ps_ledger_add(ledger, PS_QUANTITY_OPTIMIZER_BYTES, "(32-bit copy + moments)*P, over D*c from ZeRO-1",
                  weights.dense * dense.optimizer);
    ps_ledger_add(ledger, PS_QUANTITY_PARAMETER_BYTES, "experts: w*P_e, over t*c*D/(e*x) from ZeRO-3",
                  weights.expert * expert.parameters);
    ps_ledger_add(ledger, PS_QUANTITY_GRADIENT_BYTES, "experts: gradient bytes*P_e, over t*c*D/(e*x) from ZeRO-2",
                  weights.expert * expert.gradients);
    ps_ledger_add(ledger, PS_QUANTITY_OPTIMIZER_BYTES,
                  "experts: (32-bit copy + moments)*P_e, over t*c*D/(e*x) from ZeRO-1",
                  weights.expert * expert.optimizer);
    if (view->layout->zero >= 3)
        ps_ledger_add(ledger, PS_QUANTITY_TRANSIENT, "ZeRO-3: this layer and the next gathered, 2w*P",
                      2 * weight_bytes(view->job) * all);
}
