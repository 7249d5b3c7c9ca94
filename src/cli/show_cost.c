// SPDX-License-Identifier: Apache-2.0
//
// show_cost.c: show --cost of a model.
#include "cli/show_cost.h"

#include "base/vec.h"
#include "cli/cost_setup.h"
#include "report/cost_terms.h"
#include "report/model_summary.h"

static ps_coverage coverage(void)
{
    ps_coverage all;
    all.effect = ps_cost_effects(&all.count);
    return all;
}

// One layer of each type: repeated blocks cost the same.
static ps_code explain_layers(ps_run *run, const ps_model *model, const ps_cost_setup *setup, ps_cost_report *report,
                              ps_status *status)
{
    ps_vec(ps_cost_terms) layers = {0};
    const char **name = ps_new(run->arena, const char *, model->num_layers);
    for (int32_t layer = 0; layer < model->num_layers; layer++)
        name[layer] = model->layer[layer].base_name;
    const int32_t *first = ps_first_of_each(run->arena, name, model->num_layers);
    for (int32_t layer = 0; layer < model->num_layers; layer++) {
        if (first[layer] != layer)
            continue;
        ps_cost_terms terms;
        PS_TRY(ps_cost_explain(run->arena, model, &setup->group, &setup->job, &setup->layout, layer, &terms, status));
        *ps_vec_push(run->arena, &layers) = terms;
    }
    report->num_layers = (int32_t)layers.count;
    report->layer = layers.data;
    return PS_OK;
}

static ps_code set_up(ps_run *run, ps_model *model, const ps_show_cost *what, ps_cost_setup *out, ps_status *status)
{
    if (what->cluster) {
        ps_cluster cluster;
        PS_TRY(ps_cluster_load(run->arena, what->cluster, &what->how, &cluster, status));
        PS_TRY(ps_cost_setup_cluster(run, model, &cluster, out, status));
    } else {
        PS_TRY(ps_cost_setup_gpu(run, model, what->gpu, out, status));
    }
    if (!what->calibration)
        return PS_OK;
    return ps_cost_setup_calibrate(run, what->calibration, model, out, status);
}

ps_code ps_show_model_cost(ps_run *run, const ps_model *model, const ps_show_cost *what, ps_status *status)
{
    ps_model calibrated = *model;
    ps_cost_setup setup;
    PS_TRY(set_up(run, &calibrated, what, &setup, status));
    ps_cost_report report = {.model = model->name,
                             .gpu = setup.group.gpu.name,
                             .micro_batch_size = setup.layout.micro_batch_size,
                             .seq_length = setup.job.seq_length,
                             .tp = setup.layout.tp,
                             .calibration = setup.job.calibration,
                             .coverage = coverage()};
    PS_TRY(explain_layers(run, &calibrated, &setup, &report, status));
    if (run->common->json)
        return ps_cost_json(run->out, &report, status);
    ps_cost_text(run->out, run->arena, &report, run->common->quiet);
    return PS_OK;
}
