// SPDX-License-Identifier: Apache-2.0
//
// options.h: the options of a command as one table. The same rows drive parsing, ranges, defaults, --help and the check
// of the man page. A row says where its value goes in the command's own struct, which begins with ps_common_options.
// popt only splits the words; options.c is the only file that knows it.
#ifndef PS_CLI_OPTIONS_H
#define PS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipesched/arena.h"
#include "pipesched/status.h"

typedef enum ps_option_type {
    PS_OPTION_FLAG,     // bool
    PS_OPTION_INT,      // int64_t within [min, max]
    PS_OPTION_STRING,   // const char *, NULL when not given
    PS_OPTION_STRINGS,  // ps_string_list; the option may be given several times
    PS_OPTION_CHOICE,   // int32_t: index into `choices`
    PS_OPTION_RATE,     // double, bytes per second
    PS_OPTION_DURATION, // int64_t ns; a bare number is seconds
    PS_OPTION_TIMES,    // ps_number_list of ns: one number, or one a stage; bare numbers are milliseconds
    PS_OPTION_MEMORY,   // ps_number_list of bytes or of the user's own unit
    PS_OPTION_JOB       // kept as a ps_job_setting, in order, for ps_job_set()
} ps_option_type;

// The values of a comma list. Count 0: not given.
typedef struct ps_number_list {
    int32_t count;
    int64_t *value; // [count]
    bool bare;      // some value other than 0 had no unit
    bool with_unit; // some value had one
} ps_number_list;

// The values of an option that may be given several times, in order.
typedef struct ps_string_list {
    int32_t count;
    int32_t capacity;
    const char **value;
} ps_string_list;

typedef struct ps_option {
    const char *name; // without the dashes
    char short_name;  // '\0': none
    ps_option_type type;
    size_t offset;            // into the command's options
    int64_t min, max;         // PS_OPTION_INT
    const char *metavar;      // "N"; NULL for flags
    const char *default_text; // parsed like a value when the option is not given (shown only for job options); or NULL
    const char *help;         // lower case, no period
    const char *const *choices; // PS_OPTION_CHOICE: ends with NULL
} ps_option;

// One row of a table: PS_OPTION_AT(TIMES, simulate_options, forward, "forward", "TIMES", NULL, "of F").
#define PS_OPTION_AT(kind, values_type, field, option, values, otherwise, text)                                        \
    {                                                                                                                  \
        .name = (option), .type = PS_OPTION_##kind, .offset = offsetof(values_type, field), .metavar = (values),       \
        .default_text = (otherwise), .help = (text)                                                                    \
    }
#define PS_OPTION_FLAG_AT(values_type, field, option, text)                                                            \
    PS_OPTION_AT(FLAG, values_type, field, option, NULL, NULL, text)
#define PS_OPTION_INT_AT(values_type, field, option, least, most, otherwise, text)                                     \
    {                                                                                                                  \
        .name = (option), .type = PS_OPTION_INT, .offset = offsetof(values_type, field), .min = (least),               \
        .max = (most), .metavar = "N", .default_text = (otherwise), .help = (text)                                     \
    }
#define PS_OPTION_CHOICE_AT(values_type, field, option, words, otherwise, text)                                        \
    {                                                                                                                  \
        .name = (option), .type = PS_OPTION_CHOICE, .offset = offsetof(values_type, field), .metavar = "NAME",         \
        .default_text = (otherwise), .help = (text), .choices = (words)                                                \
    }

// Rows under one heading of --help. A command's list of groups ends with NULL.
typedef struct ps_option_group {
    const char *title;
    const ps_option *option;
    int32_t count;
} ps_option_group;

#define PS_OPTION_COUNT(rows) ((int32_t)(sizeof(rows) / sizeof *(rows)))

// What every command takes.
typedef struct ps_common_options {
    bool help;
    bool json;
    bool quiet;
    bool verbose;
    const char *output;
} ps_common_options;

extern const ps_option_group ps_common_option_group;

typedef struct ps_job_setting {
    const char *name;
    const char *value;
} ps_job_setting;

typedef struct ps_parsed_options {
    void *values; // the command's struct; begins with ps_common_options
    int32_t num_operands;
    const char **operand;
    int32_t num_job_settings;
    ps_job_setting *job_setting;
    int32_t num_given;
    const char **given; // names of the options on the command line
} ps_parsed_options;

// PS_USAGE with rules unknown-option ("did you mean"), repeated-option, missing-value, unwanted-value, bad-value.
// Options may follow operands; "--" ends them. `values_size` is that of the command's struct, `word` the words after
// the command's name.
ps_code ps_options_parse(ps_arena *arena, const ps_option_group *const *groups, size_t values_size, int32_t num_words,
                         const char **word, ps_parsed_options *out, ps_status *status);

bool ps_option_given(const ps_parsed_options *parsed, const char *name);

#endif
