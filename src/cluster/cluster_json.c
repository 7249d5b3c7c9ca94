// SPDX-License-Identifier: Apache-2.0
//
// cluster_json.c: the native format, pipesched/cluster/v1.
//
// What planning cannot use is refused by rule rather than skipped: rates between groups ("links") and measured rates
// ("matrix") would change every plan.
#include "cluster/cluster_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cluster/cluster_formats.h"
#include "pipesched/limits.h"

#define MAX_GROUPS 1024
#define MAX_LEVELS 8

static ps_code read_levels(ps_cluster_build *build, ps_json levels, ps_group *group, ps_status *status)
{
    static const char *const keys[] = {"name", "nodes", "oversubscription", NULL};
    int32_t below = 1;

    if (!levels.node)
        return PS_OK;
    PS_TRY(ps_json_expect(levels, PS_JSON_ARRAY, status));
    if (ps_json_count(levels) > MAX_LEVELS)
        return ps_json_fail(levels, "out-of-range", status, "more than %d levels", MAX_LEVELS);
    group->level = ps_new(build->arena, ps_level, ps_json_count(levels));
    for (ps_json e = ps_json_first(levels); e.node; e = ps_json_next(e)) {
        ps_level *level = &group->level[group->num_levels++];
        *level = (ps_level){.oversubscription = 1};
        PS_TRY(ps_json_expect(e, PS_JSON_OBJECT, status));
        PS_TRY(ps_json_check_keys(e, keys, status));
        PS_TRY(ps_json_get_string(e, "name", PS_REQUIRED, &level->name, status));
        PS_TRY(ps_json_get_int32(e, "nodes", PS_REQUIRED, 1, (int32_t)PS_MAX_GPUS, &level->nodes, status));
        PS_TRY(ps_json_get_double(e, "oversubscription", PS_OPTIONAL, 1, 1000, &level->oversubscription, status));
        if (level->nodes % below != 0 || (group->num_levels > 1 && level->nodes == below))
            return ps_json_fail(ps_json_member(e, "nodes"), "level-nodes", status,
                                "a level of %d nodes cannot be made of levels of %d below it", (int)level->nodes,
                                (int)below);
        below = level->nodes;
    }
    return PS_OK;
}

// "3:5": GPU 5 of node 3, both from 0, in plain decimal.
static bool parse_place(ps_arena *arena, const char *key, const ps_group *group)
{
    const char *colon = strchr(key, ':');
    int64_t node;
    int64_t gpu;

    return colon &&
           ps_parse_int(ps_text_copy_n(arena, key, colon - key), 0, group->nodes - 1, &node, &(ps_status){0}) ==
               PS_OK &&
           ps_parse_int(colon + 1, 0, group->gpus_per_node - 1, &gpu, &(ps_status){0}) == PS_OK;
}

static ps_code read_slow_gpus(ps_cluster_build *build, ps_json slow, ps_group *group, ps_status *status)
{
    if (!slow.node)
        return PS_OK;
    PS_TRY(ps_json_expect(slow, PS_JSON_OBJECT, status));
    for (ps_json e = ps_json_first(slow); e.node; e = ps_json_next(e)) {
        const char *key = ps_json_key(e);
        double speed = 0;
        if (key[0] == '_' || key[0] == '$')
            continue;
        if (!parse_place(build->arena, key, group))
            return ps_json_fail(e, "slow-gpu", status, "\"%s\" is no NODE:GPU from 0:0 to %d:%d", key,
                                (int)group->nodes - 1, (int)group->gpus_per_node - 1);
        PS_TRY(ps_json_get_double(slow, key, PS_REQUIRED, 0, 1, &speed, status));
        if (!(speed > 0))
            return ps_json_fail(e, "out-of-range", status, "the speed of a GPU must be above 0 and at most 1");
        group->num_slow_gpus++;
    }
    return PS_OK;
}

static ps_code read_price(ps_cluster_build *build, ps_json object, const char *key, ps_figure *out, ps_status *status)
{
    double value = 0;

    if (!ps_json_member(object, key).node)
        return PS_OK;
    PS_TRY(ps_json_get_double(object, key, PS_OPTIONAL, 0, 1e6, &value, status));
    *out = (ps_figure){value, PS_ORIGIN_READ, build->source};
    return PS_OK;
}

static ps_code read_domain(ps_json object, ps_group *group, ps_status *status)
{
    PS_TRY(ps_json_get_int32(object, "nvlink_domain_nodes", PS_OPTIONAL, 1, (int32_t)PS_MAX_GPUS,
                             &group->nvlink_domain_nodes, status));
    if (group->nodes % group->nvlink_domain_nodes != 0) {
        ps_json_fail(ps_json_member(object, "nvlink_domain_nodes"), "domain-nodes", status,
                     "%d nodes cannot be divided into domains of %d", (int)group->nodes,
                     (int)group->nvlink_domain_nodes);
        return ps_fail_hint(status, "put the nodes of the incomplete domain into a group of their own");
    }
    PS_TRY(ps_json_get_int32(object, "rails", PS_OPTIONAL, 1, PS_MAX_NODE_NICS, &group->rails, status));
    if (group->rails > group->nics)
        return ps_json_fail(ps_json_member(object, "rails"), "rails", status,
                            "%d rails need as many NICs, a node has %d", (int)group->rails, (int)group->nics);
    return PS_OK;
}

