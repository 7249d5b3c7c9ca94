// SPDX-License-Identifier: Apache-2.0
//
// calibrate_sources.c: what a calibration holds beside factors: measured collectives and layers.
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "model/model_json.h"
#include "pipesched/calibrate.h"

#define LARGE_BYTES 1048576.0  // a curve that begins above says nothing of small messages
#define SMALL_BYTES 16777216.0 // one that ends below says little of large ones

typedef struct collector {
    ps_arena *arena;
    const ps_model *model;
    const ps_group *group;
    ps_calibration *out;
    ps_vec(const char *) warnings;
    ps_status *status;
} collector;

static void warn(collector *c, const char *text)
{
    *ps_vec_push(c->arena, &c->warnings) = text;
}

ps_precision ps_calibration_precision(const ps_job *job, const ps_gpu *gpu)
{
    bool has_bf16 = gpu->peak_flops[PS_PRECISION_BF16].value > 0;
    bool has_fp16 = gpu->peak_flops[PS_PRECISION_FP16].value > 0;
    return job->precision_given || has_bf16 || !has_fp16 ? job->precision : PS_PRECISION_FP16;
}

static bool is_own_gpu(const collector *c, const char *name, const char **known)
{
    *known = ps_catalog_match(c->arena, name, 0);
    return strcmp(name, c->group->gpu.name) == 0 || (*known && strcmp(*known, c->group->gpu.name) == 0);
}

static ps_code check_gpu(collector *c, const ps_nccl_test *test)
{
    const char *known = NULL;
    if (!test->gpu || is_own_gpu(c, test->gpu, &known))
        return PS_OK;
    if (!known) {
        warn(c, ps_text_format(c->arena, "%s: \"%s\" is not in the catalog and is taken for %s", test->source,
                               test->gpu, c->group->gpu.name));
        return PS_OK;
    }
    ps_fail(c->status, PS_BAD_INPUT, "calibration-gpu", "measured on %.64s, the cluster has %.64s", test->gpu,
            c->group->gpu.name);
    ps_fail_at(c->status, test->source, test->line, 1, NULL);
    return ps_fail_hint(c->status, "give the cluster that was measured, %.64s", known);
}

static void warn_of_use(collector *c, const ps_nccl_test *test)
{
    const ps_group *group = c->group;
    const char *what = ps_text_format(c->arena, "%s: %s among %d ranks on %d node%s", test->source, test->name,
                                      (int)test->ranks, (int)test->nodes, ps_plural(test->nodes));
    if (test->nodes > 1 && group->nvlink_domain_nodes > 1)
        warn(c, ps_text_format(c->arena, "%s is not used: NVLink joins %d nodes of this cluster into one", what,
                               (int)group->nvlink_domain_nodes));
    else if (test->ranks / test->nodes > ps_group_domain_gpus(group))
        warn(c, ps_text_format(c->arena, "%s is not used: a node of this cluster has %lld GPUs", what,
                               (long long)ps_group_domain_gpus(group)));
}

static void warn_of_range(collector *c, const ps_nccl_test *test)
{
    double least = test->bytes[0];
    double most = test->bytes[test->num_points - 1];
    char text[32];
    if (least > LARGE_BYTES)
        warn(c,
             ps_text_format(c->arena, "%s: %s begins at %s, and anything smaller takes as long: measure from -b 8 on",
                            test->source, test->name, ps_format_bytes((int64_t)least, text)));
    if (most < SMALL_BYTES)
        warn(c,
             ps_text_format(c->arena, "%s: %s ends at %s, and anything larger takes in proportion: measure up to -e 1G",
                            test->source, test->name, ps_format_bytes((int64_t)most, text)));
}

static ps_code add_curves(collector *c, const ps_nccl_tests *tests)
{
    ps_collective_curve *curve = ps_new(c->arena, ps_collective_curve, tests->count);
    int32_t count = 0;

    for (int32_t index = 0; index < tests->count; index++) {
        const ps_nccl_test *test = &tests->test[index];
        PS_TRY(check_gpu(c, test));
        if (!test->has_curve) {
            warn(c, ps_text_format(c->arena,
                                   "%s: %s is not kept: a calibration holds all_reduce, reduce_scatter, "
                                   "all_gather and all_to_all",
                                   test->source, test->name));
            continue;
        }
        warn_of_use(c, test);
        warn_of_range(c, test);
        curve[count++] = (ps_collective_curve){.collective = test->collective,
                                               .ranks = test->ranks,
                                               .nodes = test->nodes,
                                               .num_points = test->num_points,
                                               .bytes = test->bytes,
                                               .seconds = test->seconds};
    }
    c->out->curve = curve;
    c->out->num_curves = count;
    return PS_OK;
}

