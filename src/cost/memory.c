// SPDX-License-Identifier: Apache-2.0
//
// memory.c: activations from F to B and from B to W, working memory, and model state.
//
// What is saved follows Korthikanti et al. 2022 tensor by tensor, so that a GPT layer without recompute comes to
// sbh(10 + 24/t + 5as/(ht)), and to sbh/t (34 + 5as/h) with sequence parallelism. Between the input and the weight
// gradient a layer keeps inputs and output gradients of its matrices: 32sbh for GPT (Qi et al. 2024).
#include "cost/memory.h"

#include "cost/constants.h"

static void add_attention_saved(const ps_rank_view *view, const ps_block *block, ps_rank_block r, ps_quantity quantity,
                                ps_ledger *ledger)
{
    double w = view->element_bytes;

    ps_ledger_add(ledger, quantity, "Q, K, V and attention output: w*T*(2q+2k)/t",
                  w * view->tokens * 2 * (r.query + r.key));
    if (view->job->flash_attention) {
        ps_ledger_add(ledger, quantity, "log-sum-exp of the scores: 4*T*a/t", 4 * view->tokens * r.heads);
        return;
    }
    double scores = view->micro_batch * r.heads * view->sequence * view->sequence;
    ps_ledger_add(ledger, quantity, "scores: (2w, 2w+1 with dropout)*b*s^2*a/t",
                  (2 * w + (block->dropout ? 1 : 0)) * scores);
}

static void add_ffn_saved(const ps_rank_view *view, const ps_block *block, ps_rank_block r, ps_quantity quantity,
                          ps_ledger *ledger)
{
    double w = view->element_bytes;

    if (block->experts == 0) {
        ps_ledger_add(ledger, quantity, "FFN input and activation: w*T*g*f/t",
                      w * view->tokens * (r.ffn_inner + 1) * r.ffn);
        return;
    }
    double routed = view->tokens * (double)block->experts_per_token;
    ps_ledger_add(ledger, quantity, "router logits and probabilities: 8*T*E",
                  8 * view->tokens * (double)block->experts);
    ps_ledger_add(ledger, quantity, "permuted tokens and expert outputs: 2w*T*K*h", 2 * w * routed * r.hidden);
    ps_ledger_add(ledger, quantity, "expert FFN input and activation: w*T*K*g*fe/t",
                  w * routed * (r.ffn_inner + 1) * r.expert_ffn);
}

// All that a decoder layer saves for its backward, entered as `quantity`.
static void add_decoder_saved(const ps_rank_view *view, const ps_block *block, ps_rank_block r, ps_quantity quantity,
                              ps_ledger *ledger)
{
    double elements = view->tokens * r.hidden / view->sp;

    ps_ledger_add(ledger, quantity, "inputs and outputs of two norms: 4w*T*h/sp", 4 * view->element_bytes * elements);
    add_attention_saved(view, block, r, quantity, ledger);
    add_ffn_saved(view, block, r, quantity, ledger);
    if (block->dropout)
        ps_ledger_add(ledger, quantity, "dropout masks: 2*T*h/sp", 2 * elements);
}

static void add_decoder_between_gradients(const ps_rank_view *view, const ps_block *block, ps_rank_block r,
                                          ps_ledger *ledger)
{
    double w = view->element_bytes;
    double hidden = r.hidden / view->sp;
    ps_quantity quantity = PS_QUANTITY_HELD_BACKWARD_INPUT;

    ps_ledger_add(ledger, quantity, "attention matrices, inputs and output gradients: w*T*(2h/sp + (2q+2k)/t)",
                  w * view->tokens * (2 * hidden + 2 * (r.query + r.key)));
    if (block->experts == 0) {
        ps_ledger_add(ledger, quantity, "FFN matrices, inputs and output gradients: w*T*(2h/sp + g*f/t)",
                      w * view->tokens * (2 * hidden + (r.ffn_inner + 1) * r.ffn));
        return;
    }
    double routed = view->tokens * (double)block->experts_per_token;
    ps_ledger_add(ledger, quantity, "router, input and output gradient: w*T*h/sp + 4*T*E",
                  view->tokens * (w * hidden + 4 * (double)block->experts));
    ps_ledger_add(ledger, quantity, "expert matrices, inputs and output gradients: w*T*K*(2h + g*fe/t)",
                  w * routed * (2 * r.hidden + (r.ffn_inner + 1) * r.expert_ffn));
}

// Working memory of one backward: gradients inside the FFN, the gathered input under sequence parallelism, and the
// gradient of the largest matrix before it is accumulated.
static void add_decoder_transient(const ps_rank_view *view, const ps_block *block, ps_rank_block r, ps_ledger *ledger)
{
    double w = view->element_bytes;
    ps_quantity quantity = PS_QUANTITY_TRANSIENT;

    if (block->experts == 0) {
        ps_ledger_add(ledger, quantity, "FFN gradients: w*T*(g*f + 2h)/t",
                      w * view->tokens * ((r.ffn_inner + 1) * r.ffn + 2 * r.hidden / view->tp));
        ps_ledger_add(ledger, quantity, "gradient of the FFN's first matrix: w*h*(g-1)f/t",
                      w * r.hidden * r.ffn_inner * r.ffn);
    } else {
        double routed = view->tokens * (double)block->experts_per_token;
        ps_ledger_add(ledger, quantity, "expert gradients: w*T*K*(g*fe/t + 2h)",
                      w * routed * ((r.ffn_inner + 1) * r.expert_ffn + 2 * r.hidden));
    }
    if (view->sp > 1)
        ps_ledger_add(ledger, quantity, "gathered input: w*T*h", w * view->tokens * r.hidden);
}