static ps_code read_group(ps_cluster_build *build, ps_json object, int32_t index, ps_group *group, ps_status *status)
{
    static const char *const keys[] = {
        "name",        "nodes",     "node", "nvlink_domain_nodes", "rails", "levels", "usd_per_gpu_hour",
        "usd_per_kwh", "slow_gpus", NULL};
    ps_node_settings settings;
    const char *name = NULL;
    int32_t nodes = 0;

    PS_TRY(ps_json_expect(object, PS_JSON_OBJECT, status));
    PS_TRY(ps_json_check_keys(object, keys, status));
    PS_TRY(ps_json_get_int32(object, "nodes", PS_REQUIRED, 1, (int32_t)PS_MAX_GPUS, &nodes, status));
    PS_TRY(ps_json_get_string(object, "name", PS_OPTIONAL, &name, status));
    ps_json node = ps_json_member(object, "node");
    if (!node.node)
        return ps_json_fail(object, "missing-key", status, "a group needs \"node\"");
    PS_TRY(ps_node_json_read(build, node, &settings, status));
    if (ps_group_build(build, &settings, nodes, group, status) != PS_OK)
        return ps_json_fail_place(node, status);

    group->name = name ? name : ps_text_format(build->arena, "group%d", (int)index);
    PS_TRY(read_domain(object, group, status));
    PS_TRY(read_levels(build, ps_json_member(object, "levels"), group, status));
    PS_TRY(read_price(build, object, "usd_per_gpu_hour", &group->usd_per_gpu_hour, status));
    PS_TRY(read_price(build, object, "usd_per_kwh", &group->usd_per_kwh, status));
    return read_slow_gpus(build, ps_json_member(object, "slow_gpus"), group, status);
}

static ps_code check_names(ps_json groups, const ps_cluster *cluster, ps_status *status)
{
    int32_t i = 0;

    for (ps_json e = ps_json_first(groups); e.node; e = ps_json_next(e), i++)
        for (int32_t j = 0; j < i; j++)
            if (strcmp(cluster->group[i].name, cluster->group[j].name) == 0)
                return ps_json_fail(e, "duplicate-group", status, "two groups are called \"%s\"",
                                    cluster->group[i].name);
    return PS_OK;
}

static ps_code refuse_unsupported(ps_json root, ps_status *status)
{
    ps_json links = ps_json_member(root, "links");
    ps_json matrix = ps_json_member(root, "matrix");

    if (links.node && ps_json_count(links) > 0) {
        ps_json_fail(links, "unsupported-links", status, "links between groups cannot be planned with");
        return ps_fail_hint(status, "leave \"links\" out and plan each group alone");
    }
    if (matrix.node) {
        ps_json_fail(matrix, "unsupported-matrix", status, "measured matrices cannot be planned with");
        return ps_fail_hint(status, "leave \"matrix\" out; state the slowest measured rate as \"nic_bandwidth\"");
    }
    return PS_OK;
}

static ps_code check_format(ps_json root, ps_status *status)
{
    const char *format = "";

    PS_TRY(ps_json_get_string(root, "format", PS_REQUIRED, &format, status));
    if (strcmp(format, "pipesched/cluster/v1") == 0)
        return PS_OK;
    ps_json_fail(ps_json_member(root, "format"), "cluster-format", status, "\"%s\" is not a cluster", format);
    if (strncmp(format, "pipesched/cluster/", 18) == 0)
        return ps_fail_hint(status, "this program reads \"pipesched/cluster/v1\"");
    return ps_fail_hint(status, "a cluster says \"format\": \"pipesched/cluster/v1\"");
}

ps_code ps_cluster_read_json(ps_cluster_build *build, const char *text, int64_t size, ps_cluster *out,
                             ps_status *status)
{
    static const char *const keys[] = {"format", "name", "groups", "links", "matrix", NULL};
    ps_json root;

    PS_TRY(ps_json_parse(build->arena, build->source, text, size, &root, status));
    PS_TRY(ps_json_expect(root, PS_JSON_OBJECT, status));
    PS_TRY(check_format(root, status));
    PS_TRY(ps_json_check_keys(root, keys, status));
    PS_TRY(ps_json_get_string(root, "name", PS_OPTIONAL, &out->name, status));
    PS_TRY(refuse_unsupported(root, status));

    ps_json groups = ps_json_member(root, "groups");
    if (!groups.node)
        return ps_json_fail(root, "missing-key", status, "a cluster needs \"groups\"");
    PS_TRY(ps_json_expect(groups, PS_JSON_ARRAY, status));
    int64_t count = ps_json_count(groups);
    if (count < 1 || count > MAX_GROUPS)
        return ps_json_fail(groups, "out-of-range", status, "from 1 to %d groups are possible", MAX_GROUPS);

    out->group = ps_new(build->arena, ps_group, count);
    for (ps_json e = ps_json_first(groups); e.node; e = ps_json_next(e)) {
        PS_TRY(read_group(build, e, out->num_groups, &out->group[out->num_groups], status));
        out->num_groups++;
    }
    return check_names(groups, out, status);
}
