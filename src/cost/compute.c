// SPDX-License-Identifier: Apache-2.0
//
// compute.c: roofline by class of work.
//
// A GEMM takes max(FLOP / (peak * efficiency), bytes / (memory bandwidth * efficiency)) and one kernel; what only moves
// data takes its bytes; core attention takes FLOP at an efficiency of its own (Williams et al. 2009). FLOP of a decoder
// layer as Narayanan et al. 2021, so with f = 4h, k = q = h and unfused attention: forward T(24h^2 + 4sh), input
// gradient T(24h^2 + 8sh), weight gradient 24Th^2 (Qi et al. 2024, table 1).
#include "cost/compute.h"

#include "cost/communication.h"
#include "cost/constants.h"

// `copies` matrices of in x out, among which `tokens` rows are divided.
typedef struct linear {
    const char *formula;
    double tokens;
    double in;
    double out;
    double copies;
    double efficiency_share;
} linear;

static double roofline_seconds(const ps_rank_view *view, double flops_per_s, double flops, double bytes)
{
    double compute = flops / flops_per_s;
    double memory = bytes / view->memory_bytes_per_s;
    return (compute > memory ? compute : memory) + view->kernel_seconds;
}

static void add_linear(const ps_rank_view *view, ps_ledger *ledger, linear l)
{
    double flops = 2 * l.tokens * l.in * l.out;
    double activation_bytes = view->element_bytes * l.tokens * (l.in + l.out);
    double weights = l.in * l.out * l.copies;
    double rate = view->gemm_flops_per_s * l.efficiency_share;
    double forward = roofline_seconds(view, rate, flops, activation_bytes + view->element_bytes * weights);
    // Accumulation reads and writes the gradient buffer.
    double weight =
        roofline_seconds(view, rate, flops, activation_bytes + 2 * (double)view->job->gradient_bytes * weights);

    ps_ledger_add(ledger, PS_QUANTITY_WORK, l.formula, flops);
    ps_ledger_add(ledger, PS_QUANTITY_FORWARD, l.formula, forward);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_INPUT, l.formula, forward);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_WEIGHT, l.formula, weight);
}

static void add_elementwise(const ps_rank_view *view, ps_ledger *ledger, const char *formula, double bytes,
                            double kernels)
{
    double forward = bytes / view->memory_bytes_per_s + kernels * view->kernel_seconds;
    ps_ledger_add(ledger, PS_QUANTITY_FORWARD, formula, forward);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_INPUT, formula, PS_COST_ELEMENTWISE_BACKWARD * forward);
}

static void add_both_ways(ps_ledger *ledger, const char *formula, double seconds)
{
    ps_ledger_add(ledger, PS_QUANTITY_FORWARD, formula, seconds);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_INPUT, formula, seconds);
}

// Keys that a query sees on average under the causal mask: half the sequence, or a window's ramp and plateau.
static double causal_keys(double sequence, double window)
{
    return window > 0 && window < sequence ? window - window * window / (2 * sequence) : sequence / 2;
}

static void add_flash_attention(const ps_rank_view *view, ps_ledger *ledger, const ps_block *block, double query)
{
    const char *formula = "core attention: 4*T*s_kv*q/t / (peak * attention efficiency) + kernel, backward 2.5 times";
    double flops = 4 * view->tokens * causal_keys(view->sequence, (double)block->sliding_window) * query;
    double seconds = flops / view->attention_flops_per_s;

    ps_ledger_add(ledger, PS_QUANTITY_WORK, formula, flops);
    ps_ledger_add(ledger, PS_QUANTITY_FORWARD, formula, seconds + view->kernel_seconds);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_INPUT, formula, PS_COST_FLASH_BACKWARD * seconds + view->kernel_seconds);
}

// Without a fused kernel the masked half is computed too, and the scores travel through memory.
static void add_unfused_attention(const ps_rank_view *view, ps_ledger *ledger, const ps_block *block, double query,
                                  double heads)
{
    const char *matmul = "core attention: 4*T*s*q/t / (peak * attention efficiency) + kernels, backward twice";
    const char *softmax = "core attention, softmax: (3w or 5.5w with dropout)*b*s^2*a/t / memory rate, backward twice";
    double flops = 4 * view->tokens * view->sequence * query;
    double seconds = flops / view->attention_flops_per_s + PS_COST_SCORE_KERNELS * view->kernel_seconds;
    double bytes = PS_COST_SCORE_BYTES + (block->dropout ? PS_COST_SCORE_DROPOUT_BYTES : 0);
    double scores = view->micro_batch * heads * view->sequence * view->sequence;
    double score_seconds = bytes * view->element_bytes / 2 * scores / view->memory_bytes_per_s;

    ps_ledger_add(ledger, PS_QUANTITY_WORK, matmul, flops);
    ps_ledger_add(ledger, PS_QUANTITY_FORWARD, matmul, seconds);
    ps_ledger_add(ledger, PS_QUANTITY_FORWARD, softmax, score_seconds);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_INPUT, matmul, PS_COST_UNFUSED_BACKWARD * seconds);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_INPUT, softmax, PS_COST_UNFUSED_BACKWARD * score_seconds);
}

