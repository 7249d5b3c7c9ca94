// SPDX-License-Identifier: Apache-2.0
//
// rank_view.h: what one GPU sees of a job under one layout: its tokens, its share of a layer, the rates it reaches.
//
// Symbols in comments and formulas: T tokens of a micro-batch on a rank, b sequences, s sequence length, s_kv keys that
// a query sees on average, h hidden, a heads, d head size, q = a*d, k = kv heads*d, f FFN, g FFN matrices (3 gated, 2
// plain), V padded vocabulary, E experts, K experts a token, fe expert FFN, fs shared FFN, t tensor parallel ranks, c
// context parallel ranks, e expert parallel ranks, x tensor parallel ranks of an expert, sp = t with sequence
// parallelism and else 1, w bytes of an element, P parameters on the rank, D data parallel ranks.
#ifndef PS_COST_RANK_VIEW_H
#define PS_COST_RANK_VIEW_H

#include "pipesched/calibration.h"
#include "pipesched/cluster.h"
#include "pipesched/cost.h"
#include "pipesched/job.h"
#include "pipesched/layout.h"
#include "pipesched/model.h"

typedef struct ps_rank_view {
    const ps_group *group;
    const ps_job *job;
    const ps_layout *layout;
    double sequence;    // s of the job
    double micro_batch; // b
    double tp;          // t
    double cp;          // c
    double ep;          // e
    double etp;         // x
    double sp;
    double element_bytes;            // w
    double gemm_flops_per_s;         // of the job's precision, reached
    double grouped_gemm_flops_per_s; // the same of experts
    double batched_gemm_flops_per_s; // in 16 bits, small matrices
    double plain_gemm_flops_per_s;   // in 16 bits (or 32): head, router
    double gathered_share;           // of a tensor's bytes, where it is gathered for a GEMM of the job's precision
    double cast_bytes;               // moved for each element that enters a GEMM of the job's precision
    double attention_flops_per_s;
    double attention_backward_flops_per_s;
    double memory_bytes_per_s;
    double kernel_seconds;
    double launch_seconds;
    double exchange_factor; // of a calibration, for tensor, context and expert parallel exchanges
} ps_rank_view;

// One rank's share of a block.
typedef struct ps_rank_block {
    double hidden;     // h
    double heads;      // a/t
    double query;      // q/t
    double key;        // k/t, at least one head
    double ffn;        // f/t
    double expert_ffn; // fe/x
    double shared_ffn; // fs/t
    double vocabulary; // V/t
    double ffn_inner;  // matrices into the FFN: g - 1
} ps_rank_block;

ps_rank_view ps_rank_view_of(const ps_group *group, const ps_job *job, const ps_layout *layout);
ps_rank_block ps_rank_block_of(const ps_rank_view *view, const ps_block *block);

// Ranks that hold the same dense weights (D*c), and those that hold the same experts (t*c*D/(e*x)).
int64_t ps_rank_replicas(const ps_layout *layout);
int64_t ps_rank_expert_replicas(const ps_layout *layout);
// Tensor parallel ranks of an expert; 0 in the layout reads as tp.
int64_t ps_rank_etp(const ps_layout *layout);

double ps_calibration_factor(const ps_job *job, ps_factor factor); // 1 without a calibration

// What makes a layout impossible on this model. Rules: tp-heads, tp-ffn, cp-sequence, cp-heads, ep-experts, etp-ffn,
// times-with-tp, times-with-micro-batch, and more (layout_rules.c).
ps_code ps_rank_view_check(const ps_rank_view *view, const ps_model *model, ps_status *status);
// What makes prediction impossible on this GPU. Rules: precision-unsupported, gpu-figure-missing.
ps_code ps_rank_view_check_gpu(const ps_rank_view *view, ps_status *status);

#endif
