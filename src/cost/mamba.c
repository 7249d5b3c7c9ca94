// SPDX-License-Identifier: Apache-2.0
//
// mamba.c: a Mamba-2 mixer (Dao and Gu 2024): input projection, causal convolution, scan of the state, gated norm,
// output projection.
//
// Symbols: i channels of the mixer, N state size, G groups, H heads, k taps.
#include "cost/constants.h"
#include "cost/part.h"

typedef struct mixer {
    double inner;     // i/t
    double states;    // 2*G*N/t: what feeds and reads the state
    double heads;     // H/t
    double state;     // N
    double projected; // of the input projection: gate, channels, states, time steps
} mixer;

static mixer mixer_of(const ps_part *part)
{
    const ps_block *block = part->block;
    double tp = part->view->tp;
    mixer m = {
        .inner = (double)block->inner_size / tp,
        .states = 2 * (double)block->state_groups * (double)block->state_size / tp,
        .heads = (double)block->mamba_heads / tp,
        .state = (double)block->state_size,
    };
    m.projected = 2 * m.inner + m.states + m.heads;
    return m;
}

static void add_scan(const ps_part *part, mixer m)
{
    static const char formula[] = "scan: max(7*T*i*N/t / small gemm rate, 3w*T*(i+2GN)/t / memory rate) + 5 kernels, "
                                  "backward twice";
    const ps_rank_view *view = part->view;
    double flops = PS_COST_SCAN_FLOPS * part->tokens * m.inner * m.state;
    double compute = flops / view->batched_gemm_flops_per_s;
    double memory = 3 * part->w * part->tokens * (m.inner + m.states) / view->memory_bytes_per_s;
    double seconds = (compute > memory ? compute : memory) + 5 * view->kernel_seconds;

    ps_ledger_add(part->ledger, PS_QUANTITY_WORK, formula, flops);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_FORWARD, formula, seconds, 5);
    ps_ledger_add_kernels(part->ledger, PS_QUANTITY_BACKWARD_INPUT, formula, 2 * seconds, 10);
}

void ps_part_mamba(const ps_part *part)
{
    mixer m = mixer_of(part);
    double convolved = m.inner + m.states;

    ps_part_linear(part, (ps_linear){.formula = "Mamba in: max(2*T*h*(2i+2GN+H)/t / gemm rate, bytes / memory rate) + "
                                                "kernel",
                                     .tokens = part->tokens,
                                     .in = part->r.hidden,
                                     .out = m.projected,
                                     .copies = 1});
    ps_part_elementwise(part, "convolution: 2w*T*(i+2GN)/t / memory rate + kernel, backward twice",
                        2 * part->w * part->tokens * convolved, 1);
    add_scan(part, m);
    ps_part_elementwise(part, "gated norm: 4w*T*i/t / memory rate + 2 kernels, backward twice",
                        4 * part->w * part->tokens * m.inner, 2);
    ps_part_linear(part, (ps_linear){.formula = "Mamba out: max(2*T*i*h/t / gemm rate, bytes / memory rate) + kernel",
                                     .tokens = part->tokens,
                                     .in = m.inner,
                                     .out = part->r.hidden,
                                     .copies = 1});

    ps_part_hold(part, "Mamba projections, convolved channels and gated output: w*T*(2i+2GN+H + i+2GN + 2i)/t",
                 part->w * part->tokens * (m.projected + convolved + 2 * m.inner));
    ps_part_hold(part, "states between chunks of 256 tokens: w*T/256*i*N/t",
                 part->w * part->tokens / PS_COST_SCAN_CHUNK * m.inner * m.state);
    ps_part_hold_between(part, "Mamba matrices, inputs and output gradients: w*T*(2h/sp + (2i+2GN+H + i)/t)",
                         part->w * part->tokens * (2 * part->hidden + m.projected + m.inner));
    ps_part_transient(part, "Mamba gradients: w*T*(2i+2GN+H + i)/t", part->w * part->tokens * (m.projected + m.inner));
    ps_part_transient(part, "gradient of the Mamba input matrix: w*h*(2i+2GN+H)/t",
                      part->w * part->r.hidden * m.projected);
}
