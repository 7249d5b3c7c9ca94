// SPDX-License-Identifier: Apache-2.0
//
// torch_cell.c: one cell of a PyTorch schedule, "0F3", "1RECV_F3", "0UNSHARD" or "(0F3;1B0)OVERLAP_F_B".
//
// R is no word of it: PyTorch recomputes inside B. PyTorch matches the beginning of a cell and ignores the rest, so
// that "0F0junk" is 0F0 to it; here all of a cell counts.
#include "schedule/torch_cell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipesched/limits.h"

typedef struct cursor {
    const char *at;
    const char *end;
} cursor;

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

// Digits without leading zeros. A value above `most` becomes most + 1.
static const char *read_number(cursor *text, int64_t most, int64_t *value)
{
    const char *first = text->at;
    *value = 0;
    for (; text->at < text->end && is_digit(*text->at); text->at++)
        if (*value <= most)
            *value = 10 * *value + (*text->at - '0');
    if (*value > most)
        *value = most + 1;
    return *first == '0' && text->at - first > 1 ? "a number has no leading zeros" : NULL;
}

static int32_t read_kind(cursor *text)
{
    const char *first = text->at;
    while (text->at < text->end && ((*text->at >= 'A' && *text->at <= 'Z') || *text->at == '_'))
        text->at++;
    size_t size = (size_t)(text->at - first);
    for (int32_t kind = 0; kind < PS_ACTION_KINDS; kind++) {
        const char *word = ps_action_word((uint8_t)kind);
        if (kind != PS_OP_RECOMPUTE && strlen(word) == size && memcmp(word, first, size) == 0)
            return kind;
    }
    return -1;
}

static const char *read_action(cursor *text, ps_action *out)
{
    int64_t stage;
    int64_t microbatch = -1;
    if (text->at == text->end || !is_digit(*text->at))
        return "a cell begins with a stage number, as in 0F3";
    const char *fault = read_number(text, PS_MAX_STAGES - 1, &stage);
    if (fault)
        return fault;
    if (stage >= PS_MAX_STAGES)
        return "stages are 0 to 65534";
    int32_t kind = read_kind(text);
    if (kind < 0)
        return "after the stage stands one of F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD, "
               "REDUCE_GRAD";
    if (kind < PS_ACTION_UNSHARD) {
        if (text->at == text->end || !is_digit(*text->at))
            return "the micro-batch is missing, as in 0F3";
        fault = read_number(text, PS_MAX_MICROBATCHES - 1, &microbatch);
        if (fault)
            return fault;
        if (microbatch >= PS_MAX_MICROBATCHES)
            return "micro-batches are 0 to 16777215";
    }
    *out = (ps_action){.microbatch = (int32_t)microbatch, .stage = (uint16_t)stage, .kind = (uint8_t)kind};
    return NULL;
}

static bool skip(cursor *text, const char *expected)
{
    size_t size = strlen(expected);
    if ((size_t)(text->end - text->at) < size || memcmp(text->at, expected, size) != 0)
        return false;
    text->at += size;
    return true;
}

static const char *read_pair(cursor *text, ps_action action[2])
{
    static const char shape[] = "an overlapped pair is a forward and a whole backward, as in (0F3;1B0)OVERLAP_F_B";
    const char *fault = read_action(text, &action[0]);
    if (fault)
        return fault;
    if (!skip(text, ";"))
        return shape;
    fault = read_action(text, &action[1]);
    if (fault)
        return fault;
    if (!skip(text, ")OVERLAP_F_B") || action[0].kind != PS_OP_FORWARD || action[1].kind != PS_OP_BACKWARD)
        return shape;
    action[0].paired = 1;
    return NULL;
}

const char *ps_torch_cell_parse(const char *text, int64_t size, ps_action action[2], int32_t *count)
{
    cursor all = {.at = text, .end = text + size};
    bool pair = skip(&all, "(");
    *count = pair ? 2 : 1;
    const char *fault = pair ? read_pair(&all, action) : read_action(&all, &action[0]);
    if (fault)
        return fault;
    return all.at < all.end ? "nothing may follow an action in its cell" : NULL;
}

int32_t ps_action_format(ps_action action, char text[32])
{
    const char *word = ps_action_word(action.kind);
    if (action.microbatch < 0)
        return snprintf(text, 32, "%u%s", (unsigned)action.stage, word);
    return snprintf(text, 32, "%u%s%" PRId32, (unsigned)action.stage, word, action.microbatch);
}
