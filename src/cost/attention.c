// SPDX-License-Identifier: Apache-2.0
//
// attention.c: attention of grouped queries, to the own sequence or to an encoder's output.
//
// What is saved follows Korthikanti et al. 2022 tensor by tensor: a GPT layer without recompute comes to
// sbh(10 + 24/t + 5as/(ht)), and to sbh/t (34 + 5as/h) with sequence parallelism.
#include "cost/constants.h"
#include "cost/exchange.h"
#include "cost/part.h"

// A fused kernel skips the masked half, and recomputes the scores backward (Dao 2023).
static void add_flash(const ps_part *part, ps_core core)
{
    static const char formula[] =
        "core attention: 2*T*s_kv*(q+v)/t / (peak * attention efficiency * s/(s+512c)) + kernel, backward 2.5 times";
    const ps_rank_view *view = part->view;
    double flops = 2 * part->tokens * core.keys * (core.query + core.value);
    double block = view->job->cp_method == PS_CP_ALL_TO_ALL ? part->sequence : part->sequence / view->cp;
    double ramp = (block + PS_COST_FLASH_RAMP_TOKENS) / block;
    double forward = flops * ramp / view->attention_flops_per_s;
    double backward = PS_COST_FLASH_BACKWARD * flops * ramp / view->attention_backward_flops_per_s;

    ps_ledger_add(part->ledger, PS_QUANTITY_WORK, formula, flops);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, formula, forward + view->kernel_seconds, 1);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_INPUT, formula, backward + view->kernel_seconds, 1);
    ps_cp_exchange(part, core.exchanged, core.query + core.value, forward, backward);
    ps_part_hold(part, "log-sum-exp of the scores: 4*T*a/t", 4 * part->tokens * part->r.heads);
}

// Without a fused kernel the masked half is computed too, and the scores travel through memory.
static void add_unfused(const ps_part *part, ps_core core)
{
    static const char matmul[] =
        "core attention: 2*T*s_kv*(q+v)/t / (peak * attention efficiency) + kernels, backward twice";
    static const char softmax[] =
        "core attention, softmax: (3w or 5.5w with dropout)*b*s*s_kv*a/t / memory rate, backward as much";
    static const char layout[] =
        "core attention, heads to batches and back: 2w*T*(q+v+k)/t / memory rate + 4 kernels, backward twice";
    const ps_rank_view *view = part->view;
    bool dropout = part->block->dropout;
    double flops = 2 * part->tokens * core.all_keys * (core.query + core.value);
    double seconds = flops / view->attention_flops_per_s + PS_COST_SCORE_KERNELS * view->kernel_seconds;
    double bytes = PS_COST_SCORE_BYTES + (dropout ? PS_COST_SCORE_DROPOUT_BYTES : 0);
    double scores = part->tokens * core.all_keys * part->r.heads;
    double score_seconds = bytes * part->w / 2 * scores / view->memory_bytes_per_s;

    ps_part_elementwise(part, layout, 2 * part->w * part->tokens * (core.query + core.value + core.exchanged), 4);
    ps_ledger_add(part->ledger, PS_QUANTITY_WORK, matmul, flops);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, matmul, seconds, PS_COST_SCORE_KERNELS);
    ps_ledger_add(part->ledger, PS_QUANTITY_FORWARD, softmax, score_seconds);
    if (dropout)
        ps_part_draw(part, scores);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_INPUT, matmul, PS_COST_UNFUSED_BACKWARD * seconds,
                          PS_COST_UNFUSED_BACKWARD * PS_COST_SCORE_KERNELS);
    ps_ledger_add(part->ledger, PS_QUANTITY_BACKWARD_INPUT, softmax, PS_COST_SCORE_BACKWARD * score_seconds);
    ps_cp_exchange(part, core.exchanged, core.query + core.value, seconds, PS_COST_UNFUSED_BACKWARD * seconds);
    ps_part_hold(part, "scores: (2w, 2w+1 with dropout)*b*s*s_kv*a/t", (2 * part->w + (dropout ? 1 : 0)) * scores);
}

void ps_part_core_attention(const ps_part *part, ps_core core)
{
    bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_CORE_ATTENTION);

    if (part->view->job->flash_attention)
        add_flash(part, core);
    else
        add_unfused(part, core);
    ps_part_end_recompute(part, outer);
}

static void add_rotary(const ps_part *part, double bytes)
{
    static const char formula[] =
        "rotary positions: (2w or 10w eager)*T*(q+k)/t / memory rate + kernels, backward twice";
    bool fused = part->view->job->fused_kernels;
    double moved = (fused ? PS_COST_ROTARY_BYTES : PS_COST_EAGER_ROTARY_BYTES) / 2 * bytes;

    ps_part_elementwise(part, formula, moved, fused ? PS_COST_ROTARY_KERNELS : PS_COST_EAGER_ROTARY_KERNELS);
}

// Keys and values for every query head: grouped ones are written as often as heads read them.
static double repeat_keys(const ps_part *part)
{
    ps_rank_block r = part->r;

    if (!part->view->job->repeat_kv || r.key >= r.query)
        return r.key;
    ps_part_elementwise(part, "keys and values repeated: w*T*(2q+2k)/t / memory rate + 2 kernels, backward twice",
                        part->w * part->tokens * 2 * (r.query + r.key), 2);
    return r.query;
}

