// SPDX-License-Identifier: Apache-2.0
//
// utf8.c: after table 3-7 of the Unicode standard.
#include "io/utf8.h"

#include <stdbool.h>

static bool in_range(unsigned char byte, unsigned char low, unsigned char high)
{
    return byte >= low && byte <= high;
}

int32_t ps_utf8_length(const char *text, int64_t size)
{
    if (size < 1)
        return 0;
    unsigned char lead = (unsigned char)text[0];
    if (lead < 0x80)
        return 1;

    int32_t length = in_range(lead, 0xC2, 0xDF)   ? 2
                     : in_range(lead, 0xE0, 0xEF) ? 3
                     : in_range(lead, 0xF0, 0xF4) ? 4
                                                  : 0;
    if (length == 0 || size < length)
        return 0;

    // The second byte decides against overlong forms (E0, F0), surrogates (ED) and what lies above U+10FFFF (F4).
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (!in_range((unsigned char)text[1], low, high))
        return 0;
    for (int32_t at = 2; at < length; at++)
        if (!in_range((unsigned char)text[at], 0x80, 0xBF))
            return 0;
    return length;
}

int32_t ps_utf8_encode(uint32_t character, char to[4])
{
    int32_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const unsigned char mark[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int32_t at = length - 1; at > 0; at--) {
        to[at] = (char)(0x80 | (character & 0x3F));
        character >>= 6;
    }
    to[0] = (char)(mark[length] | character);
    return length;
}
