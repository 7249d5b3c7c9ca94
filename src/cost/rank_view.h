// SPDX-License-Identifier: Apache-2.0
//
// rank_view.h: what one GPU sees of a job under one layout: its tokens, its share of a layer, the rates it reaches.
//
// Symbols in comments and formulas: T tokens of a micro-batch, b sequences, s sequence length, h hidden, a heads,
// d head size, q = a*d, k = kv heads*d, f FFN, g FFN matrices (3 gated, 2 plain), V padded vocabulary, E experts,
// K experts a token, fe expert FFN, t tensor parallel ranks, sp = t with sequence parallelism and else 1, w bytes of an
// element, P parameters on the rank, D data parallel ranks.
#ifndef PS_COST_RANK_VIEW_H
#define PS_COST_RANK_VIEW_H

#include "pipesched/cluster.h"
#include "pipesched/cost.h"
#include "pipesched/job.h"
#include "pipesched/layout.h"
#include "pipesched/model.h"

typedef struct ps_rank_view {
    const ps_group *group;
    const ps_job *job;
    const ps_layout *layout;
    double tokens;      // T
    double sequence;    // s
    double micro_batch; // b
    double tp;          // t
    double sp;
    double element_bytes; // w
    double gemm_flops_per_s;
    double attention_flops_per_s;
    double memory_bytes_per_s;
    double kernel_seconds;
} ps_rank_view;

// One rank's share of a block.
typedef struct ps_rank_block {
    double hidden;     // h
    double heads;      // a/t
    double query;      // q/t
    double key;        // k/t, at least one head
    double ffn;        // f/t
    double expert_ffn; // fe/t
    double vocabulary; // V/t
    double ffn_inner;  // matrices into the FFN: g - 1
} ps_rank_block;

ps_rank_view ps_rank_view_of(const ps_group *group, const ps_job *job, const ps_layout *layout);
ps_rank_block ps_rank_block_of(const ps_rank_view *view, const ps_block *block);

// Elements of a layer's own weights on one rank, and of the weights it shares with another layer.
double ps_rank_parameters(const ps_rank_view *view, const ps_layer *layer);
double ps_rank_copy_parameters(const ps_rank_view *view, const ps_layer *layer);

// What makes a layout impossible on this model. Rules: unsupported-cp, unsupported-ep, tp-heads, tp-ffn, times-with-tp,
// times-with-micro-batch.
ps_code ps_rank_view_check(const ps_rank_view *view, const ps_model *model, ps_status *status);
// What makes prediction impossible on this GPU. Rules: precision-unsupported, gpu-figure-missing.
ps_code ps_rank_view_check_gpu(const ps_rank_view *view, ps_status *status);

#endif
