// SPDX-License-Identifier: Apache-2.0
//
// style.h: what the output of a report may use; decided by the command line, which knows the terminal.
#ifndef PS_REPORT_STYLE_H
#define PS_REPORT_STYLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ps_report_style {
    bool color;    // ANSI colours
    bool unicode;  // block characters and arrows; ASCII otherwise
    int32_t width; // columns; at least 40
} ps_report_style;

#endif
