// SPDX-License-Identifier: Apache-2.0
//
// calibration.c: what a calibration holds for, and how it joins a cluster and a model. Its factors act where the rates
// of a GPU are gathered (rank_view.c) and where communication is timed.
#include "pipesched/calibration.h"

#include <string.h>

#include "base/text.h"
#include "model/model_json.h"

const char *ps_factor_name(ps_factor factor)
{
    static const char *const names[PS_FACTORS] = {"gemm", "attention", "memory", "kernel", "tp", "dp", "pp"};
    return names[factor];
}

static ps_code refuse(const ps_calibration *calibration, ps_status *status)
{
    return ps_fail_at(status, calibration->source, 0, 0, NULL);
}

ps_code ps_calibration_check(const ps_calibration *calibration, const ps_gpu *gpu, ps_precision precision,
                             const char *framework, ps_status *status)
{
    if (strcmp(calibration->gpu, gpu->name) != 0) {
        ps_fail(status, PS_ILLEGAL, "calibration-gpu", "measured on %.64s, the cluster has %.64s", calibration->gpu,
                gpu->name);
        refuse(calibration, status);
        return ps_fail_hint(status, "calibrate on runs of the same GPU type, or plan without --calibration");
    }
    if (calibration->precision != precision) {
        ps_fail(status, PS_ILLEGAL, "calibration-precision", "measured in %s, the job trains in %s",
                ps_precision_name(calibration->precision), ps_precision_name(precision));
        refuse(calibration, status);
        return ps_fail_hint(status, "calibrate on runs in %s, or use --precision %s", ps_precision_name(precision),
                            ps_precision_name(calibration->precision));
    }
    bool any = strcmp(calibration->framework, "any") == 0; // collectives or layers alone
    if (framework && !any && strcmp(calibration->framework, framework) != 0) {
        ps_fail(status, PS_ILLEGAL, "calibration-framework", "measured with %.64s, the plan is for %.64s",
                calibration->framework, framework);
        refuse(calibration, status);
        return ps_fail_hint(status, "efficiencies differ from framework to framework: calibrate on runs of %.64s",
                            framework);
    }
    return PS_OK;
}

static bool has_layer(const ps_model *model, const char *base_name)
{
    for (int32_t layer = 0; layer < model->num_layers; layer++)
        if (strcmp(model->layer[layer].base_name, base_name) == 0)
            return true;
    return false;
}

static ps_code check_set(const ps_calibration *calibration, int32_t set, const ps_model *model, ps_status *status)
{
    const ps_measurement *measured = &calibration->measurement[set];
    char place[64];

    snprintf(place, sizeof place, "/measurements/%d", (int)set);
    for (int32_t layer = 0; layer < measured->num_layers; layer++) {
        if (has_layer(model, measured->layer[layer].base_name))
            continue;
        ps_fail(status, PS_BAD_INPUT, "unknown-layer", "\"%.64s\" is measured, %.64s has no such layer",
                measured->layer[layer].base_name, model->name);
        ps_fail_at(status, calibration->source, 0, 0, place);
        return ps_fail_hint(status, "a calibration with measured layers is for the model that they were measured in");
    }
    for (int32_t own = 0; own < model->num_measurements; own++) {
        if (!ps_measurement_same_conditions(&model->measurement[own], measured))
            continue;
        ps_fail(status, PS_BAD_INPUT, "duplicate-measurement",
                "the model's measurement %d has the same conditions as the calibration's", (int)own);
        ps_fail_at(status, calibration->source, 0, 0, place);
        return ps_fail_hint(status, "leave out one of the two");
    }
    return PS_OK;
}

ps_code ps_calibration_join(ps_arena *arena, const ps_calibration *calibration, ps_group *group, ps_model *model,
                            ps_status *status)
{
    group->curve = calibration->curve;
    group->num_curves = calibration->num_curves;
    group->hop_factor = calibration->factor[PS_FACTOR_PP];
    if (calibration->num_measurements == 0)
        return PS_OK;

    int32_t total = model->num_measurements + calibration->num_measurements;
    ps_measurement *all = ps_new(arena, ps_measurement, total);
    for (int32_t set = 0; set < model->num_measurements; set++)
        all[set] = model->measurement[set];
    for (int32_t set = 0; set < calibration->num_measurements; set++) {
        PS_TRY(check_set(calibration, set, model, status));
        all[model->num_measurements + set] = calibration->measurement[set];
    }
    model->measurement = all;
    model->num_measurements = total;
    return PS_OK;
}
