// SPDX-License-Identifier: Apache-2.0
//
// nccl_line.h: the words of one line of a log of nccl-tests, and what kind of line they make.
#ifndef PS_CLUSTER_NCCL_LINE_H
#define PS_CLUSTER_NCCL_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "pipesched/cluster.h"

enum { PS_NCCL_WORDS = 40 }; // more of a line are not looked at

typedef struct ps_nccl_word {
    const char *text; // not terminated
    int64_t size;
} ps_nccl_word;

typedef struct ps_nccl_line {
    int32_t count;
    const char *end;
    ps_nccl_word word[PS_NCCL_WORDS];
} ps_nccl_line;

// A collective of nccl-tests.
typedef enum ps_nccl_bus { // busbw : algbw
    PS_NCCL_BUS_SAME,
    PS_NCCL_BUS_OTHERS, // (n-1)/n
    PS_NCCL_BUS_TWICE,  // 2 (n-1)/n
    PS_NCCL_BUS_ANY     // not checked
} ps_nccl_bus;

typedef struct ps_nccl_kind {
    const char *name;
    ps_nccl_bus bus;
    int collective; // ps_collective; -1: the planner has no curve of it
} ps_nccl_kind;

// Blanks separate words. What launchers write before a line ("[1,0]<stdout>:", "0: ") is left out.
ps_nccl_line ps_nccl_line_split(const char *begin, const char *end);
bool ps_nccl_word_is(const ps_nccl_word *word, const char *text);

// Digits, with a sign: false otherwise. Out of range sticks at the end of the range.
bool ps_nccl_word_int(const ps_nccl_word *word, int64_t *out);

typedef enum ps_nccl_figure {
    PS_NCCL_NO_FIGURE,
    PS_NCCL_NUMBER,
    PS_NCCL_NOT_FINITE, // nan, inf, or beyond what a double holds
    PS_NCCL_NOT_GIVEN   // N/A
} ps_nccl_figure;
ps_nccl_figure ps_nccl_word_figure(const ps_nccl_word *word, double *out);

extern const ps_nccl_kind ps_nccl_kinds[];
extern const int32_t ps_nccl_num_kinds;

// "all_reduce_perf", "all_reduce", with or without a path before it; NULL: none of that name.
const ps_nccl_kind *ps_nccl_kind_of_word(const ps_nccl_word *word);
// The only one that a file's name contains; NULL: none, or several.
const ps_nccl_kind *ps_nccl_kind_in_name(const char *file);

#endif
