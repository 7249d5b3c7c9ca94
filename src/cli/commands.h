// SPDX-License-Identifier: Apache-2.0
//
// commands.h: the table of commands, and what is said about all of them together.
#ifndef PS_CLI_COMMANDS_H
#define PS_CLI_COMMANDS_H

#include <stdint.h>
#include <stdio.h>

#include "cli/command.h"

extern const ps_command *const ps_command_table[];
extern const int32_t ps_command_table_count;

const ps_command *ps_command_named(const char *name); // NULL: none of that name
// PS_USAGE, rule unknown-command, with "did you mean".
ps_code ps_command_unknown(const char *name, ps_status *status);

void ps_commands_help(FILE *file);    // pipesched --help
void ps_commands_version(FILE *file); // pipesched --version, linked libraries included

#endif
