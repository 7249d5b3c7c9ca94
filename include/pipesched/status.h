// SPDX-License-Identifier: Apache-2.0
//
// status.h: how every function says what went wrong.
//
// A fallible function returns a ps_code and takes a `ps_status *` last. Whoever finds a fault fills the status once, in
// the user's terms: the rule broken, where, the values, and the nearest thing that would work. Callers pass the code up
// with PS_TRY and never overwrite the text. Programmer errors are asserts, not codes.
#ifndef PIPESCHED_STATUS_H
#define PIPESCHED_STATUS_H

#include <stdint.h>

typedef enum ps_code {
    PS_OK,
    PS_INFEASIBLE, // the answer is no: nothing fits, or a check failed
    PS_ILLEGAL,    // a numbered rule of a schedule, a layout or a target forbids it
    PS_USAGE,      // the command line is wrong
    PS_BAD_INPUT,  // a file is wrong
    PS_IO,         // reading or writing failed
    PS_TIME_LIMIT, // the user's --time-limit was hit; the result is the best so far
    PS_STOPPED,    // the user interrupted
    PS_EXHAUSTED,  // memory or the byte limit ran out
    PS_INTERNAL    // a bug of ours
} ps_code;

typedef struct ps_status {
    ps_code code;
    int32_t line;      // from 1; 0: unknown
    int32_t column;    // from 1, in bytes; 0: unknown
    char rule[64];     // stable identifier such as "unknown-key"
    char source[256];  // file name as the user gave it, or the option; empty: none
    char pointer[256]; // JSON pointer of the place; empty: none
    char message[768]; // one sentence, no trailing period
    char hint[512];    // the nearest thing that would work; empty: none
} ps_status;

// Fill an empty status and return its code. Text that is too long is cut, never overflows.
ps_code ps_fail(ps_status *status, ps_code code, const char *rule, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Add the place to a status just filled. NULL and 0 leave a field as it is. Returns the status' code.
ps_code ps_fail_at(ps_status *status, const char *source, int32_t line, int32_t column, const char *pointer);

// Add the hint to a status just filled. Returns the status' code.
ps_code ps_fail_hint(ps_status *status, const char *format, ...) __attribute__((format(printf, 2, 3)));

// "cluster.json:14:22: /groups/0/node: message" into `text`, always terminated; returns the length that it would need.
int32_t ps_status_format(const ps_status *status, char *text, int32_t size);

// Exit status of the command line for a code (INTERFACE "Exit status"): 0, 1, 2, 3, 4, 5 or 70.
int32_t ps_exit_status(ps_code code);

// Pass a failure up.
#define PS_TRY(call)                                                                                                   \
    do {                                                                                                               \
        ps_code ps_try_code_ = (call);                                                                                 \
        if (ps_try_code_ != PS_OK)                                                                                     \
            return ps_try_code_;                                                                                       \
    } while (0)

#endif
