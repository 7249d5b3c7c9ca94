// SPDX-License-Identifier: Apache-2.0
//
// experts.c: a mixture of experts: router, exchange of tokens, grouped GEMMs, and back.
//
// A rank holds E/e experts, each cut over x ranks. Of every token K copies are made, so R = T*K*x/t of them arrive on a
// rank when all ranks get as many: times the imbalance of the busiest, or, with a capacity, times the places that are
// kept free. Grouped GEMMs read the weights of every local expert, which binds when experts see few tokens.
#include "cost/exchange.h"
#include "cost/part.h"

typedef struct routing {
    double routed; // R: copies that the busiest rank computes
    double local;  // E/e
    double width;  // of the hidden state that experts see: h, or the latent
    double tokens; // T/t, which a rank routes
} routing;

static routing routing_of(const ps_part *part)
{
    const ps_rank_view *view = part->view;
    const ps_job *job = view->job;
    const ps_block *block = part->block;
    bool by_head = job->head_parallel_moe;
    double share = job->expert_capacity > 0 ? job->expert_capacity : by_head ? 1 : job->expert_imbalance;
    double width = block->expert_latent_size > 0 ? (double)block->expert_latent_size : part->r.hidden;

    // Divided by heads of the latent, a rank sees every token of the e ranks, all experts, and 1/e of the width: the
    // same work and weights, written here as its share of the experts.
    return (routing){
        .routed = part->tokens * (double)block->experts_per_token * view->etp / view->tp * (share > 0 ? share : 1),
        .local = (double)block->experts / view->ep,
        .width = width,
        .tokens = part->tokens / view->tp,
    };
}

static void add_router(const ps_part *part)
{
    double experts = (double)part->block->experts;
    double tokens = part->tokens / part->view->sp;

    ps_part_linear(part,
                   (ps_linear){.formula = "router: max(2*T*h*E/sp / 16-bit gemm rate, bytes / memory rate) + kernel",
                               .tokens = tokens,
                               .in = part->r.hidden,
                               .out = experts,
                               .copies = 1,
                               .kind = PS_GEMM_PLAIN});
    ps_part_elementwise(part, "router softmax and top-k: 8*T*E/sp / memory rate + 4 kernels, backward twice",
                        8 * tokens * experts, 4);
    ps_part_hold(part, "router logits and probabilities: 8*T*E/sp", 8 * tokens * experts);
    ps_part_hold_between(part, "router, input and output gradient: w*T*h/sp + 4*T*E/sp",
                         part->w * part->tokens * part->hidden + 4 * tokens * experts);
}

// Down to the latent before the exchange and up behind it (LatentMoE); both stand on every rank.
static void add_latent(const ps_part *part)
{
    double latent = (double)part->block->expert_latent_size;
    double tokens = part->tokens / part->view->sp;

    if (latent <= 0)
        return;
    ps_part_linear(part,
                   (ps_linear){.formula = "latent down: max(2*T*h*l/sp / gemm rate, bytes / memory rate) + kernel",
                               .tokens = tokens,
                               .in = part->r.hidden,
                               .out = latent,
                               .copies = 1});
    ps_part_linear(part, (ps_linear){.formula = "latent up: max(2*T*l*h/sp / gemm rate, bytes / memory rate) + kernel",
                                     .tokens = tokens,
                                     .in = latent,
                                     .out = part->r.hidden,
                                     .copies = 1});
    ps_part_hold(part, "latents before and behind the experts: 2w*T*l/sp", 2 * part->w * tokens * latent);
    ps_part_hold_between(part, "latent matrices, inputs and output gradients: w*T*(2h + 2l)/sp",
                         part->w * tokens * (2 * part->r.hidden + 2 * latent));
}

static void add_grouped(const ps_part *part, routing m)
{
    double width = part->r.expert_ffn;
    double inner = part->r.ffn_inner * width;

    ps_part_elementwise(part, "permute and unpermute: 2*2*w*R*h / memory rate + 4 kernels, backward twice",
                        4 * part->w * m.routed * m.width, 4);
    ps_part_hold(part, "permuted tokens: w*R*h", part->w * m.routed * m.width);
    ps_part_linear(part, (ps_linear){.formula = "experts in: max(2*R*h*(g-1)fe/x / grouped gemm rate, bytes / memory "
                                                "rate) + kernel",
                                     .tokens = m.routed,
                                     .in = m.width,
                                     .out = inner,
                                     .copies = m.local,
                                     .kind = PS_GEMM_GROUPED});
    ps_part_hold(part, "expert FFN input of the activation: w*R*(g-1)fe/x", part->w * m.routed * inner);
    bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_ACTIVATION);
    ps_part_elementwise(part, "expert activation: g*w*R*fe/x / memory rate + 2 kernels, backward twice",
                        part->w * m.routed * (inner + width), 2);
    ps_part_hold(part, "expert FFN activation: w*R*fe/x", part->w * m.routed * width);
    ps_part_end_recompute(part, outer);
    ps_part_linear(part, (ps_linear){.formula = "experts out: max(2*R*h*fe/x / grouped gemm rate, bytes / memory rate) "
                                                "+ kernel",
                                     .tokens = m.routed,
                                     .in = width,
                                     .out = m.width,
                                     .copies = m.local,
                                     .kind = PS_GEMM_GROUPED});
    ps_part_hold(part, "expert outputs: w*R*h", part->w * m.routed * m.width);
    ps_part_hold_between(part, "expert matrices, inputs and output gradients: w*R*(2h + g*fe/x)",
                         part->w * m.routed * (2 * m.width + inner + width));
    ps_part_transient(part, "expert gradients: w*R*(g*fe/x + 2h)", part->w * m.routed * (inner + width + 2 * m.width));
}

void ps_part_experts(const ps_part *part)
{
    routing m = routing_of(part);
    bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_MOE);

    add_router(part);
    add_latent(part);
    add_grouped(part, m);
    if (part->block->shared_ffn_size > 0)
        ps_part_shared_ffn(part);
    ps_ep_exchange(part, m.tokens, m.width);
    ps_part_end_recompute(part, outer);
}
