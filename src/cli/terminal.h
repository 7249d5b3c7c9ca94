// SPDX-License-Identifier: Apache-2.0
//
// terminal.h: the standard streams: what they can show, and whether what was written arrived.
#ifndef PS_CLI_TERMINAL_H
#define PS_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "pipesched/status.h"
#include "report/style.h"

// Before anything is opened: standard streams that the caller closed become ones that fail, so that no file of ours
// takes their number, and a reader that went away or a file at its size limit is an error of write(), not a signal.
void ps_terminal_prepare(void);

// Of standard output; plain when `to_file`.
ps_report_style ps_terminal_style(bool to_file);
bool ps_terminal_shows_progress(void); // standard error is a terminal

// Write to standard output and make sure that it arrived. PS_IO, rule stdout-write.
ps_code ps_terminal_write(const char *text, size_t size, ps_status *status);

#endif