static void add_dense_ffn(const ps_rank_view *view, ps_ledger *ledger, ps_rank_block r)
{
    add_linear(view, ledger,
               (linear){"FFN in: max(2*T*h*(g-1)f/t / gemm rate, bytes / memory rate) + kernel", view->tokens, r.hidden,
                        r.ffn_inner * r.ffn, 1, 1});
    add_linear(view, ledger,
               (linear){"FFN out: max(2*T*h*f/t / gemm rate, bytes / memory rate) + kernel", view->tokens, r.ffn,
                        r.hidden, 1, 1});
    add_elementwise(view, ledger, "activation: g*w*T*f/t / memory rate + 2 kernels, backward twice",
                    (r.ffn_inner + 1) * view->element_bytes * view->tokens * r.ffn, 2);
}

// Experts stand on every rank, sharded like a dense FFN; tokens are sorted by expert and back. The grouped GEMMs read
// every expert's weights, which binds when experts see few tokens.
static void add_expert_ffn(const ps_rank_view *view, ps_ledger *ledger, const ps_block *block, ps_rank_block r)
{
    double experts = (double)block->experts;
    double routed = view->tokens * (double)block->experts_per_token;

    add_linear(view, ledger,
               (linear){"router: max(2*T*h*E / gemm rate, bytes / memory rate) + kernel", view->tokens, r.hidden,
                        experts, 1, 1});
    add_linear(view, ledger,
               (linear){"experts in: max(2*T*K*h*(g-1)fe/t / grouped gemm rate, bytes / memory rate) + kernel", routed,
                        r.hidden, r.ffn_inner * r.expert_ffn, experts, PS_COST_GROUPED_GEMM_SHARE});
    add_linear(view, ledger,
               (linear){"experts out: max(2*T*K*h*fe/t / grouped gemm rate, bytes / memory rate) + kernel", routed,
                        r.expert_ffn, r.hidden, experts, PS_COST_GROUPED_GEMM_SHARE});
    add_elementwise(view, ledger, "expert activation: g*w*T*K*fe/t / memory rate + 2 kernels, backward twice",
                    (r.ffn_inner + 1) * view->element_bytes * routed * r.expert_ffn, 2);
    add_elementwise(view, ledger, "permute and unpermute: 2*2*w*T*K*h / memory rate + 2 kernels, backward twice",
                    4 * view->element_bytes * routed * r.hidden, 2);
    add_elementwise(view, ledger, "router softmax and top-k: 8*T*E / memory rate + 2 kernels, backward twice",
                    8 * view->tokens * experts, 2);
}

static void add_decoder(const ps_rank_view *view, const ps_block *block, ps_ledger *ledger)
{
    ps_rank_block r = ps_rank_block_of(view, block);
    double hidden_bytes = view->element_bytes * view->tokens * r.hidden;

    add_linear(view, ledger,
               (linear){"QKV: max(2*T*h*(q+2k)/t / gemm rate, bytes / memory rate) + kernel", view->tokens, r.hidden,
                        r.query + 2 * r.key, 1, 1});
    if (view->job->flash_attention)
        add_flash_attention(view, ledger, block, r.query);
    else
        add_unfused_attention(view, ledger, block, r.query, r.heads);
    add_linear(view, ledger,
               (linear){"attention out: max(2*T*q*h/t / gemm rate, bytes / memory rate) + kernel", view->tokens,
                        r.query, r.hidden, 1, 1});
    if (block->experts > 0)
        add_expert_ffn(view, ledger, block, r);
    else
        add_dense_ffn(view, ledger, r);
    add_elementwise(view, ledger, "norms: 2*2w*T*h/sp / memory rate + 2 kernels, backward twice",
                    4 * hidden_bytes / view->sp, 2);
    add_elementwise(view, ledger,
                    "residuals: 2*(3w, 3w+1 with dropout)*T*h/sp / memory rate + 2 kernels, backward twice",
                    (6 * hidden_bytes + (block->dropout ? 2 * view->tokens * r.hidden : 0)) / view->sp, 2);
    add_both_ways(ledger, "tensor parallel: 2 all-reduces of w*T*h, share not hidden",
                  2 * ps_tp_exchange_seconds(view, hidden_bytes));
}

