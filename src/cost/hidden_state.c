// SPDX-License-Identifier: Apache-2.0
//
// hidden_state.c: what passes between the parts of a block: norms, residuals, exchanges of tensor parallelism.
#include "cost/exchange.h"
#include "cost/part.h"

double ps_part_tp_exchange_seconds(const ps_part *part)
{
    return ps_tp_exchange_seconds(part->view, part->w * part->tokens * part->r.hidden);
}

// A norm before each sublayer, unless the block states another number of them.
static double norm_count(const ps_block *block, int32_t sublayers)
{
    if (block->norms > 0)
        return (double)block->norms;
    return block->parallel ? 1 : sublayers;
}

void ps_part_hidden_state(const ps_part *part, int32_t sublayers)
{
    double bytes = part->w * part->tokens * part->hidden;
    double norms = norm_count(part->block, sublayers);
    double joins = part->block->parallel ? 1 : sublayers;
    double masks = part->block->dropout ? part->tokens * part->hidden : 0;

    ps_part_hold(part, "inputs of norms: w*T*h/sp each", norms * bytes);
    bool outer = ps_part_begin_recompute(part, PS_RECOMPUTE_NORM);
    ps_part_norms(part, "norms: (2w or 18w eager)*T*h/sp / memory rate + kernels each, backward twice", bytes, norms);
    ps_part_hold(part, "outputs of norms: w*T*h/sp each", norms * bytes);
    ps_part_end_recompute(part, outer);

    ps_part_elementwise(part, "residuals: (3w, 3w+1 with dropout)*T*h/sp / memory rate + kernel each, backward twice",
                        sublayers * (3 * bytes + masks), sublayers);
    ps_part_hold(part, "dropout masks: T*h/sp each", sublayers * masks);
    ps_part_draw(part, sublayers * masks);
    ps_part_exchange(part, "tensor parallel: an all-reduce of w*T*h for each join, share not hidden",
                     joins * ps_part_tp_exchange_seconds(part));
    if (part->view->sp > 1)
        ps_part_transient(part, "gathered input: w*T*h", part->w * part->tokens * part->r.hidden);
}
