// SPDX-License-Identifier: Apache-2.0
//
// cluster_shorthand.c: 8x8xH100-SXM5-80GB, which is nodes x GPUs a node x type.
#include "cluster/cluster_formats.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "pipesched/limits.h"

static const char *skip_digits(const char *text)
{
    while (isdigit((unsigned char)*text))
        text++;
    return text;
}

static bool is_times(char c)
{
    return c == 'x' || c == 'X';
}

bool ps_cluster_is_shorthand(const char *text)
{
    const char *end = skip_digits(text);
    return end != text && is_times(*end);
}

static ps_code read_count(ps_cluster_build *build, const char *text, const char *what, const char **rest,
                          int32_t *count, ps_status *status)
{
    const char *end = skip_digits(text);
    int64_t value;

    if (end == text || !is_times(*end)) {
        ps_fail(status, PS_BAD_INPUT, "shorthand", "\"%s\" is not NODESxGPUSxTYPE: %s are missing", build->source,
                what);
        return ps_fail_hint(status, "write one node of 8 GPUs as 1x8xH100-SXM5-80GB");
    }
    if (ps_parse_int(ps_text_copy_n(build->arena, text, end - text), 1, PS_MAX_GPUS, &value, &(ps_status){0}) != PS_OK)
        return ps_fail(status, PS_BAD_INPUT, "out-of-range", "\"%s\": the number of %s must be from 1 to %lld",
                       build->source, what, (long long)PS_MAX_GPUS);
    *count = (int32_t)value;
    *rest = end + 1;
    return PS_OK;
}

ps_code ps_cluster_read_shorthand(ps_cluster_build *build, const char *text, ps_cluster *out, ps_status *status)
{
    ps_node_settings settings = ps_node_settings_none;
    ps_catalog_entry entry;
    const char *alias_of;
    const char *rest = text;
    int32_t nodes = 0;

    PS_TRY(read_count(build, text, "nodes", &rest, &nodes, status));
    PS_TRY(read_count(build, rest, "GPUs", &rest, &settings.gpus, status));
    if (!*rest) {
        ps_fail(status, PS_BAD_INPUT, "shorthand", "\"%s\" names no GPU type", build->source);
        return ps_fail_hint(status, "write for example %sH100-SXM5-80GB", text);
    }
    PS_TRY(ps_catalog_find(build->arena, &build->catalog, rest, &entry, &alias_of, status));
    if (alias_of)
        ps_cluster_warn(build, "%s is read as %s", rest, alias_of);
    settings.entry = &entry;

    out->num_groups = 1;
    out->group = ps_new(build->arena, ps_group, 1);
    PS_TRY(ps_group_build(build, &settings, nodes, &out->group[0], status));
    out->group[0].name = entry.gpu.name;
    return PS_OK;
}
