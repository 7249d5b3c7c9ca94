// SPDX-License-Identifier: Apache-2.0
//
// control.h: the clock, the interrupt and the progress line, which the library has none of.
#ifndef PS_CLI_CONTROL_H
#define PS_CLI_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/control.h"

typedef struct ps_cli_control {
    ps_control control; // for the library
    bool is_limited;
    int64_t deadline_ns; // of the monotonic clock
    bool progress_shown; // a line stands on the terminal
    int64_t next_progress_ns;
    int64_t start_ns;
    const char *elapsed_of; // work that only asks whether to stop: show for how long it has run; NULL: not
} ps_cli_control;

// From now on the first SIGINT or SIGTERM is only noted, so that the caller can clean up; a second one ends the
// process.
void ps_cli_catch_signals(void);

// The same, and should_stop() answers PS_STOPPED once one came. `time_limit_ns` below 0: none. The struct must stay
// where it is.
void ps_cli_control_start(ps_cli_control *control, int64_t time_limit_ns, bool shows_progress);

// The time limit, if any, has passed.
bool ps_cli_control_is_late(const ps_cli_control *control);

// Wipe the progress line.
void ps_cli_control_end(ps_cli_control *control);

bool ps_cli_interrupted(void); // SIGINT or SIGTERM came

// Once everything is cleaned up: when a signal was caught, die of it, as the caller's shell expects.
void ps_cli_reraise(void);

#endif
