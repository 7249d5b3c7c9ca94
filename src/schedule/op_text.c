// SPDX-License-Identifier: Apache-2.0
//
// op_text.c: one op as a cell of a PyTorch schedule: stage, letter, micro-batch.
//
// Stricter than PyTorch's own reader, which takes "0F0junk" for 0F0.
#include <inttypes.h>
#include <stdio.h>

#include "pipesched/schedule.h"

static const char LETTERS[PS_OP_KINDS + 1] = "FBIWR";

char ps_op_letter(ps_op_kind kind)
{
    return LETTERS[kind];
}

int32_t ps_op_format(ps_op op, char text[32])
{
    return snprintf(text, 32, "%u%c%" PRId32, (unsigned)op.stage, LETTERS[op.kind], op.microbatch);
}

// Digits without leading zeros, at most `max`; NULL when there are none or too many.
static const char *read_index(const char *text, int64_t max, int64_t *value)
{
    if (*text < '0' || *text > '9' || (text[0] == '0' && text[1] >= '0' && text[1] <= '9'))
        return NULL;
    *value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        *value = *value * 10 + (*text - '0');
        if (*value > max)
            return NULL;
    }
    return text;
}

bool ps_op_parse(const char *text, ps_op *out)
{
    int64_t stage;
    int64_t microbatch;
    int kind = 0;
    text = read_index(text, UINT16_MAX, &stage);
    if (!text)
        return false;
    while (kind < PS_OP_KINDS && LETTERS[kind] != *text)
        kind++;
    if (kind == PS_OP_KINDS)
        return false;
    text = read_index(text + 1, INT32_MAX, &microbatch);
    if (!text || *text)
        return false;
    *out = (ps_op){.microbatch = (int32_t)microbatch, .stage = (uint16_t)stage, .kind = (uint8_t)kind};
    return true;
}
