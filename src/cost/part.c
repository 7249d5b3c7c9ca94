// SPDX-License-Identifier: Apache-2.0
//
// part.c: a rounded roofline by class of work.
#include "cost/part.h"

#include <math.h>

#include "cost/constants.h"
#include "cost/tiles.h"

ps_part ps_part_of(const ps_rank_view *view, const ps_block *block, ps_ledger *ledger)
{
    double sequence = block->sequence > 0 ? (double)block->sequence : view->sequence;

    return (ps_part){
        .view = view,
        .block = block,
        .ledger = ledger,
        .r = ps_rank_block_of(view, block),
        .w = view->element_bytes,
        .sequence = sequence,
        .tokens = view->micro_batch * sequence / view->cp,
        .hidden = (double)block->hidden_size / view->sp,
    };
}

bool ps_part_recomputes(const ps_part *part, ps_recompute_part which)
{
    int32_t by_operation = PS_RECOMPUTE_NORM | PS_RECOMPUTE_ACTIVATION;
    int32_t parts = part->view->job->recompute_parts;

    if ((parts & PS_RECOMPUTE_OPS) != 0)
        parts |= by_operation;
    return part->view->layout->recompute == PS_RECOMPUTE_SELECTIVE && (parts & (int32_t)which) != 0;
}

bool ps_part_begin_recompute(const ps_part *part, ps_recompute_part which)
{
    bool outer = part->ledger->recomputed;
    part->ledger->recomputed = outer || ps_part_recomputes(part, which);
    return outer;
}

void ps_part_end_recompute(const ps_part *part, bool outer)
{
    part->ledger->recomputed = outer;
}

double ps_causal_keys(double length, double window)
{
    return window > 0 && window < length ? window - window * window / (2 * length) : length / 2;
}

double ps_part_keys(const ps_part *part)
{
    double packed = (double)part->view->job->packed_length;
    double length = packed > 0 && packed < part->sequence && part->block->sequence == 0 ? packed : part->sequence;

    return part->block->bidirectional ? length : ps_causal_keys(length, (double)part->block->sliding_window);
}

double ps_part_roofline(double compute_seconds, double memory_seconds)
{
    double compute = compute_seconds * compute_seconds;
    double memory = memory_seconds * memory_seconds;

    return sqrt(sqrt(compute * compute + memory * memory));
}

static double gemm_rate(const ps_rank_view *view, ps_gemm_kind kind)
{
    switch (kind) {
    case PS_GEMM_DENSE: return view->gemm_flops_per_s;
    case PS_GEMM_GROUPED: return view->grouped_gemm_flops_per_s;
    case PS_GEMM_PLAIN: break;
    }
    return view->plain_gemm_flops_per_s;
}

// Of `matrices` products, rows x columns each, with their share of the whole work.
static double shaped_rate(const ps_rank_view *view, ps_gemm_kind kind, double rows, double columns, double matrices)
{
    return gemm_rate(view, kind) * ps_tiles_busy_share(view->group->gpu.multiprocessors.value, rows, columns, matrices);
}

static double roofline_seconds(const ps_rank_view *view, double flops_per_s, double flops, double bytes)
{
    return ps_part_roofline(flops / flops_per_s, bytes / view->memory_bytes_per_s) + view->kernel_seconds;
}

// The adapter of a frozen matrix: in x r and r x out beside it, forward and backward, and all of the weight gradient.
static void add_adapter(const ps_part *part, ps_linear linear)
{
    static const char formula[] = "LoRA adapter: max(2*T*r*(in + out) / gemm rate, bytes / memory rate) + 2 kernels";
    const ps_rank_view *view = part->view;
    double rank = (double)view->job->lora_rank;
    double flops = 2 * linear.tokens * rank * (linear.in + linear.out);
    double bytes = part->w * linear.tokens * (linear.in + linear.out + 2 * rank);
    double seconds = roofline_seconds(view, view->plain_gemm_flops_per_s, flops, bytes) + view->kernel_seconds;

    ps_ledger_add(part->ledger, PS_QUANTITY_WORK, formula, flops);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, formula, seconds, 2);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_INPUT, formula, seconds, 2);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_WEIGHT, formula, seconds, 2);
}

