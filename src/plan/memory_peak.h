// SPDX-License-Identifier: Apache-2.0
//
// memory_peak.h: when a device's activations peak, and what its micro-batches then hold.
#ifndef PS_PLAN_MEMORY_PEAK_H
#define PS_PLAN_MEMORY_PEAK_H

#include "pipesched/memory_terms.h"

// Fills the peak and the holdings of out->device.
void ps_memory_find_peak(ps_arena *arena, const ps_memory_source *source, ps_memory_terms *out);

#endif
