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

// Attention stays in 16 bits when GEMMs run in 8 or 4.
static double attention_peak(const ps_gpu *gpu, ps_precision precision)
{
    if (precision == PS_PRECISION_FP32 || precision == PS_PRECISION_FP16)
        return gpu->peak_flops[precision].value;
    return figure_or(gpu->peak_flops[PS_PRECISION_BF16], gpu->peak_flops[PS_PRECISION_FP16].value);
}

static bool narrow(ps_precision precision)
{
    return precision == PS_PRECISION_FP8 || precision == PS_PRECISION_MXFP8 || precision == PS_PRECISION_NVFP4;
}

ps_rank_view ps_rank_view_of(const ps_group *group, const ps_job *job, const ps_layout *layout)
{
    const ps_gpu *gpu = &group->gpu;
    double gemm_share = figure_or(gpu->gemm_efficiency, PS_COST_GEMM_EFFICIENCY);

    if (narrow(job->precision))
        gemm_share *= PS_COST_FP8_SHARE;
    return (ps_rank_view){
        .group = group,
        .job = job,
        .layout = layout,
        .tokens = (double)layout->micro_batch_size * (double)job->seq_length / (double)layout->cp,
        .sequence = (double)job->seq_length,
        .micro_batch = (double)layout->micro_batch_size,
        .tp = (double)layout->tp,
        .sp = job->sequence_parallel ? (double)layout->tp : 1.0,
        .element_bytes = job->precision == PS_PRECISION_FP32 ? 4 : 2,
        .gemm_flops_per_s = gpu->peak_flops[job->precision].value * gemm_share,
        .attention_flops_per_s =
            attention_peak(gpu, job->precision) * figure_or(gpu->attention_efficiency, PS_COST_ATTENTION_EFFICIENCY),
        .memory_bytes_per_s =
            gpu->memory_bytes_per_s.value * figure_or(gpu->memory_efficiency, PS_COST_MEMORY_EFFICIENCY),
        .kernel_seconds = figure_or(gpu->kernel_seconds, PS_COST_KERNEL_SECONDS),
    };
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
        .expert_ffn = (double)block->expert_ffn_size / view->tp,
        .vocabulary = (double)(ps_ceil_div(block->vocab_size, multiple) * multiple) / view->tp,
        .ffn_inner = block->gated_ffn ? 2 : 1,
    };
}

// Norms, router and biases behind row-parallel matrices stand on every tensor parallel rank.
static double replicated_parameters(const ps_block *block)
{
    double hidden = (double)block->hidden_size;
    double count = 2 * hidden * (block->norm == PS_NORM_LAYER ? 2 : 1);

    if (block->qk_norm)
        count += 2 * (double)block->head_dim;
    if (block->output_bias)
        count += hidden;
    if (block->ffn_bias && block->experts == 0)
        count += hidden;
    return count + hidden * (double)block->experts;
}

static double decoder_parameters(const ps_rank_view *view, const ps_layer *layer)
{
    const ps_block *block = layer->block;
    double replicated = replicated_parameters(block);
    double key = ps_rank_block_of(view, block).key;
    double rows = (double)block->hidden_size + (block->qkv_bias ? 1 : 0);
    double kv_whole = 2 * rows * (double)block->kv_heads * (double)block->head_dim;
    double sharded = (double)layer->parameters - replicated - kv_whole;

    if (sharded < 0) // the user's own count, too small for this architecture: share it all
        return (double)layer->parameters / view->tp;
    return sharded / view->tp + 2 * rows * key + replicated;
}

double ps_rank_parameters(const ps_rank_view *view, const ps_layer *layer)
{
    const ps_block *block = layer->block;

    if (!block || layer->parameters == 0)
        return (double)layer->parameters;
    switch (layer->class_) {
    case PS_LAYER_DECODER: return decoder_parameters(view, layer);
    case PS_LAYER_EMBEDDING:
        return (ps_rank_block_of(view, block).vocabulary + (double)block->learned_positions) *
               (double)block->hidden_size;
    case PS_LAYER_HEAD: return ps_rank_block_of(view, block).vocabulary * (double)block->hidden_size;
    case PS_LAYER_NORM:
    case PS_LAYER_MAMBA:
    case PS_LAYER_MTP:
    case PS_LAYER_PATCHES:
    case PS_LAYER_CLASSIFIER:
    case PS_LAYER_TIMED: break;
    }
    return (double)layer->parameters;
}

double ps_rank_copy_parameters(const ps_rank_view *view, const ps_layer *layer)
{
    if (layer->shared_with < 0)
        return 0;
    if (layer->block && layer->block->vocab_size > 0)
        return ps_rank_block_of(view, layer->block).vocabulary * (double)layer->block->hidden_size;
    return (double)layer->shared_parameters;
}
