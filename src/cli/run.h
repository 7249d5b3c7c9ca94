// SPDX-License-Identifier: Apache-2.0
//
// run.h: one run of the tool, from the words of the command line to the exit status.
#ifndef PS_CLI_RUN_H
#define PS_CLI_RUN_H

// `word` are those after the tool's name.
int ps_cli_run(int num_words, char **word);

#endif
