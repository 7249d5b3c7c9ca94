// SPDX-License-Identifier: Apache-2.0
//
// ends.c: what stands before and behind the blocks: embeddings, final norm, heads and their losses.
#include "cost/constants.h"
#include "cost/exchange.h"
#include "cost/part.h"

// Rows are gathered forward and scattered into the gradient buffer backward; there is no input gradient. The output is
// the first block's input and counted there.
void ps_part_embedding(const ps_part *part)
{
    static const char gather[] = "gather: 2w*T*h / memory rate + kernel";
    static const char scatter[] = "scatter-add: (w + 2*gradient bytes)*T*h / memory rate + kernel";
    const ps_rank_view *view = part->view;
    double elements = part->tokens * part->r.hidden;
    double weight_bytes = (part->w + 2 * (double)view->job->gradient_bytes) * elements;
    double bytes = part->w * elements;
    double half = ps_tp_half_exchange_seconds(view, bytes);
    double whole = view->job->sequence_parallel ? half : ps_tp_exchange_seconds(view, bytes);

    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, gather,
                          2 * bytes / view->memory_bytes_per_s + view->kernel_seconds, 1);
    ps_ledger_add(part->ledger, PS_QUANTITY_FORWARD, "tensor parallel: reduction of w*T*h, share not hidden", whole);
    ps_part_hold(part, "token numbers: 8*T", 8 * part->tokens);
    if (part->block->dropout)
        ps_part_hold(part, "dropout mask: T*h/sp", part->tokens * part->hidden);
    if (view->job->lora_rank > 0)
        return;
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_WEIGHT, scatter,
                          weight_bytes / view->memory_bytes_per_s + view->kernel_seconds, 1);
    ps_ledger_add(part->ledger, PS_QUANTITY_BACKWARD_WEIGHT, "tensor parallel: gather of w*T*h, share not hidden",
                  half);
    ps_part_hold_between(part, "token numbers and output gradient: 8*T + w*T*h/sp",
                         8 * part->tokens + part->w * part->tokens * part->hidden);
}

// Patches of an image are projected like tokens; the image needs no gradient.
void ps_part_patches(const ps_part *part)
{
    static const char formula[] = "patches: max(2*T*(numbers in a patch)*h / gemm rate, bytes / memory rate) + kernel";
    const ps_rank_view *view = part->view;
    double inputs = (double)part->block->patch_inputs;
    double flops = 2 * part->tokens * inputs * part->r.hidden;
    double bytes = part->w * part->tokens * (inputs + part->r.hidden);
    double seconds =
        ps_part_roofline(flops / view->plain_gemm_flops_per_s, bytes / view->memory_bytes_per_s) + view->kernel_seconds;

    ps_ledger_add(part->ledger, PS_QUANTITY_WORK, formula, flops);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, formula, seconds, 1);
    ps_part_hold(part, "patches: w*T*(numbers in a patch)", part->w * part->tokens * inputs);
    if (view->job->lora_rank > 0)
        return;
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_WEIGHT, formula, seconds, 1);
    ps_part_hold_between(part, "patches and output gradient: w*T*(numbers in a patch + h/sp)",
                         part->w * part->tokens * (inputs + part->hidden));
}

void ps_part_norm(const ps_part *part)
{
    double bytes = part->w * part->tokens * part->hidden;

    ps_part_norms(part, "norm: (2w or 18w eager)*T*h/sp / memory rate + kernels, backward twice", bytes, 1);
    ps_part_hold(part, "norm input: w*T*h/sp", bytes);
}

// Bytes that cross-entropy moves and needs an element of the logits beyond them, at 2 bytes a logit.
static double loss_bytes(const ps_part *part, double fused, double unfused)
{
    return (part->view->job->fused_loss ? fused : unfused) * part->w / 2;
}

