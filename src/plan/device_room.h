// SPDX-License-Identifier: Apache-2.0
//
// device_room.h: from the bytes of a model on a GPU to those that the GPU must have.
//
// total = model + framework + fragmentation + reserve. The framework's allocator reserves more than is allocated, by a
// share of it; the reserve (context, communicators) is outside the allocator.
#ifndef PS_PLAN_DEVICE_ROOM_H
#define PS_PLAN_DEVICE_ROOM_H

#include <stdint.h>

#include "pipesched/job.h"

int64_t ps_fragmentation_bytes(const ps_job *job, int64_t allocated_bytes);
// Of `model_bytes`, at least 0, of state, activations and transients; saturates.
int64_t ps_total_bytes(const ps_job *job, int64_t model_bytes);
// The most bytes of a model whose total is within `capacity_bytes`; negative where not even an empty one fits.
int64_t ps_room_bytes(const ps_job *job, int64_t capacity_bytes);

#endif
