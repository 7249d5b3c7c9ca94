// SPDX-License-Identifier: Apache-2.0
//
// option_help.h: --help, made from the option tables.
#ifndef PS_CLI_OPTION_HELP_H
#define PS_CLI_OPTION_HELP_H

#include <stdio.h>

#include "cli/command.h"

void ps_command_help(FILE *file, const ps_command *command);
// "usage: pipesched simulate [options] [PLAN]"
void ps_command_usage(FILE *file, const ps_command *command);

#endif
