// SPDX-License-Identifier: Apache-2.0
//
// job_options.h: the table of job options: how each is parsed, where it lands, and which words it takes. The command
// line, job files and their errors all go by it.
#ifndef PS_JOB_JOB_OPTIONS_H
#define PS_JOB_JOB_OPTIONS_H

#include <stddef.h>

#include "pipesched/job.h"

typedef enum job_option_type {
    JOB_INT64,    // min..max into an int64_t
    JOB_INT32,    // min..max into an int32_t
    JOB_INT_SET,  // auto or a list of min..max into a ps_int_set
    JOB_WORD_SET, // auto or a list of words into a ps_int_set
    JOB_BITS,     // a list of words into an int32_t, each a bit of it
    JOB_REAL,     // a number of min..max into a double
    JOB_WORD,     // one word into an int32_t
    JOB_SWITCH,   // on or off into a bool
    JOB_BYTES,    // a size of at least min; "auto" is 0 where min is above 0
    JOB_TIME,     // a duration into ns
    JOB_SHARE,    // a share such as 5% or 0.05 into millionths
    JOB_NOWHERE   // known to the interface, but not part of a job, or not supported yet
} job_option_type;

// A word of an option; `value` is negative where the word is known but not supported yet.
typedef struct job_word {
    const char *word;
    int32_t value;
} job_word;

typedef struct job_option {
    const char *name;
    job_option_type type;
    size_t offset; // in ps_job
    int64_t min;
    int64_t max;
    const job_word *words; // ends with a NULL word
    const char *instead;   // of JOB_NOWHERE: what to do
} job_option;

extern const job_option ps_job_options[];
extern const int32_t ps_job_num_options;

#endif
