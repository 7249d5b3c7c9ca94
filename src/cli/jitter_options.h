// SPDX-License-Identifier: Apache-2.0
//
// jitter_options.h: --jitter and what goes with it.
#ifndef PS_CLI_JITTER_OPTIONS_H
#define PS_CLI_JITTER_OPTIONS_H

#include "cli/command.h"
#include "pipesched/jitter.h"

enum { PS_MAX_JITTER_SAMPLES = 1000000 };

// As written on the command line.
typedef struct ps_jitter_words {
    const char *share; // NULL: no jitter
    int64_t samples;
    int64_t seed;
    const char *straggler; // NULL: none
} ps_jitter_words;

// PS_USAGE: rule bad-value, at the option; rule missing-option when others of them are given without --jitter. Without
// words->share, *out is not set.
ps_code ps_jitter_options_read(const ps_run *run, const ps_jitter_words *words, ps_jitter_options *out,
                               ps_status *status);

// PS_USAGE, rule bad-value, when the straggler is none of the ranks.
ps_code ps_jitter_straggler_expect(const ps_jitter_options *options, int32_t num_devices, ps_status *status);

#endif
