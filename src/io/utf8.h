// SPDX-License-Identifier: Apache-2.0
//
// utf8.h: one character at a time, as RFC 3629 has it: shortest form, no surrogates, nothing above U+10FFFF.
#ifndef PS_IO_UTF8_H
#define PS_IO_UTF8_H

#include <stdint.h>

// Bytes of the character at text[0..size), 1 to 4; 0 when it is not well formed or cut off.
int32_t ps_utf8_length(const char *text, int64_t size);

// Write the character into `to`; returns its bytes, 1 to 4.
int32_t ps_utf8_encode(uint32_t character, char to[4]);

#endif
