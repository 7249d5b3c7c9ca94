// SPDX-License-Identifier: Apache-2.0
//
// exchange.h: communication inside a layer: tensor, context and expert parallel, what compute hides of it left out.
#ifndef PS_COST_EXCHANGE_H
#define PS_COST_EXCHANGE_H

#include "cost/part.h"

// What is not hidden of one tensor parallel exchange of a tensor of `bytes`: an all-reduce, or with sequence
// parallelism a reduce-scatter and an all-gather. 0 without tensor parallelism.
double ps_tp_exchange_seconds(const ps_rank_view *view, double bytes);
// The same for half of it: with sequence parallelism one of the two, without it nothing.
double ps_tp_half_exchange_seconds(const ps_rank_view *view, double bytes);

// Context parallel exchange around core attention, which takes `forward` and `backward` seconds. Keys and values of
// `exchanged` elements a token travel around the ring while it computes, or heads are divided for its time, for which
// those and `kept` elements of queries and outputs are sent to their places.
void ps_cp_exchange(const ps_part *part, double exchanged, double kept, double forward, double backward);

// Dispatch of `tokens` tokens of `width` elements to their experts and back, among expert parallel ranks and the ranks
// of one expert. With overlap the layer's other work, entered before, hides what it can.
void ps_ep_exchange(const ps_part *part, double tokens, double width);

#endif