// What attention keeps for its backward. Recompute by operation keeps the products that it does not run again.
static void hold_attention(const ps_part *part, double key)
{
    ps_rank_block r = part->r;
    double unit = part->w * part->tokens;

    if (!ps_part_recomputes(part, PS_RECOMPUTE_OPS)) {
        ps_part_hold(part, "Q, K, V and attention output: w*T*(2q+2k)/t", unit * 2 * (r.query + key));
        return;
    }
    ps_part_hold(part, "Q, V and attention output: w*T*(2q+k)/t", unit * (2 * r.query + r.key));
    bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_OPS);
    ps_part_hold(part, "Q, K and V as attention reads them: w*T*(q+2k)/t", unit * (r.query + 2 * key));
    ps_part_end_recompute(part, outer);
}

// Rotary positions, norms of queries and keys, and a gate on the output, where a block has them.
static void add_extras(const ps_part *part, double rotated)
{
    const ps_block *block = part->block;
    double bytes = part->w * part->tokens * rotated;

    if (block->learned_positions == 0 && !block->bidirectional)
        add_rotary(part, bytes);
    if (block->qk_norm) {
        ps_part_norms(part,
                      "norms of queries and keys: (2w or 18w eager)*T*(q+k)/t / memory rate + kernels each, backward "
                      "twice",
                      bytes / 2, 2);
        ps_part_hold(part, "inputs of the norms of queries and keys: w*T*(q+k)/t", bytes);
    }
    if (block->attention_gate) {
        double query = part->r.query;
        ps_part_linear(part, (ps_linear){.formula = "attention gate: max(2*T*h*q/t / gemm rate, bytes / memory rate) "
                                                    "+ kernel",
                                         .tokens = part->tokens,
                                         .in = part->r.hidden,
                                         .out = query,
                                         .copies = 1});
        ps_part_elementwise(part, "gating: 3w*T*q/t / memory rate + kernel, backward twice",
                            3 * part->w * part->tokens * query, 1);
        ps_part_hold(part, "attention gate and gated output: 2w*T*q/t", 2 * part->w * part->tokens * query);
    }
}

void ps_part_attention(const ps_part *part)
{
    ps_rank_block r = part->r;
    bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_ATTENTION);

    ps_part_linear(part, (ps_linear){.formula = "QKV: max(2*T*h*(q+2k)/t / gemm rate, bytes / memory rate) + kernel",
                                     .tokens = part->tokens,
                                     .in = r.hidden,
                                     .out = r.query + 2 * r.key,
                                     .copies = 1,
                                     .alternate = r.key / (r.query + 2 * r.key)});
    bool inner = ps_part_begin_recompute(part, PS_RECOMPUTE_OPS);
    add_extras(part, r.query + r.key);
    double key = repeat_keys(part);
    ps_part_end_recompute(part, inner);
    hold_attention(part, key);
    ps_part_core_attention(part, (ps_core){.query = r.query,
                                           .value = r.query,
                                           .exchanged = 2 * key,
                                           .keys = ps_part_keys(part),
                                           .all_keys = part->sequence});
    ps_part_linear(part,
                   (ps_linear){.formula = "attention out: max(2*T*q*h/t / gemm rate, bytes / memory rate) + kernel",
                               .tokens = part->tokens,
                               .in = r.query,
                               .out = r.hidden,
                               .copies = 1,
                               .alternate = 1});
    ps_part_end_recompute(part, outer);
    ps_part_hold_between(part, "attention matrices, inputs and output gradients: w*T*(2h/sp + (2q+2k)/t)",
                         part->w * part->tokens * (2 * part->hidden + 2 * (r.query + r.key)));
}

// Keys and values are projected from the encoder's output, of T_e = b*s_e/c tokens, which every decoder block reads.
void ps_part_cross_attention(const ps_part *part)
{
    ps_rank_block r = part->r;
    double encoded = part->view->micro_batch * (double)part->block->cross_sequence / part->view->cp;
    bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_ATTENTION);

    ps_part_linear(part,
                   (ps_linear){.formula = "cross-attention Q: max(2*T*h*q/t / gemm rate, bytes / memory rate) + kernel",
                               .tokens = part->tokens,
                               .in = r.hidden,
                               .out = r.query,
                               .copies = 1});
    ps_part_linear(
        part, (ps_linear){.formula = "cross-attention K, V: max(4*T_e*h*k/t / gemm rate, bytes / memory rate) + kernel",
                          .tokens = encoded,
                          .in = r.hidden,
                          .out = 2 * r.key,
                          .copies = 1});
    ps_part_hold(part, "cross-attention Q and output, K and V: w*(T*2q + T_e*2k)/t",
                 part->w * (part->tokens * 2 * r.query + encoded * 2 * r.key));
    ps_part_core_attention(part, (ps_core){.query = r.query,
                                           .value = r.query,
                                           .exchanged = 2 * r.key,
                                           .keys = (double)part->block->cross_sequence,
                                           .all_keys = (double)part->block->cross_sequence});
    ps_part_linear(part, (ps_linear){.formula = "cross-attention out: max(2*T*q*h/t / gemm rate, bytes / memory rate) "
                                                "+ kernel",
                                     .tokens = part->tokens,
                                     .in = r.query,
                                     .out = r.hidden,
                                     .copies = 1});
    ps_part_end_recompute(part, outer);
    ps_part_hold(part, "encoder output: w*T_e*h/sp", part->w * encoded * part->hidden);
    ps_part_hold_between(part,
                         "cross-attention matrices, inputs and output gradients: w*(T*(2h/sp + 2q/t) + "
                         "T_e*(h/sp + 2k/t))",
                         part->w *
                             (part->tokens * (2 * part->hidden + 2 * r.query) + encoded * (part->hidden + 2 * r.key)));
}