// Before any set is left out, so that the place in the file is right.
static ps_code check_layers(const collector *c, const ps_profile *profile)
{
    ps_calibration alone = {
        .source = profile->source, .num_measurements = profile->num_measurements, .measurement = profile->measurement};
    ps_group group = *c->group;
    ps_model model = *c->model;
    return ps_calibration_join(c->arena, &alone, &group, &model, c->status);
}

static ps_code refuse_profile(const collector *c, const ps_profile *profile, bool gpu)
{
    const ps_measurement *set = &profile->measurement[0];
    if (gpu) {
        ps_fail(c->status, PS_BAD_INPUT, "calibration-gpu", "layers are measured on %.64s, the cluster has %.64s",
                set->gpu, c->group->gpu.name);
        ps_fail_at(c->status, profile->source, 0, 0, NULL);
        return ps_fail_hint(c->status, "give the cluster that was measured");
    }
    ps_fail(c->status, PS_BAD_INPUT, "calibration-precision", "layers are measured in %s, the calibration is of %s",
            ps_precision_name(set->precision), ps_precision_name(c->out->precision));
    ps_fail_at(c->status, profile->source, 0, 0, NULL);
    return ps_fail_hint(c->status, "give --precision %s", ps_precision_name(set->precision));
}

// The driver's name of a GPU and the catalog's may stand for one.
static ps_code check_once(const collector *c, const ps_profile *profile, const ps_measurement *kept, int32_t last)
{
    for (int32_t set = 0; set < last; set++) {
        if (!ps_measurement_same_conditions(&kept[set], &kept[last]))
            continue;
        ps_fail(c->status, PS_BAD_INPUT, "duplicate-measurement", "conditions %d and %d of those on %.64s are the same",
                (int)set, (int)last, c->group->gpu.name);
        return ps_fail_at(c->status, profile->source, 0, 0, "/measurements");
    }
    return PS_OK;
}

static ps_code add_layers(collector *c, const ps_profile *profile)
{
    ps_measurement *kept = ps_new(c->arena, ps_measurement, profile->num_measurements);
    int32_t count = 0;
    int32_t of_gpu = 0;

    PS_TRY(check_layers(c, profile));
    for (int32_t set = 0; set < profile->num_measurements; set++) {
        const char *known = NULL;
        if (!is_own_gpu(c, profile->measurement[set].gpu, &known))
            continue;
        of_gpu++;
        if (profile->measurement[set].precision != c->out->precision)
            continue;
        kept[count] = profile->measurement[set];
        kept[count].gpu = c->group->gpu.name;
        PS_TRY(check_once(c, profile, kept, count));
        count++;
    }
    if (count == 0)
        return refuse_profile(c, profile, of_gpu == 0);
    if (count < profile->num_measurements)
        warn(c,
             ps_text_format(c->arena, "%s: %d of %d conditions are of another GPU type or precision: left out",
                            profile->source, (int)(profile->num_measurements - count), (int)profile->num_measurements));
    c->out->measurement = kept;
    c->out->num_measurements = count;
    return PS_OK;
}

ps_code ps_calibration_collect(ps_arena *arena, const ps_model *model, const ps_cluster *cluster, const char *framework,
                               ps_precision precision, ps_calibration_sources *sources, ps_calibration *out,
                               ps_status *status)
{
    if (cluster->num_groups != 1) {
        ps_fail(status, PS_ILLEGAL, "unsupported-mixed-cluster", "a calibration needs one group of equal nodes, got %d",
                (int)cluster->num_groups);
        return ps_fail_at(status, cluster->source, 0, 0, "/groups");
    }
    collector c = {.arena = arena, .model = model, .group = &cluster->group[0], .out = out, .status = status};

    *out = (ps_calibration){.source = "",
                            .framework = framework ? framework : "any",
                            .gpu = c.group->gpu.name,
                            .precision = precision,
                            .leave_one_out = -1};
    for (int factor = 0; factor < PS_FACTORS; factor++)
        out->factor[factor] = 1;
    if (sources->tests.count > 0)
        PS_TRY(add_curves(&c, &sources->tests));
    if (sources->profile.num_measurements > 0)
        PS_TRY(add_layers(&c, &sources->profile));
    sources->num_warnings = (int32_t)c.warnings.count;
    sources->warning = c.warnings.data;
    return PS_OK;
}
