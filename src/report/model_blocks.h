// SPDX-License-Identifier: Apache-2.0
//
// model_blocks.h: the architecture of a model's layers in words, each that differs once.
#ifndef PS_REPORT_MODEL_BLOCKS_H
#define PS_REPORT_MODEL_BLOCKS_H

#include <stdio.h>

#include "io/json_write.h"
#include "pipesched/arena.h"
#include "pipesched/model.h"

// "64 heads of 128, 8 key-value heads, window 4096; FFN 14336". Empty for a layer without architecture.
const char *ps_block_words(ps_arena *arena, const ps_layer *layer);

// An array "blocks" of what differs, and the same as a table; nothing where no layer has an architecture.
void ps_model_blocks_json(ps_json_writer *json, ps_arena *arena, const ps_model *model);
void ps_model_blocks_text(FILE *file, ps_arena *arena, const ps_model *model);

#endif
