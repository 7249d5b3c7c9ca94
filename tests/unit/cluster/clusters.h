// SPDX-License-Identifier: Apache-2.0
//
// clusters.h: what the cluster tests share.
#ifndef PS_TESTS_CLUSTERS_H
#define PS_TESTS_CLUSTERS_H

#include "support/cmocka_all.h"

#include "base/text.h"
#include "pipesched/cluster.h"

#define GIB 1073741824.0

// Load or fail the test.
static inline ps_cluster load(ps_arena *arena, const char *name, const ps_cluster_options *options)
{
    ps_cluster cluster;
    ps_status status = {0};
    assert_ok(ps_cluster_load(arena, name, options, &cluster, &status), &status);
    return cluster;
}

// A native file of one group; `source` gives the folder that "from" is relative to.
static inline ps_cluster parse(ps_arena *arena, const char *text, const ps_cluster_options *options)
{
    ps_cluster cluster;
    ps_status status = {0};
    const char *source = TESTS_FOLDER "/data/hwloc/cluster.json";
    assert_ok(ps_cluster_parse(arena, source, text, (int64_t)strlen(text), options, &cluster, &status), &status);
    return cluster;
}

static inline ps_cluster fixture(ps_arena *arena, const char *name, const ps_cluster_options *options)
{
    return load(arena, ps_text_format(arena, "%s/data/hwloc/%s", TESTS_FOLDER, name), options);
}

// Does any warning contain `words`?
static inline bool warns(const ps_cluster *cluster, const char *words)
{
    for (int32_t i = 0; i < cluster->num_warnings; i++)
        if (strstr(cluster->warning[i], words))
            return true;
    return false;
}

// Equal up to the last digits, in which figures from different decimals may differ.
static inline void check_close(double value, double expected, const char *file, int line)
{
    double distance = value > expected ? value - expected : expected - value;
    if (!(distance <= 1e-9 * expected)) {
        print_error("%.17g is not %.17g\n", value, expected);
        _fail(file, line);
    }
}
#define assert_close(value, expected) check_close((value), (expected), __FILE__, __LINE__)
#define assert_rate(figure, expected) assert_close((figure).value, (expected))

#endif
