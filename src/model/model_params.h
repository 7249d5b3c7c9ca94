// SPDX-License-Identifier: Apache-2.0
//
// model_params.h: parameters of a layer from its architecture, to the last one, and the rules an architecture obeys.
#ifndef PS_MODEL_MODEL_PARAMS_H
#define PS_MODEL_MODEL_PARAMS_H

#include "pipesched/model.h"

// A layer without figures: times and sizes PS_NOT_GIVEN, nothing shared.
ps_layer ps_layer_named(const char *name, const char *base_name, ps_layer_class class_, const char *kind);

// Give the layer its architecture and count its parameters (counts stick at INT64_MAX). Rules heads-divide,
// experts-per-token, shared-gate,
// latent-attention, mamba-heads, mamba-groups, too-many-parameters, without a place: the caller adds it.
// docs/formats/model.md has the formulas.
ps_code ps_layer_set_block(ps_layer *layer, const ps_block *block, ps_status *status);

// Norms over the hidden state that a block has: as stated, or one before each sublayer.
int64_t ps_block_norms(const ps_block *block);

// Turn the matrix of a head (of a second embedding, or the head that an MTP layer uses) into a use of an earlier one's.
void ps_layer_tie(ps_layer *head, int32_t embedding);

#endif