// Logits are kept until the backward, which leaves their gradient in their place; the rest of the loss is working
// memory. When B follows F at once, as in 1F1B, one micro-batch of it is alive.
static void add_loss(const ps_part *part, double logits)
{
    static const char formula[] =
        "cross-entropy: (3w fused or 6w forward, 4w or 8w backward)*T*V/t / memory rate + kernels";
    const ps_rank_view *view = part->view;
    double forward = loss_bytes(part, PS_COST_LOSS_FORWARD_BYTES, PS_COST_PLAIN_LOSS_FORWARD_BYTES) * logits;
    double backward = loss_bytes(part, PS_COST_LOSS_BACKWARD_BYTES, PS_COST_PLAIN_LOSS_BACKWARD_BYTES) * logits;

    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, formula,
                          forward / view->memory_bytes_per_s + 2 * view->kernel_seconds, 2);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_INPUT, formula,
                          backward / view->memory_bytes_per_s + view->kernel_seconds, 1);
    ps_part_hold(part, "logits or their gradient: w*T*V/t", part->w * logits);
    ps_part_hold_between(part, "logits or their gradient: w*T*V/t", part->w * logits);
    ps_part_transient(part, "cross-entropy: (3w fused or 5w)*T*V/t",
                      loss_bytes(part, PS_COST_LOSS_TRANSIENT_BYTES, PS_COST_PLAIN_LOSS_TRANSIENT_BYTES) * logits);
}

void ps_part_head(const ps_part *part)
{
    const ps_rank_view *view = part->view;
    double bytes = part->w * part->tokens * part->r.hidden;
    double half = ps_tp_half_exchange_seconds(view, bytes);
    double whole = view->job->sequence_parallel ? half : ps_tp_exchange_seconds(view, bytes);

    ps_part_linear(part, (ps_linear){.formula = "logits: max(2*T*h*V/t / 16-bit gemm rate, bytes / memory rate) + "
                                                "kernel",
                                     .tokens = part->tokens,
                                     .in = part->r.hidden,
                                     .out = part->r.vocabulary,
                                     .copies = 1,
                                     .kind = PS_GEMM_PLAIN});
    ps_part_hold(part, "head input: w*T*h/sp", part->w * part->tokens * part->hidden);
    ps_part_hold_between(part, "head input: w*T*h/sp", part->w * part->tokens * part->hidden);
    add_loss(part, part->tokens * part->r.vocabulary);
    ps_ledger_add(part->ledger, PS_QUANTITY_FORWARD, "tensor parallel: gather of w*T*h, share not hidden", half);
    ps_ledger_add(part->ledger, PS_QUANTITY_BACKWARD_INPUT, "tensor parallel: reduction of w*T*h, share not hidden",
                  whole);
    if (view->sp > 1)
        ps_part_transient(part, "gathered input: w*T*h", bytes);
}

// Reads one token a sequence.
void ps_part_classifier(const ps_part *part)
{
    double sequences = part->view->micro_batch;

    ps_part_linear(part, (ps_linear){.formula = "classes: max(2*b*h*(classes) / 16-bit gemm rate, bytes / memory rate) "
                                                "+ kernel",
                                     .tokens = sequences,
                                     .in = part->r.hidden,
                                     .out = (double)part->block->vocab_size,
                                     .copies = 1,
                                     .kind = PS_GEMM_PLAIN});
    ps_part_hold(part, "classifier input and logits: w*b*(h + classes)",
                 part->w * sequences * (part->r.hidden + (double)part->block->vocab_size));
}

// Two normed hidden states, the block's and the next token's embedding, become one (DeepSeek-V3, section 2.2).
void ps_part_mtp_projection(const ps_part *part)
{
    double bytes = part->w * part->tokens * part->hidden;

    ps_part_norms(part, "norms of both inputs: (2w or 18w eager)*T*h/sp / memory rate + kernels each, backward twice",
                  bytes, 2);
    ps_part_linear(part, (ps_linear){.formula = "MTP projection: max(2*T*2h*h/t / gemm rate, bytes / memory rate) + "
                                                "kernel",
                                     .tokens = part->tokens,
                                     .in = 2 * part->r.hidden,
                                     .out = part->r.hidden / part->view->tp,
                                     .copies = 1});
    ps_part_hold(part, "MTP inputs before and after their norms: 4w*T*h/sp", 4 * bytes);
    ps_part_hold_between(part, "MTP projection, inputs and output gradient: 3w*T*h/sp", 3 * bytes);
}
