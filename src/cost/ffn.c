// SPDX-License-Identifier: Apache-2.0
//
// ffn.c: a dense feed-forward network: the block's own, or the shared experts of a mixture.
#include "cost/constants.h"
#include "cost/part.h"

typedef struct ffn_formulas {
    const char *in;
    const char *out;
    const char *activation;
    const char *held_in;
    const char *held_activation;
    const char *between;
    const char *gradients;
    const char *weight;
} ffn_formulas;

// Of the first matrix' output, `again` is recomputed by operation.
static void hold_inner(const ps_part *part, const char *formula, double bytes, double again)
{
    double share = ps_part_recomputes(part, PS_RECOMPUTE_OPS) ? again : 0;

    ps_part_hold(part, formula, (1 - share) * bytes);
    if (share > 0) {
        bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_OPS);
        ps_part_hold(part, formula, share * bytes);
        ps_part_end_recompute(part, outer);
    }
}

static void add_ffn(const ps_part *part, double width, const ffn_formulas *f)
{
    ps_rank_block r = part->r;
    bool gated = r.ffn_inner > 1;
    double inner = r.ffn_inner * width;
    double eager = gated && !part->view->job->fused_kernels ? PS_COST_EAGER_ACTIVATION_BYTES / 2 * width : 0;
    bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_FFN);

    double again = gated ? 0.5 : 0; // of the first matrix; without a gate the second is every other product
    ps_part_linear(
        part,
        (ps_linear){
            .formula = f->in, .tokens = part->tokens, .in = r.hidden, .out = inner, .copies = 1, .alternate = again});
    hold_inner(part, f->held_in, part->w * part->tokens * inner, again);
    bool between = ps_part_begin_recompute(part, PS_RECOMPUTE_ACTIVATION);
    ps_part_elementwise(part, f->activation, part->w * part->tokens * (inner + width + eager), 2);
    ps_part_hold(part, f->held_activation, part->w * part->tokens * width);
    ps_part_end_recompute(part, between);
    ps_part_linear(part, (ps_linear){.formula = f->out,
                                     .tokens = part->tokens,
                                     .in = width,
                                     .out = r.hidden,
                                     .copies = 1,
                                     .alternate = gated ? 0 : 1});
    ps_part_end_recompute(part, outer);

    ps_part_hold_between(part, f->between, part->w * part->tokens * (2 * part->hidden + inner + width));
    ps_part_transient(part, f->gradients, part->w * part->tokens * (inner + width + 2 * r.hidden / part->view->tp));
    if (part->view->job->lora_rank == 0)
        ps_part_transient(part, f->weight, part->w * r.hidden * inner);
}

void ps_part_dense_ffn(const ps_part *part)
{
    static const ffn_formulas formulas = {
        .in = "FFN in: max(2*T*h*(g-1)f/t / gemm rate, bytes / memory rate) + kernel",
        .out = "FFN out: max(2*T*h*f/t / gemm rate, bytes / memory rate) + kernel",
        .activation = "activation: g*w*T*f/t / memory rate + 2 kernels, backward twice",
        .held_in = "FFN input of the activation: w*T*(g-1)f/t",
        .held_activation = "FFN activation: w*T*f/t",
        .between = "FFN matrices, inputs and output gradients: w*T*(2h/sp + g*f/t)",
        .gradients = "FFN gradients: w*T*(g*f + 2h)/t",
        .weight = "gradient of the FFN's first matrix: w*h*(g-1)f/t",
    };
    add_ffn(part, part->r.ffn, &formulas);
}

void ps_part_shared_ffn(const ps_part *part)
{
    static const ffn_formulas formulas = {
        .in = "shared experts in: max(2*T*h*(g-1)fs/t / gemm rate, bytes / memory rate) + kernel",
        .out = "shared experts out: max(2*T*h*fs/t / gemm rate, bytes / memory rate) + kernel",
        .activation = "shared experts' activation: g*w*T*fs/t / memory rate + 2 kernels, backward twice",
        .held_in = "shared experts' input of the activation: w*T*(g-1)fs/t",
        .held_activation = "shared experts' activation: w*T*fs/t",
        .between = "shared experts' matrices, inputs and output gradients: w*T*(2h/sp + g*fs/t)",
        .gradients = "shared experts' gradients: w*T*(g*fs + 2h)/t",
        .weight = "gradient of the shared experts' first matrix: w*h*(g-1)fs/t",
    };
    add_ffn(part, part->r.shared_ffn, &formulas);
    if (part->block->shared_gate)
        ps_part_elementwise(part, "gate of the shared experts: 3w*T*h/sp / memory rate + 2 kernels, backward twice",
                            3 * part->w * part->tokens * part->hidden, 2);
}

void ps_part_linear_map(const ps_part *part)
{
    double bytes = part->w * part->tokens * part->hidden;

    ps_part_linear(part, (ps_linear){.formula = "linear map: max(2*T*h*h/t / gemm rate, bytes / memory rate) + kernel",
                                     .tokens = part->tokens,
                                     .in = part->r.hidden,
                                     .out = part->r.hidden / part->view->tp,
                                     .copies = 1});
    ps_part_hold_between(part, "linear map, input and output gradient: 2w*T*h/sp", 2 * bytes);
}
