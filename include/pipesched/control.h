// SPDX-License-Identifier: Apache-2.0
//
// control.h: how long work hears from its caller. The library has no clock, signal or terminal of its own; it polls
// these callbacks at counted points (every so many nodes or candidates), so that results stay deterministic.
#ifndef PIPESCHED_CONTROL_H
#define PIPESCHED_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/status.h"

typedef struct ps_control {
    // PS_OK to go on, PS_TIME_LIMIT or PS_STOPPED to wind up with the best so far. NULL: never stop.
    ps_code (*should_stop)(void *context);
    // done of total units of `what` ("candidates"); total 0: unknown. NULL: silent. Called from one thread.
    void (*progress)(void *context, const char *what, int64_t done, int64_t total);
    void *context;
} ps_control;

#endif
