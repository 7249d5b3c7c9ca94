// SPDX-License-Identifier: Apache-2.0
//
// check_prediction.c: what the whole iteration takes, and every rate made from it.
#include <math.h>
#include <string.h>

#include "check/check_parts.h"

static void check_pipeline(ps_check *check, const ps_check_times *times)
{
    const ps_plan *plan = check->plan;
    const ps_plan_prediction *prediction = &plan->prediction;
    bool barrier = plan->inputs.job.optimizer_barrier;
    ps_check_equal_ns(check, "makespan", PS_AT("/prediction/makespan_ms"), prediction->makespan_ns, times->makespan_ns);
    ps_check_equal_ns(check, "span", PS_AT("/prediction/span_ms"), prediction->span_ns, times->span_ns);
    ps_check_equal_ns(check, "pipeline-time", PS_AT("/prediction/pipeline_ms"), prediction->pipeline_ns,
                      barrier ? times->makespan_ns : times->span_ns);
    double all = (double)times->makespan_ns * plan->num_devices;
    double idle = (double)(times->makespan_ns * plan->num_devices - times->busy_ns);
    ps_check_equal_rate(check, "bubble", PS_AT("/prediction/bubble"), prediction->bubble, all > 0 ? idle / all : 0);
    double span = (double)times->span_ns * plan->num_devices;
    ps_check_equal_rate(check, "bubble", PS_AT("/prediction/span_bubble"), prediction->span_bubble,
                        span > 0 ? 1 - (double)times->busy_ns / span : 0);
}

static double peak_flops(const ps_plan *plan)
{
    for (int32_t gpu = 0; gpu < plan->num_gpus; gpu++)
        if (strcmp(plan->gpu[gpu].name, plan->device[0].gpu) == 0)
            return plan->gpu[gpu].peak_flops;
    return 0;
}

static void check_rates(ps_check *check)
{
    const ps_plan *plan = check->plan;
    const ps_plan_inputs *inputs = &plan->inputs;
    const ps_plan_prediction *prediction = &plan->prediction;
    double seconds = (double)prediction->iteration_ns / 1e9;
    double sequences = (double)inputs->job.global_batch_size;
    double ranks = (double)plan->num_ranks;
    double tokens = seconds > 0 ? sequences * (double)inputs->job.seq_length / seconds : 0;
    double flops = seconds > 0 ? inputs->model_flops_per_sequence * sequences / seconds / ranks : 0;
    double peak = peak_flops(plan);
    double kwh = ranks * inputs->gpu_watts * seconds / 3.6e6;
    double usd = ranks * inputs->usd_per_gpu_hour * seconds / 3600 + kwh * inputs->usd_per_kwh;
    ps_check_equal_rate(check, "rate", PS_AT("/prediction/tokens_per_s"), prediction->tokens_per_s, tokens);
    ps_check_equal_rate(check, "rate", PS_AT("/prediction/model_tflops_per_gpu"), prediction->model_tflops_per_gpu,
                        flops / 1e12);
    ps_check_equal_rate(check, "rate", PS_AT("/prediction/mfu"), prediction->mfu, peak > 0 ? flops / peak : 0);
    ps_check_equal_rate(check, "cost", PS_AT("/prediction/usd_per_iteration"), prediction->usd_per_iteration, usd);
    ps_check_equal_rate(check, "cost", PS_AT("/prediction/kwh_per_iteration"), prediction->kwh_per_iteration, kwh);
}

void ps_check_prediction(ps_check *check, const ps_check_times *times)
{
    const ps_plan_prediction *prediction = &check->plan->prediction;
    check_pipeline(check, times);
    check_rates(check);
    // Unsigned: hostile figures may not add up to an int64, and then they do not match either.
    uint64_t sum = (uint64_t)prediction->pipeline_ns + (uint64_t)prediction->grad_sync_exposed_ns +
                   (uint64_t)prediction->optimizer_ns + (uint64_t)prediction->param_gather_exposed_ns;
    if (sum != (uint64_t)prediction->iteration_ns)
        ps_check_equal_ns(check, "iteration-sum", PS_AT("/prediction/iteration_ms"), prediction->iteration_ns,
                          sum > INT64_MAX ? INT64_MAX : (int64_t)sum);
}