void ps_part_linear(const ps_part *part, ps_linear linear)
{
    static const char cast[] = "casts to 8 or 4 bits: 4*T*(in), backward 4*T*(out), / memory rate + kernel";
    const ps_rank_view *view = part->view;
    bool narrow = view->cast_bytes > 0 && linear.kind != PS_GEMM_PLAIN;
    double flops = 2 * linear.tokens * linear.in * linear.out;
    double activation_bytes = part->w * linear.tokens * (linear.in + linear.out);
    double weights = linear.in * linear.out * linear.copies;
    double rows = linear.tokens / linear.copies;
    double moved = activation_bytes + part->w * weights;
    double forward =
        roofline_seconds(view, shaped_rate(view, linear.kind, rows, linear.out, linear.copies), flops, moved);
    double backward =
        roofline_seconds(view, shaped_rate(view, linear.kind, rows, linear.in, linear.copies), flops, moved);

    ps_ledger_add(part->ledger, PS_QUANTITY_WORK, linear.formula, flops);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, linear.formula, forward, 1);
    if (linear.alternate > 0 && !part->ledger->recomputed && ps_part_recomputes(part, PS_RECOMPUTE_OPS))
        ps_ledger_add_kernels(part->ledger, PS_QUANTITY_RECOMPUTE, linear.formula, linear.alternate * forward, 1);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_INPUT, linear.formula, backward, 1);
    if (narrow) {
        double in_seconds = view->cast_bytes * linear.tokens * linear.in / view->memory_bytes_per_s;
        double out_seconds = view->cast_bytes * linear.tokens * linear.out / view->memory_bytes_per_s;
        ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, cast, in_seconds + view->kernel_seconds, 1);
        ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_INPUT, cast, out_seconds + view->kernel_seconds, 1);
    }
    if (view->job->lora_rank > 0) {
        if (linear.kind == PS_GEMM_DENSE)
            add_adapter(part, linear);
        return;
    }
    // Accumulation reads and writes the gradient buffer.
    double rate = shaped_rate(view, linear.kind, linear.in, linear.out, linear.copies) * PS_COST_WEIGHT_GRADIENT_SHARE;
    double weight =
        roofline_seconds(view, rate, flops, activation_bytes + 2 * (double)view->job->gradient_bytes * weights);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_WEIGHT, linear.formula, weight, 1);
}

void ps_part_elementwise(const ps_part *part, const char *formula, double bytes, double kernels)
{
    const ps_rank_view *view = part->view;
    double forward = bytes / view->memory_bytes_per_s + kernels * view->kernel_seconds;

    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, formula, forward, kernels);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_INPUT, formula, PS_COST_ELEMENTWISE_BACKWARD * forward,
                          2 * kernels);
}

void ps_part_norms(const ps_part *part, const char *formula, double bytes, double norms)
{
    bool fused = part->view->job->fused_kernels;
    double share = (fused ? PS_COST_NORM_BYTES : PS_COST_EAGER_NORM_BYTES) / 2;

    ps_part_elementwise(part, formula, norms * share * bytes,
                        norms * (fused ? PS_COST_NORM_KERNELS : PS_COST_EAGER_NORM_KERNELS));
}

void ps_part_draw(const ps_part *part, double numbers)
{
    // A multiply-add counts twice in the peak, and is one instruction.
    double instructions_per_s = part->view->group->gpu.peak_flops[PS_PRECISION_FP32].value / 2;

    if (instructions_per_s > 0)
        ps_ledger_add(part->ledger, PS_QUANTITY_FORWARD, "random numbers of dropout: 30 instructions each / fp32 rate",
                      PS_COST_DRAW_INSTRUCTIONS * numbers / instructions_per_s);
}

void ps_part_exchange(const ps_part *part, const char *formula, double seconds)
{
    ps_ledger_add(part->ledger, PS_QUANTITY_FORWARD, formula, seconds);
    ps_ledger_add(part->ledger, PS_QUANTITY_BACKWARD_INPUT, formula, seconds);
}

void ps_part_hold(const ps_part *part, const char *formula, double bytes)
{
    ps_ledger_add(part->ledger, PS_QUANTITY_HELD_FORWARD, formula, bytes);
}

void ps_part_hold_between(const ps_part *part, const char *formula, double bytes)
{
    ps_ledger_add(part->ledger, PS_QUANTITY_HELD_BACKWARD_INPUT, formula, bytes);
}

void ps_part_transient(const ps_part *part, const char *formula, double bytes)
{
    ps_ledger_add(part->ledger, PS_QUANTITY_TRANSIENT, formula, bytes);
}