// Rows are gathered forward and scattered into the gradient buffer backward; there is no input gradient.
static void add_embedding(const ps_rank_view *view, const ps_block *block, ps_ledger *ledger)
{
    double elements = view->tokens * (double)block->hidden_size;
    double forward_bytes = 2 * view->element_bytes * elements;
    double weight_bytes = (view->element_bytes + 2 * (double)view->job->gradient_bytes) * elements;
    double bytes = view->element_bytes * elements;
    double exchange = ps_tp_half_exchange_seconds(view, bytes);

    ps_ledger_add(ledger, PS_QUANTITY_FORWARD, "gather: 2w*T*h / memory rate + kernel",
                  forward_bytes / view->memory_bytes_per_s + view->kernel_seconds);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_WEIGHT, "scatter-add: (w + 2*gradient bytes)*T*h / memory rate + kernel",
                  weight_bytes / view->memory_bytes_per_s + view->kernel_seconds);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_WEIGHT, "tensor parallel: gather of w*T*h, share not hidden", exchange);
    if (!view->job->sequence_parallel)
        exchange = ps_tp_exchange_seconds(view, bytes);
    ps_ledger_add(ledger, PS_QUANTITY_FORWARD, "tensor parallel: reduction of w*T*h, share not hidden", exchange);
}

static void add_norm(const ps_rank_view *view, const ps_block *block, ps_ledger *ledger)
{
    add_elementwise(view, ledger, "norm: 2w*T*h/sp / memory rate + kernel, backward twice",
                    2 * view->element_bytes * view->tokens * (double)block->hidden_size / view->sp, 1);
}

static void add_head(const ps_rank_view *view, const ps_block *block, ps_ledger *ledger)
{
    const char *loss = "cross-entropy: (3w forward, 4w backward)*T*V/t / memory rate + kernels";
    ps_rank_block r = ps_rank_block_of(view, block);
    double elements = view->tokens * r.vocabulary * view->element_bytes / 2;
    double bytes = view->element_bytes * view->tokens * r.hidden;
    double exchange = ps_tp_half_exchange_seconds(view, bytes);

    add_linear(view, ledger,
               (linear){"logits: max(2*T*h*V/t / gemm rate, bytes / memory rate) + kernel", view->tokens, r.hidden,
                        r.vocabulary, 1, 1});
    ps_ledger_add(ledger, PS_QUANTITY_FORWARD, loss,
                  PS_COST_LOSS_FORWARD_BYTES * elements / view->memory_bytes_per_s + 2 * view->kernel_seconds);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_INPUT, loss,
                  PS_COST_LOSS_BACKWARD_BYTES * elements / view->memory_bytes_per_s + view->kernel_seconds);
    ps_ledger_add(ledger, PS_QUANTITY_FORWARD, "tensor parallel: gather of w*T*h, share not hidden", exchange);
    if (!view->job->sequence_parallel)
        exchange = ps_tp_exchange_seconds(view, bytes);
    ps_ledger_add(ledger, PS_QUANTITY_BACKWARD_INPUT, "tensor parallel: reduction of w*T*h, share not hidden",
                  exchange);
}

void ps_layer_compute_terms(const ps_rank_view *view, const ps_layer *layer, ps_ledger *ledger)
{
    switch (layer->class_) {
    case PS_LAYER_EMBEDDING: add_embedding(view, layer->block, ledger); break;
    case PS_LAYER_DECODER: add_decoder(view, layer->block, ledger); break;
    case PS_LAYER_NORM: add_norm(view, layer->block, ledger); break;
    case PS_LAYER_HEAD: add_head(view, layer->block, ledger); break;
    case PS_LAYER_MAMBA:
    case PS_LAYER_MTP:
    case PS_LAYER_PATCHES:
    case PS_LAYER_CLASSIFIER:
    case PS_LAYER_TIMED: break;
    }
}

// Weight elements that one token multiplies with.
static double active_matrix_elements(const ps_layer *layer)
{
    const ps_block *block = layer->block;
    double hidden = (double)block->hidden_size;
    double query = (double)block->attention_heads * (double)block->head_dim;
    double key = (double)block->kv_heads * (double)block->head_dim;
    double matrices = block->gated_ffn ? 3 : 2;

    if (layer->class_ == PS_LAYER_HEAD)
        return hidden * (double)block->vocab_size;
    if (layer->class_ != PS_LAYER_DECODER)
        return 0;
    double ffn = block->experts > 0
                     ? matrices * hidden * (double)block->expert_ffn_size * (double)block->experts_per_token +
                           hidden * (double)block->experts
                     : matrices * hidden * (double)block->ffn_size;
    return 2 * hidden * (query + key) + ffn;
}

double ps_layer_model_flops(const ps_layer *layer, int64_t seq_length)
{
    double sequence = (double)seq_length;

    if (!layer->block) // times only: 6 FLOP a parameter and token (Kaplan et al. 2020)
        return 6 * (double)layer->active_parameters * sequence;
    double flops = 6 * active_matrix_elements(layer) * sequence;
    if (layer->class_ == PS_LAYER_DECODER)
        flops += 12 * sequence * causal_keys(sequence, (double)layer->block->sliding_window) *
                 (double)layer->block->attention_heads * (double)layer->block->head_dim;
    return flops;
}
