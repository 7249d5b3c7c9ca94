// SPDX-License-Identifier: Apache-2.0
//
// nccl_ranks.c: how many ranks on how many nodes.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cluster/nccl_log.h"
#include "pipesched/limits.h"

static bool take_number(const ps_nccl_line *line, int32_t *at, const char *label, int64_t *out)
{
    if (*at + 1 >= line->count || !ps_nccl_word_is(&line->word[*at], label) ||
        !ps_nccl_word_int(&line->word[*at + 1], out))
        return false;
    *at += 2;
    return true;
}

// From the word behind "[0x07]" to the end of the line.
static ps_nccl_word gpu_name(const ps_nccl_line *line, int32_t at)
{
    if (at + 1 >= line->count || line->word[at].text[0] != '[')
        return (ps_nccl_word){0};
    const ps_nccl_word *last = &line->word[line->count - 1];
    const char *start = line->word[at + 1].text;
    return (ps_nccl_word){start, last->text + last->size - start};
}

bool ps_nccl_ranks_take(ps_arena *arena, const ps_nccl_line *line, ps_nccl_ranks *ranks)
{
    ps_nccl_rank rank = {0};
    int64_t ignored;
    int32_t at = 1;

    if (line->count < 8 || !ps_nccl_word_is(&line->word[0], "#") || !take_number(line, &at, "Rank", &rank.rank))
        return false;
    take_number(line, &at, "Group", &rank.group);
    if (!take_number(line, &at, "Pid", &ignored) || at + 2 >= line->count || !ps_nccl_word_is(&line->word[at], "on"))
        return false;
    rank.host = line->word[at + 1];
    at += 2;
    if (!take_number(line, &at, "device", &ignored))
        return false;
    rank.gpu = gpu_name(line, at);
    *ps_vec_push(arena, &ranks->list) = rank;
    return true;
}

static int compare_words(const ps_nccl_word *a, const ps_nccl_word *b)
{
    size_t shared = (size_t)(a->size < b->size ? a->size : b->size);
    int order = shared > 0 ? memcmp(a->text, b->text, shared) : 0;
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static int compare_ranks(const void *left, const void *right)
{
    const ps_nccl_rank *a = left;
    const ps_nccl_rank *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    int host = compare_words(&a->host, &b->host);
    return host != 0 ? host : (a->rank > b->rank) - (a->rank < b->rank);
}

static int compare_numbers(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static ps_code check_once(ps_arena *arena, const ps_nccl_rank *list, int64_t count, ps_status *status)
{
    int64_t *rank = ps_new(arena, int64_t, count);
    for (int64_t index = 0; index < count; index++)
        rank[index] = list[index].rank;
    qsort(rank, (size_t)count, sizeof *rank, compare_numbers);
    for (int64_t index = 1; index < count; index++)
        if (rank[index] == rank[index - 1])
            return ps_fail(status, PS_BAD_INPUT, "nccl-ranks", "rank %lld is listed twice", (long long)rank[index]);
    return PS_OK;
}

static bool starts_node(const ps_nccl_rank *list, int64_t at)
{
    return at == 0 || list[at].group != list[at - 1].group || compare_words(&list[at].host, &list[at - 1].host) != 0;
}

static int shown(const ps_nccl_word *word)
{
    return word->size < 64 ? (int)word->size : 64;
}

// Every node of every group holds as many ranks as the first, on the same GPU.
static ps_code check_node(const ps_nccl_rank *first, const ps_nccl_rank *rank, int64_t per_node, int64_t here,
                          ps_status *status)
{
    if (compare_words(&first->gpu, &rank->gpu) != 0)
        return ps_fail(status, PS_BAD_INPUT, "nccl-ranks", "rank %lld has %.*s, rank %lld %.*s", (long long)first->rank,
                       shown(&first->gpu), first->gpu.text, (long long)rank->rank, shown(&rank->gpu), rank->gpu.text);
    if (here == per_node)
        return PS_OK;
    ps_fail(status, PS_BAD_INPUT, "nccl-nodes", "%lld ranks of a group on %.*s, %lld on %.*s", (long long)per_node,
            shown(&first->host), first->host.text, (long long)here, shown(&rank->host), rank->host.text);
    return ps_fail_hint(status, "a curve is of as many ranks on each node: run nccl-tests so");
}

static ps_code check_even(const ps_nccl_rank *list, int64_t count, int64_t per_node, int64_t per_group,
                          ps_status *status)
{
    int64_t on_node = 0;
    int64_t in_group = 0;
    for (int64_t at = 0; at < count; at++) {
        on_node = starts_node(list, at) ? 1 : on_node + 1;
        in_group = at > 0 && list[at].group == list[at - 1].group ? in_group + 1 : 1;
        if (at + 1 == count || starts_node(list, at + 1))
            PS_TRY(check_node(&list[0], &list[at], per_node, on_node, status));
        if ((at + 1 == count || list[at + 1].group != list[at].group) && in_group != per_group) {
            ps_fail(status, PS_BAD_INPUT, "nccl-ranks", "group %lld has %lld ranks, group %lld %lld",
                    (long long)list[0].group, (long long)per_group, (long long)list[at].group, (long long)in_group);
            return ps_fail_hint(status, "run one group at a time, without NCCL_TESTS_SPLIT");
        }
    }
    return PS_OK;
}

ps_code ps_nccl_ranks_count(ps_arena *arena, const ps_nccl_ranks *ranks, ps_nccl_table *out, ps_status *status)
{
    int64_t count = ranks->list.count;
    int64_t nodes = 0; // of the first group
    int64_t per_node = 0;
    int64_t per_group = 0;

    if (count > PS_MAX_GPUS)
        return ps_fail(status, PS_BAD_INPUT, "nccl-ranks", "at most %lld ranks are read", (long long)PS_MAX_GPUS);
    ps_nccl_rank *list = ps_new(arena, ps_nccl_rank, count);
    memcpy(list, ranks->list.data, (size_t)count * sizeof *list);
    qsort(list, (size_t)count, sizeof *list, compare_ranks);
    PS_TRY(check_once(arena, list, count, status));
    for (; per_group < count && list[per_group].group == list[0].group; per_group++) {
        nodes += starts_node(list, per_group);
        per_node += nodes == 1;
    }
    PS_TRY(check_even(list, count, per_node, per_group, status));
    out->ranks = (int32_t)per_group;
    out->nodes = (int32_t)nodes;
    out->gpu = list[0].gpu.size > 0 ? ps_text_copy_n(arena, list[0].gpu.text, list[0].gpu.size) : NULL;
    return PS_OK;
}
