// SPDX-License-Identifier: Apache-2.0
//
// predicted.c: which parts a layer has, in order.
#include "cost/predicted.h"

#include "cost/part.h"

bool ps_layer_is_recomputed(const ps_layer *layer)
{
    return layer->class_ == PS_LAYER_DECODER || layer->class_ == PS_LAYER_MAMBA || layer->class_ == PS_LAYER_MTP;
}

static void add_decoder(const ps_part *part)
{
    const ps_block *block = part->block;
    int32_t sublayers = 0;

    if (block->attention_heads > 0) {
        if (block->kv_lora_rank > 0)
            ps_part_latent_attention(part);
        else
            ps_part_attention(part);
        sublayers++;
    }
    if (block->inner_size > 0) {
        ps_part_mamba(part);
        sublayers++;
    }
    for (int64_t map = 0; map < block->linear_maps; map++) {
        ps_part_linear_map(part);
        sublayers++;
    }
    if (block->cross_sequence > 0) {
        ps_part_cross_attention(part);
        sublayers++;
    }
    if (block->experts > 0) {
        ps_part_experts(part);
        sublayers++;
    } else if (block->ffn_size > 0) {
        ps_part_dense_ffn(part);
        sublayers++;
    }
    ps_part_hidden_state(part, sublayers);
}

static void add_blocks(const ps_part *part, ps_layer_class class_)
{
    bool full = part->view->layout->recompute == PS_RECOMPUTE_FULL;

    part->ledger->recomputed = full;
    if (class_ == PS_LAYER_MTP)
        ps_part_mtp_projection(part);
    add_decoder(part);
    part->ledger->recomputed = false;
    if (full)
        ps_part_hold(part, "layer input: w*T*h/sp", part->w * part->tokens * part->hidden);
    if (class_ == PS_LAYER_MTP)
        ps_part_head(part);
}

// The host cannot launch a pass' kernels faster than this, however short they are.
static void add_launch_bound(const ps_rank_view *view, ps_ledger *ledger)
{
    static const char formula[] = "launch bound: kernels * launch time, beyond the pass";

    for (ps_quantity q = PS_QUANTITY_FORWARD; q <= PS_QUANTITY_RECOMPUTE; q++) {
        double least = ledger->kernels[q] * view->launch_seconds;
        if (least > ledger->sum[q])
            ps_ledger_add(ledger, q, formula, least - ledger->sum[q]);
    }
}

// Tensor parallel ranks hold the same hidden state, or a part each: either way each sends its part (Narayanan et al.
// 2021, section 4.1). An encoder's output travels with the hidden state as long as blocks read it.
static void add_output(const ps_part *part)
{
    double encoded = part->view->micro_batch * (double)part->block->cross_sequence / part->view->cp;
    double hidden = part->r.hidden / part->view->tp;

    ps_ledger_add(part->ledger, PS_QUANTITY_OUTPUT, "layer output: w*T*h/t", part->w * part->tokens * hidden);
    ps_ledger_add(part->ledger, PS_QUANTITY_OUTPUT, "encoder output, for the blocks behind: w*T_e*h/t",
                  part->w * encoded * hidden);
}

void ps_predicted_terms(const ps_rank_view *view, const ps_layer *layer, ps_ledger *ledger)
{
    ps_part part = ps_part_of(view, layer->block, ledger);

    switch (layer->class_) {
    case PS_LAYER_EMBEDDING: ps_part_embedding(&part); break;
    case PS_LAYER_PATCHES: ps_part_patches(&part); break;
    case PS_LAYER_NORM: ps_part_norm(&part); break;
    case PS_LAYER_DECODER:
    case PS_LAYER_MAMBA:
    case PS_LAYER_MTP: add_blocks(&part, layer->class_); break;
    case PS_LAYER_HEAD: ps_part_head(&part); break;
    case PS_LAYER_CLASSIFIER: ps_part_classifier(&part); break;
    case PS_LAYER_TIMED: return;
    }
    add_launch_bound(view, ledger);
    if (layer->class_ != PS_LAYER_HEAD && layer->class_ != PS_LAYER_CLASSIFIER) // nothing is sent on from there
        add_output(&part);
}
