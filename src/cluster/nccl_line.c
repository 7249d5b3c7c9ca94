// SPDX-License-Identifier: Apache-2.0
//
// nccl_line.c: words of a line.
#include "cluster/nccl_line.h"

#include <string.h>

#include "base/text.h"

const ps_nccl_kind ps_nccl_kinds[] = {
    {"all_reduce", PS_NCCL_BUS_TWICE, PS_COLLECTIVE_ALL_REDUCE},
    {"reduce_scatter", PS_NCCL_BUS_OTHERS, PS_COLLECTIVE_REDUCE_SCATTER},
    {"all_gather", PS_NCCL_BUS_OTHERS, PS_COLLECTIVE_ALL_GATHER},
    {"alltoall", PS_NCCL_BUS_OTHERS, PS_COLLECTIVE_ALL_TO_ALL},
    {"sendrecv", PS_NCCL_BUS_SAME, -1},
    {"broadcast", PS_NCCL_BUS_SAME, -1},
    {"reduce", PS_NCCL_BUS_SAME, -1},
    {"gather", PS_NCCL_BUS_ANY, -1},
    {"scatter", PS_NCCL_BUS_ANY, -1},
    {"hypercube", PS_NCCL_BUS_ANY, -1},
};
const int32_t ps_nccl_num_kinds = (int32_t)(sizeof ps_nccl_kinds / sizeof *ps_nccl_kinds);

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

enum { MAX_PREFIX = 64 };

// "[1,0]<stdout>:" of mpirun --tag-output, "12: " of srun --label.
static const char *skip_prefix(const char *begin, const char *end)
{
    const char *limit = end - begin > MAX_PREFIX ? begin + MAX_PREFIX : end;
    const char *at = begin;
    if (at < limit && *at == '[') {
        for (; at + 1 < limit; at++)
            if (at[0] == '>' && at[1] == ':')
                return at + 2;
        return begin;
    }
    while (at < limit && *at == ' ')
        at++;
    const char *digits = at;
    while (at < limit && is_digit(*at))
        at++;
    return at > digits && at + 1 < limit && at[0] == ':' && at[1] == ' ' ? at + 1 : begin;
}

ps_nccl_line ps_nccl_line_split(const char *begin, const char *end)
{
    ps_nccl_line line = {.end = end};
    const char *at = skip_prefix(begin, end);

    while (line.count < PS_NCCL_WORDS) {
        while (at < end && is_blank(*at))
            at++;
        if (at == end)
            break;
        const char *start = at;
        if (*at == '#' && line.count == 0) // "#size" too
            at++;
        else
            while (at < end && !is_blank(*at))
                at++;
        line.word[line.count++] = (ps_nccl_word){start, at - start};
    }
    return line;
}

bool ps_nccl_word_is(const ps_nccl_word *word, const char *text)
{
    return word->size == (int64_t)strlen(text) && memcmp(word->text, text, (size_t)word->size) == 0;
}

bool ps_nccl_word_int(const ps_nccl_word *word, int64_t *out)
{
    bool negative = word->size > 0 && word->text[0] == '-';
    int64_t value = 0;

    if (word->size <= negative)
        return false;
    for (int64_t at = negative; at < word->size; at++) {
        if (!is_digit(word->text[at]))
            return false;
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, word->text[at] - '0', &value))
            value = INT64_MAX;
    }
    *out = negative ? -value : value;
    return true;
}

static bool equals_ignoring_case(const ps_nccl_word *word, const char *lower)
{
    if (word->size != (int64_t)strlen(lower))
        return false;
    for (int64_t at = 0; at < word->size; at++)
        if ((word->text[at] | 0x20) != lower[at])
            return false;
    return true;
}

static bool is_mark_of_number(char c)
{
    return c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
}

static bool looks_like_a_number(const ps_nccl_word *word)
{
    for (int64_t at = 0; at < word->size; at++)
        if (!is_digit(word->text[at]) && !is_mark_of_number(word->text[at]))
            return false;
    return is_digit(word->text[0]) || (word->size > 1 && is_digit(word->text[1]));
}

ps_nccl_figure ps_nccl_word_figure(const ps_nccl_word *word, double *out)
{
    static const char *const not_finite[] = {"nan", "-nan", "inf", "-inf", "infinity"};

    if (ps_nccl_word_is(word, "N/A"))
        return PS_NCCL_NOT_GIVEN;
    if (ps_decimal_double(word->text, word->size, out))
        return PS_NCCL_NUMBER;
    for (size_t index = 0; index < sizeof not_finite / sizeof *not_finite; index++)
        if (equals_ignoring_case(word, not_finite[index]))
            return PS_NCCL_NOT_FINITE;
    return looks_like_a_number(word) ? PS_NCCL_NOT_FINITE : PS_NCCL_NO_FIGURE;
}

const ps_nccl_kind *ps_nccl_kind_of_word(const ps_nccl_word *word)
{
    int64_t start = word->size;
    while (start > 0 && word->text[start - 1] != '/')
        start--;
    ps_nccl_word name = {word->text + start, word->size - start};
    if (name.size > 5 && memcmp(name.text + name.size - 5, "_perf", 5) == 0)
        name.size -= 5;
    if (ps_nccl_word_is(&name, "all_to_all"))
        name = (ps_nccl_word){"alltoall", 8};
    for (int32_t kind = 0; kind < ps_nccl_num_kinds; kind++)
        if (ps_nccl_word_is(&name, ps_nccl_kinds[kind].name))
            return &ps_nccl_kinds[kind];
    return NULL;
}

const ps_nccl_kind *ps_nccl_kind_in_name(const char *file)
{
    static const char *const spelled[] = {"all_reduce", "allreduce", "reduce_scatter", "reducescatter", "all_gather",
                                          "allgather",  "alltoall",  "all_to_all",     "sendrecv"};
    static const int8_t kind[] = {0, 0, 1, 1, 2, 2, 3, 3, 4};
    const char *slash = strrchr(file, '/');
    int found = -1;

    for (size_t index = 0; index < sizeof kind; index++) {
        if (!strstr(slash ? slash : file, spelled[index]))
            continue;
        if (found >= 0 && found != kind[index])
            return NULL;
        found = kind[index];
    }
    return found < 0 ? NULL : &ps_nccl_kinds[found];
}
