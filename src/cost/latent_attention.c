// SPDX-License-Identifier: Apache-2.0
//
// latent_attention.c: multi-head latent attention (DeepSeek-V2, section 2.1): queries and keys with a part without and
// a part with position, projected through narrow latents.
//
// Symbols: r_q and r_kv widths of the latents, d_n and d_r a head's parts without and with position, d_v a value head.
// Down-projections stand on every tensor parallel rank and see the tokens that sequence parallelism leaves it.
#include "cost/part.h"

typedef struct latent {
    double query_rank; // 0: queries are projected directly
    double kv_rank;
    double rope;
    double query;        // a*(d_n+d_r)/t
    double value;        // a*d_v/t
    double key_value_up; // a*(d_n+d_v)/t
} latent;

static latent latent_of(const ps_part *part)
{
    const ps_block *block = part->block;
    double heads = part->r.heads;
    double nope = (double)block->head_dim;
    double value = (double)block->value_head_dim;

    return (latent){
        .query_rank = (double)block->q_lora_rank,
        .kv_rank = (double)block->kv_lora_rank,
        .rope = (double)block->rope_head_dim,
        .query = heads * (nope + (double)block->rope_head_dim),
        .value = heads * value,
        .key_value_up = heads * (nope + value),
    };
}

static void add_down(const ps_part *part, latent l)
{
    double tokens = part->tokens / part->view->sp;

    if (l.query_rank > 0)
        ps_part_linear(part, (ps_linear){.formula = "MLA query down: max(2*T*h*r_q/sp / gemm rate, bytes / memory "
                                                    "rate) + kernel",
                                         .tokens = tokens,
                                         .in = part->r.hidden,
                                         .out = l.query_rank,
                                         .copies = 1});
    ps_part_linear(part, (ps_linear){.formula = "MLA key-value down: max(2*T*h*(r_kv+d_r)/sp / gemm rate, bytes / "
                                                "memory rate) + kernel",
                                     .tokens = tokens,
                                     .in = part->r.hidden,
                                     .out = l.kv_rank + l.rope,
                                     .copies = 1});
    ps_part_elementwise(part, "MLA norms of the latents: 2w*T*(r_q+r_kv)/sp / memory rate + 2 kernels, backward twice",
                        2 * part->w * tokens * (l.query_rank + l.kv_rank), 2);
    ps_part_hold(part, "MLA latents, before and after their norms: w*T*(2r_q + 2r_kv + d_r)",
                 part->w * part->tokens * (2 * l.query_rank + 2 * l.kv_rank + l.rope));
}

static void add_up(const ps_part *part, latent l)
{
    bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_MLA_UP);
    double query_in = l.query_rank > 0 ? l.query_rank : part->r.hidden;

    ps_part_linear(part, (ps_linear){.formula = "MLA query up: max(2*T*r_q*a(d_n+d_r)/t / gemm rate, bytes / memory "
                                                "rate) + kernel",
                                     .tokens = part->tokens,
                                     .in = query_in,
                                     .out = l.query,
                                     .copies = 1});
    ps_part_linear(part, (ps_linear){.formula = "MLA key-value up: max(2*T*r_kv*a(d_n+d_v)/t / gemm rate, bytes / "
                                                "memory rate) + kernel",
                                     .tokens = part->tokens,
                                     .in = l.kv_rank,
                                     .out = l.key_value_up,
                                     .copies = 1});
    ps_part_elementwise(part,
                        "MLA rotary positions and joined heads: 4w*T*a(d_n+d_r)/t / memory rate + 2 kernels, "
                        "backward twice",
                        4 * part->w * part->tokens * l.query, 2);
    ps_part_hold(part, "MLA queries, keys and values: w*T*a(2(d_n+d_r) + d_v)/t",
                 part->w * part->tokens * (2 * l.query + l.value));
    ps_part_end_recompute(part, outer);
}

void ps_part_latent_attention(const ps_part *part)
{
    latent l = latent_of(part);
    bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_ATTENTION);

    add_down(part, l);
    add_up(part, l);
    ps_part_core_attention(part, (ps_core){.query = l.query,
                                           .value = l.value,
                                           .exchanged = l.query + l.value,
                                           .keys = ps_part_keys(part),
                                           .all_keys = part->sequence});
    ps_part_linear(part, (ps_linear){.formula = "attention out: max(2*T*a*d_v*h/t / gemm rate, bytes / memory rate) + "
                                                "kernel",
                                     .tokens = part->tokens,
                                     .in = l.value,
                                     .out = part->r.hidden,
                                     .copies = 1});
    ps_part_hold(part, "attention output: w*T*a*d_v/t", part->w * part->tokens * l.value);
    ps_part_end_recompute(part, outer);
    ps_part_hold_between(
        part,
        "MLA matrices, inputs and output gradients: w*T*(2h/sp + 2r_q + 2r_kv + d_r + a(2d_v + 2d_n + "
        "d_r)/t)",
        part->w * part->tokens *
            (2 * part->hidden + 2 * l.query_rank + 2 * l.kv_rank + l.rope + l.query + l.value + l.key_value_up));
}
