// SPDX-License-Identifier: Apache-2.0
//
// part.h: what the files of the cost model have in common: a block as one rank sees it, and how work and bytes of its
// parts are entered into the ledger.
//
// A GEMM takes the rounded maximum of FLOP / (peak * efficiency) and bytes / (memory bandwidth * efficiency), and one
// kernel; what only moves data takes its bytes; core attention takes FLOP at an efficiency of its own (Williams et al.
// 2009). With f = 4h,
// k = q = h and unfused attention a GPT layer comes to: forward T(24h^2 + 4sh), input gradient T(24h^2 + 8sh), weight
// gradient 24Th^2 (Narayanan et al. 2021; Qi et al. 2024, table 1).
#ifndef PS_COST_PART_H
#define PS_COST_PART_H

#include "cost/ledger.h"
#include "cost/rank_view.h"

typedef struct ps_part {
    const ps_rank_view *view;
    const ps_block *block;
    ps_ledger *ledger;
    ps_rank_block r;
    double w;        // bytes of an element
    double sequence; // s of this block
    double tokens;   // T
    double hidden;   // h/sp: what a rank keeps of the hidden state
} ps_part;

ps_part ps_part_of(const ps_rank_view *view, const ps_block *block, ps_ledger *ledger);

// Parts that "selective" recomputes in this layout; full recompute is the whole block's and not asked here.
bool ps_part_recomputes(const ps_part *part, ps_recompute_part which);

// What is entered between the two runs again before the backward when "selective" names the part. Scopes nest.
bool ps_part_begin_recompute(const ps_part *part, ps_recompute_part which); // returns what `end` takes
void ps_part_end_recompute(const ps_part *part, bool outer);

// Keys that a query sees on average under the block's mask, of its own document where the job packs them.
double ps_part_keys(const ps_part *part);
// The same for one sequence of `length` tokens: half of it under a causal mask, or a window's ramp and plateau.
double ps_causal_keys(double length, double window);

// Compute and transfers of one kernel overlap, though not to the end: (c^4 + m^4)^(1/4), which is 19 % above the larger
// where both are equal and 1.5 % where one is half of the other. With this exponent and one efficiency the weight
// gradients of four models that Qi et al. 2024 (table 6) measured on A100 come out within 2 %; a plain maximum misses
// those of 1024 tokens by 4 %.
double ps_part_roofline(double compute_seconds, double memory_seconds);

typedef enum ps_gemm_kind {
    PS_GEMM_DENSE,   // in the job's precision
    PS_GEMM_GROUPED, // the same, many small ones
    PS_GEMM_PLAIN    // stays in 16 bits
} ps_gemm_kind;

// `copies` matrices of in x out, among which `tokens` rows are divided.
typedef struct ps_linear {
    const char *formula;
    double tokens;
    double in;
    double out;
    double copies;
    ps_gemm_kind kind;
    double alternate; // share of it that recompute by operation runs again: every other product
} ps_linear;

// Forward, input gradient and weight gradient. Under LoRA weights are frozen: dense ones have an adapter instead.
void ps_part_linear(const ps_part *part, ps_linear linear);

// Moves `bytes` forward and about twice as many backward.
void ps_part_elementwise(const ps_part *part, const char *formula, double bytes, double kernels);
// `norms` norms of a tensor of `bytes`.
void ps_part_norms(const ps_part *part, const char *formula, double bytes, double norms);
// Random numbers of dropout.
void ps_part_draw(const ps_part *part, double numbers);
// Communication that forward and backward both wait for.
void ps_part_exchange(const ps_part *part, const char *formula, double seconds);
// Bytes kept from F to B, from B to W, and while a pass runs.
void ps_part_hold(const ps_part *part, const char *formula, double bytes);
void ps_part_hold_between(const ps_part *part, const char *formula, double bytes);
void ps_part_transient(const ps_part *part, const char *formula, double bytes);

// The parts, each in its own file.
void ps_part_attention(const ps_part *part);        // attention.c: grouped-query attention
void ps_part_cross_attention(const ps_part *part);  // attention.c: to an encoder's output
void ps_part_latent_attention(const ps_part *part); // latent_attention.c: MLA
// attention.c: scores, softmax and values. Per token and rank: elements of the queries and of the values that heads
// weigh, and of the keys and values that context parallel ranks exchange.
typedef struct ps_core {
    double query;
    double value;
    double exchanged;
    double keys;     // seen on average by a query, masked ones left out
    double all_keys; // computed by an unfused kernel
} ps_core;
void ps_part_core_attention(const ps_part *part, ps_core core);
void ps_part_dense_ffn(const ps_part *part); // ffn.c
void ps_part_shared_ffn(const ps_part *part);
void ps_part_linear_map(const ps_part *part); // ffn.c: one matrix in place of attention or FFN
void ps_part_experts(const ps_part *part);    // experts.c
void ps_part_mamba(const ps_part *part);      // mamba.c

// hidden_state.c: norms and residuals around the parts of a block, and the exchanges of tensor parallelism.
void ps_part_hidden_state(const ps_part *part, int32_t sublayers);
// One tensor parallel exchange of the hidden state, forward and backward.
double ps_part_tp_exchange_seconds(const ps_part *part);

// ends.c
void ps_part_embedding(const ps_part *part);
void ps_part_patches(const ps_part *part);
void ps_part_norm(const ps_part *part);
void ps_part_head(const ps_part *part);
void ps_part_classifier(const ps_part *part);
void ps_part_mtp_projection(const ps_part *part);

#endif
