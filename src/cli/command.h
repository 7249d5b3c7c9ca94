// SPDX-License-Identifier: Apache-2.0
//
// command.h: what a command is, and what it runs in. A command loads, calls the library and writes its whole result to
// run->out, a buffer; run.c delivers it once the command has returned PS_OK. "The answer is no" is a result too: the
// command writes it and sets run->verdict. A failure is a status, and then nothing of the buffer is shown.
#ifndef PS_CLI_COMMAND_H
#define PS_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/control.h"
#include "cli/options.h"
#include "pipesched/arena.h"
#include "pipesched/status.h"
#include "report/style.h"

typedef struct ps_command ps_command;

typedef struct ps_run {
    ps_arena *arena;
    const ps_command *command;
    ps_parsed_options parsed;
    const ps_common_options *common; // first member of parsed.values
    ps_report_style style;           // of what goes to stdout
    ps_cli_control control;
    bool to_file;    // -o names a file, not -
    FILE *out;       // the result
    FILE *file;      // what -o FILE gets, when the command wants the two to differ; else NULL: `out` goes there
    ps_code verdict; // PS_OK, PS_INFEASIBLE or PS_TIME_LIMIT
} ps_run;

struct ps_command {
    const char *name;
    const char *operands; // "MODEL CLUSTER"
    const char *summary;  // one line
    const char *about;    // paragraphs of --help
    const char *examples; // one a line
    int32_t min_operands;
    int32_t max_operands;
    const ps_option_group *const *groups; // ends with NULL
    size_t options_size;
    ps_code (*run)(ps_run *run, ps_status *status);
};

extern const ps_command ps_command_plan;
extern const ps_command ps_command_partition;
extern const ps_command ps_command_simulate;
extern const ps_command ps_command_check;
extern const ps_command ps_command_show;
extern const ps_command ps_command_calibrate;

// PS_USAGE, rule missing-option, when `name` was not given.
ps_code ps_run_require(const ps_run *run, const char *name, ps_status *status);
// PS_USAGE, rule conflicting-options, when both were given.
ps_code ps_run_exclude(const ps_run *run, const char *name, const char *other, ps_status *status);

// PS_USAGE, rule stdin-twice, when more than one of the operands and `value`, that of an option or NULL, is "-".
ps_code ps_run_stdin_once(const ps_run *run, const char *value, ps_status *status);
ps_code ps_run_stdin_again(ps_status *status);

// "pipesched: warning: text" and "pipesched: note: text" on stderr, unless -q.
void ps_run_warn(const ps_run *run, const char *text);
void ps_run_note(const ps_run *run, const char *text);

#endif