static void add_decoder(const ps_rank_view *view, const ps_block *block, ps_ledger *ledger)
{
    ps_rank_block r = ps_rank_block_of(view, block);

    if (view->layout->recompute == PS_RECOMPUTE_FULL) {
        ps_ledger_add(ledger, PS_QUANTITY_HELD_FORWARD, "layer input: w*T*h/sp",
                      view->element_bytes * view->tokens * r.hidden / view->sp);
        add_decoder_saved(view, block, r, PS_QUANTITY_TRANSIENT, ledger);
        add_decoder_saved(view, block, r, PS_QUANTITY_RECOMPUTED, ledger);
    } else {
        add_decoder_saved(view, block, r, PS_QUANTITY_HELD_FORWARD, ledger);
    }
    add_decoder_between_gradients(view, block, r, ledger);
    add_decoder_transient(view, block, r, ledger);
}

// The output is the first block's input and counted there.
static void add_embedding(const ps_rank_view *view, const ps_block *block, ps_ledger *ledger)
{
    double elements = view->tokens * (double)block->hidden_size / view->sp;

    ps_ledger_add(ledger, PS_QUANTITY_HELD_FORWARD, "token numbers: 8*T", 8 * view->tokens);
    if (block->dropout)
        ps_ledger_add(ledger, PS_QUANTITY_HELD_FORWARD, "dropout mask: T*h/sp", elements);
    ps_ledger_add(ledger, PS_QUANTITY_HELD_BACKWARD_INPUT, "token numbers and output gradient: 8*T + w*T*h/sp",
                  8 * view->tokens + view->element_bytes * elements);
}

// Logits are kept until the backward, which leaves their gradient in their place; the rest of the loss is working
// memory. When B follows F at once, as in 1F1B, one micro-batch of it is alive.
static void add_head(const ps_rank_view *view, const ps_block *block, ps_ledger *ledger)
{
    ps_rank_block r = ps_rank_block_of(view, block);
    double w = view->element_bytes;
    double logits = view->tokens * r.vocabulary;

    for (ps_quantity quantity = PS_QUANTITY_HELD_FORWARD; quantity <= PS_QUANTITY_HELD_BACKWARD_INPUT; quantity++) {
        ps_ledger_add(ledger, quantity, "head input: w*T*h/sp", w * view->tokens * r.hidden / view->sp);
        ps_ledger_add(ledger, quantity, "logits or their gradient: w*T*V/t", w * logits);
    }
    ps_ledger_add(ledger, PS_QUANTITY_TRANSIENT, "cross-entropy: 3w*T*V/t",
                  PS_COST_LOSS_TRANSIENT_BYTES * w / 2 * logits);
    if (view->sp > 1)
        ps_ledger_add(ledger, PS_QUANTITY_TRANSIENT, "gathered input: w*T*h", w * view->tokens * r.hidden);
}

void ps_layer_memory_terms(const ps_rank_view *view, const ps_layer *layer, ps_ledger *ledger)
{
    const ps_block *block = layer->block;
    double input = view->element_bytes * view->tokens * (double)block->hidden_size / view->sp;

    switch (layer->class_) {
    case PS_LAYER_EMBEDDING: add_embedding(view, block, ledger); break;
    case PS_LAYER_DECODER: add_decoder(view, block, ledger); break;
    case PS_LAYER_NORM: ps_ledger_add(ledger, PS_QUANTITY_HELD_FORWARD, "norm input: w*T*h/sp", input); break;
    case PS_LAYER_HEAD: add_head(view, block, ledger); return; // nothing is sent on
    case PS_LAYER_MAMBA:
    case PS_LAYER_MTP:
    case PS_LAYER_PATCHES:
    case PS_LAYER_CLASSIFIER:
    case PS_LAYER_TIMED: return;
    }
    ps_ledger_add(ledger, PS_QUANTITY_OUTPUT, "layer output: w*T*h/sp", input);
}

static double moments(ps_optimizer optimizer)
{
    return optimizer == PS_OPTIMIZER_SGD ? 1 : 2;
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

ps_state_bytes ps_cost_state_bytes(const ps_job *job, const ps_layout *layout)
{
    double ranks = (double)layout->dp * (double)layout->cp;

    return (ps_state_bytes){
        .parameters = weight_bytes(job) / (layout->zero >= 3 ? ranks : 1),
        .gradients = (double)job->gradient_bytes / (layout->zero >= 2 ? ranks : 1),
        .optimizer = optimizer_bytes(job) / (layout->zero >= 1 ? ranks : 1),
    };
}

double ps_cost_least_state_bytes(const ps_job *job)
{
    return weight_bytes(job) + (double)job->gradient_bytes + optimizer_bytes(job);
}

void ps_layer_state_terms(const ps_rank_view *view, double parameters, ps_ledger *ledger)
{
    ps_state_bytes state = ps_cost_state_bytes(view->job, view->layout);

    ps_ledger_add(ledger, PS_QUANTITY_PARAMETERS, "elements on this rank: P", parameters);
    ps_ledger_add(ledger, PS_QUANTITY_PARAMETER_BYTES, "w*P, over D from ZeRO-3", parameters * state.parameters);
    ps_ledger_add(ledger, PS_QUANTITY_GRADIENT_BYTES, "gradient bytes*P, over D from ZeRO-2",
                  parameters * state.gradients);
    ps_ledger_add(ledger, PS_QUANTITY_OPTIMIZER_BYTES, "(32-bit copy + moments)*P, over D from ZeRO-1",
                  parameters * state.optimizer);
    if (view->layout->zero >= 3)
        ps_ledger_add(ledger, PS_QUANTITY_TRANSIENT, "ZeRO-3: this layer and the next gathered, 2w*P",
                      2 * weight_bytes(view->job) * parameters);
}
