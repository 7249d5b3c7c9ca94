// SPDX-License-Identifier: Apache-2.0
//
// rank_view.c: shares of a layer, and the rates that one GPU reaches.
#include "cost/rank_view.h"

#include "base/number.h"
#include "cost/constants.h"

static double figure_or(ps_figure figure, double otherwise)
{
    return figure.value > 0 ? figure.value : otherwise;
}

double ps_calibration_factor(const ps_job *job, ps_factor factor)
{
    return job->calibration ? job->calibration->factor[factor] : 1;
}

// What stays in 16 bits when GEMMs run in 8 or 4.
static ps_precision plain_precision(const ps_gpu *gpu, ps_precision precision)
{
    if (precision == PS_PRECISION_FP32 || precision == PS_PRECISION_FP16)
        return precision;
    return gpu->peak_flops[PS_PRECISION_BF16].value > 0 ? PS_PRECISION_BF16 : PS_PRECISION_FP16;
}

static bool narrow(ps_precision precision)
{
    return precision == PS_PRECISION_FP8 || precision == PS_PRECISION_MXFP8 || precision == PS_PRECISION_NVFP4;
}

// Transformer Engine and torchao cast before they gather.
static double gathered_share(ps_precision precision)
{
    if (precision == PS_PRECISION_NVFP4)
        return 0.25;
    return narrow(precision) ? 0.5 : 1;
}

// Reached share of the peak of a GEMM in the job's precision.
static double gemm_efficiency(const ps_gpu *gpu, ps_precision precision)
{
    double plain = figure_or(gpu->gemm_efficiency, PS_COST_GEMM_EFFICIENCY);

    if (precision == PS_PRECISION_NVFP4)
        return figure_or(gpu->fp4_gemm_efficiency, plain * PS_COST_FP4_SHARE);
    return narrow(precision) ? figure_or(gpu->fp8_gemm_efficiency, plain * PS_COST_FP8_SHARE) : plain;
}

// Grouped GEMMs lose the same share in every precision.
static double grouped_share(const ps_gpu *gpu)
{
    double plain = figure_or(gpu->gemm_efficiency, PS_COST_GEMM_EFFICIENCY);
    return figure_or(gpu->grouped_gemm_efficiency, plain * PS_COST_GROUPED_GEMM_SHARE) / plain;
}

static void set_rates(ps_rank_view *view)
{
    const ps_gpu *gpu = &view->group->gpu;
    const ps_job *job = view->job;
    double plain_peak = gpu->peak_flops[plain_precision(gpu, job->precision)].value;
    double plain_share = figure_or(gpu->gemm_efficiency, PS_COST_GEMM_EFFICIENCY);
    double attention_share = figure_or(gpu->attention_efficiency, PS_COST_ATTENTION_EFFICIENCY);
    double gemm = ps_calibration_factor(job, PS_FACTOR_GEMM);
    double attention = ps_calibration_factor(job, PS_FACTOR_ATTENTION);
    double kernel = ps_calibration_factor(job, PS_FACTOR_KERNEL);

    view->gemm_flops_per_s = gpu->peak_flops[job->precision].value * gemm_efficiency(gpu, job->precision) / gemm;
    view->grouped_gemm_flops_per_s = view->gemm_flops_per_s * grouped_share(gpu);
    view->plain_gemm_flops_per_s = plain_peak * plain_share / gemm;
    view->batched_gemm_flops_per_s =
        plain_peak * figure_or(gpu->batched_gemm_efficiency, plain_share * PS_COST_BATCHED_GEMM_SHARE) / gemm;
    view->gathered_share = gathered_share(job->precision);
    view->cast_bytes = narrow(job->precision) ? PS_COST_CAST_BYTES : 0;
    view->attention_flops_per_s = plain_peak * attention_share / attention;
    view->attention_backward_flops_per_s =
        plain_peak * figure_or(gpu->attention_backward_efficiency, attention_share) / attention;
    view->memory_bytes_per_s = gpu->memory_bytes_per_s.value *
                               figure_or(gpu->memory_efficiency, PS_COST_MEMORY_EFFICIENCY) /
                               ps_calibration_factor(job, PS_FACTOR_MEMORY);
    view->kernel_seconds = figure_or(gpu->kernel_seconds, PS_COST_KERNEL_SECONDS) * kernel;
    view->launch_seconds = (job->cuda_graphs ? PS_COST_GRAPH_LAUNCH_SECONDS : PS_COST_LAUNCH_SECONDS) * kernel;
    view->exchange_factor = ps_calibration_factor(job, PS_FACTOR_TP);
}

ps_rank_view ps_rank_view_of(const ps_group *group, const ps_job *job, const ps_layout *layout)
{
    ps_rank_view view = {
        .group = group,
        .job = job,
        .layout = layout,
        .sequence = (double)job->seq_length,
        .micro_batch = (double)layout->micro_batch_size,
        .tp = (double)layout->tp,
        .cp = (double)layout->cp,
        .ep = (double)layout->ep,
        .etp = (double)ps_rank_etp(layout),
        .sp = job->sequence_parallel ? (double)layout->tp : 1.0,
        .element_bytes = job->precision == PS_PRECISION_FP32 ? 4 : 2,
    };

    set_rates(&view);
    return view;
}

ps_rank_block ps_rank_block_of(const ps_rank_view *view, const ps_block *block)
{
    double head = (double)block->head_dim;
    double kv_heads = (double)block->kv_heads / view->tp;
    int64_t multiple = PS_COST_VOCABULARY_MULTIPLE * (int64_t)view->layout->tp;

    return (ps_rank_block){
        .hidden = (double)block->hidden_size,
        .heads = (double)block->attention_heads / view->tp,
        .query = (double)block->attention_heads * head / view->tp,
        .key = (kv_heads < 1 && block->kv_heads > 0 ? 1 : kv_heads) * head, // fewer KV heads than ranks: replicated
        .ffn = (double)block->ffn_size / view->tp,
        .expert_ffn = (double)block->expert_ffn_size / view->etp,
        .shared_ffn = (double)block->shared_ffn_size / view->tp,
        .vocabulary = (double)(ps_ceil_div(block->vocab_size, multiple) * multiple) / view->tp,
        .ffn_inner = block->gated_ffn ? 2 : 1,
    };
}

int64_t ps_rank_etp(const ps_layout *layout)
{
    return layout->etp > 0 ? layout->etp : layout->tp;
}

int64_t ps_rank_replicas(const ps_layout *layout)
{
    return (int64_t)layout->dp * layout->cp;
}

int64_t ps_rank_expert_replicas(const ps_layout *layout)
{
    int64_t replicas = ps_rank_replicas(layout) * layout->tp / (layout->ep * ps_rank_etp(layout));
    return replicas > 1 ? replicas : 1;
}
